"""Admission rules: what they match, what they change, and how they are written."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.core.admission.admission_rules import OF_ONE_HOST, AdmissionRule, JobFacts, Verdict, holds, judge
from rota.core.admission.rule_syntax import BUILT_IN, CONDITIONS, FIELDS, from_words, read_rule, write_rule
from rota.errors import BadInput

HOUR = 3600.0
GIB = 1 << 30


def verdict(facts: JobFacts, *rules: dict[str, Any], **more: Any) -> Verdict:
    return judge([read_rule({"name": f"r{at}", **rule}) for at, rule in enumerate(rules, 1)], facts, **more)


def matches(facts: JobFacts, match: dict[str, Any], **more: Any) -> bool:
    return bool(verdict(facts, {"match": match, "reject": "no"}, **more).rejected_by)


# ------------------------------------------------------------------ what matches


def test_a_rule_without_conditions_matches_every_job() -> None:
    assert matches(JobFacts(), {})


def test_all_conditions_must_hold_and_of_one_field_any_of_its_values() -> None:
    bob = JobFacts(user="bob", queue="night")
    assert matches(bob, {"user": ["eve", "bob"], "queue": "night"})
    assert not matches(bob, {"user": "bob", "queue": "default"})


@pytest.mark.parametrize(
    ("user", "pattern", "expected"),
    [
        ("bob", "b*", True), ("eve", "b*", False), ("bob", "!bob", False), ("eve", "!bob", True),
        ("bert", ["b*", "!bob"], True), ("bob", ["b*", "!bob"], False), ("", "", True), ("bob", "", False),
    ],
)  # fmt: skip
def test_values_are_patterns_that_may_be_negated(user: str, pattern: Any, expected: bool) -> None:
    assert matches(JobFacts(user=user), {"user": pattern}) is expected


def test_a_type_is_matched_with_or_without_what_it_names() -> None:
    inner = JobFacts(type=("inner=12", "idempotent"))
    assert matches(inner, {"type": "inner"})
    assert matches(inner, {"type": "inner=12"})
    assert not matches(inner, {"type": "inner=13"})
    assert matches(inner, {"type": "!besteffort"})


@pytest.mark.parametrize(
    ("uses", "expected"),
    [(("host",), True), (("nodes",), True), (("host", "core"), True), (("switch",), True), (("core",), False),
     (("cpu",), False), ((), False), (("gpu",), False)],
)  # fmt: skip
def test_a_request_uses_nodes_if_it_names_them_or_something_larger(uses: tuple[str, ...], expected: bool) -> None:
    levels = ("switch", "host", "cpu", "core")
    assert matches(JobFacts(uses=uses), {"uses": "nodes"}, levels=levels) is expected


def test_a_property_is_used_only_if_it_is_named() -> None:
    assert matches(JobFacts(uses=("gpu",)), {"uses": "gpu"})
    assert not matches(JobFacts(uses=("host",)), {"uses": "gpu"})


def test_a_job_without_a_walltime_asks_for_more_than_any() -> None:
    assert matches(JobFacts(), {"walltime_over": "100d"})
    assert matches(JobFacts(walltime=11 * HOUR), {"walltime_over": "10h"})
    assert not matches(JobFacts(walltime=10 * HOUR), {"walltime_over": "10h"})


def test_the_longest_alternative_counts() -> None:
    asked = JobFacts(walltime=HOUR, walltimes=(2 * HOUR, None))
    assert matches(asked, {"walltime_over": "90m"})
    assert not matches(asked, {"walltime_over": "2h"})
    assert matches(JobFacts(walltimes=(HOUR, None)), {"walltime_over": "2h"})


def test_amounts_and_marks_are_matched() -> None:
    large = JobFacts(cpus=450, mem=5 * GIB, interactive=True)
    assert matches(large, {"cpus_over": 4, "mem_over": "4G", "interactive": True})
    assert not matches(large, {"cpus_over": 4.5})
    assert not matches(large, {"interactive": "no"})
    assert matches(JobFacts(reservation=True, reservations=3), {"reservation": True, "reservations_over": 2})
    assert not matches(JobFacts(reservation=True, reservations=2), {"reservation": True, "reservations_over": 2})


# ------------------------------------------------------------------ what changes


def test_rules_are_applied_in_order_each_to_what_the_one_before_has_made() -> None:
    found = verdict(
        JobFacts(user="bob"),
        {"match": {"user": "bob"}, "set": {"queue": "night"}},
        {"match": {"queue": "night"}, "default": {"walltime": "8h", "priority": 3}},
        {"match": {"queue": "default"}, "reject": "never reached"},
    )
    assert (found.facts.queue, found.facts.walltime, found.facts.priority) == ("night", 8 * HOUR, 3)
    assert found.matched == ("r1", "r2")
    assert [(step.rule, step.field) for step in found.steps] == [
        ("r1", "queue"),
        ("r2", "walltime"),
        ("r2", "priority"),
    ]


def test_a_reject_ends_it_with_its_name_and_message() -> None:
    found = verdict(JobFacts(), {"set": {"priority": 9}}, {"reject": "not today"}, {"set": {"priority": 1}})
    assert (found.rejected_by, found.message, found.facts.priority) == ("r2", "not today", 9)


def test_a_default_leaves_what_the_job_says() -> None:
    rule = {"default": {"walltime": "2h", "mem": "4G", "project": "x", "queue": "night", "type": "idempotent"}}
    given = JobFacts(walltime=HOUR, mem=GIB, given=("mem",), project="y", queue="q", type=("noop",))
    assert verdict(given, rule).facts == given
    filled = verdict(JobFacts(mem=GIB), rule).facts
    assert (filled.walltime, filled.mem, filled.given) == (2 * HOUR, 4 * GIB, ("mem",))
    assert (filled.project, filled.queue, filled.type) == ("x", "night", ("idempotent",))


def test_a_default_walltime_is_for_jobs_to_which_neither_request_nor_queue_give_one() -> None:
    rule = {"default": {"walltime": "2h"}}
    assert verdict(JobFacts(walltimes=(HOUR,)), rule).facts.walltime is None
    assert verdict(JobFacts(walltimes=(HOUR, None)), rule).facts.walltime == 2 * HOUR
    assert verdict(JobFacts(queue="q"), rule, queue_walltimes={"q": HOUR}).facts.walltime == HOUR


def test_a_cap_holds_down_also_what_has_no_end_and_every_alternative() -> None:
    rule = {"cap": {"walltime": "12h"}}
    assert verdict(JobFacts(), rule).facts.walltime == 12 * HOUR
    assert verdict(JobFacts(walltime=HOUR), rule).facts.walltime == HOUR
    found = verdict(JobFacts(walltimes=(20 * HOUR, HOUR, None)), rule).facts
    assert (found.walltime, found.walltimes) == (12 * HOUR, (12 * HOUR, HOUR, None))


def test_a_cap_holds_down_what_the_queue_gives() -> None:
    assert (
        verdict(JobFacts(queue="q"), {"cap": {"walltime": "1h"}}, queue_walltimes={"q": 9 * HOUR}).facts.walltime
        == HOUR
    )
    assert (
        verdict(JobFacts(queue="q"), {"cap": {"walltime": "9h"}}, queue_walltimes={"q": HOUR}).facts.walltime
        == HOUR
    )


def test_only_what_was_taken_from_the_user_is_warned_about() -> None:
    rule = {"cap": {"walltime": "1h", "mem": "1G", "priority": 5}}
    assert [
        s.field for s in verdict(JobFacts(walltime=2 * HOUR, priority=9, mem=2 * GIB), rule).steps if s.warn
    ] == [
        "walltime",
        "priority",
    ]
    assert [s.field for s in verdict(JobFacts(mem=2 * GIB, given=("mem",)), rule).steps if s.warn] == ["mem"]
    assert not any(s.warn for s in verdict(JobFacts(priority=1), {"set": {"priority": 2}}).steps)


def test_setting_a_walltime_decides_it_for_every_alternative() -> None:
    found = verdict(JobFacts(walltimes=(HOUR, None)), {"set": {"walltime": "3h"}}).facts
    assert (found.walltime, found.walltimes) == (3 * HOUR, (3 * HOUR, None))


def test_a_type_is_added_to_those_there_are() -> None:
    found = verdict(JobFacts(type=("container",)), {"set": {"type": ["idempotent", "container"]}}).facts
    assert found.type == ("container", "idempotent")


def test_a_job_always_has_a_queue() -> None:
    assert judge([], JobFacts()).facts.queue == "default"


# ------------------------------------------------------------------ what is built in


def test_the_built_in_rules_do_what_they_say() -> None:
    plain = judge(BUILT_IN, JobFacts(user="ann")).facts
    assert (plain.queue, plain.walltime) == ("default", None)
    assert judge(BUILT_IN, JobFacts(uses=("host",))).facts.walltime == 2 * HOUR
    assert judge(BUILT_IN, JobFacts(interactive=True, walltime=20 * HOUR)).facts.walltime == 12 * HOUR
    assert judge(BUILT_IN, JobFacts(reservation=True, reservations=2)).rejected_by == ""
    assert judge(BUILT_IN, JobFacts(reservation=True, reservations=3)).rejected_by == "reservations"
    assert judge(BUILT_IN, JobFacts(user="root")).rejected_by == ""
    assert judge(BUILT_IN, JobFacts(user="root", system=True)).rejected_by == "no-root"


# ------------------------------------------------------------------ how they are written


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ([], "a rule is a JSON object"),
        ({"name": "a b", "reject": "x"}, "cannot be the name of a rule"),
        ({"name": "", "reject": "x"}, "cannot be the name of a rule"),
        ({"name": 3, "reject": "x"}, "needs a name"),
        ({"name": "r"}, "does nothing"),
        ({"name": "r", "set": {"queue": "x"}, "cap": {"cpus": 1}}, "both 'cap' and 'set'"),
        ({"name": "r", "reject": ""}, "needs a message"),
        ({"name": "r", "reject": "two\nlines"}, "needs a message"),
        ({"name": "r", "rejct": "x"}, "key 'rejct'"),
        ({"name": "r", "match": [], "reject": "x"}, "'match' must be an object"),
        ({"name": "r", "match": {"usr": "x"}, "reject": "x"}, "match: field 'usr'"),
        ({"name": "r", "match": {"user": 3}, "reject": "x"}, "match: field 'user'"),
        ({"name": "r", "match": {"user": []}, "reject": "x"}, "match: field 'user'"),
        ({"name": "r", "match": {"interactive": "perhaps"}, "reject": "x"}, "must be yes or no"),
        ({"name": "r", "match": {"walltime_over": 3}, "reject": "x"}, "has no unit"),
        ({"name": "r", "cap": {}}, "'cap' must be an object"),
        ({"name": "r", "cap": {"walltime": "12"}}, "cap: field 'walltime': '12' has no unit"),
        ({"name": "r", "cap": {"walltime": "0s"}}, "must be more than nothing"),
        ({"name": "r", "cap": {"walltime": None}}, "must be a text with a unit"),
        ({"name": "r", "cap": {"mem": "4 apples"}}, "is not a size"),
        ({"name": "r", "cap": {"queue": "x"}}, "field 'queue' cannot have one"),
        ({"name": "r", "default": {"cpus": 2}}, "field 'cpus' cannot have one"),
        ({"name": "r", "set": {"cpus": float("nan")}}, "must be a number of cores"),
        ({"name": "r", "set": {"priority": 256}}, "from 0 to 255"),
        ({"name": "r", "set": {"priority": -1}}, "from 0 to 255"),
        ({"name": "r", "set": {"queue": ""}}, "is empty"),
        ({"name": "r", "set": {"type": "inner=3"}}, "only the job can say it"),
        ({"name": "r", "set": {"type": "besteffrot"}}, "type"),
        ({"name": "r", "set": {"nme": "x"}}, "did you mean 'name'"),
    ],
)  # fmt: skip
def test_a_mistake_is_named(rule: Any, message: str) -> None:
    with pytest.raises(BadInput) as refused:
        read_rule(rule)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_words_of_the_command_line_are_gathered() -> None:
    words = ["user=bob,eve", "user=ann", "queue=a=b", "type=timesharing=user,*", "walltime_over=2h"]
    assert from_words(words, option="--match") == {
        "user": ["bob", "eve", "ann"],
        "queue": ["a=b"],
        "type": ["timesharing=user,*"],
        "walltime_over": "2h",
    }
    for bad in (["walltime=1h", "walltime=2h"], ["walltime"], ["=x"]):
        with pytest.raises(BadInput, match="--cap"):
            from_words(bad, option="--cap")


_texts = st.text(st.characters(categories=["L", "N", "P"]), min_size=1, max_size=12)
_numbers = st.integers(0, 255)
_times = st.integers(1, 10**8).map(lambda s: f"{s}s")
_sizes = st.integers(0, 1 << 50).map(lambda size: f"{size}B")
_kinds: dict[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys(("walltime", "time", "walltime_over", "time_over"), _times),
    **dict.fromkeys(("mem", "disk", "mem_over", "disk_over"), _sizes),
    **dict.fromkeys(("cpus", "cpus_over"), st.integers(0, 9999).map(lambda n: n / 100)),
    **dict.fromkeys(("interactive", "reservation", "system", "admin"), st.booleans()),
    **dict.fromkeys(("priority", "gpus", "retries", "reservations_over"), _numbers),
    **dict.fromkeys(("priority_over", "gpus_over", "retries_over"), _numbers),
}


def _some(names: list[str], *, least: int) -> st.SearchStrategy[dict[str, Any]]:
    values = {
        name: _kinds.get(name, st.one_of(_texts, st.lists(_texts, min_size=1, max_size=3))) for name in names
    }
    return st.sets(st.sampled_from(names), min_size=least, max_size=4).flatmap(
        lambda chosen: st.fixed_dictionaries({name: values[name] for name in sorted(chosen)})
    )


def rule(**parts: Any) -> AdmissionRule:
    return read_rule({"name": "r", **parts})


def test_a_rule_binds_jobs_to_nodes_beside_what_they_say_themselves() -> None:
    bind = rule(match={"queue": "gpu"}, set={"where": "gpu=yes and mem >= 64"})
    assert judge([bind], JobFacts(queue="gpu")).facts.where == "gpu=yes and mem>=64"
    both = judge([bind], JobFacts(queue="gpu", where="mem>=64 or switch='a'")).facts
    assert both.where == "(mem>=64 or switch='a') and gpu=yes and mem>=64"
    assert judge([bind], both).facts == both, "a second time it changes nothing"
    assert judge([bind], JobFacts(queue="default")).facts.where == ""


def test_a_default_leaves_jobs_alone_that_speak_of_properties() -> None:
    fill = rule(default={"where": "gpu = no"})
    assert judge([fill], JobFacts()).facts.where == "gpu=no"
    assert judge([fill], JobFacts(where="mem>1")).facts.where == "mem>1"
    assert judge([fill], JobFacts(wheres=("mem>1",))).facts.where == ""


@pytest.mark.parametrize(
    ("match", "expected"),
    [
        ({"where": "gpu"}, True),
        ({"where": "gpu=yes*"}, True),
        ({"where": ["!gpu"]}, False),
        ({"where": ["!cpu"]}, True),
        ({"where": "switch"}, True),
        ({"where": ""}, False),
        ({"unix_group": "staff"}, True),
        ({"unix_group": ["stud*", "wheel"]}, False),
        ({"unix_group": "!students"}, True),
        ({"unix_group": "!st*"}, False),
        ({"type": "type:yop"}, True),
        ({"type": "type:*"}, True),
        ({"type": "type:nop"}, False),
        ({"type": "!type:yop"}, False),
        ({"admin": False}, True),
        ({"admin": True}, False),
    ],
)
def test_rules_match_expressions_unix_groups_types_of_the_site_and_administrators(
    match: dict[str, Any], expected: bool
) -> None:
    facts = JobFacts(
        where="gpu=yes and mem>=64", wheres=("switch='a'",), unix_group=("ann", "staff"), type=("type:yop=5",)
    )
    assert holds(rule(match=match, set={"priority": 1}).match, facts) is expected


def test_a_job_that_says_nothing_of_properties_can_be_matched() -> None:
    match = rule(match={"where": ""}, set={"priority": 1}).match
    assert holds(match, JobFacts())
    assert not holds(match, JobFacts(where="gpu=yes"))


@pytest.mark.parametrize(
    ("where", "said"), [("gpu =", "column 6"), ("", "is empty"), (5, "property expression"), ("x" * 2000, "1024")]
)
def test_a_rule_with_a_bad_expression_is_refused(where: object, said: str) -> None:
    with pytest.raises(BadInput, match="set: field 'where': ") as refused:
        read_rule({"name": "r", "set": {"where": where}})
    assert said in refused.value.message


def test_commas_of_expressions_are_theirs() -> None:
    words = ["where=switch in ('sw1', 'sw2')"]
    assert from_words(words, option="--set") == {"where": "switch in ('sw1', 'sw2')"}
    assert from_words(words, option="--match") == {"where": ["switch in ('sw1', 'sw2')"]}


_CAPPED = [name for name, (_read, may) in FIELDS.items() if "cap" in may]
rules = st.builds(
    lambda match, values: {"name": "r", "match": match, "cap": values},
    _some(list(CONDITIONS), least=0),
    _some(_CAPPED, least=1),
)


@given(rules)
def test_a_rule_that_was_written_is_read_as_the_same(data: dict[str, Any]) -> None:
    rule = read_rule(data)
    assert read_rule(msgspec.json.decode(msgspec.json.encode(write_rule(rule)))) == rule


@given(
    rules, st.integers(0, 1000), st.one_of(st.none(), st.floats(1, 1e6)), st.lists(st.none() | st.floats(1, 1e6))
)
def test_after_a_cap_nothing_is_above_it_and_nothing_was_raised(
    data: dict[str, Any], amount: int, walltime: float | None, walltimes: list[float | None]
) -> None:
    rule = read_rule({**data, "match": {}})
    facts = JobFacts(
        walltime=walltime, walltimes=tuple(walltimes), priority=amount % 256, cpus=amount, mem=amount, disk=amount,
        time=amount + 1.0, gpus=amount, retries=amount,
    )  # fmt: skip
    found = judge([rule], facts).facts
    for name, most in rule.values.items():
        if name in OF_ONE_HOST and walltimes:
            assert getattr(found, name) == amount, "its request says how many"
            continue
        value = getattr(found, name)
        assert isinstance(most, int | float)
        assert value is not None
        assert value <= most
        before = getattr(facts, name)
        assert before is None or value <= before
    if isinstance(most := rule.values.get("walltime"), float):
        assert all(each is None or each <= most for each in found.walltimes)
    assert judge([rule], found).facts == found, "a second time it changes nothing"


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["name", "match", "set", "cap", "reject", "user", "walltime", "x"]), inner), max_leaves=10))  # fmt: skip  # noqa: E501
def test_whatever_is_no_rule_is_refused_and_nothing_worse(data: Any) -> None:
    try:
        read_rule(data, name="r")
    except BadInput as error:
        assert "\n" not in str(error)
