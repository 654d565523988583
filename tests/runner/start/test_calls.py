"""Calls of functions at a runner: their outcomes, also when the agent of a node dies under them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rota.core.attempts.leases import Finished
from rota.core.jobs.command import Call
from rota.plan.size import Size
from rota.wire import messages as m
from tests.runner.end.test_enforcement import MB, by_cgroup
from tests.runner.manager import FakeManager

_MODULE = """
import os, time

def big(size):
    return "x" * size

def wait_for(path):
    open(path + ".begun", "w").close()
    while not os.path.exists(path):
        time.sleep(0.02)
    print("seen")
    return [path, os.environ["ROTA_JOB_ID"]]

def hold(megabytes):
    return len(bytearray(megabytes * 1_000_000))

def fail():
    raise LookupError("no such thing")
"""


@pytest.fixture(params=[False, True], ids=["inside", "node"])
def manager(manager: FakeManager, request: pytest.FixtureRequest) -> FakeManager:
    manager.lasting = request.param
    (manager.home / "deeds.py").write_text(_MODULE)
    return manager


def _call(manager: FakeManager, function: str, *args: Any) -> Call:
    return Call(f"deeds:{function}", list(args), python=sys.executable)


def _grants(manager: FakeManager, calls: list[Call], *, seats: int = 1) -> list[m.Grant]:
    spec = manager.spec(cwd=str(manager.home))
    grants = [manager.grant(job, call, spec) for job, call in enumerate(calls, 1)]  # type: ignore[arg-type]
    manager.work(grants, spec, seats=manager.seats(seats))
    return grants


def _ended(manager: FakeManager, count: int) -> list[Finished]:
    return sorted(manager.wait_for(list(range(1, count + 1))), key=lambda each: each.job)


def test_a_call_reports_what_it_returned_or_why_it_failed(manager: FakeManager) -> None:
    manager.begin()
    _grants(manager, [_call(manager, "big", 3), _call(manager, "fail"), _call(manager, "nothing")])
    good, bad, missing = (each.outcome for each in _ended(manager, 3))
    assert (good.exit_code, good.reason) == (0, "")
    assert good.returned is not None
    assert good.returned.value == '"xxx"'
    assert (bad.exit_code, bad.reason, bad.message) == (1, "exception", "LookupError: no such thing")
    assert bad.returned is not None
    assert bad.returned.error is not None
    assert bad.returned.error.type == "LookupError"
    assert (missing.exit_code, missing.reason, missing.permanent) == (1, "import", True)


def test_many_large_results_come_in_reports_of_a_bearable_size(manager: FakeManager) -> None:
    manager.auto_ack = False
    manager.begin()
    _grants(manager, [_call(manager, "big", (1 << 20) - 2)] * 12)
    found = _ended(manager, 12)
    assert all(each.outcome.returned is not None for each in found)
    assert {len(each.outcome.returned.value) for each in found if each.outcome.returned} == {1 << 20}


def test_more_results_than_a_message_holds_do_not_keep_a_dead_runner_from_being_settled(
    manager: FakeManager,
) -> None:
    manager.auto_ack = False
    runner = manager.begin()
    count = 36
    _grants(manager, [_call(manager, "big", (1 << 20) - 2)] * count, seats=2)
    assert len(_ended(manager, count)) == count
    _replace(manager, runner)  # a launcher without leases has left, so an agent is settled like any other
    found = manager.until(lambda: manager.settles and manager.settles[0].ended)
    assert len(found) == count
    kept = [each for each in found if each.outcome.returned is not None]
    assert len(kept) == 24
    assert {each.outcome.reason for each in found if each not in kept} == {"lost"}


def test_a_call_goes_on_under_the_next_agent(manager: FakeManager) -> None:
    if not manager.lasting:
        pytest.skip("the calls of this runner end with it")
    runner = manager.begin()
    path = str(manager.home / "go")
    _grants(manager, [_call(manager, "wait_for", path)])
    manager.until(lambda: os.path.exists(f"{path}.begun"))
    _replace(manager, runner)
    Path(path).touch()
    (done,) = _ended(manager, 1)
    assert (done.outcome.exit_code, done.outcome.reason) == (0, "")
    assert done.outcome.returned is not None
    assert done.outcome.returned.value == f'["{path}","1"]'
    assert manager.output(done)[0] == b"seen\n"


def test_a_call_that_ended_without_an_agent_has_its_result(manager: FakeManager) -> None:
    if not manager.lasting:
        pytest.skip("the calls of this runner end with it")
    runner = manager.begin()
    path = str(manager.home / "go")
    _grants(manager, [_call(manager, "wait_for", path)])
    manager.until(lambda: os.path.exists(f"{path}.begun"))
    _kill(manager, runner)
    Path(path).touch()
    manager.spawn()
    manager.accept()
    (done,) = _ended(manager, 1)
    assert done.outcome.returned is not None
    assert done.outcome.returned.value == f'["{path}","1"]'


def test_calls_of_a_dead_runner_are_lost_and_leave_nothing(manager: FakeManager) -> None:
    if manager.lasting:
        pytest.skip("the calls of this runner outlive it")
    runner = manager.begin()
    path = str(manager.home / "go")
    _grants(manager, [_call(manager, "wait_for", path)])
    manager.until(lambda: os.path.exists(f"{path}.begun"))
    _replace(manager, runner)
    manager.until(lambda: manager.settles)
    (done,) = manager.settles[0].ended
    assert done.outcome.reason == "lost"


def _kill(manager: FakeManager, runner: subprocess.Popen[bytes]) -> None:
    os.kill(runner.pid, signal.SIGKILL)
    runner.wait()
    manager.hang_up()


def _replace(manager: FakeManager, runner: subprocess.Popen[bytes]) -> None:
    _kill(manager, runner)
    manager.spawn()
    manager.accept()


@by_cgroup
def test_the_kernel_ends_a_fork_at_its_memory_limit_and_not_its_template(manager: FakeManager) -> None:
    """The limit holds from the first instruction of the function, and for this call only."""
    manager.rules |= {"enforce_memory": "cgroup"}
    manager.begin()
    size = Size(mem=100 * MB)
    spec = manager.spec(cwd=str(manager.home), size=size)
    done: list[Finished] = []
    # The first calls have interpreters of their own; a template is there for one of the others.
    for job in range(1, 9):
        manager.work(
            [manager.grant(job, _call(manager, "hold", 5 if job % 2 else 300), spec)],  # type: ignore[arg-type]
            spec,
            seats=manager.seats(1, size),
        )
        done += manager.wait_for([job])
    assert [each.outcome.reason for each in done] == ["", "memory"] * 4
    forked = [each.outcome.returned.warm for each in done if each.outcome.returned is not None]
    assert any(forked) != manager.lasting
