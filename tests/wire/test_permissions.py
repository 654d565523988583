"""Every role against every message, pairwise: what the table says, and that nothing else is open."""

from __future__ import annotations

import ast
import inspect
import re
import typing
from pathlib import Path
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.manager import host, peers, requests
from rota.manager.requests.control import ManagerControl
from rota.wire import messages as m
from rota.wire import permissions
from tests.dose import dose
from tests.wire.strategies import TAGGED, messages_of, of

JOBS = {
    m.Add,
    m.Drop,
    m.ListJobs,
    m.Status,
    m.Show,
    m.Why,
    m.Act,
    m.Modify,
    m.Watch,
    m.Taken,
    m.ReadOutput,
    m.Stop,
}
JOBS |= {m.ListLimits, m.GetSite, m.PlanFor, m.Gantt, m.ListPage, m.GetGraph, m.Feed}
JOBS |= {m.GetAccounts, m.GetUsage, m.GetHistory, m.ListNodes, m.GetNode, m.ListQuotas, m.GetShares}
JOBS |= {m.GetPools, m.GetMachineUsage, m.ReadProvision, m.GetGang}
JOBS |= {m.RunPipeline, m.WatchPipeline, m.ShowPipeline, m.ListPipelines, m.ActPipeline}
JOBS |= {m.GetPipelinePicture, m.ListElements, m.GetElementGraph, m.GetLayers}
JOBS |= {m.GetResults}
JOBS |= {m.SetMachine, m.ReserveMachine, m.ReturnMachine}
JOBS |= {m.RunPipeline, m.WatchPipeline, m.ShowPipeline, m.ListPipelines, m.ActPipeline}
CHANNELS = {m.OpenChannel, m.ChannelData, m.ChannelCredit, m.ChannelResize, m.ChannelSignal, m.ChannelEnd}
JOBS |= {*CHANNELS, m.ChangeWalltime, m.Taken}
RUNNER = {m.Join, m.Report, m.Settle, m.Idle, m.Live, m.LiveEnd, m.Full, m.Piece, m.Relayed}
#: The gateway hears what changes, and can end that. Everything else it asks in the name of others.
GATEWAY = {m.Feed, m.Stop}
USERS_VERBS = {"status", "doctor", "ping", "metrics", "ui-link", "ui-leave"}
GATEWAYS_VERBS = {"ping", "ui-redeem", "token-check"}
ADMINS_VERBS = {
    "settings",
    "stop",
    "pause",
    "resume",
    "drain",
    "backup",
    "token-add",
    "token-list",
    "token-remove",
}
VERBS = sorted(USERS_VERBS | GATEWAYS_VERBS | ADMINS_VERBS)


def expected(role: str, message: m.Message) -> bool:
    """Written out again, independently of the table. `Control` is judged by its verb."""
    kind = type(message)
    if isinstance(message, m.Learned):
        return role == "admin" or (role == "user" and not message.forget)
    if kind in (m.SetLimit, m.SetSite):
        return role == "admin"
    if kind is m.NodeReady:
        return role in ("admin", "machine")
    if role == "machine":
        return False
    if role == "gateway":
        return kind in GATEWAY
    if role == "key":
        return kind in CHANNELS
    if kind in JOBS:
        return role in ("user", "admin")
    if kind in RUNNER:
        return role == "runner"
    return False


@pytest.mark.parametrize("kind", [kind for kind in TAGGED if kind is not m.Control], ids=lambda k: k.__name__)
@dose(20)
@given(data=st.data())
def test_each_role_may_send_exactly_its_messages(kind: type[m.Message], data: st.DataObject) -> None:
    message = data.draw(of(kind))
    roles = [*permissions.ROLES, "key", "lease", "", "ADMIN", "nobody"]
    assert [r for r in roles if permissions.allowed(r, message)] == [r for r in roles if expected(r, message)]


@pytest.mark.parametrize("role", [*permissions.ROLES, "key", "lease", ""])
@pytest.mark.parametrize("verb", VERBS)
def test_each_role_may_use_exactly_its_verbs(role: str, verb: str) -> None:
    listed = {"user": USERS_VERBS, "gateway": GATEWAYS_VERBS}.get(role, set())
    assert permissions.allowed(role, m.Control(1, verb)) is (role == "admin" or verb in listed)


@given(st.text(max_size=20).filter(lambda verb: verb not in USERS_VERBS | GATEWAYS_VERBS))
def test_a_verb_that_is_not_listed_is_for_admins_only(verb: str) -> None:
    for role in ("user", "runner", "gateway"):
        assert not permissions.allowed(role, m.Control(1, verb))


@given(messages_of())
def test_no_message_is_open_to_a_user_and_to_a_runner(message: m.Message) -> None:
    assert not (permissions.allowed("user", message) and permissions.allowed("runner", message))


@given(messages_of())
def test_the_gateway_changes_nothing_in_its_own_name(message: m.Message) -> None:
    if isinstance(message, m.Control):
        assert permissions.allowed("gateway", message) is (message.verb in GATEWAYS_VERBS)
    else:
        assert permissions.allowed("gateway", message) is (type(message) in GATEWAY)


def test_every_verb_that_the_manager_knows_is_in_this_matrix() -> None:
    (match,) = (
        node
        for node in ast.walk(ast.parse(dedent(inspect.getsource(ManagerControl.control))))
        if isinstance(node, ast.Match)
    )
    known = {
        node.value for case in match.cases for node in ast.walk(case.pattern) if isinstance(node, ast.Constant)
    }
    assert known == set(VERBS)


@given(messages_of())
def test_an_admin_may_all_that_a_user_may(message: m.Message) -> None:
    assert permissions.allowed("admin", message) or not permissions.allowed("user", message)


def test_every_message_that_somebody_sends_to_the_manager_is_somebodys() -> None:
    sent = {*typing.get_args(m.FromClient), *typing.get_args(m.FromRunner)} - {m.Hello}
    assert set().union(*permissions.MAY_SEND.values()) == sent


@pytest.mark.parametrize("held", [*permissions.ROLES, "lease", ""])
@pytest.mark.parametrize("wanted", [*permissions.ROLES, "lease", ""])
def test_a_token_gives_its_own_role_and_admins_may_be_users(held: str, wanted: str) -> None:
    may = held in permissions.ROLES and (wanted == held or (held, wanted) == ("admin", "user"))
    assert permissions.may_be(held, wanted) is may


def test_a_subclass_does_not_inherit_permission() -> None:
    class Sneaky(m.Show, frozen=True, tag="sneaky"):
        pass

    assert not permissions.allowed("admin", Sneaky(1, 1))


def test_every_request_that_a_client_may_send_is_handled() -> None:
    """What no module of these handles would end as a bug that the client is told of."""
    folders = [Path(package.__path__[0]) for package in (host, peers, requests)]
    source = "".join(file.read_text() for folder in folders for file in sorted(folder.glob("*.py")))
    handled = set(re.findall(r"\bm\.([A-Z]\w+)", source))
    clients = ("user", "admin", "gateway", "key")
    sent = {each for role in clients for each in permissions.MAY_SEND[role] if not issubclass(each, m.InChannel)}
    assert {each.__name__ for each in sent} | {"InChannel"} <= handled
