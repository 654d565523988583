"""What jobs take is decided anew often enough, and not more often."""

from __future__ import annotations

from rota.core.jobs.job import Job
from rota.core.learning.estimate import decision, estimate, model_of
from rota.core.learning.observation import Observation
from rota.core.states import State
from rota.core.world import World
from rota.plan.dispatch.planning import Planning
from rota.plan.size import Floor, Size
from tests.core.machine import GIB, spec

MIB = 1 << 20


def world(*, largest: Size | None = None) -> World:
    made = World(Planning())
    made.largest = largest
    return made


def job(number: int = 1, *, spec_id: int = 1, cmd: str = "blast x") -> Job:
    fields = spec(size=Size(mem=GIB, time_s=60.0), given=())
    return Job(number, f"k{number}", fields, spec_id, cmd, State.READY, "s", 0.0)


def saw(made: World, mem: int, *, times: int = 1, outcome: str = "complete", asked: int = 0) -> None:
    for _ in range(times):
        model_of(made, "blast").observe(Observation(0.0, mem, 0, 1.0, outcome, given_mem=asked))


def taken(made: World, one: Job) -> Size:
    estimate(made, one)
    return one.size


def test_a_job_of_which_nothing_is_known_takes_what_it_asks() -> None:
    assert taken(world(), job()).mem == GIB


def test_few_observations_are_each_looked_at() -> None:
    made = world()
    for number in range(1, 16):
        saw(made, number * 400 * MIB)
        one = job(number)
        assert taken(made, one) == decision(made, one).used


def test_with_many_a_sixteenth_more_is_waited_for() -> None:
    made = world()
    saw(made, 300 * MIB, times=160)
    before = taken(made, job())
    saw(made, 6 * GIB, times=9)
    assert taken(made, job(2)) == before
    saw(made, 6 * GIB)
    assert taken(made, job(3)) == decision(made, job(3)).used != before


def test_a_failure_for_lack_of_memory_counts_at_once_and_no_longer_than_it_should() -> None:
    made = world()
    saw(made, 300 * MIB, times=160)
    before = taken(made, job())
    saw(made, 3 * GIB, outcome="memory", asked=3 * GIB)
    assert taken(made, job(2)).mem >= 3 * GIB > before.mem
    saw(made, 300 * MIB, times=4)
    assert taken(made, job(3)).mem >= 3 * GIB
    saw(made, 300 * MIB)
    assert taken(made, job(4)) == before


def test_a_model_that_was_forgotten_is_asked_no_more() -> None:
    made = world()
    saw(made, 6 * GIB, times=100)
    assert taken(made, job()).mem > 6 * GIB
    del made.models["blast"]
    assert taken(made, job(2)).mem == GIB
    saw(made, 300 * MIB, times=100)
    assert taken(made, job(3)) == decision(made, job(3)).used


def test_a_larger_host_lets_more_be_taken_at_once() -> None:
    made = world(largest=Size(mem=2 * GIB))
    saw(made, 6 * GIB, times=100)
    assert taken(made, job()).mem == 2 * GIB
    made.largest = Size(mem=64 * GIB)
    assert taken(made, job(2)).mem > 6 * GIB


def test_what_is_special_about_a_job_is_its_own() -> None:
    made = world()
    saw(made, 300 * MIB, times=100)
    usual = taken(made, job())
    special = job(2)
    special.floor = Floor(mem=8 * GIB)
    assert taken(made, special).mem == 8 * GIB
    assert taken(made, job(3)) == usual


def test_other_specifications_and_other_programs_are_decided_apart() -> None:
    made = world()
    saw(made, 300 * MIB, times=100)
    small = taken(made, job())
    other = job(2, spec_id=2)
    other.spec = spec(size=Size(mem=4 * GIB, time_s=60.0), given=("mem",))
    assert taken(made, other).mem == 4 * GIB
    assert taken(made, job(3, cmd="align x")).mem == GIB
    assert taken(made, job(4)) == small
