"""Random pipelines, failures, pauses and crashes, against a model that knows only what pipelines mean."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any
from unittest.mock import patch

from hypothesis import example, given
from hypothesis import strategies as st

from rota.core.events import Event
from rota.core.pipelines import settling
from rota.core.pipelines.definition import Definition
from rota.core.pipelines.progress import SUMS
from rota.core.pipelines.session import Sessions, StageJob
from rota.core.states import State
from rota.plan.placement.queue import RankKey
from tests.core.pipelines.lab import PipelineMachine, pipeline, stage
from tests.core.pipelines.model import foretell
from tests.dose import dose

_LIMITS = {"x": 1, "y": 2}
_OF_STAGES = ("skip_if", "run_if", "always", "also_failed", "imperative", "needs_dependencies")


@st.composite
def definitions(draw: st.DrawFn) -> Definition:
    stages = []
    number = draw(st.integers(1, 5))
    for at in range(number):
        fields: dict[str, Any] = {}
        for name in _OF_STAGES:
            if draw(st.booleans()):
                fields[name] = "test" if name.endswith("_if") else True
        if "skip_if" in fields:
            fields.pop("run_if", None)
        if at + 1 < number and draw(st.integers(0, 3)) == 0:
            fields["skip_to"] = f"s{draw(st.integers(at + 1, number - 1))}"
        if not at and draw(st.booleans()):
            fields["redefines"] = "refs/{name}"
        elif draw(st.booleans()):
            fields["run"] = f"s{at} {{name}} {{key}}"
        takes = {name: draw(st.integers(1, most)) for name, most in _LIMITS.items() if draw(st.booleans())}
        stages.append(stage(f"s{at}", takes=takes, retries=draw(st.integers(0, 2)), **fields))
    elements: dict[str, tuple[str, ...]] = {}
    for at in range(draw(st.integers(1, 7))):
        elements[f"e{at}"] = (
            tuple(draw(st.lists(st.sampled_from(sorted(elements)), max_size=2, unique=True))) if (elements) else ()
        )
    return pipeline(stages, elements, _LIMITS)


def codes_of(seed: int, element: str, name: str) -> tuple[int, ...]:
    random = Random(f"{seed} {element} {name}")
    return tuple(random.choices((0, 75, 77, 1), (6, 2, 2, 1), k=3))


def condition_of(seed: int, element: str, name: str) -> int:
    return Random(f"{seed} {element} {name} condition").choices((0, 1, 137), (5, 8, 1))[0]


class OrderedMachine(PipelineMachine):
    """In every step of the engine nobody begins whom one of better rank could have replaced."""

    def happened(self, *what: Event) -> None:
        before = {id for id, job in self.world.jobs.items() if job.lease is not None}
        super().happened(*what)
        jobs = [job for job in self.world.jobs.values() if isinstance(job, StageJob) and job.cell >= 0]
        held = {
            id for each in self.world.use(Sessions).all.values() for id in (*each.withheld, *each.doubts.values())
        }
        waiting = [job for job in jobs if job.state is State.READY and job.id not in held]
        limits = self.world.placement.limits
        for fresh in jobs:
            if fresh.lease is not None and fresh.id not in before:
                free = Counter({name: most - limits.use(name)[0] for name, most in _LIMITS.items()})
                free.update({use.name: use.units for use in fresh.need.limits})
                _overtakes_nobody(fresh, [job for job in waiting if _place_of(job) < _place_of(fresh)], free)


def _place_of(job: StageJob) -> tuple[RankKey, int]:
    return job.rank_key, job.id


def _overtakes_nobody(fresh: StageJob, before: list[StageJob], free: Counter[str]) -> None:
    """Each of those before it lacks units, or leaves them to one of better rank that waits for more of them."""
    awaited: set[str] = set()
    for job in sorted(before, key=_place_of):
        lacks = {use.name for use in job.need.limits if free[use.name] < use.units}
        leaves = {use.name for use in job.need.limits} & awaited
        assert lacks or leaves, f"job {fresh.id} overtakes job {job.id}"
        awaited |= lacks


class Journey:
    """One session, step by step, with everything checked after each."""

    def __init__(self, definition: Definition, seed: int, on_error: str = "continue") -> None:
        self.definition = definition
        self.seed = seed
        self.random = Random(seed)
        self.m = OrderedMachine(cpus=300, condition=lambda element, name: condition_of(seed, element, name))
        self.m.with_runner()
        self.attempts: Counter[tuple[str, str]] = Counter()
        self.m.start(definition, on_error=on_error)

    def step(self, *, crashes: bool, pauses: bool) -> bool:
        """False: the session is over."""
        m = self.m
        session = m.session()
        if session.over:
            return False
        dice = self.random.random()
        if crashes and dice < 0.15:
            if self.random.random() < 0.5:
                m.commit(perform=False)
            m.crash()
            m.heal()
        elif pauses and dice < 0.3:
            m.tell("resume" if session.still else "pause")
        elif session.still and not m.work():
            m.tell("resume")
        elif work := m.work():
            cell = self.random.choice(sorted(work))
            self.finish(cell, work[cell])
        else:
            m.advance(1.0)
            m.pump()
        self.check()
        return True

    def finish(self, cell: tuple[str, str], job: int) -> None:
        """End a job with the next of its codes, unless it stands still."""
        if self.m.state(job) is State.SUSPENDED:
            return
        attempt = self.m.world.jobs[job].attempt
        codes = codes_of(self.seed, *cell)
        tries = self.m.world.jobs[job].tries
        self.m.finish(*cell, exit_code=codes[min(tries, len(codes) - 1)])
        self.attempts[cell] += 1
        assert attempt <= 20

    def check(self) -> None:
        """Limits are not exceeded. Sums and the order are checked after each step of the engine."""
        m = self.m
        takes = {each.name: each.takes for each in self.definition.stages}
        work = m.work()
        used: Counter[str] = Counter()
        for (_element, name), _job in work.items():
            for use in takes[name]:
                used[use.name] += use.units
        for name, most in _LIMITS.items():
            assert used[name] <= m.world.placement.limits.use(name)[0] <= most


#: e1 comes back to s0 with the unit that it kept; s2 of e3 leaves the other unit to s4 of e2, which takes both.
_KEEPS_A_UNIT = pipeline(
    [
        stage("s0", takes={"y": 1}, retries=1),
        stage("s1"),
        stage("s2", takes={"y": 1}),
        stage("s3", takes={"y": 1}, skip_to="s4"),
        stage("s4", takes={"y": 2}, skip_if="test"),
    ],
    dict.fromkeys(("e0", "e1", "e2", "e3"), ()),
    _LIMITS,
)


#: So many elements move in a step, and so many jobs are made.
_SLICES = st.sampled_from([(settling.MOST_MOVES, settling.MOST_JOBS), (1, 1), (3, 2)])


@dose(40)
@given(definitions(), st.integers(0, 1 << 30), st.booleans(), st.booleans(), _SLICES)
@example(_KEEPS_A_UNIT, 149, False, False, (settling.MOST_MOVES, settling.MOST_JOBS))
def test_a_session_does_what_pipelines_mean(
    definition: Definition, seed: int, crashes: bool, pauses: bool, slices: tuple[int, int]
) -> None:
    with patch.multiple(settling, MOST_MOVES=slices[0], MOST_JOBS=slices[1]):
        journey = Journey(definition, seed)
        for _step in range(2000):
            if not journey.step(crashes=crashes, pauses=pauses):
                break
    m = journey.m
    assert m.session().over
    session = m.session()
    found = {}
    for place, element in enumerate(definition.elements):
        for number, each in enumerate(definition.stages):
            status = session.progress.status(place, number)
            found[element.name, each.name] = _sum_of(status.name)
    expected = foretell(definition, lambda e, s: codes_of(seed, e, s), lambda e, s: condition_of(seed, e, s))
    assert found == expected
    for number in range(len(definition.stages)):
        sums = session.progress.sums(number)
        assert sum(sums.values()) == len(definition.elements)
        assert sums["waiting"] == sums["running"] == 0
    executed = Counter(cell for cell, _n in journey.attempts.items())
    assert all(count == 1 for count in executed.values())
    for (element, name), count in journey.attempts.items():
        retries = next(each.retries for each in definition.stages if each.name == name)
        assert count <= retries + 1, f"{element} passes {name} more than once"


@dose(20)
@given(definitions(), st.integers(0, 1 << 30), st.sampled_from(["quit", "terminate"]), st.booleans(), _SLICES)
def test_a_session_that_ends_at_a_failure_still_counts_everything(
    definition: Definition, seed: int, on_error: str, crashes: bool, slices: tuple[int, int]
) -> None:
    with patch.multiple(settling, MOST_MOVES=slices[0], MOST_JOBS=slices[1]):
        journey = Journey(definition, seed, on_error)
        for _step in range(2000):
            if not journey.step(crashes=crashes, pauses=False):
                break
    session = journey.m.session()
    assert session.over
    for number in range(len(definition.stages)):
        sums = session.progress.sums(number)
        assert sum(sums[word] for word in SUMS) == len(definition.elements)
        assert sums["waiting"] == sums["running"] == 0
    assert all(journey.m.world.placement.limits.use(name) == (0, False) for name in _LIMITS)


def _sum_of(status: str) -> str:
    return {"OK": "processed", "FAILED_PERMANENTLY": "failed"}.get(status, status.lower())
