"""Every role against every message, pairwise: what the table says, and that nothing else is open."""

from __future__ import annotations

import typing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.wire import messages as m
from rota.wire import tokens
from tests.dose import dose
from tests.wire.strategies import TAGGED, messages_of, of

JOBS = {m.Add, m.Drop, m.ListJobs, m.Status, m.Show, m.Why, m.Act, m.Modify, m.Watch, m.ReadOutput, m.Stop}
JOBS |= {m.ListLimits, m.GetSite, m.PlanFor, m.Gantt}
RUNNER = {m.Join, m.Report, m.Settle, m.Idle, m.Live, m.LiveEnd}
CONTROL = {"status": "user", "doctor": "user", "stop": "admin"} | dict.fromkeys(
    ["token-add", "token-list", "token-remove"], "admin"
)


def expected(role: str, message: m.Message) -> bool:
    """Written out again, independently of the table. `Control` is judged by its verb."""
    kind = type(message)
    if isinstance(message, m.Learned):
        return role == "admin" or (role == "user" and not message.forget)
    if kind in (m.SetLimit, m.SetSite):
        return role == "admin"
    if kind in JOBS:
        return role in ("user", "admin")
    if kind in RUNNER:
        return role == "runner"
    return False


@pytest.mark.parametrize("role", [*tokens.ROLES, "lease", "", "ADMIN", "nobody"])
@pytest.mark.parametrize("kind", [kind for kind in TAGGED if kind is not m.Control], ids=lambda k: k.__name__)
@dose(5)
@given(data=st.data())
def test_each_role_may_send_exactly_its_messages(role: str, kind: type[m.Message], data: st.DataObject) -> None:
    message = data.draw(of(kind))
    assert tokens.allowed(role, message) is expected(role, message)


@pytest.mark.parametrize("role", [*tokens.ROLES, "lease", ""])
@pytest.mark.parametrize("verb", CONTROL)
def test_each_role_may_use_exactly_its_verbs(role: str, verb: str) -> None:
    may = role == "admin" or (role == "user" and CONTROL[verb] == "user")
    assert tokens.allowed(role, m.Control(1, verb)) is may


@given(st.text(max_size=20).filter(lambda verb: verb not in ("status", "doctor")))
def test_a_verb_that_is_not_listed_is_for_admins_only(verb: str) -> None:
    assert not tokens.allowed("user", m.Control(1, verb))
    assert not tokens.allowed("runner", m.Control(1, verb))


@given(messages_of())
def test_no_message_is_open_to_a_user_and_to_a_runner(message: m.Message) -> None:
    assert not (tokens.allowed("user", message) and tokens.allowed("runner", message))


@given(messages_of())
def test_an_admin_may_all_that_a_user_may(message: m.Message) -> None:
    assert tokens.allowed("admin", message) or not tokens.allowed("user", message)


def test_every_message_that_somebody_sends_to_the_manager_is_somebodys() -> None:
    sent = {*typing.get_args(m.FromClient), *typing.get_args(m.FromRunner)} - {m.Hello}
    assert set().union(*tokens.MAY_SEND.values()) == sent


@pytest.mark.parametrize("held", [*tokens.ROLES, "lease", ""])
@pytest.mark.parametrize("wanted", [*tokens.ROLES, "lease", ""])
def test_a_token_gives_its_own_role_and_admins_may_be_users(held: str, wanted: str) -> None:
    may = held in tokens.ROLES and (wanted == held or (held, wanted) == ("admin", "user"))
    assert tokens.may_be(held, wanted) is may


def test_a_subclass_does_not_inherit_permission() -> None:
    class Sneaky(m.Show, frozen=True, tag="sneaky"):
        pass

    assert not tokens.allowed("admin", Sneaky(1, 1))
