"""Connections that have not logged in are bounded, and a flood of them pushes out itself."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rota.manager.peers.pending_connections import PendingConnection, PendingConnections, network_of

_MOST, _EACH = 12, 5


def _knock(
    strangers: PendingConnections, network: str, left: list[PendingConnection], *, silent: bool = True
) -> PendingConnection:
    made = PendingConnection(network, lambda: left.append(made), since=0.0)
    strangers.came(made)
    made.silent = silent
    return made


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.booleans(), st.booleans()), max_size=80))
def test_they_are_never_too_many_and_the_newest_is_never_sent_away(knocks: list[tuple[str, bool, bool]]) -> None:
    strangers, left, there = (
        PendingConnections(most=_MOST, most_each=_EACH),
        list[PendingConnection](),
        list[PendingConnection](),
    )
    for network, silent, known in knocks:
        newest = _knock(strangers, network, left, silent=silent)
        there = [each for each in (*there, newest) if each not in left]
        assert newest not in left
        assert len(strangers) == len(there) <= _MOST
        assert sum(each.network == network for each in there) <= _EACH
        if known:
            for _ in range(2):  # said twice, once is meant
                strangers.gone(newest)
            there.remove(newest)


def test_a_flood_from_one_address_takes_nobody_elses_place() -> None:
    strangers, left = PendingConnections(most=_MOST, most_each=_MOST), list[PendingConnection]()
    others = [_knock(strangers, f"node{number}", left) for number in range(3)]
    for _ in range(1000):
        _knock(strangers, "flood", left)
    assert not set(others) & set(left)
    assert len(strangers) == _MOST


def test_who_has_said_something_outlasts_those_who_have_not() -> None:
    strangers, left = PendingConnections(most=_MOST, most_each=_EACH), list[PendingConnection]()
    honest = _knock(strangers, "a", left, silent=False)
    for _ in range(100):
        _knock(strangers, "a", left)
    assert honest not in left


def test_an_ipv6_host_has_many_addresses_and_counts_once() -> None:
    assert network_of("2001:db8::1") == network_of("2001:db8::ffff:1") != network_of("2001:db8:0:1::1")
    assert network_of("::ffff:10.0.0.1") == network_of("10.0.0.1") != network_of("10.0.0.2")
    assert network_of("fe80::1%eth0") == network_of("fe80::2%eth0")
