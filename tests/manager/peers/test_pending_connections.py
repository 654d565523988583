"""Connections that have not logged in are bounded, and a flood of them pushes out itself."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rota.manager.peers.pending_connections import PendingConnection, PendingConnections, network_of

_MOST, _EACH = 12, 5


def _connect(
    pending: PendingConnections, network: str, left: list[PendingConnection], *, silent: bool = True
) -> PendingConnection:
    made = PendingConnection(network, lambda: left.append(made), since=0.0)
    pending.add(made)
    made.silent = silent
    return made


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.booleans(), st.booleans()), max_size=80))
def test_they_are_never_too_many_and_the_newest_is_never_evicted(knocks: list[tuple[str, bool, bool]]) -> None:
    pending, left, there = (
        PendingConnections(most=_MOST, most_each=_EACH),
        list[PendingConnection](),
        list[PendingConnection](),
    )
    for network, silent, known in knocks:
        newest = _connect(pending, network, left, silent=silent)
        there = [each for each in (*there, newest) if each not in left]
        assert newest not in left
        assert len(pending) == len(there) <= _MOST
        assert sum(each.network == network for each in there) <= _EACH
        if known:
            for _ in range(2):  # a second time changes nothing
                pending.discard(newest)
            there.remove(newest)


def test_a_flood_from_one_address_evicts_no_other() -> None:
    pending, left = PendingConnections(most=_MOST, most_each=_MOST), list[PendingConnection]()
    others = [_connect(pending, f"node{number}", left) for number in range(3)]
    for _ in range(1000):
        _connect(pending, "flood", left)
    assert not set(others) & set(left)
    assert len(pending) == _MOST


def test_a_connection_that_sent_something_outlasts_silent_ones() -> None:
    pending, left = PendingConnections(most=_MOST, most_each=_EACH), list[PendingConnection]()
    honest = _connect(pending, "a", left, silent=False)
    for _ in range(100):
        _connect(pending, "a", left)
    assert honest not in left


def test_an_ipv6_host_has_many_addresses_and_counts_once() -> None:
    assert network_of("2001:db8::1") == network_of("2001:db8::ffff:1") != network_of("2001:db8:0:1::1")
    assert network_of("::ffff:10.0.0.1") == network_of("10.0.0.1") != network_of("10.0.0.2")
    assert network_of("fe80::1%eth0") == network_of("fe80::2%eth0")
