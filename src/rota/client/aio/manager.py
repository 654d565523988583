"""Operations on the manager itself: its state, settings, tokens and backup."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rota.client import calls
from rota.client.aio.connection import AsyncConnection
from rota.client.aio.watching import AsyncWatching
from rota.wire import views


class ManagerOperations(AsyncConnection):
    """What can be asked of the manager about itself, and what it can be told."""

    async def manager_settings(self) -> views.SettingsView:
        """The settings that the manager began with."""
        return await self.ask(calls.manager_settings())

    async def manager_status(self) -> views.ManagerView:
        """The manager itself: process, addresses, runners."""
        return await self.ask(calls.manager_status())

    async def manager_doctor(self) -> Any:
        """What the manager finds when it checks itself."""
        return await self.ask(calls.manager_doctor())

    async def ui_link(self) -> views.UiLink:
        """Where the dashboard is, and a code that lets one browser in, once and within a minute."""
        return await self.ask(calls.ui_link())

    async def stop_manager(self, *, kill: bool = False) -> None:
        """Stop the manager. Running jobs go on, unless `kill`."""
        await self.ask(calls.stop_manager(kill=kill))

    async def pause_manager(self) -> views.PauseView:
        """Start nothing more until `resume_manager`, also after a restart. Running jobs go on."""
        return await self.ask(calls.pause_manager())

    async def drain_manager(self) -> views.PauseView:
        """Start nothing more; the manager stops when nothing runs any more."""
        return await self.ask(calls.drain_manager())

    async def resume_manager(self) -> views.PauseView:
        """End a pause or a drain."""
        return await self.ask(calls.resume_manager())

    async def backup(
        self, path: str, *, force: bool = False, progress: Callable[[float], None] | None = None
    ) -> views.BackupView:
        """Have the manager copy its database to a new file. `path` is absolute: the manager opens it.
        `force`: replace an old one. `progress` is told how much of the whole, 0 to 1, is done.

            (await manager.backup("/backups/rota.db")).jobs
        """
        stream = calls.backup(path, force=force)
        watching = AsyncWatching(self, stream, await self._begin(stream))
        async for share in watching:
            if progress is not None:
                progress(share)
        assert watching.settled is not None
        return watching.settled

    async def add_token(
        self,
        name: str,
        role: str = "user",
        *,
        expires_s: float | None = None,
        host: str | None = None,
        user: str | None = None,
    ) -> views.NewTokenView:
        """Make a token, for this user; for a runner, that of the agent of this host alone. Its secret is told
        only here."""
        return await self.ask(calls.token_add(name, role, expires_s=expires_s, host=host, user=user))

    async def tokens(self) -> list[views.TokenView]:
        """All tokens, without their secrets."""
        return await self.ask(calls.token_list())

    async def remove_token(self, name: str) -> None:
        """Make a token worthless, at once."""
        await self.ask(calls.token_remove(name))
