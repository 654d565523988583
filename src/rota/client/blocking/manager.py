# Derived from rota/client/aio/manager.py by `make client`: change it there.
"""Operations on the manager itself: its state, settings, tokens and backup."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rota.client import calls
from rota.client.blocking.connection import Connection
from rota.client.blocking.watching import Watching
from rota.wire import views


class ManagerOperations(Connection):
    """What can be asked of the manager about itself, and what it can be told."""

    def manager_settings(self) -> views.SettingsView:
        """The settings that the manager began with."""
        return self.ask(calls.manager_settings())

    def manager_status(self) -> views.ManagerView:
        """The manager itself: process, addresses, runners."""
        return self.ask(calls.manager_status())

    def manager_doctor(self) -> Any:
        """What the manager finds when it checks itself."""
        return self.ask(calls.manager_doctor())

    def ui_link(self) -> views.UiLink:
        """Where the dashboard is, and a code that lets one browser in, once and within a minute."""
        return self.ask(calls.ui_link())

    def stop_manager(self, *, kill: bool = False) -> None:
        """Stop the manager. Running jobs go on, unless `kill`."""
        self.ask(calls.stop_manager(kill=kill))

    def pause_manager(self) -> views.PauseView:
        """Start nothing more until `resume_manager`, also after a restart. Running jobs go on."""
        return self.ask(calls.pause_manager())

    def drain_manager(self) -> views.PauseView:
        """Start nothing more; the manager stops when nothing runs any more."""
        return self.ask(calls.drain_manager())

    def resume_manager(self) -> views.PauseView:
        """End a pause or a drain."""
        return self.ask(calls.resume_manager())

    def backup(
        self, path: str, *, force: bool = False, progress: Callable[[float], None] | None = None
    ) -> views.BackupView:
        """Have the manager copy its database to a new file. `path` is absolute: the manager opens it.
        `force`: replace an old one. `progress` is told how much of the whole, 0 to 1, is done.

            manager.backup("/backups/rota.db").jobs
        """
        stream = calls.backup(path, force=force)
        watching = Watching(self, stream, self._begin(stream))
        for share in watching:
            if progress is not None:
                progress(share)
        assert watching.settled is not None
        return watching.settled

    def add_token(
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
        return self.ask(calls.token_add(name, role, expires_s=expires_s, host=host, user=user))

    def tokens(self) -> list[views.TokenView]:
        """All tokens, without their secrets."""
        return self.ask(calls.token_list())

    def remove_token(self, name: str) -> None:
        """Make a token worthless, at once."""
        self.ask(calls.token_remove(name))
