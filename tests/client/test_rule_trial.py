"""What `rota rule test` says is what becomes of the job in a manager; and a job is besteffort by its queue and by
its type, after every rule."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.client.rule_trial import try_rules
from rota.client.submission import spec_of
from rota.core.admission.admission import Admission
from rota.core.admission.rule_syntax import shown_value
from rota.core.jobs.job import Job, Spec
from rota.core.states import State
from rota.core.submit.spec_library import Library
from rota.core.world import World
from rota.errors import BadInput
from rota.manager.submit.intake import Intake
from rota.plan.dispatch.planning import Planning
from rota.wire import messages as m
from rota.wire.specs import spec_from
from tests.core.admission.groups import KnownGroups
from tests.dose import dose

HOUR = 3600.0
QUEUES: dict[str, dict[str, Any]] = {"night": {"walltime_s": 8 * HOUR}, "short": {"walltime_s": HOUR}}
Rules = list[dict[str, Any]]
Groups = tuple[str, ...]


def records(rules: Rules) -> dict[str, dict[str, Any]]:
    """After the built-in rules, in this order."""
    return {
        "rule": {f"r{at}": {"rank": 1000 + at, **rule} for at, rule in enumerate(rules)},
        "queue": QUEUES,
        "setting": {},
        "property": {},
    }


def without_terminal(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields that people give: whether it is interactive is said otherwise."""
    return {name: value for name, value in fields.items() if name != "interactive"}


def added(
    rules: Rules, fields: dict[str, Any], *, reservations: int = 1, admin: bool = False, groups: Groups = ()
) -> Spec | str:
    """What becomes of a job that is added, or why it is refused, as the manager takes in what a client sends."""
    world = World(Planning())
    world.site = records(rules)
    for id in range(1, reservations):
        world.jobs[id] = waiting_reservation(id)
    library = Library(specs={}, env_ids={}, next_spec=1, next_env=1)
    admission = Admission(world, KnownGroups(ann=groups))
    intake = Intake("s", "ann", library, world.placement.limits, admission, admin=admin)
    try:
        sent = spec_of(without_terminal(fields), text=True)
        sent = msgspec.structs.replace(sent, interactive="interactive" in fields)
        add = m.Add(n=1, submission="s", first=0, cmds=["x"], specs=[sent], envs=[b""])
        add = msgspec.msgpack.decode(msgspec.msgpack.encode(add), type=m.Add)
        intake.check(add)
        intake.keys(add)
    except BadInput as error:
        return str(error).removeprefix("line 1: ")
    (spec,) = library.specs.values()
    return msgspec.structs.replace(spec, env=0)


def waiting_reservation(id: int) -> Job:
    spec = Spec(user="ann", cwd="/", env=1, at=2e9)
    return Job(id, str(id), spec, 1, "x", State.READY, "s", 0.0)


def judged(
    rules: Rules, fields: dict[str, Any], *, reservations: int = 1, admin: bool = False, groups: Groups = ()
) -> Spec | str:
    """The same, as `rota rule test` says it."""
    try:
        tried = try_rules(
            records(rules),
            without_terminal(fields),
            user="ann",
            interactive="interactive" in fields,
            system=False,
            reservations=reservations,
            admin=admin,
            unix_groups=groups,
        )
    except BadInput as error:
        return str(error)
    view = tried.view()
    if view.rejected_by:
        return f"{view.message} (rule '{view.rejected_by}'); see 'rota rule show {view.rejected_by}'"
    return tried.spec if view.admitted else tried.error


CAPS: Rules = [
    {"match": {"queue": "besteffort"}, "cap": {"walltime": "1h"}},
    {"match": {"type": "besteffort"}, "cap": {"walltime": "1h"}},
]
MAKERS: Rules = [
    {"set": {"type": "besteffort"}},
    {"set": {"queue": "besteffort"}},
    {"default": {"type": "besteffort"}},
    {"match": {"user": "ann"}, "set": {"type": ["idempotent", "besteffort"]}},
]


@pytest.mark.parametrize("cap", CAPS)
@pytest.mark.parametrize("maker", MAKERS)
def test_a_rule_that_makes_a_job_besteffort_is_seen_by_one_that_caps_those(
    maker: dict[str, Any], cap: dict[str, Any]
) -> None:
    for found in (added([maker, cap], {"walltime": "3d"}), judged([maker, cap], {"walltime": "3d"})):
        assert isinstance(found, Spec)
        assert (found.queue, found.walltime_s) == ("besteffort", HOUR)
        assert "besteffort" in found.types


