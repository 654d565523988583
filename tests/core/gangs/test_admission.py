"""What a submission with gangs must fulfil: else a clear error, and nothing is added or held."""

from __future__ import annotations

from typing import Any

import pytest

from rota.core import events
from rota.core.gangs.admission import MOST_WISHES
from rota.core.gangs.gang_state import Gangs
from rota.core.jobs.explain import why
from rota.core.jobs.job import Condition
from rota.core.states import State
from rota.errors import BadInput, GangConflict
from rota.plan.need import LimitUse
from rota.plan.policy.limits import ARRAY_LIMIT, Limit
from tests.core.gangs.lab import add, lab, send
from tests.core.machine import Entry, Machine, spec
from tests.core.test_planned import site


def refused(m: Machine, *names: str, match: str, **fields: Any) -> BadInput:
    before = m.world.next_job
    with pytest.raises(BadInput, match=match) as caught:
        m.answer(send(m, *names, **fields))
    assert m.world.next_job == before, "nothing is added"
    assert m.world.find(Gangs) is None or "bad" not in {g.name for g in m.world.use(Gangs).by_key.values()}
    return caught.value


def member(name: str, **fields: Any) -> Entry:
    return Entry(f"run {name}", spec(gang="bad", name=name, **fields))


def test_a_gang_that_is_split_over_two_calls_is_refused() -> None:
    m = lab(2)
    add(m, "web", "db", gang="g")
    error = refused(m, "cache", gang="g", match="added in one call")
    assert error.field == "gang"


def test_the_name_of_an_ended_gang_may_be_used_again() -> None:
    m = lab(2)
    for id in add(m, "web", "db", gang="g"):
        m.end(id)
    assert len(add(m, "web", "db", gang="g")) == 2


def test_another_user_may_use_the_same_name() -> None:
    m = lab(2)
    add(m, "web", gang="g")
    assert add(m, "web", gang="g", user="bob")


def test_roles_must_differ() -> None:
    refused(lab(2), "web", "web", gang="bad", match="are called 'web'")


def test_roles_have_letters_digits_and_few_signs() -> None:
    assert refused(lab(2), "web server", gang="bad", match="web server").field == "name"


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("gang_share", (True, False)),
        ("on_member_failure", ("keep", "retry")),
        ("at", (5000.0, 6000.0)),
        ("gang_same", ("host", "")),
    ],
)
def test_members_have_the_same_terms(field: str, values: tuple[Any, Any]) -> None:
    entries = [member(f"n{n}", **{field: value}) for n, value in enumerate(values)]
    assert refused(lab(2), entries=entries, match="differ").field == field


def test_no_failure_rule_means_kill() -> None:
    m = lab(2)
    entries = [
        Entry("a", spec(gang="g", name="a")),
        Entry("b", spec(gang="g", name="b", on_member_failure="kill")),
    ]
    assert len(add(m, entries=entries)) == 2


def test_besteffort_members_are_not_mixed_with_others() -> None:
    entries = [member("a", types=("besteffort",), queue="besteffort"), member("b")]
    refused(lab(2), entries=entries, match="besteffort")


def test_members_may_not_wait_for_each_other_directly_or_through_others() -> None:
    first = Entry("a", spec(gang="bad", name="a"))
    direct = Entry("b", spec(gang="bad", name="b"), ((0, Condition.OK, True),))
    refused(lab(2), entries=[first, direct], match="waits for another")
    between = Entry("x", spec(), ((0, Condition.ANY, True),))
    last = Entry("b", spec(gang="bad", name="b"), ((1, Condition.OK, True),))
    refused(lab(2), entries=[first, between, last], match="waits for another")


def test_an_array_with_a_bound_cannot_be_a_gang() -> None:
    bound = (LimitUse("array-000000000000"),)
    assert ARRAY_LIMIT.fullmatch(bound[0].name)
    entries = [Entry("run", spec(gang="bad", limits=bound), element=(0, n)) for n in (1, 2)]
    refused(lab(2), entries=entries, match="cannot be limited")


def test_a_delegated_pool_is_refused() -> None:
    refused(lab(2), "a", gang="bad", pool="cluster", match="another engine")


def test_unknown_properties_are_refused_wherever_they_are() -> None:
    m = lab(2)
    for field, value in (("gang_same", "colour"), ("prefer", "colour = 'red'"), ("where", "colour = 'red'")):
        assert refused(m, "a", gang="bad", match="colour", **{field: value}).field == field


def test_a_host_that_does_not_exist_is_not_forced() -> None:
    assert refused(lab(2), "a", gang="bad", force_host="h9", match="h9").field == "force_host"


