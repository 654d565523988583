"""Asked, learned, given, used: each is what it says, in every view at once, whatever was learned before."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.core.accounts.amounts import asked_of
from rota.core.jobs.job import Spec
from rota.core.jobs.outcome import Outcome
from rota.manager.accounts import accounts
from rota.manager.views import learning
from rota.manager.views.queries import Queries
from rota.plan.placement.given import Given
from rota.plan.size import Size
from rota.wire.views import JobView, QuantityView
from tests.core.machine import Machine
from tests.dose import dose

MIB = 1 << 20
HOUR = 3600.0


def shown(machine: Machine, job: int) -> JobView:
    queries = Queries(machine.world, machine.store, machine.store.load().specs)
    view, its = queries.show(job)
    queries.explain(view, its)
    return view


def listed(machine: Machine, job: int) -> JobView:
    return Queries(machine.world, machine.store, machine.store.load().specs).listed([job])[0][0]


def finish(machine: Machine, job: int, *, lasted: float, mem: int = 0, cpu_s: float = 0.0) -> None:
    runner, seat = machine.running()[job]
    started_at = runner.busy[seat].started_at
    machine.advance(lasted)
    ended = Outcome(exit_code=0, started_at=started_at, ended_at=started_at + lasted, peak_mem=mem, cpu_s=cpu_s)
    machine.end(job, ended)


sizes = st.fixed_dictionaries(
    {
        "mem": st.sampled_from([MIB, 300 * MIB, 1024 * MIB]),
        "time_s": st.sampled_from([1.0, 5.0, 600.0, HOUR]),
    }
)
words = st.sets(st.sampled_from(["mem", "disk", "time"])).map(lambda found: tuple(sorted(found)))
overrides = st.sampled_from(["", "no", "higher", "always"])
walltimes = st.none() | st.sampled_from([30.0, 900.0])


@dose(40)
@given(
    history=st.lists(st.tuples(st.integers(1, 2000), st.floats(0.1, 5000.0)), max_size=5),
    size=sizes,
    said=words,
    override=overrides,
    walltime_s=walltimes,
    lasted=st.floats(0.5, 4000.0),
    mem=st.integers(1, 2000),
)
def test_all_views_tell_the_same_four_values(
    history: list[tuple[int, float]],
    size: dict[str, Any],
    said: tuple[str, ...],
    override: str,
    walltime_s: float | None,
    lasted: float,
    mem: int,
) -> None:
    machine = Machine()
    machine.with_runner()
    for n, (its_mem, its_s) in enumerate(history):
        (one,) = machine.add(f"tool {n}").added
        finish(machine, one, lasted=its_s, mem=its_mem * MIB)
    before = {row.at: row for row in _hours(machine)}
    spec: dict[str, Any] = {
        "size": Size(**size),
        "given": said,
        "override": override,
        "walltime_s": walltime_s,
        "project": "p",
    }
    (job,) = machine.add("tool mine", **spec).added
    runner, seat = machine.running()[job]
    lease = runner.busy[seat].grant
    finish(machine, job, lasted=lasted, mem=mem * MIB, cpu_s=lasted / 2)

    view = shown(machine, job)
    assert view.amounts is not None
    assert isinstance(view.attempts, list)
    expected_s = walltime_s if walltime_s is not None else lease.size.time_s
    for name, asked, lent, used in (
        ("cores", 1.0, 1.0, pytest.approx(0.5, abs=1e-4)),
        ("mem_bytes", size["mem"] if "mem" in said else None, lease.size.mem, mem * MIB),
        ("disk_bytes", 0 if "disk" in said else None, lease.size.disk, None),
        ("time_s", size["time_s"] if "time" in said else None, expected_s, pytest.approx(lasted)),
        ("walltime_s", walltime_s, walltime_s, pytest.approx(lasted)),
    ):
        for seen in (view.amounts, listed(machine, job).amounts, view.attempts[0].amounts):
            found = getattr(seen, name)
            assert (found.asked, found.given, found.used) == (asked, lent, used), name

    (known,) = learning.view(machine.world, "tool")
    if view.amounts.mem_bytes.learned is not None and known.mem_bytes is not None and len(history) >= 3:
        assert view.amounts.mem_bytes.learned == known.mem_bytes
    asked_s = walltime_s if walltime_s is not None else size["time_s"] if "time" in said else None
    point = learning.points(machine.store.points("tool", limit=1))[0]
    assert (point.asked_mem, point.asked_time_s) == (size["mem"] if "mem" in said else None, asked_s)
    assert (point.given_mem, point.given_time_s) == (lease.size.mem, expected_s)
    (earlier,) = learning.points(machine.store.points("tool", limit=1), apart=False)  # takes no null
    assert (earlier.asked_mem, earlier.asked_time_s) == (lease.size.mem, expected_s)
    assert (point.used_mem, point.used_time_s) == (mem * MIB, pytest.approx(lasted))

    mine = [row for row in _hours(machine) if row.project == "p"]
    assert sum(row.asked_s or 0.0 for row in mine) == pytest.approx(asked_s or 0.0)
    assert sum(row.unasked or 0 for row in mine) == (asked_s is None)
    assert sum(row.given_s for row in mine) == pytest.approx(expected_s)
    assert sum(row.used_s for row in mine) == pytest.approx(lasted)
    assert before == {row.at: row for row in _hours(machine) if row.project == "" and row.at in before}


def _hours(machine: Machine) -> list[Any]:
    end = int(machine.wall // HOUR) + 2
    found = machine.store.accounts(first=0, end=end)
    specs = machine.store.load().specs
    return accounts.view(found, specs, begin=0, end=end, window_s=3600, by=("project",), now=machine.wall).rows


def test_a_job_that_waits_has_been_given_and_has_used_nothing() -> None:
    machine = Machine()
    (job,) = machine.add("tool x", given=("mem",), size=Size(mem=5 * MIB)).added
    found = shown(machine, job).amounts
    assert found is not None
    assert (found.mem_bytes.asked, found.mem_bytes.given, found.mem_bytes.used) == (5 * MIB, None, None)
    assert found.time_s == QuantityView()


def test_a_job_that_runs_was_given_something_and_nothing_is_measured_yet() -> None:
    machine = Machine()
    machine.with_runner()
    (job,) = machine.add("tool x", walltime_s=60.0).added
    found = shown(machine, job)
    assert found.amounts is not None
    assert found.amounts.walltime_s == QuantityView(asked=60.0, given=60.0)
    assert found.given_walltime_s == 60.0


@pytest.mark.parametrize(
    ("request_", "cores", "walltime_s"),
    [
        (("core=4",), 400, None),
        (("/nodes=2/core=3,walltime=2h",), 600, 7200.0),
        (("core=2+core=3",), 500, None),
        (("nodes=2",), None, None),
        (("core=ALL",), None, None),
        (("core=4,walltime=1h", "core=4,walltime=2h"), 400, 7200.0),
        (("core=4,walltime=1h", "core=8,walltime=30m"), None, 3600.0),
        (("core=4,walltime=1h", "core=8"), None, None),
    ],
)
def test_a_request_says_what_was_asked_for(
    request_: tuple[str, ...], cores: int | None, walltime_s: float | None
) -> None:
    found = asked_of(Spec(user="ann", cwd="/", env=1, request=request_))
    assert (found.cpus, found.walltime_s) == (cores, walltime_s)


def test_of_several_alternatives_the_one_that_was_given_was_asked_for() -> None:
    spec = Spec(user="ann", cwd="/", env=1, request=("core=4,walltime=10h", "core=8,walltime=2h"))
    assert asked_of(spec, Given(Size(), walltime_s=7200.0)).walltime_s == 7200.0
    assert asked_of(spec, Given(Size(), walltime_s=9999.0)).walltime_s == 36_000.0
