"""The manager itself: how it is, that it pause or stop, its tokens, its nodes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from rota.api.operations import Ask, Table
from rota.client import calls
from rota.wire.views import BackupView, ManagerView, NewTokenView, PauseView, SettingsView, TokenView

table = Table("manager")

TokenName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$")]


@table.get("/manager", "show_manager", answer=ManagerView)
async def show_manager(ask: Ask) -> ManagerView:
    """The manager: process, addresses, runners."""
    return await ask.call(calls.manager_status())


@table.get("/manager/settings", "show_settings", answer=SettingsView, role="admin")
async def show_settings(ask: Ask) -> SettingsView:
    """The settings that the manager began with; what was changed since holds when it is started again."""
    return await ask.call(calls.manager_settings())


@table.post("/manager/pause", "pause_manager", answer=PauseView, role="admin")
async def pause_manager(ask: Ask) -> PauseView:
    """Start nothing more until it is resumed. Running jobs go on."""
    return await ask.call(calls.pause_manager())


@table.post("/manager/resume", "resume_manager", answer=PauseView, role="admin")
async def resume_manager(ask: Ask) -> PauseView:
    """End a pause or a drain."""
    return await ask.call(calls.resume_manager())


@table.post("/manager/drain", "drain_manager", answer=PauseView, role="admin")
async def drain_manager(ask: Ask) -> PauseView:
    """Start nothing more; stop when nothing runs any more."""
    return await ask.call(calls.drain_manager())


class StopBody(Struct, forbid_unknown_fields=True):
    kill: bool = False


@table.post("/manager/stop", "stop_manager", body=StopBody, status=204, role="admin")
async def stop_manager(ask: Ask) -> None:
    """Stop the manager. Running jobs go on, unless they are to be killed."""
    await ask.call(calls.stop_manager(kill=ask.body.kill))


class BackupBody(Struct, forbid_unknown_fields=True):
    path: Annotated[str, Meta(min_length=1, max_length=4096, description="A new file on the manager's machine.")]
    force: bool = False


@table.post("/manager/backup", "back_up", body=BackupBody, answer=BackupView, role="admin", patience_s=3600.0)
async def back_up(ask: Ask) -> BackupView:
    """Copy the database to a new file."""
    async with ask.services.links.client(ask.credential.token) as client:
        return await client.backup(ask.body.path, force=ask.body.force)


@table.get("/doctor", "doctor", answer=list[Any])
async def doctor(ask: Ask) -> Any:
    """What the manager finds when it checks itself; nothing when all is well."""
    return await ask.call(calls.manager_doctor())


@table.get("/tokens", "list_tokens", answer=list[TokenView], role="admin")
async def list_tokens(ask: Ask) -> list[TokenView]:
    """All tokens, without their secrets."""
    return await ask.call(calls.token_list())


class NewToken(Struct, forbid_unknown_fields=True):
    name: TokenName
    role: Literal["user", "admin", "runner"] = "user"
    expires_s: Annotated[float, Meta(gt=0, le=3.2e9)] | None = None
    user: TokenName | None = None  #: whose it is; null: of whoever runs the manager


@table.post("/tokens", "add_token", body=NewToken, answer=NewTokenView, status=201, role="admin")
async def add_token(ask: Ask) -> NewTokenView:
    """Make a token; its secret is told only here."""
    new = ask.body
    return await ask.call(calls.token_add(new.name, new.role, expires_s=new.expires_s, user=new.user))


class OneToken(Struct, forbid_unknown_fields=True):
    name: TokenName


@table.delete("/tokens/{name}", "remove_token", place=OneToken, status=204, role="admin")
async def remove_token(ask: Ask) -> None:
    """Make a token worthless; who is connected with it is cut off."""
    await ask.call(calls.token_remove(ask.path.name))
