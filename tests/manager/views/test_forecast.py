"""What is said about the end follows from what was seen, and where nothing is known it is said why."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from rota.core import events
from rota.core.forecast.expectation import snapshot
from rota.core.forecast.expected_times import Expectations
from rota.core.jobs.job import Job
from rota.core.states import State
from rota.manager.metrics.rates import WINDOW_S, Rates
from rota.manager.views import nodes
from rota.manager.views.forecast import foresee, measure
from rota.plan.size import Size
from rota.wire.views import StatusView
from tests.core.machine import Machine


def machine() -> Machine:
    made = Machine(cpus=200)
    made.with_runner()
    return made


def add(m: Machine, number: int, *, group: str = "a", time_s: float | None = None, **fields: Any) -> list[int]:
    size = Size(cpus=100, time_s=time_s or 3600.0)
    given = () if time_s is None else ("time",)
    cmds = [f"{group} {n}" for n in range(number)]
    return m.add(*cmds, group=group, size=size, given=given, fresh=True, **fields).added


def status(m: Machine, rates: Rates, jobs: list[Job] | None = None, *, now: float = 10.0) -> StatusView:
    groups: dict[str, dict[str, int]] = {}
    if jobs is None:
        for group, counts in m.world.counts.items():
            groups[group] = {state.label: counts[state] for state in State if counts[state]}
    for job in jobs or ():
        by_state = groups.setdefault(job.spec.group, {})
        by_state[job.state.label] = by_state.get(job.state.label, 0) + 1
    found = StatusView({}, groups)
    foresee(found, Expectations(snapshot(m.world, rates, now=now, wall=m.wall)), jobs)
    measure(found, m.world, rates, now=now)
    return found


def seconds(m: Machine, at: datetime | None) -> float | None:
    return None if at is None else (at - datetime.fromtimestamp(m.wall, UTC)).total_seconds()


def at_a_rate(rates: Rates, group: str, *, each_second: int, wall_s: float) -> None:
    for second in range(11):
        for _ in range(each_second):
            rates.ended(group, wall_s, float(second))


def test_where_nothing_has_ended_and_nobody_said_anything_it_is_said_that_nothing_is_known() -> None:
    m = machine()
    add(m, 5)
    found = status(m, Rates())
    assert (found.expected_end, found.rate, found.group_rates, found.group_expected_end) == (None, None, {}, {})
    assert found.end_reason is not None
    assert found.end_reason.code == "no_estimate"
    assert {group: why.code for group, why in found.group_end_reasons.items()} == {"a": "no_estimate"}


def test_short_jobs_go_on_at_the_rate_at_which_they_were_seen_to_end() -> None:
    m = machine()
    add(m, 102)
    rates = Rates()
    at_a_rate(rates, "a", each_second=10, wall_s=0.01)
    found = status(m, rates)
    assert found.group_rates == {"a": 10.0}
    assert seconds(m, found.expected_end) == pytest.approx(10.0, abs=0.5)


def test_a_pace_that_has_stopped_foretells_nothing() -> None:
    m = machine()
    add(m, 102)
    rates = Rates()
    at_a_rate(rates, "a", each_second=150, wall_s=0.01)
    m.wall += 5
    found = status(m, rates, now=15.0)
    assert found.expected_end is None
    assert found.end_reason is not None


def test_long_jobs_are_foreseen_by_what_such_jobs_took() -> None:
    m = machine()
    add(m, 8)
    m.wall += 100
    rates = Rates()
    rates.ended("a", 600.0, 0.0)
    found = status(m, rates)
    assert found.group_rates == {}
    assert seconds(m, found.group_expected_end["a"]) == 4 * 600.0 - 100


def test_before_any_end_the_users_own_estimate_counts() -> None:
    m = machine()
    add(m, 4, time_s=60.0)
    found = status(m, Rates())
    assert seconds(m, found.expected_end) == 120.0
    assert (found.cores, found.cores_in_use) == (2.0, 2.0)
    assert found.end_reason is None


@pytest.mark.parametrize(
    "record", [{"drain": True}, {"state": "suspected"}, {"drain": True, "reason": "it is hot"}, {"state": "alive"}]
)
def test_free_cores_on_which_nothing_may_begin_are_no_capacity(record: dict[str, Any]) -> None:
    m = machine()
    add(m, 1, time_s=60.0)
    m.happened(events.SiteChanged(by=None, changes=[("host", "h1", record)], about="", base=None))
    m.pump()
    found = status(m, Rates())
    node = nodes.view(nodes.snapshot(m.world))[0]
    expected = 2.0 if record == {"state": "alive"} else 1.0
    assert (found.cores, found.cores_in_use) == (expected, 1.0), "what still runs there is in use"
    assert (node.cores, node.capacity_cores, node.cores_in_use) == (2, expected, 1.0), "and pages say the same"


def test_while_one_group_is_unknown_the_end_of_all_is_unknown() -> None:
    m = machine()
    add(m, 1, group="told", time_s=60.0)
    add(m, 1, group="long")
    found = status(m, Rates())
    assert (set(found.group_expected_end), set(found.group_end_reasons)) == ({"told"}, {"long"})
    assert found.expected_end is None


def test_the_end_is_that_of_what_ends_by_itself_and_the_rest_is_named() -> None:
    m = machine()
    (_first, _second, third) = add(m, 3, time_s=60.0)
    m.do("hold", third)
    found = status(m, Rates())
    assert seconds(m, found.expected_end) == 60.0
    assert found.group_end_reasons["a"].message == "1 of its jobs is held"


def test_where_everything_rests_no_end_is_expected() -> None:
    m = machine()
    add(m, 2, group="runs", time_s=60.0)
    (job,) = add(m, 1, time_s=60.0)
    m.do("hold", job)
    found = status(m, Rates(), [m.world.jobs[job]])
    assert (found.expected_end, found.group_expected_end) == (None, {})
    assert found.group_end_reasons["a"].code == "held"


def test_a_part_of_a_group_ends_when_its_own_jobs_do_and_has_no_rate() -> None:
    m = machine()
    jobs = add(m, 6, time_s=60.0)
    rates = Rates()
    at_a_rate(rates, "a", each_second=1, wall_s=60.0)
    part = status(m, rates, [m.world.jobs[jobs[3]]])
    assert part.rate is None
    assert seconds(m, part.expected_end) == 120.0


def test_a_selected_group_has_its_own_rate() -> None:
    m = machine()
    mine = add(m, 3, time_s=1.0)
    add(m, 3, group="b", time_s=1.0)
    rates = Rates()
    at_a_rate(rates, "a", each_second=1, wall_s=1.0)
    at_a_rate(rates, "b", each_second=1, wall_s=1.0)
    assert status(m, rates, [m.world.jobs[job] for job in mine]).rate == 1.0
    assert status(m, rates).rate == 2.0


def test_a_rate_needs_ends_at_different_times_and_is_forgotten_after_the_window() -> None:
    rates = Rates()
    for _ in range(50):
        rates.ended("a", 1.0, 100.0)
    assert rates.group_rate("a", 110.0) is None
    rates.ended("a", 1.0, 110.5)
    assert rates.group_rate("a", 120.0) == 1 / 20
    assert rates.group_rate("a", 111.0 + WINDOW_S) is None
    assert rates.wall_s("a") == 1.0


def test_nothing_is_kept_of_groups_that_have_come_to_rest() -> None:
    rates = Rates()
    for number in range(100):
        rates.ended(f"g{number}", None, 0.0)
    rates.ended("last", None, 2.0 * WINDOW_S)
    assert len(rates._dated) == 1
