"""Drives the flows of a session over a transport: connect, greet, ask, stream."""

from __future__ import annotations

from types import TracebackType
from typing import Self, TypeVar

from rota.client.aio.transport import AsyncTransport
from rota.client.calls import Call, StreamCall
from rota.client.endpoint import Endpoint, slow_manager, unreachable
from rota.client.session import READ, STARTS_ANEW_S, Flow, Redial
from rota.errors import NoManager, NotDone
from rota.wire import client_messages as m

T = TypeVar("T")
I = TypeVar("I")  # noqa: E741


class AsyncConnection(AsyncTransport):
    """A connection on which anything can be asked."""

    async def connect(self) -> m.Welcome:
        """Make the connection (anew). A manager that starts anew at this moment is waited for."""
        await self.close()
        missed = False
        for wait in STARTS_ANEW_S:
            endpoint = self._endpoint()
            try:
                return await self._connected_to(endpoint)
            except NoManager as error:
                if not isinstance(error, NotDone) and not endpoint.comes_back:
                    # It may have come back since we tried: once more, where it is on this machine.
                    if missed or not endpoint.path:
                        raise
                    missed = True
            await self._pause(wait)
        return await self._connected_to(self._endpoint())

    async def _connected_to(self, endpoint: Endpoint) -> m.Welcome:
        try:
            await self._dial(endpoint, min(self._timeout, 10.0))
        except OSError as error:  # TimeoutError is one
            raise unreachable(endpoint, error) from None
        conversation = self._conversation
        conversation.role, conversation.token, conversation.home = endpoint.role, endpoint.token, endpoint.home
        try:
            return await self._perform(conversation.greet(), self._timeout)
        except BaseException:
            await self.close()
            raise

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def welcome(self) -> m.Welcome:
        """What the manager said when we connected."""
        assert self._conversation.session.welcome is not None
        return self._conversation.session.welcome

    async def ask(self, call: Call[T]) -> T:
        """Ask anything that `rota.client.calls` can ask."""
        return await self._perform(self._conversation.call(call), self._timeout)

    async def _begin(self, stream: StreamCall[I, T]) -> int:
        return await self._perform(self._conversation.begin(stream), self._timeout)

    async def _perform(self, flow: Flow[T], timeout: float) -> T:
        try:
            return await self._run(flow, timeout)
        except TimeoutError:
            raise slow_manager(timeout) from None

    async def _run(self, flow: Flow[T], timeout: float | None) -> T:
        """Drive a flow: write what it yields, give it what arrives. Raises `TimeoutError` when nothing
        arrives for so long; what has arrived is not lost."""
        try:
            step = next(flow)
            while True:
                try:
                    data = await self._step(step, timeout)
                except NoManager as error:
                    step = flow.throw(error)
                else:
                    step = flow.send(data)
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]

    async def _step(self, step: bytes | Redial, timeout: float | None) -> bytes:
        if isinstance(step, Redial):
            await self._redial(step.after_s)
        elif step == READ:
            return await self._receive(timeout)
        else:
            await self._send(step, timeout)
        return b""
