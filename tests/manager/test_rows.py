"""What people see of a job: what was asked for, wherever they said it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from rota.errors import BadInput
from rota.manager import rows
from rota.manager.terms import modified
from rota.plan.size import Size
from rota.wire.views import JobView
from tests.core.machine import Machine, spec


def view(**fields: Any) -> JobView:
    machine = Machine()
    (job,) = machine.add("a", **fields).added
    (row,) = machine.store.jobs([job])
    return rows.view(row, machine.store.load().specs[row.spec_id], machine.world.jobs[job], host=None)


@pytest.mark.parametrize(
    "fields",
    [
        {"walltime_s": 300.0},
        {"request": ("core=1,walltime=5m",)},
        {"request": ("core=1",), "walltime_s": 300.0},
        {"request": ("core=2,walltime=2m", "core=1,walltime=5m")},
    ],
)
def test_a_walltime_is_the_time_asked_for_wherever_it_was_said(fields):
    found = view(**fields)
    assert found.walltime_s == 300.0
    assert found.asked is not None
    assert (found.asked.time_s, found.size.time_s, found.given) == (300.0, 300.0, ["time"])


@pytest.mark.parametrize("time_s", [60, 600])
def test_a_time_that_was_given_stays_what_it_is_beside_a_walltime(time_s):
    found = view(size=Size(time_s=time_s), given=("time",), walltime_s=300.0)
    assert found.asked is not None
    assert (found.asked.time_s, found.size.time_s, found.walltime_s) == (time_s, time_s, 300.0)


def test_without_a_walltime_the_time_is_the_default_and_said_to_be():
    for request in ((), ("core=1",), ("core=2,walltime=2m", "core=1")):
        found = view(request=request)
        assert found.walltime_s is None
        assert (found.size.time_s, found.given) == (Size().time_s, [])


def test_an_attempt_took_the_walltime_that_it_was_given():
    machine = Machine(cpus=100)
    machine.with_runner()
    (job,) = machine.add("a", request=("core=2,walltime=9m", "core=1,walltime=5m"), allow_unsatisfiable=True).added
    machine.end(job)
    (row,) = machine.store.attempts(job)
    found = rows.attempt_view(row, None, machine.store.load().specs)
    assert found.size is not None
    assert found.size.time_s == 300.0


def test_a_walltime_that_would_change_nothing_is_refused():
    its = spec(request=("core=1,walltime=5m",))
    with pytest.raises(BadInput, match="as its request says"):
        modified(its, {"walltime_s": 60.0})
    assert modified(its, {"walltime_s": None}) == {"walltime_s": None}
    open_ended = msgspec.structs.replace(its, request=("core=1,walltime=5m", "core=2"))
    assert modified(open_ended, {"walltime_s": 60.0}) == {"walltime_s": 60.0}
