"""The ASGI application: turns an HTTP request into a checked `ApiRequest`, and the result into a response."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator
from typing import Final

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from rota.api import credentials
from rota.api.answers import guarded, problem, response, streamed
from rota.api.credentials import Credential, Forgery
from rota.api.feed import EventFeed
from rota.api.guard import Guard
from rota.api.manager_connections import ManagerConnections, unknown
from rota.api.operations import ApiRequest, Operation, read
from rota.api.pages import Pages
from rota.api.paths import Paths, is_api
from rota.api.problems import Unauthorized
from rota.api.rate_limits import RateLimits
from rota.api.request_parsing import body_of, query_of
from rota.api.schema import document
from rota.api.services import Services
from rota.client import calls
from rota.errors import BadInput, Bug, Denied, NoManager, NotFound, RotaError, TimedOut, WireError
from rota.wire.codec import UNSENDABLE

log = logging.getLogger("rota.api")

#: An element of an array (12_3) in the place of a job id.
_ELEMENT: Final = re.compile(r"[1-9][0-9]{0,17}_[0-9]{1,10}")


class Gateway:
    """The ASGI application of the gateway."""

    def __init__(
        self,
        operations: list[Operation],
        *,
        connections: ManagerConnections,
        feed: EventFeed,
        guard: Guard,
        pages: Pages,
        own_token: str,
        port: int,
    ) -> None:
        self.services = Services(
            connections=connections,
            feed=feed,
            limits=RateLimits(),
            forgery=Forgery(own_token),
            cookie=credentials.cookie_name(port),
            own_token=own_token,
            document=document(operations),
        )
        self._guard = guard
        self._pages = pages
        self._paths = Paths(operations)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise AssertionError(f"a {scope['type']} is not served")
        answer = await self._answer(scope, receive)
        try:
            await answer(scope, receive, guarded(send))
        except (ClientDisconnect, ConnectionError):
            pass  # the client has disconnected

    async def _answer(self, scope: Scope, receive: Receive) -> ASGIApp:
        method, raw = scope["method"], scope["raw_path"]
        try:
            page = not is_api(raw)
            headers = self._guard.check(scope["headers"], page=page)
            if page:
                return self._pages.find(method, scope["path"], headers)
            operation, place = self._paths.find(method, raw)
            return await self._do(operation, place, Request(scope, receive), headers)
        except WireError as error:
            if error.code == UNSENDABLE:
                # JSON numbers have no bounds; the manager's protocol has.
                return problem(BadInput(error.message, hint="use numbers of at most 64 bits"))
            return problem(error)
        except RotaError as error:
            return problem(error)
        except ClientDisconnect:
            return Response(status_code=400)  # the client has disconnected
        except asyncio.CancelledError:
            # This process is stopping because the manager has ended; it can still say so.
            return problem(NoManager("the manager is not there any more", hint="try again in a moment"))
        except Exception:
            log.exception("%s %r failed", method, raw)
            return problem(Bug("the gateway could not do this", hint="see 'rota manager logs'"))

    async def _do(
        self, operation: Operation, place: dict[str, str], request: Request, headers: dict[str, str]
    ) -> ASGIApp:
        address = str((request.scope.get("client") or ("",))[0])
        if operation.role == "open":
            self.services.limits.ask(f"open {operation.id} {address}")
            try:
                return await self._done(operation, None, place, request, headers)
            except Unauthorized:
                self.services.limits.failed(address, code=True)
                raise
        credential = credentials.find(headers, self.services.cookie)
        await self._refuse_unknown(credential, address)
        self.services.limits.ask(credential.token)
        self.services.forgery.check(credential, operation.method, headers.get(credentials.CSRF_HEADER, ""))
        return await self._done(operation, credential, place, request, headers)

    async def _refuse_unknown(self, credential: Credential, address: str) -> None:
        """Raises for a token that the manager refuses. Each invalid token counts once against the address."""
        new = self.services.connections.verdicts.lookup(credential.token) is None
        if not await self.services.connections.known(credential.token):
            if new:
                self.services.limits.failed(address, code=False)
            raise unknown(credential.token)

    async def _done(
        self,
        operation: Operation,
        credential: Credential | None,
        place: dict[str, str],
        request: Request,
        headers: dict[str, str],
    ) -> ASGIApp:
        try:
            async with asyncio.timeout(operation.patience_s):
                if credential is not None and (operation.body is not None or operation.role == "admin"):
                    await self._known(operation, credential)  # before the body is read
                if credential is not None and _ELEMENT.fullmatch(place.get("id", "")):
                    place = place | {"id": await self._element(credential, place["id"])}
                with self.services.limits.body() as held:
                    asked = ApiRequest(
                        self.services,
                        credential,
                        path=read("the path", "the path", place, operation.place),
                        query=query_of(request, operation),
                        body=await body_of(operation, request, headers, held),
                        headers=headers,
                    )
                    answer = await operation.handler(asked)
                if isinstance(answer, AsyncIterator):
                    return await streamed(operation, answer, only_headers=request.method == "HEAD")
        except TimeoutError:
            raise TimedOut("this took too long", hint="ask for less, or try again") from None
        return response(operation, answer)

    async def _element(self, credential: Credential, text: str) -> str:
        """The id of the job that is this element of an array. Raises `NotFound`."""
        page = await self.services.connections.call(
            credential.token, calls.page([text], search="", sort="id", limit=1)
        )
        if not page.jobs:
            raise NotFound(f"there is no job {text}", hint="GET /api/v1/jobs lists them")
        return str(page.jobs[0].id)

    async def _known(self, operation: Operation, credential: Credential) -> None:
        """Raises early for an unknown token, or one without the role; the manager still decides."""
        if await self.services.connections.role(credential.token) != "admin" and operation.role == "admin":
            raise Denied("this is for administrators", hint="use the token of one")