def test_a_default_queue_besteffort_is_seen_as_a_type() -> None:
    rules = [{"match": {"type": "besteffort"}, "reject": "not here"}]
    site = {"default-queue": {"rank": 1, "default": {"queue": "besteffort"}}}
    world = World(Planning())
    world.site = {"rule": {**site, **records(rules)["rule"]}}
    with pytest.raises(BadInput, match="not here"):
        Admission(world, KnownGroups()).admit(spec_from(spec_of({}), (), user="ann", env=0))


@pytest.mark.parametrize("queue", ["night", "default"])
@pytest.mark.parametrize("asked", [{"type": "besteffort"}, {"queue": "besteffort"}])
def test_a_rule_that_takes_a_job_out_of_the_queue_takes_the_type_as_well(
    queue: str, asked: dict[str, Any]
) -> None:
    found = added([{"set": {"queue": queue}}, {"match": {"type": "besteffort"}, "reject": "seen"}], asked)
    assert isinstance(found, Spec)
    assert (found.queue, found.types) == (queue, ())


def test_a_default_type_does_not_take_a_job_out_of_the_queue_that_it_asked_for() -> None:
    found = added([{"default": {"type": "besteffort"}}], {"queue": "night"})
    assert isinstance(found, Spec)
    assert (found.queue, found.types) == ("night", ())


def test_what_follows_is_a_change_of_its_rule() -> None:
    tried = try_rules(records([MAKERS[0]]), {}, user="ann", interactive=False, system=False, reservations=1).view()
    changes = [(each.rule, each.field, each.new) for each in tried.changes if each.rule == "r0"]
    assert changes == [("r0", "type", "besteffort"), ("r0", "queue", "besteffort")]
    assert (tried.job.queue, tried.job.type) == ("besteffort", ["besteffort"])


# ------------------------------------------------------------------ caps and what comes after them


def test_a_cap_holds_for_what_a_later_queue_would_give() -> None:
    rules: Rules = [{"cap": {"walltime": "2h"}}, {"set": {"queue": "night"}}]
    found = added(rules, {"queue": "short"})
    assert isinstance(found, Spec)
    assert (found.queue, found.walltime_s) == ("night", 2 * HOUR)


@pytest.mark.parametrize(
    ("field", "most", "more"), [("mem", "2G", "64G"), ("priority", 0, 9), ("time", "1h", "9h")]
)
def test_a_cap_holds_for_what_a_later_default_would_give(field: str, most: Any, more: Any) -> None:
    rules: Rules = [{"cap": {field: most}}, {"default": {field: more}}]
    found = added(rules, {})
    assert isinstance(found, Spec)
    assert added([*rules, rules[0]], {}) == found, "a second time it changes nothing"
    assert added(rules[1:], {}) != found


def test_a_rule_sees_the_walltime_that_the_queue_gives() -> None:
    rules: Rules = [{"match": {"walltime_over": "2h"}, "reject": "too long"}]
    assert isinstance(added(rules, {"queue": "short"}), Spec)
    assert added(rules, {"queue": "night"}) == "too long (rule 'r0'); see 'rota rule show r0'"


def test_reservations_are_judged_as_they_were_asked_for() -> None:
    """Once more for their number, and not as what the rules have made of them."""
    rules: Rules = [{"match": {"queue": "night"}, "reject": "nobody goes there"}, {"set": {"queue": "night"}}]
    asked = {"at": "now+1h", "request": ("core=1,walltime=1h",)}
    assert isinstance(added(rules, asked, reservations=2), Spec)
    assert isinstance(judged(rules, asked, reservations=2), Spec)
    assert added(rules, asked, reservations=3) == judged(rules, asked, reservations=3)


def test_an_interactive_job_is_said_to_have_no_retries() -> None:
    found = judged([], {"interactive": True})
    assert isinstance(found, Spec)
    assert (found.retries, found.walltime_s) == (0, 12 * HOUR)


def test_rules_decide_after_what_attempts_are_retried() -> None:
    found = added([{"match": {"user": "ann"}, "set": {"retry_on": "exit,walltime"}}], {})
    assert isinstance(found, Spec)
    assert found.retry_on == ("exit", "walltime")
    found = added([{"default": {"retry_on": ["exit"]}}], {"retry_on": "lost"})
    assert isinstance(found, Spec)
    assert found.retry_on == ("lost",)


def test_a_dry_run_names_the_rule_only_if_that_refuses_the_job() -> None:
    rules: Rules = [{"reject": "not today"}]
    assert added(rules, {}) == judged(rules, {}) == "not today (rule 'r0'); see 'rota rule show r0'"
    found = judged(rules, {"type": "no_quotas"})
    assert found == added(rules, {"type": "no_quotas"})
    assert "only an administrator" in str(found)


# ------------------------------------------------------------------ the whole class

