"""What a trace may say of machines, events and gangs, and how one that is wrong is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rota.errors import BadInput
from rota.sim.trace import Trace, read_trace


def _read(document: dict[str, Any]) -> Trace:
    return read_trace(json.dumps({"resources": [{"ids": "1-4", "host": "n1"}]} | document).encode())


def _refusal(document: dict[str, Any]) -> str:
    with pytest.raises(BadInput) as caught:
        _read(document)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"prefer": "colour='red'"}, "jobs[1].prefer: "),
        ({"force_host": "n2"}, "jobs[1].force_host: there is no machine 'n2'; the machines are n1"),
        ({"provision": -1}, "jobs[1].provision: -1"),
        ({"provision_fails": ["n1"]}, "jobs[1].provision_fails: it is not provisioned"),
        ({"provision": 5, "provision_fails": ["n1", "x"]}, "jobs[1].provision_fails[1]: there is no machine 'x'"),
        ({"provision": 5, "request": "core=2"}, "jobs[1].request: provisioning takes whole hosts"),
        ({"reserve_for": 5}, "jobs[1].reserve_for: it has no 'reserve'; say when"),
        ({"reserve": "always"}, "jobs[1].reserve_for: missing"),
        ({"reserve": "onfial", "reserve_for": 5}, "jobs[1].reserve: 'onfial' is not one of its values; did you"),
        ({"gang": ""}, "jobs[1].gang: it is empty"),
        ({"gang": 5}, "jobs[1].gang: expected 'str | null', got 'int'"),
        ({"gang": "g", "name": "a b"}, "jobs[1].name: 'a b' cannot be the role of a member"),
        ({"gang": "g", "gang_same": "lba"}, "jobs[1].gang_same: there is no property 'lba'"),
        ({"gang": "g", "on_member_failure": "kil"}, "jobs[1].on_member_failure: 'kil' is not one of its values"),
        ({"gang_same": "host"}, "jobs[1].gang_same: it is in no gang"),
        ({"gang": "g", "start": 0, "resources": "1"}, "jobs[1].gang: it runs already"),
    ],
)
def test_a_bad_field_of_a_job_is_named(fields: dict[str, Any], message: str) -> None:
    assert message in _refusal({"jobs": [{"id": 1}, {"id": 2} | fields]})


@pytest.mark.parametrize(
    ("one", "other", "message"),
    [
        ({"submit": 1}, {"submit": 2}, "jobs[1].submit: job 1 of 'g' is submitted at 1; all members"),
        ({"at": 50}, {}, "jobs[1].at: "),
        ({"type": "besteffort"}, {}, "jobs[1].type: some jobs of 'g' are besteffort and others are not"),
        ({}, {"after": [1]}, "jobs[1].after: job 1 is in the same gang"),
        ({"name": "db"}, {"name": "db"}, "jobs[1].name: 'db' is given twice in 'g'"),
        ({"name": "1"}, {}, "jobs[1].name: '1' is given twice in 'g'"),
        ({"gang_same": "host"}, {"gang_same": "core"}, "jobs[1].gang_same: another member of 'g' says 'host'"),
        (
            {"on_member_failure": "keep"},
            {"on_member_failure": "kill"},
            "jobs[1].on_member_failure: another",
        ),
    ],
)
def test_members_that_do_not_agree_are_named(one: dict[str, Any], other: dict[str, Any], message: str) -> None:
    jobs = [{"id": 1, "gang": "g"} | one, {"id": 2, "gang": "g"} | other]
    assert message in _refusal({"jobs": jobs})


def test_what_one_member_says_of_its_gang_holds_for_all() -> None:
    jobs = [{"id": 2, "gang": "g"}, {"id": 1, "gang": "g", "gang_same": "host", "on_member_failure": "retry"}]
    (gang,) = _read({"jobs": jobs}).gangs
    assert (gang.members, gang.same, gang.on_failure, gang.share) == ((2, 1), "host", "retry", False)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"machines": {"n2": {}}}, "machines.n2: no resource is on 'n2'; the machines are n1"),
        (
            {"machines": {"n1": {"condition": "brokn"}}},
            "machines.n1.condition: there is no condition 'brokn'",
        ),
        ({"machines": {"n1": {"group": "x"}}}, "machines.n1: there is no 'group' here; did you mean 'groups'?"),
        ({"machines": {"n1": {"owner": 5}}}, "machines.n1.owner: expected 'str', got 'int'"),
        ({"machine_groups": {"g": {"cap": 256}}}, "machine_groups.g.cap: 256 is out of range"),
        (
            {"machine_groups": {"g": {"user": []}}},
            "machine_groups.g: there is no 'user' here; did you",
        ),
        ({"events": [5]}, "events[0]: it is not an object"),
        ({"events": [{}]}, "events[0]: object missing required field 'at'"),
        ({"events": [{"at": 5}]}, "events[0]: it does not say what happens"),
        ({"events": [{"at": -5, "cancel": 1}]}, "events[0].at: -5 is before the beginning"),
        ({"events": [{"at": 5, "machine": "n1"}]}, "events[0].condition: missing"),
        ({"events": [{"at": 5, "condition": "broken"}]}, "events[0].machine: missing"),
        (
            {"events": [{"at": 5, "machine": "n1", "condition": "ok"}]},
            "events[0].condition: there is no",
        ),
        (
            {"events": [{"at": 5, "machine": "n", "condition": "broken"}]},
            "events[0].machine: there is no",
        ),
        ({"events": [{"at": 5, "add": {"ids": "4"}}]}, "events[0].add.ids: 4 is given twice"),
        ({"events": [{"at": 5, "add": {"host": "x"}}]}, "events[0].add.ids: it names no resources"),
        ({"events": [{"at": 5, "manual": "n1", "user": "ann"}]}, "events[0].until: missing"),
        ({"events": [{"at": 5, "manual": "n1", "until": 5}]}, "events[0].until: 5 is not after 5"),
        ({"events": [{"at": 5, "cancel": 9}]}, "events[0].cancel: there is no job 9"),
        ({"events": [{"at": 5, "cancel": 1, "user": "ann"}]}, "events[0].user: it does not go with 'cancel'"),
        ({"events": [{"at": 5, "cancl": 1}]}, "events[0]: there is no field 'cancl'; did you mean 'cancel'?"),
        (
            {"events": [{"at": 5, "cancel": 1}], "jobs": [{"id": 1, "submit": 6}]},
            "events[0].at: job 1 is submitted only at 6",
        ),
        (
            {
                "events": [
                    {"at": 9, "add": {"ids": 9, "host": "D"}},
                    {"at": 5, "machine": "D", "condition": "broken"},
                ]
            },
            "events[1].machine: there is no machine",
        ),
    ],
)
def test_a_bad_machine_or_event_is_named(document: dict[str, Any], message: str) -> None:
    assert message in _refusal(document)
