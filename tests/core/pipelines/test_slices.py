"""A large session comes in slices: others are answered in between, and its order and crashes are as ever."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import pytest

from rota.core.pipelines import settling
from rota.core.pipelines.progress import Status
from rota.core.pipelines.session import StageJob
from tests.core.pipelines.lab import PipelineMachine, machine, pipeline, stage

_ELEMENTS = 40
#: The last two are a chain, so the one before the last is the deepest.
_DEPENDS: Mapping[str, tuple[str, ...]] = {f"e{n}": () for n in range(_ELEMENTS - 1)} | {"last": ("e38",)}


@pytest.fixture(autouse=True)
def _small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settling, "MOST_MOVES", 10)
    monkeypatch.setattr(settling, "MOST_JOBS", 3)


def _begun() -> PipelineMachine:
    """A session was asked for; nothing of it is on disk."""
    m = machine(cores=1)
    m.ask_to_start(pipeline([stage("build", needs_dependencies=True)], _DEPENDS))
    return m


def _jobs(m: PipelineMachine) -> int:
    return sum(isinstance(job, StageJob) for job in m.world.jobs.values())


def _entered(m: PipelineMachine) -> int:
    """Elements that have come to the first stage."""
    return sum(status != Status.AHEAD for status in m.session().progress.statuses)


def test_others_are_answered_between_the_slices() -> None:
    m = _begun()
    seen = []
    while _jobs(m) < _ELEMENTS - 1:
        asked = m.ask_for_nothing()
        while asked not in m.replies:
            assert m.commit()
        seen.append((_entered(m), _jobs(m)))
    assert len(seen) > _ELEMENTS // 10
    steps = [(entered - before, made - earlier) for (before, earlier), (entered, made) in pairwise(seen)]
    assert all(entered <= 20 and made <= 6 for entered, made in steps)


def test_no_job_begins_before_all_elements_have_come_and_the_deepest_begins_first() -> None:
    m = _begun()
    while _entered(m) < _ELEMENTS:
        assert not _jobs(m)
        assert m.commit()
    m.pump()
    assert m.order == [("e38", "build")]
    m.run()
    assert set(m.outcomes().values()) == {"ok"}
    assert sorted(m.order) == sorted((name, "build") for name in _DEPENDS)


@pytest.mark.parametrize("commits", range(1, 20, 3))
def test_after_a_crash_the_rest_of_it_comes(commits: int) -> None:
    m = _begun()
    for _ in range(commits):
        m.commit()
    m.crash()
    m.heal()
    m.run()
    assert set(m.outcomes().values()) == {"ok"}
    assert sorted(m.order) == sorted((name, "build") for name in _DEPENDS)


def test_before_its_record_is_on_disk_a_crash_leaves_nothing_of_it() -> None:
    m = _begun()
    m.crash()
    assert not m.sessions()


def test_what_has_not_come_as_yet_is_terminated_with_the_rest() -> None:
    m = _begun()
    m.commit()
    m.tell("terminate")
    m.run()
    assert set(m.outcomes().values()) == {"terminated"}
    assert not m.order
