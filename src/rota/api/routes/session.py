"""Login: exchanges a one-time code from `rota manager ui` for a browser session."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from rota import __version__
from rota.api import credentials
from rota.api.operations import ApiRequest, OperationTable, RawAnswer
from rota.api.problems import Unauthorized
from rota.client import calls
from rota.errors import BadInput, Denied
from rota.wire.client_messages import Welcome

table = OperationTable("session")


class Login(Struct, forbid_unknown_fields=True):
    code: Annotated[str, Meta(min_length=1, max_length=200, description="From 'rota manager ui'.")]


class SessionView(Struct):
    user: str
    role: str
    version: str
    deployment: str
    csrf: Annotated[str, Meta(description="To be sent in the header X-Rota-CSRF with every change.")]
    expires_at: datetime | None = None
    own_only: Annotated[bool, Meta(description="May change, and read the output of, only its own jobs.")] = False


@table.post("/session", "log_in", body=Login, answer=SessionView, role="open", body_max=4096, patience_s=10.0)
async def log_in(request: ApiRequest) -> RawAnswer:
    """Exchange a one-time code for a session cookie."""
    services = request.services
    try:
        # Nothing may fail after this: the code is spent.
        async with services.connections.client(services.own_token) as client:
            made = await client.ask(calls.ui_redeem(request.body.code))
            services.connections.verdicts.accept(made.token)
            view = _view(request, made.token, client.welcome)
    except (Denied, BadInput) as error:
        raise Unauthorized(error.message, hint=error.hint) from None
    assert made.expires_s is not None
    # The connection was the gateway's own; the answer names the owner of the session.
    view.user, view.role, view.own_only, view.expires_at = made.user, made.role, made.own_only, made.expires_at
    cookie = credentials.set_cookie(request.services.cookie, made.token, max_age_s=max(1, int(made.expires_s)))
    return RawAnswer(msgspec.json.encode(view), headers={"set-cookie": cookie})


@table.get("/session", "show_session", answer=SessionView)
async def show_session(request: ApiRequest) -> SessionView:
    """The user of this session."""
    token = request.credential.token
    async with request.services.connections.client(token) as client:
        await client.ask(calls.ping())
        return _view(request, token, client.welcome)


@table.delete("/session", "log_out", status=204)
async def log_out(request: ApiRequest) -> RawAnswer:
    """End the session; its cookie is no longer valid."""
    if request.credential.by_cookie:
        await request.call(calls.ui_leave())
    return RawAnswer(b"", headers={"set-cookie": credentials.set_cookie(request.services.cookie, "", max_age_s=0)})


def _view(request: ApiRequest, token: str, welcome: Welcome) -> SessionView:
    return SessionView(
        user=welcome.user,
        role=welcome.role,
        version=__version__,
        deployment=welcome.deployment,
        csrf=request.services.forgery.token(token),
        expires_at=None if welcome.until is None else datetime.fromtimestamp(welcome.until, UTC),
        own_only=welcome.own_only,
    )
