"""Messages that are begun and never finished, and requests that pile up, take bounded memory."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.errors import EnvironmentFault
from rota.manager.peers import peer as peers
from rota.manager.peers.partial_messages import SMALL, PartialMessages
from rota.manager.peers.peer import Peer
from rota.wire import codec
from rota.wire import messages as m

_STEPS = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 3), st.integers(0, 40)), max_size=40)


@given(_STEPS)
def test_what_somebody_holds_is_the_sum_of_their_connections(steps: list[tuple[str, int, int]]) -> None:
    unfinished, held = PartialMessages(most=50), dict[tuple[str, int], int]()
    for whose, connection, now in steps:
        before = held.get((whose, connection), 0)
        held[whose, connection] = now
        together = sum(size for (who, _), size in held.items() if who == whose)
        refused = False
        try:
            unfinished.change(whose, before=before, now=now)
        except EnvironmentFault:
            refused = True
        assert refused is (together > 50 and now > before)


class _Transport:
    def __init__(self) -> None:
        self.reading, self.closed, self.written = True, False, b""

    def write(self, data: bytes) -> None:
        self.written += data

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def close(self) -> None:
        self.closed = True

    def get_write_buffer_size(self) -> int:
        return 0


class _Connections:
    def __init__(self) -> None:
        self.unfinished = PartialMessages(most=10 * SMALL)

    def connected(self, peer: Peer) -> None:
        pass

    def greeted(self, peer: Peer, message: Any) -> None:
        pass

    def received(self, peer: Peer, message: Any) -> None:
        peer.waiting.append(message)
        peer.throttle()

    def disconnected(self, peer: Peer) -> None:
        pass


def _peer(connections: _Connections, id: int) -> tuple[Peer, _Transport]:
    accepts = m.FromClient | m.FromRunner
    made = Peer(connections, id, accepts=accepts, local=False, unfinished=connections.unfinished)
    transport = _Transport()
    made._transport = transport  # type: ignore[assignment]
    made.token = "ann"
    made.accept("user", "ann")
    return made, transport


@pytest.fixture
def connections() -> _Connections:
    return _Connections()


def test_who_sends_the_beginning_of_many_large_messages_is_hung_up_on(connections: _Connections) -> None:
    begun = (30 << 20).to_bytes(4, "big") + bytes(2 * SMALL)
    some = [_peer(connections, id) for id in range(8)]
    for peer, _ in some:
        peer.data_received(begun)
    assert [transport.closed for _, transport in some] == [False] * 4 + [True] * 4
    for peer, _ in some:
        peer.connection_lost(None)
    again, transport = _peer(connections, 9)
    again.data_received(begun)
    assert not transport.closed


def test_reading_stops_while_much_waits_to_be_handled_and_goes_on_afterwards(
    connections: _Connections, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "_MAX_WAITING_BYTES", 1000)
    peer, transport = _peer(connections, 1)
    frame = codec.frame(m.Status(1, ["x" * 600]))
    peer.data_received(frame)
    assert transport.reading
    peer.data_received(frame)
    assert not transport.reading
    while peer.waiting:
        peer.waiting.popleft()
        peer.throttle()
    assert transport.reading
    peer.data_received(frame[:300])
    peer.data_received(frame[300:])
    assert transport.reading
