"""The picture of the plan: what it says of those that have no place in it."""

from __future__ import annotations

from rota.core import events
from rota.manager.views import gantt
from rota.wire import messages as m
from tests.core.machine import Machine
from tests.core.test_planned import add


def test_what_an_ended_job_keeps_is_drawn_until_it_gives_it_back() -> None:
    machine = Machine(cpus=200)
    machine.with_runner()
    job = add(machine, request="nodes=1,walltime=60s", reserve="always", reserve_for_s=100.0)
    machine.end(job)
    (drawn,) = gantt.view(gantt.snapshot(machine.world, m.Gantt(1, None, None, 1000), machine.wall), 1000).jobs
    assert (drawn.id, drawn.state, drawn.host, drawn.resources) == (job, "keeps", "h1", "1-2")
    assert drawn.end is not None
    assert drawn.end.timestamp() == machine.wall + 100
    machine.advance(101)
    machine.pump()
    assert not gantt.view(gantt.snapshot(machine.world, m.Gantt(1, None, None, 1000), machine.wall), 1000).jobs


def test_of_a_large_plan_only_a_few_reasons_are_tried_and_all_that_wait_are_counted() -> None:
    machine = Machine(cpus=200)
    machine.with_runner()
    easy = [("queue", "default", {"backfill": "easy"})]
    machine.happened(events.SiteChanged(by=None, changes=easy, about="", base=None))
    for number in range(200):
        machine.add(f"{number}", request=(f"core=1,walltime={10 + number}m",))
    machine.pump()
    planner = machine.world.placement.planner
    assert planner is not None
    unplanned = sum(entry.start is None for entry in planner.plan.entries.values())
    assert unplanned > 100
    found = gantt.snapshot(machine.world, m.Gantt(1, None, None, 1000), machine.wall)
    assert 0 < len(found.waiting) <= 25
    assert all(reason.message for _job, reason in found.waiting)
    assert found.waiting_total == unplanned
