"""A link logs in once, for a minute; a session ends by itself or with its creator's token, and none pile up."""

from __future__ import annotations

import pytest

from rota.errors import Denied
from rota.manager.peers.logins import _MOST_CODES, _MOST_SESSIONS, Logins, SessionCreator

ALICE, BOB = SessionCreator("alice", "owner"), SessionCreator("bob", "owner")


class _Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> _Clock:
    return _Clock()


@pytest.fixture
def ended() -> list[str]:
    """Sessions whose connections were ended."""
    return []


@pytest.fixture
def logins(clock, ended) -> Logins:
    return Logins(session_s=3600.0, clock=clock, hang_up=ended.append)


def _names(logins: Logins) -> list[str]:
    return [each.name for each in logins.list()]


def _log_in(logins: Logins, creator: SessionCreator = ALICE) -> str:
    return logins.redeem(logins.code("user", creator))[1].name


def test_a_code_becomes_a_session_with_the_role_of_who_asked_for_it(logins, clock):
    for role in ("user", "admin"):
        token, made = logins.redeem(logins.code(role, ALICE))
        assert token.startswith("rota_session_")
        assert logins.verify(token) == made
        assert (made.role, made.creator, made.expires_at) == (role, ALICE, clock.now + 3600)


def test_a_code_is_good_once(logins):
    code = logins.code("user", ALICE)
    logins.redeem(code)
    with pytest.raises(Denied):
        logins.redeem(code)


def test_a_code_is_good_for_less_than_a_minute(logins, clock):
    early, late = logins.code("user", ALICE), logins.code("user", ALICE)
    clock.now += 59.9
    logins.redeem(early)
    clock.now += 0.1
    with pytest.raises(Denied):
        logins.redeem(late)


@pytest.mark.parametrize("wrong", ["", "x", "é", "\udcff", "0" * 10_000])
def test_a_wrong_code_is_refused_and_leaves_the_right_one(logins, wrong):
    right = logins.code("user", ALICE)
    with pytest.raises(Denied):
        logins.redeem(wrong)
    with pytest.raises(Denied):
        logins.redeem(right[:-1])
    assert logins.list() == ()
    logins.redeem(right)


@pytest.mark.parametrize("wrong", ["", "x", "é", "\udcff", "rota_session_" + "A" * 43])
def test_a_wrong_token_is_nobodys(logins, wrong):
    _log_in(logins)
    assert logins.verify(wrong) is None


def test_codes_do_not_pile_up_and_the_newest_are_good(logins):
    codes = [logins.code("user", ALICE) for _ in range(_MOST_CODES + 5)]
    with pytest.raises(Denied):
        logins.redeem(codes[4])
    logins.redeem(codes[5])
    logins.redeem(codes[-1])


def test_many_codes_of_one_leave_those_of_another(logins):
    code = logins.code("admin", ALICE)
    for _ in range(_MOST_CODES + 5):
        logins.code("user", BOB)
    logins.redeem(code)


def test_codes_are_not_alike(logins):
    codes = {logins.code("user", ALICE) for _ in range(100)}
    assert len(codes) == 100
    assert all(len(code) >= 43 for code in codes)


def test_a_session_is_over_when_its_time_is(logins, clock):
    token = logins.redeem(logins.code("user", ALICE))[0]
    clock.now += 3600
    assert logins.verify(token) is None
    assert logins.list() == ()


def test_a_session_is_over_when_the_token_that_made_it_expires(logins, clock):
    token, made = logins.redeem(logins.code("user", SessionCreator("short", "owner", clock.now + 100)))
    assert made.expires_at == clock.now + 100
    clock.now += 100
    assert logins.verify(token) is None


def test_a_code_is_worthless_when_the_token_that_asked_for_it_has_expired(logins, clock):
    code = logins.code("user", SessionCreator("short", "owner", clock.now + 10))
    clock.now += 10
    with pytest.raises(Denied):
        logins.redeem(code)


def test_what_a_token_made_goes_with_it_and_nothing_else(logins, ended):
    mine, code = [_log_in(logins), _log_in(logins)], logins.code("user", ALICE)
    others = [_log_in(logins, BOB), _log_in(logins, SessionCreator("", "alice"))]
    logins.removed("alice")
    assert _names(logins) == others
    assert ended == mine
    with pytest.raises(Denied):
        logins.redeem(code)


def test_too_many_sessions_push_out_the_oldest_of_the_same_maker(logins, ended):
    other = _log_in(logins, BOB)
    without_token = _log_in(logins, SessionCreator("", "alice"))
    names = [_log_in(logins) for _ in range(_MOST_SESSIONS + 2)]
    assert _names(logins) == [other, without_token, *names[2:]]
    assert ended == names[:2]


def test_sessions_that_are_over_push_out_nobody(logins, clock, ended):
    old = [_log_in(logins) for _ in range(_MOST_SESSIONS - 1)]
    clock.now += 3000
    young = _log_in(logins)
    clock.now += 1000
    new = _log_in(logins)
    assert _names(logins) == [young, new]
    assert ended == old


def test_ending_a_session_ends_only_that_and_its_connections(logins, ended):
    first, second = _log_in(logins), _log_in(logins)
    assert logins.end(first)
    assert _names(logins) == [second]
    assert ended == [first]


def test_there_is_nothing_to_end_twice(logins, ended):
    name = _log_in(logins)
    assert logins.end(name)
    assert not logins.end(name)
    assert not logins.end("alice")
    assert ended == [name]