_values: dict[str, st.SearchStrategy[Any]] = {
    "queue": st.sampled_from(["besteffort", "night", "short", "default"]),
    "type": st.sampled_from(["besteffort", "idempotent", ["container", "besteffort"], "noop", "deploy"]),
    "walltime": st.sampled_from(["30m", "2h", "12h"]),
    "priority": st.integers(0, 9),
    "mem": st.sampled_from(["1G", "4G", "9G"]),
    "retries": st.integers(0, 5),
    "retry_on": st.sampled_from(["exit", "exit,walltime"]),
}
_matches = st.fixed_dictionaries(
    {},
    optional={
        "queue": st.sampled_from(["besteffort", "!besteffort", "night", "default"]),
        "type": st.sampled_from(["besteffort", "!besteffort", "container", "idempotent"]),
        "walltime_over": st.sampled_from(["1h", "4h"]),
        "interactive": st.booleans(),
        "reservation": st.booleans(),
        "reservations_over": st.integers(0, 2),
        "uses": st.sampled_from(["nodes", "!nodes"]),
        "priority_over": st.integers(0, 5),
        "unix_group": st.sampled_from(["staff", "!guests"]),
        "admin": st.booleans(),
    },
)


def _doing(does: str, names: tuple[str, ...]) -> st.SearchStrategy[dict[str, Any]]:
    chosen = st.sampled_from(names).flatmap(lambda name: st.fixed_dictionaries({name: _values[name]}))
    return st.builds(lambda match, values: {"match": match, does: values}, _matches, chosen)


_rules = st.lists(
    st.one_of(
        _doing("set", tuple(_values)),
        _doing("default", ("queue", "type", "walltime", "priority", "mem", "retry_on")),
        _doing("cap", ("walltime", "priority", "mem", "retries")),
        st.builds(lambda match: {"match": match, "reject": "no"}, _matches),
    ),
    max_size=5,
)
_jobs = st.fixed_dictionaries(
    {},
    optional={
        "queue": _values["queue"],
        "type": st.sampled_from(["besteffort", "idempotent", "container", "no_quotas"]),
        "walltime": _values["walltime"],
        "priority": st.sampled_from(["0", "7"]),
        "mem": _values["mem"],
        "request": st.sampled_from([("core=1",), ("nodes=1,walltime=4h", "core=2")]),
        "at": st.just("2040-01-01 12:00"),
        "interactive": st.just(True),
        "retry_on": _values["retry_on"],
    },
)


@dose(60)
@given(
    rules=_rules,
    job=_jobs,
    reservations=st.integers(1, 3),
    admin=st.booleans(),
    groups=st.sampled_from([(), ("staff",), ("guests", "staff")]),
)
def test_what_a_dry_run_says_is_what_becomes_of_the_job(
    rules: Rules, job: dict[str, Any], reservations: int, admin: bool, groups: Groups
) -> None:
    by: dict[str, Any] = {"reservations": reservations, "admin": admin, "groups": groups}
    found = added(rules, job, **by)
    assert judged(rules, job, **by) == found
    if isinstance(found, Spec):
        assert (found.queue == "besteffort") == ("besteffort" in found.types)


def _renamed(rules: Rules) -> Rules:
    """The same rules, which call besteffort by its other name."""
    other = {"queue": "type", "type": "queue"}
    renamed = []
    for rule in rules:
        match = {
            other[key] if key in other and str(value).strip("!") == "besteffort" else key: value
            for key, value in rule["match"].items()
        }
        renamed.append({**rule, "match": match} if len(match) == len(rule["match"]) else rule)
    return renamed


@dose(60)
@given(rules=_rules, job=_jobs)
def test_no_order_of_rules_and_no_name_of_besteffort_lets_a_cap_be_bypassed(
    rules: Rules, job: dict[str, Any]
) -> None:
    found = added(rules, job)
    assert added(_renamed(rules), job) == found, "by queue or by type, it is the same"
    if not isinstance(found, Spec):
        return
    tried = try_rules(
        records(rules),
        without_terminal(job),
        user="ann",
        interactive="interactive" in job,
        system=False,
        reservations=1,
    )
    for at, rule in enumerate(rules):
        if "cap" not in rule or f"r{at}" not in tried.verdict.matched:
            continue
        ((field, most),) = rule["cap"].items()
        decided = any(
            field in later.get("set", {}) and f"r{after}" in tried.verdict.matched
            for after, later in enumerate(rules)
            if after > at
        )
        if decided:
            continue  # by the site, after the cap
        capped = added([*rules, {"cap": {field: most}}], job)
        assert capped == found, f"r{at} caps {field} to {shown_value(field, most)}, and it is more"
