"""Learning in the engine: when sizes change, when they must not, and what a crash leaves of it."""

from __future__ import annotations

from typing import Any

import pytest

from rota.core.jobs.outcome import Outcome
from rota.core.states import State
from rota.plan.size import Floor, Size
from tests.core.machine import GIB, Machine

MIB = 1 << 20


@pytest.fixture
def m() -> Machine:
    machine = Machine(cpus=400, mem=8 * GIB)
    machine.with_runner()
    return machine


def end(m: Machine, job: int, *, mem: int, reason: str = "") -> None:
    started_at = m.running()[job][0].busy[m.running()[job][1]].started_at
    code = None if reason else 0
    m.end(job, Outcome(exit_code=code, reason=reason, started_at=started_at, ended_at=m.wall, peak_mem=mem))


def teach(m: Machine, mem: int, times: int = 3) -> None:
    """So many jobs of `tool` succeed with this peak."""
    for n in range(times):
        [id] = m.add(f"tool teach {n}", fresh=True, size=Size(mem=GIB), override="always", given=("mem",)).added
        end(m, id, mem=mem)


def add(m: Machine, cmd: str, *, mem: int = GIB, **fields: Any) -> int:
    return m.add(cmd, size=Size(mem=mem), **fields).added[0]


def mem_of(m: Machine, job: int) -> int:
    """What the attempt that runs was given, as it was sent."""
    model, seat = m.running()[job]
    return model.busy[seat].grant.size.mem


def restart(m: Machine) -> None:
    m.crash()
    for runner in m.runners.values():
        m.join(runner)
    m.pump()


def test_a_default_is_replaced_by_what_was_learned_and_what_was_given_only_raised(m: Machine) -> None:
    teach(m, 300 * MIB)
    assert mem_of(m, add(m, "tool default")) == 512 * MIB
    assert mem_of(m, add(m, "tool given", given=("mem",))) == GIB
    assert mem_of(m, add(m, "tool little", mem=MIB, given=("mem",))) == 512 * MIB


@pytest.mark.parametrize(("override", "expected"), [("no", 512 * MIB), ("higher", GIB), ("always", GIB)])
def test_override_says_which_value_is_used(m: Machine, override: str, expected: int) -> None:
    teach(m, 300 * MIB)
    assert mem_of(m, add(m, "tool x", override=override, given=("mem",))) == expected


def test_names_never_mix_by_prefix(m: Machine) -> None:
    teach(m, 300 * MIB)
    assert mem_of(m, add(m, "tool2 x")) == GIB


def test_the_size_of_a_job_that_is_leased_never_changes(m: Machine) -> None:
    first = add(m, "tool first")
    teach(m, 300 * MIB)
    assert m.world.jobs[first].size.mem == mem_of(m, first) == GIB
    restart(m)
    assert m.world.jobs[first].size.mem == GIB
    second = add(m, "tool second")
    teach(m, 3 * GIB)
    restart(m)
    assert m.world.jobs[second].size.mem == 512 * MIB
    end(m, first, mem=GIB)
    end(m, second, mem=GIB)
    assert m.world.runners["r1"].unseated == {}


def test_after_a_failure_for_lack_of_memory_the_next_attempt_asks_for_more_whatever_happens(m: Machine) -> None:
    job = add(m, "tool x", retries=2, override="always", given=("mem",))
    end(m, job, mem=GIB, reason="memory")
    assert m.world.jobs[job].floor == Floor(mem=2 * GIB)
    restart(m)
    assert m.state(job) is State.DELAYED
    m.advance(61.0)
    m.pump()
    assert mem_of(m, job) == 2 * GIB
    restart(m)
    end(m, job, mem=2 * GIB, reason="memory")
    m.advance(2000.0)
    m.pump()
    assert mem_of(m, job) == 4 * GIB


def test_the_floor_of_a_failed_job_is_asked_for_when_it_is_retried_from_disk(m: Machine) -> None:
    job = add(m, "tool x", override="always", given=("mem",))
    end(m, job, mem=GIB, reason="memory")
    restart(m)
    assert job not in m.world.jobs
    m.do("retry", job)
    assert mem_of(m, job) == 2 * GIB


def test_nothing_learned_goes_beyond_the_largest_host(m: Machine) -> None:
    job = add(m, "tool x", mem=7 * GIB, retries=1)
    end(m, job, mem=7 * GIB, reason="memory")
    m.advance(2000.0)
    m.pump()
    assert mem_of(m, job) == 8 * GIB
    end(m, job, mem=8 * GIB, reason="memory")
    assert m.state(job) is State.FAILED
    assert mem_of(m, add(m, "tool y")) == 8 * GIB


def test_what_was_lost_or_killed_teaches_nothing(m: Machine) -> None:
    job = add(m, "tool x")
    m.do("kill", job)
    lost = add(m, "tool y")
    end(m, lost, mem=7 * GIB, reason="lost")
    assert m.world.models == {}


def test_what_was_learned_survives_a_crash(m: Machine) -> None:
    teach(m, 300 * MIB)
    restart(m)
    assert mem_of(m, add(m, "tool x")) == 512 * MIB
