"""The manager itself: status, pause, stop, backup, checks and tokens."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from rota.api.operations import ApiRequest, OperationTable
from rota.client import calls
from rota.wire.views import BackupView, ManagerView, NewTokenView, PauseView, SettingsView, TokenView

table = OperationTable("manager")

TokenName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$")]


@table.get("/manager", "show_manager", answer=ManagerView)
async def show_manager(request: ApiRequest) -> ManagerView:
    """The manager: process, addresses, runners."""
    return await request.call(calls.manager_status())


@table.get("/manager/settings", "show_settings", answer=SettingsView, role="admin")
async def show_settings(request: ApiRequest) -> SettingsView:
    """The settings the manager started with; later changes take effect at its next start."""
    return await request.call(calls.manager_settings())


@table.post("/manager/pause", "pause_manager", answer=PauseView, role="admin")
async def pause_manager(request: ApiRequest) -> PauseView:
    """Start nothing more until it is resumed. Running jobs go on."""
    return await request.call(calls.pause_manager())


@table.post("/manager/resume", "resume_manager", answer=PauseView, role="admin")
async def resume_manager(request: ApiRequest) -> PauseView:
    """End a pause or a drain."""
    return await request.call(calls.resume_manager())


@table.post("/manager/drain", "drain_manager", answer=PauseView, role="admin")
async def drain_manager(request: ApiRequest) -> PauseView:
    """Start nothing more; stop when no job is running."""
    return await request.call(calls.drain_manager())


class StopBody(Struct, forbid_unknown_fields=True):
    kill: bool = False


@table.post("/manager/stop", "stop_manager", body=StopBody, status=204, role="admin")
async def stop_manager(request: ApiRequest) -> None:
    """Stop the manager. Running jobs continue unless they are to be killed."""
    await request.call(calls.stop_manager(kill=request.body.kill))


class BackupBody(Struct, forbid_unknown_fields=True):
    path: Annotated[str, Meta(min_length=1, max_length=4096, description="A new file on the manager's machine.")]
    force: bool = False


@table.post("/manager/backup", "back_up", body=BackupBody, answer=BackupView, role="admin", patience_s=3600.0)
async def back_up(request: ApiRequest) -> BackupView:
    """Copy the database to a new file."""
    async with request.services.connections.client(request.credential.token) as client:
        return await client.backup(request.body.path, force=request.body.force)


@table.get("/doctor", "doctor", answer=list[Any])
async def doctor(request: ApiRequest) -> Any:
    """Problems that the manager finds when it checks itself; empty if there are none."""
    return await request.call(calls.manager_doctor())


@table.get("/tokens", "list_tokens", answer=list[TokenView], role="admin")
async def list_tokens(request: ApiRequest) -> list[TokenView]:
    """All tokens, without their secrets."""
    return await request.call(calls.token_list())


class NewToken(Struct, forbid_unknown_fields=True):
    name: TokenName
    role: Literal["user", "admin", "runner"] = "user"
    expires_s: Annotated[float, Meta(gt=0, le=3.2e9)] | None = None
    user: TokenName | None = None  #: its owner; null: the user running the manager


@table.post("/tokens", "add_token", body=NewToken, answer=NewTokenView, status=201, role="admin")
async def add_token(request: ApiRequest) -> NewTokenView:
    """Create a token. Its secret is shown only here."""
    new = request.body
    return await request.call(calls.token_add(new.name, new.role, expires_s=new.expires_s, user=new.user))


class OneToken(Struct, forbid_unknown_fields=True):
    name: TokenName


@table.delete("/tokens/{name}", "remove_token", place=OneToken, status=204, role="admin")
async def remove_token(request: ApiRequest) -> None:
    """Revoke a token and close the connections that use it."""
    await request.call(calls.token_remove(request.path.name))
