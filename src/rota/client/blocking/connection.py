# Derived from rota/client/aio/connection.py by `make client`: change it there.
"""Drives the flows of a session over a transport: connect, greet, ask, stream."""

from __future__ import annotations

from types import TracebackType
from typing import Self, TypeVar

from rota.client.blocking.transport import Transport
from rota.client.calls import Call, StreamCall
from rota.client.endpoint import Endpoint, slow_manager, unreachable
from rota.client.session import READ, STARTS_ANEW_S, Flow, Redial
from rota.errors import NoManager, NotDone
from rota.wire import client_messages as m

T = TypeVar("T")
I = TypeVar("I")  # noqa: E741


class Connection(Transport):
    """A connection on which anything can be asked."""

    def connect(self) -> m.Welcome:
        """Make the connection (anew). A manager that starts anew at this moment is waited for."""
        self.close()
        missed = False
        for wait in STARTS_ANEW_S:
            endpoint = self._endpoint()
            try:
                return self._connected_to(endpoint)
            except NoManager as error:
                if not isinstance(error, NotDone) and not endpoint.comes_back:
                    # It may have come back since we tried: once more, where it is on this machine.
                    if missed or not endpoint.path:
                        raise
                    missed = True
            self._pause(wait)
        return self._connected_to(self._endpoint())

    def _connected_to(self, endpoint: Endpoint) -> m.Welcome:
        try:
            self._dial(endpoint, min(self._timeout, 10.0))
        except OSError as error:  # TimeoutError is one
            raise unreachable(endpoint, error) from None
        conversation = self._conversation
        conversation.role, conversation.token, conversation.home = endpoint.role, endpoint.token, endpoint.home
        try:
            return self._perform(conversation.greet(), self._timeout)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def welcome(self) -> m.Welcome:
        """What the manager said when we connected."""
        assert self._conversation.session.welcome is not None
        return self._conversation.session.welcome

    def ask(self, call: Call[T]) -> T:
        """Ask anything that `rota.client.calls` can ask."""
        return self._perform(self._conversation.call(call), self._timeout)

    def _begin(self, stream: StreamCall[I, T]) -> int:
        return self._perform(self._conversation.begin(stream), self._timeout)

    def _perform(self, flow: Flow[T], timeout: float) -> T:
        try:
            return self._run(flow, timeout)
        except TimeoutError:
            raise slow_manager(timeout) from None

    def _run(self, flow: Flow[T], timeout: float | None) -> T:
        """Drive a flow: write what it yields, give it what arrives. Raises `TimeoutError` when nothing
        arrives for so long; what has arrived is not lost."""
        try:
            step = next(flow)
            while True:
                try:
                    data = self._step(step, timeout)
                except NoManager as error:
                    step = flow.throw(error)
                else:
                    step = flow.send(data)
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]

    def _step(self, step: bytes | Redial, timeout: float | None) -> bytes:
        if isinstance(step, Redial):
            self._redial(step.after_s)
        elif step == READ:
            return self._receive(timeout)
        else:
            self._send(step, timeout)
        return b""
