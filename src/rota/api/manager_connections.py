"""A pool of connections to the manager, a few per recently used credential.

Each connection is opened with the credential of the request, so the manager decides what is allowed and the
gateway adds no rights of its own.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, TypeVar

import msgspec

from rota.api.problems import ManagerAway, TooMany, Unauthorized
from rota.api.token_verdicts import TokenVerdicts
from rota.client import calls
from rota.client.aio import AsyncClient
from rota.client.calls import Call
from rota.client.endpoint import Endpoint, find, role_of
from rota.errors import Denied, NoManager, RotaError
from rota.home import Home

T = TypeVar("T")

#: Connections per credential, so that one slow request does not block the others.
_PER_TOKEN: Final = 4
_TOKENS: Final = 64
#: Connections being opened at once, for all credentials together: limits the cost of guessed tokens.
_DIALLING: Final = 8
_IDLE_S: Final = 60.0
_TIMEOUT_S: Final = 30.0


class _Link:
    """A connection, used by one request at a time."""

    def __init__(self, client: AsyncClient) -> None:
        self.client = client
        self.used = time.monotonic()


class _Bundle:
    """The connections of one credential."""

    def __init__(self) -> None:
        self.free: list[_Link] = []
        self.turn = asyncio.Semaphore(_PER_TOKEN)
        self.users = 0  #: requests that use or wait for a connection
        self.used = time.monotonic()


class ManagerConnections:
    """Sends requests to the manager with the credentials of users."""

    def __init__(self, home: Home, own_token: str) -> None:
        self._home = home
        self._own_token = own_token
        self._bundles: dict[str, _Bundle] = {}
        self._dialling = asyncio.Semaphore(_DIALLING)
        self.verdicts = TokenVerdicts()

    async def call(self, token: str, call: Call[T]) -> T:
        """Make one call with this token."""
        async with self.client(token) as client:
            return await client.ask(call)

    async def known(self, token: str) -> bool:
        """Does the manager accept this token? Asked over the gateway's own connection: an invalid token never gets
        one, so guessing cannot exhaust the pool."""
        known = self.verdicts.lookup(token)
        if known is None:
            known = await self.call(self._own_token, calls.check_token(token))
            if known:
                self.verdicts.accept(token)
            else:
                self.verdicts.reject(token)
        return known

    async def role(self, token: str) -> str:
        """The role of a token. Raises `Unauthorized` if the manager refuses it."""
        async with self.client(token) as client:
            return client.welcome.role

    @asynccontextmanager
    async def client(self, token: str) -> AsyncIterator[AsyncClient]:
        """Borrow a connection. It is closed instead of reused if a call on it was interrupted."""
        bundle, unneeded = self._bundle(token)
        bundle.users += 1
        try:
            for link in unneeded:
                await link.client.close()
            async with bundle.turn:
                link = await self._take(bundle, token)
                try:
                    yield link.client
                except Denied as error:
                    if not link.client.connected:  # the token was refused, not this request
                        raise self._refusal(token, error) from None
                    raise
                except (NoManager, TimeoutError, asyncio.CancelledError, GeneratorExit):
                    await link.client.close()  # an answer may still be on its way
                    raise
                finally:
                    await self._give_back(bundle, link)
        finally:
            bundle.users -= 1
            if not bundle.users and not bundle.free:
                self._bundles.pop(token, None)

    async def connect(self, token: str) -> AsyncClient:
        """A dedicated connection, for a stream. The caller closes it."""
        client = AsyncClient(lambda: self._endpoint(token), timeout=_TIMEOUT_S)
        async with self._dialling:
            if self.verdicts.lookup(token) is False:
                raise unknown(token)
            try:
                await client.connect()
            except Denied as error:
                raise self._refusal(token, error) from None
            except NoManager as error:
                raise ManagerAway(error.message, hint=error.hint) from None
        self.verdicts.accept(token)
        return client

    def _refusal(self, token: str, error: Denied) -> RotaError:
        """The error for a request whose token the manager refuses."""
        if token == self._own_token:  # not the user's token: our manager has ended and another one answers
            return ManagerAway("the manager was started anew", hint="try again in a moment")
        self.verdicts.reject(token)
        return _unauthorized(error)

    def _endpoint(self, token: str) -> Endpoint:
        return msgspec.structs.replace(find(self._home, environ={}), role=role_of(token), token=token)

    def _bundle(self, token: str) -> tuple[_Bundle, list[_Link]]:
        """The connections of a token, and evicted connections of another token, which the caller closes."""
        bundle = self._bundles.get(token)
        unneeded: list[_Link] = []
        if bundle is None:
            if len(self._bundles) >= _TOKENS:
                unneeded = self._let_go()
            bundle = self._bundles[token] = _Bundle()
        bundle.used = time.monotonic()
        return bundle, unneeded

    def _let_go(self) -> list[_Link]:
        """Evict the least recently used idle token. Raises `TooMany` when all are in use."""
        idle = [token for token, bundle in self._bundles.items() if not bundle.users]
        if not idle:
            raise TooMany("too many different tokens are in use", hint="try again in a moment", after_s=5)
        return self._bundles.pop(min(idle, key=lambda token: self._bundles[token].used)).free

    async def _take(self, bundle: _Bundle, token: str) -> _Link:
        while bundle.free:
            link = bundle.free.pop()
            if await link.client.alive():
                return link
            await link.client.close()
        return _Link(await self.connect(token))

    async def _give_back(self, bundle: _Bundle, link: _Link) -> None:
        if not link.client.connected:
            await link.client.close()
            return
        link.used = bundle.used = time.monotonic()
        bundle.free.append(link)

    async def tidy(self) -> None:
        """Close idle connections."""
        now = time.monotonic()
        for token, bundle in list(self._bundles.items()):
            old = [link for link in bundle.free if now - link.used > _IDLE_S]
            bundle.free = [link for link in bundle.free if now - link.used <= _IDLE_S]
            if not bundle.free and not bundle.users:
                self._bundles.pop(token, None)
            for link in old:
                await link.client.close()

    async def close(self) -> None:
        for bundle in self._bundles.values():
            for link in bundle.free:
                await link.client.close()
        self._bundles.clear()


def unknown(token: str) -> Unauthorized:
    """The error for a token that the manager does not know."""
    session = role_of(token) == "session"
    return _unauthorized(Denied("this session is over" if session else "this token is not accepted"))


def _unauthorized(error: Denied) -> Unauthorized:
    return Unauthorized(error.message, hint="open the page again with 'rota manager ui', or get another token")
