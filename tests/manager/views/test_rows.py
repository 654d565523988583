"""What people see of a job: what was asked for, wherever they said it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from rota.cli.render.job_text import ran_s
from rota.core.admission.terms import modified
from rota.core.attempts.parts import closing_jobs
from rota.errors import BadInput
from rota.manager.views import rows
from rota.manager.views.queries import Queries
from rota.plan.size import Size
from rota.wire.views import JobView
from tests.core.attempts.test_parts import running, silence
from tests.core.attempts.test_suspension import wait
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


def _hosts(m: Machine, job: int) -> tuple[str | None, list[str]]:
    found, _job = Queries(m.world, m.store, m.store.load().specs).show(job)
    return found.host, found.hosts


def test_all_hosts_of_an_attempt_are_shown_the_first_of_them_first():
    m, _runners, job = running(3)
    assert _hosts(m, job + 1) == (None, [])
    assert _hosts(m, job) == ("h1", ["h1", "h2", "h3"])
    m.end(job)
    assert _hosts(m, job) == ("h1", ["h1", "h2", "h3"]), "of the last attempt"


def test_the_hosts_of_a_job_that_only_waits_for_its_parts_are_still_shown():
    m, runners, job = running(2)
    silence(m, runners, "h2")
    m.end(job)
    assert closing_jobs(m.world) == {job}
    assert _hosts(m, job) == ("h1", ["h1", "h2"])


def test_a_job_without_a_request_is_on_one_host():
    m = Machine()
    m.with_runner()
    (job,) = m.add("a").added
    assert _hosts(m, job) == ("h1", ["h1"])


def test_the_story_blames_no_runner_that_was_never_silent():
    m, runners, job = running(2)
    silence(m, runners, "h2")
    m.join(runners["h2"])
    m.pump()
    story = Queries(m.world, m.store, m.store.load().specs).show(job)[0].story
    assert [line.text for line in story or () if line.event == "revived"] == ["all its hosts answer again"]


def test_the_time_of_an_attempt_is_that_in_which_it_did_not_stand_still():
    m = Machine()
    m.with_runner()
    (job,) = m.add("a").added
    wait(m, 100)
    m.do("suspend", job)
    wait(m, 1000)
    m.do("resume", job)
    wait(m, 50)
    m.end(job)
    found, _job = Queries(m.world, m.store, m.store.load().specs).show(job)
    assert (found.wall_s, found.suspended_s) == (150.0, 1000.0)
    assert isinstance(found.attempts, list)
    assert [each.wall_s for each in found.attempts] == [150.0]


def test_of_an_attempt_that_ended_suspended_only_the_time_before_counts():
    m = Machine()
    m.with_runner()
    (job,) = m.add("a").added
    wait(m, 100)
    m.do("suspend", job)
    wait(m, 1000)
    m.end(job)
    found, _job = Queries(m.world, m.store, m.store.load().specs).show(job)
    assert (found.wall_s, found.suspended_s) == (100.0, 1000.0)


def test_while_a_job_lives_its_time_stands_still_when_it_does():
    found = view()
    now = datetime(2026, 1, 1, tzinfo=UTC)
    found.started_at, found.suspended_s = now - timedelta(seconds=500), 300.0
    assert ran_s(found, now) == 200.0
    found.suspended_s = None
    assert ran_s(found, now) == 500.0
