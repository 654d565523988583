"""Jobs that are left out of all decisions because of bugs hold no room: others may have it when they come back."""

from __future__ import annotations

import pytest

from rota.core import events
from rota.core.attempts.leases import LeaseRef
from rota.core.bugs.ledger import BUGS, with_bug
from rota.core.bugs.undecided import Undecided
from rota.core.changes import Changes
from rota.core.states import State
from rota.plan.size import Size
from tests.core.bugs.faulty import FaultyMachine, InjectedBugError

_WHOLE_HOST = {"size": {"size": Size(cpus=400)}, "request": {"request": ("/host=1/core=4,walltime=1",)}}


def _freeze(m: FaultyMachine, job: int) -> None:
    """A report about the job cannot even be set aside: the manager is gone with that on record."""
    found = m.world.jobs[job]
    assert found.lease is not None
    lease = LeaseRef(job, found.attempt, found.lease.token)
    entry = events.EntrySetAside(runner=found.lease.runner, field="started", lease=lease, said="{}")
    bug = Undecided("EntrySetAside", entry)
    bug.__cause__ = InjectedBugError()
    changes = Changes()
    changes.meta[BUGS] = with_bug(m.world.bugs, bug, at=m.wall, ready_s=0.0, version="").text()
    m.store.commit(changes)
    m.crash()
    assert m.world.bugs.frozen == {job}


@pytest.mark.parametrize("asked", _WHOLE_HOST)
def test_a_frozen_job_comes_back_though_another_has_its_room(asked: str) -> None:
    m = FaultyMachine(hosts=2)
    for host in m.capacity:
        m.join(m.start_runner(host))
    jobs = m.add("a", "b", "c", **_WHOLE_HOST[asked]).added
    (frozen,) = [
        job for job, (model, _seat) in m.running().items() if model.host == "h2"
    ]  # the last to join again
    others = {*jobs} - {frozen}
    _freeze(m, frozen)
    m.heal()  # its runner forgets it
    assert m.running().keys() == others
    m.happened(events.ManagerResumed())
    m.pump()
    assert m.running().keys() == others
    assert m.state(frozen) is State.FAILED  # what it did is unknown, and it has no retries
    m.run_out()
    assert m.states(*others) == [State.COMPLETE, State.COMPLETE]


@pytest.mark.parametrize("asked", _WHOLE_HOST)
def test_a_frozen_job_whose_runner_was_away_runs_on_and_keeps_its_room(asked: str) -> None:
    m = FaultyMachine()
    m.with_runner()
    frozen, other = m.add("a", "b", **_WHOLE_HOST[asked]).added
    _freeze(m, frozen)
    m.happened(events.ManagerResumed())
    m.pump()
    assert list(m.running()) == [frozen]
    assert m.state(other) is State.READY
    lease = m.world.jobs[frozen].lease
    assert lease is not None
    assert lease.seat == m.running()[frozen][1]
    m.run_out()
    assert m.states(frozen, other) == [State.COMPLETE, State.COMPLETE]