def test_a_gang_with_more_members_than_hosts_is_refused_and_names_them() -> None:
    m = lab(2)
    with pytest.raises(GangConflict, match=r"web.*db.*cache|members") as caught:
        m.answer(send(m, "web", "db", "cache"))
    assert caught.value.code == "gang_conflict"
    for name in ("web", "db", "cache"):
        assert name in caught.value.message
    assert m.world.next_job == 1


def test_a_member_that_alone_never_fits_is_a_conflict() -> None:
    m = lab(2)
    entries = [member("small"), member("large", request=("core=9,walltime=1h",))]
    with pytest.raises(GangConflict, match="large"):
        m.answer(send(m, entries=entries))


def test_a_conflict_is_queued_on_request_and_begins_when_machines_are_added() -> None:
    m = lab(2)
    ids = add(m, "web", "db", "cache", allow_unsatisfiable=True)
    assert m.states(*ids) == [State.READY] * 3
    from rota.core.events import HostAppeared

    m.capacity["h3"] = m.capacity["h1"]
    m.happened(HostAppeared(host="h3", capacity=m.capacity["h3"]))
    m.join(m.start_runner("h3"))
    m.pump()
    assert m.states(*ids) == [State.RUNNING] * 3


def test_members_of_one_switch_must_fit_there() -> None:
    m = lab(3)
    for n, switch in ((1, "a"), (2, "a"), (3, "b")):
        site(m, ("resource", str(n), {"host": f"h{n}", "core": 0, "switch": switch}))
    with pytest.raises(GangConflict, match="switch"):
        m.answer(send(m, "x", "y", "z", gang_same="switch"))
    ids = add(m, "x", "y", gang_same="switch")
    assert {m.running()[id][0].host for id in ids} == {"h1", "h2"}


def with_limits(*uses: LimitUse) -> list[Entry]:
    return [member(f"n{n}", limits=(use,)) for n, use in enumerate(uses)]


def licences(m: Machine, units: int) -> None:
    m.happened(events.LimitsDeclared(limits=[Limit("lic", units)]))


def test_members_that_take_more_of_a_limit_together_than_there_is_are_a_conflict() -> None:
    m = lab(3)
    licences(m, 2)
    entries = with_limits(*[LimitUse("lic")] * 3)
    with pytest.raises(GangConflict, match="limit 'lic' has 2 units, its members take 3 together"):
        m.answer(send(m, entries=entries))
    ready = m.answer(send(m, entries=entries, allow_unsatisfiable=True)).added
    (first, *_rest) = why(m.world, m.world.jobs[ready[1]], wall=m.wall)
    assert (first.code, first.message) == ("limit", "limit 'lic' has 2 units, the members of its gang take 3")


def test_two_members_cannot_both_use_a_limit_that_one_wants_alone() -> None:
    m = lab(2)
    licences(m, 9)
    entries = with_limits(LimitUse("lic", exclusive=True), LimitUse("lic"))
    with pytest.raises(GangConflict, match="one member's alone"):
        m.answer(send(m, entries=entries))


def test_what_all_members_take_of_a_limit_is_named_while_it_is_in_use() -> None:
    m = lab(3)
    licences(m, 2)
    m.add("other", limits=(LimitUse("lic"),))
    ids = m.answer(send(m, entries=with_limits(LimitUse("lic"), LimitUse("lic")))).added
    reasons = why(m.world, m.world.jobs[ids[0]], wall=m.wall)
    assert reasons[0].message == "limit 'lic': 1 of 2 in use, the members of its gang take 2"


def test_a_gang_for_which_a_limit_was_lowered_waits_and_holds_no_machine() -> None:
    m = lab(2)
    licences(m, 2)
    (before,) = m.add("before", limits=(LimitUse("lic"),)).added
    ids = m.answer(send(m, entries=with_limits(LimitUse("lic"), LimitUse("lic")))).added
    licences(m, 1)
    m.end(before)
    (others,) = (m.add("other", "another").added,)
    assert m.states(*ids, *others) == [State.READY] * 2 + [State.RUNNING] * 2
    licences(m, 2)
    for job in others:
        m.end(job)
    assert m.states(*ids) == [State.RUNNING] * 2


def test_members_may_ask_for_machines_in_so_many_ways_that_one_decision_stays_short() -> None:
    many = [member(f"n{n}", prefer=f"host = 'h{n}'") for n in range(MOST_WISHES + 1)]
    error = refused(lab(2), entries=many, match=f"in 201 different ways, at most {MOST_WISHES} are allowed")
    assert error.field == "gang"
    m = lab(2)
    with pytest.raises(GangConflict):  # it passes this check, and there are only two machines
        m.answer(send(m, entries=many[1:]))
