"""A submission that comes again: it is added once, and every repeat gets the first answer."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from rota.client import submission
from rota.client.session import Added
from rota.errors import RotaError
from tests.deployment import Deployment, deployment


@pytest.fixture(scope="module")
def paused(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    with deployment(tmp_path_factory.mktemp("repeats")) as made:
        made.start()
        made.ok("manager", "pause")
        yield made


def _send(where: Deployment, id: str, commands: list[str], **fields: str) -> Added:
    with where.client() as client:
        return client.submit(id, *submission.prepare(commands, {"cwd": str(where.work), **fields}, check=False))


@pytest.mark.parametrize("jobs", [1, 25_000], ids=["one chunk", "several chunks"])
def test_a_repeat_gets_the_first_answer(paused: Deployment, jobs: int) -> None:
    commands = [f"true {number} of {jobs}" for number in range(jobs)]
    first = _send(paused, f"repeated-{jobs}", commands)
    assert len(first.added) == jobs
    assert _send(paused, f"repeated-{jobs}", commands) == first
    assert _send(paused, f"another-{jobs}", commands).existing == first.added


def test_repeats_at_once_are_added_once(paused: Deployment) -> None:
    def send(_: int) -> Added | RotaError:
        try:
            return _send(paused, "at-once", ["true at once"])
        except RotaError as error:
            return error

    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(send, range(6)))
    added = [answer for answer in answers if isinstance(answer, Added)]
    assert added
    assert all(answer == added[0] and len(answer.added) == 1 for answer in added)
    # A connection that was overtaken is told so.
    assert all("begun again" in str(answer) for answer in answers if isinstance(answer, RotaError))


def test_a_repeat_gets_the_first_answer_though_it_would_be_refused_by_now(paused: Deployment) -> None:
    paused.ok("queue", "add", "night")
    first = _send(paused, "to-a-queue", ["true by night"], queue="night")
    paused.ok("kill", str(first.added[0]))
    paused.ok("remove", str(first.added[0]))
    paused.ok("queue", "remove", "night")
    with pytest.raises(RotaError, match="night"):
        _send(paused, "to-no-queue", ["true by night"], queue="night")
    assert _send(paused, "to-a-queue", ["true by night"], queue="night") == first


def test_nobody_adds_jobs_under_the_name_of_a_session_of_a_pipeline(paused: Deployment) -> None:
    with pytest.raises(RotaError, match="session of a pipeline"):
        _send(paused, "pipeline-1", ["true in a pipeline"])
