"""A runner that is killed at any moment: what ran is known, nothing runs on, nothing runs unseen.

Jobs append to a witness file that nobody else touches; it is the independent truth.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from pathlib import Path

import pytest

from rota.core.attempts.leases import Finished
from rota.launcher import procfs
from rota.wire import messages as m
from tests.runner.manager import FakeManager, Gone

JOB = 'echo "$ROTA_JOB_ID start" >> witness; sleep {pause}; echo "$ROTA_JOB_ID end" >> witness'


def witnessed(home: Path) -> tuple[list[int], list[int]]:
    """Jobs that started, and jobs that came to their end."""
    path = home / "witness"
    lines = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
    return [int(job) for job, what in lines if what == "start"], [int(job) for job, what in lines if what == "end"]


def carriers(grants: list[m.Grant]) -> list[int]:
    """Living processes of these leases."""
    tokens = {f"{grant.token:x}".encode() for grant in grants}

    def token(pid: int) -> bytes:
        return (procfs.environ_value(pid, b"ROTA_LEASE") or b"").partition(b"@")[0]

    return [pid for pid, seen in procfs.table().items() if seen.alive and token(pid) in tokens]


def check(manager: FakeManager, grants: list[m.Grant], settled: list[m.Settle]) -> dict[int, Finished]:
    """What the manager knows agrees with what the witness saw; all outcomes by job."""
    assert carriers(grants) == []
    started, ended = witnessed(manager.home)
    assert len(started) == len(set(started)), "nothing runs twice"
    told = {done.job: done for done in manager.ended}
    for settle in settled:
        assert settle.whole
        for done in settle.ended:
            if done.job in told and told[done.job].outcome.reason != "lost":
                assert done == told[done.job], "what was reported is not changed"
            told[done.job] = done
    assert set(started) <= told.keys(), "whatever began is known to have been executed"
    for job, done in told.items():
        if done.outcome.exit_code == 0:
            assert job in ended
    return told


def jobs(manager: FakeManager, rng: random.Random, pauses: list[float]) -> list[m.Grant]:
    spec = manager.spec()
    grants = [manager.grant(n, JOB.format(pause=rng.choice(pauses)), spec) for n in range(1, 13)]
    manager.work(grants, spec, seats=3)
    return grants


@pytest.mark.parametrize("seed", range(12))
def test_a_runner_killed_at_a_random_moment_is_settled(manager: FakeManager, seed: int) -> None:
    rng = random.Random(seed)
    process = manager.begin()
    manager.auto_ack = rng.random() < 0.5
    grants = jobs(manager, rng, [0, 0, 0.01, 0.1, 30])
    end = time.monotonic() + rng.uniform(0, 0.4)
    while time.monotonic() < end:
        manager.read(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    with pytest.raises(Gone):
        manager.until(lambda: False)
    manager.hang_up()
    manager.auto_ack = True
    dead = manager.joins[0].runner
    manager.begin()
    assert [settle.runner for settle in manager.settles] == [dead]
    check(manager, grants, manager.settles)
    manager.until(lambda: dead not in os.listdir(manager.runners))
    (after,) = manager.run("echo works")
    assert manager.output(after)[0] == b"works\n"


#: The first ones of some hit the runner before it has joined; that must be harmless too.
CALLS = [("write", 1), ("pread64", 5), ("epoll_wait", 2), ("rt_sigprocmask", 6)]
CALLS += [(call, n) for call in ("write", "sendto", "clone3", "chdir", "wait4") for n in (2, 3, 5, 8)]


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
@pytest.mark.parametrize(("call", "nth"), CALLS)
def test_a_runner_killed_at_its_nth_system_call_is_settled(manager: FakeManager, call: str, nth: int) -> None:
    process = manager.spawn(
        "strace", "-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={call}:signal=KILL:when={nth}"
    )
    grants: list[m.Grant] = []
    try:
        manager.accept()
        grants = jobs(manager, random.Random(nth), [0, 0.01, 0.1])
        manager.until(lambda: len(manager.ended) == 12)
    except (Gone, ConnectionError):
        pass
    process.wait(60)
    manager.hang_up()
    manager.begin()
    check(manager, grants, manager.settles)


def test_recorded_outcomes_are_told_as_they_were(manager: FakeManager) -> None:
    process = manager.begin()
    manager.auto_ack = False
    ok, bad = manager.run("echo kept", "exit 7")
    process.send_signal(signal.SIGKILL)
    process.wait()
    manager.hang_up()
    manager.begin()
    (settle,) = manager.settles
    assert sorted(settle.ended, key=lambda done: done.job) == [ok, bad]
    assert manager.output(settle.ended[0])[0] == b"kept\n"


def test_acknowledged_outcomes_are_not_told_again(manager: FakeManager) -> None:
    process = manager.begin()
    manager.run("true", "true")
    spec = manager.spec()
    manager.work([manager.grant(9, "sleep 600", spec)], spec)
    manager.until(lambda: any(started.job == 9 for started in manager.started))
    process.send_signal(signal.SIGKILL)
    process.wait()
    manager.hang_up()
    manager.begin()
    (settle,) = manager.settles
    assert [(done.job, done.outcome.reason) for done in settle.ended] == [(9, "lost")]
    assert "still there and ended" in settle.ended[0].outcome.message


def test_survivors_of_a_dead_runner_are_ended_even_daemons_deaf_to_term(manager: FakeManager) -> None:
    process = manager.begin()
    spec = manager.spec(scratch=True)
    command = "trap '' TERM; touch ../../on; setsid setsid sh -c 'sleep 600 & sleep 600' & sleep 600"
    grant = manager.grant(1, command, spec)
    manager.work([grant], spec)
    manager.until(lambda: (manager.home / "on").exists() and manager.started)
    process.send_signal(signal.SIGKILL)
    process.wait()
    manager.hang_up()
    assert carriers([grant])
    manager.begin()
    assert carriers([grant]) == []
    assert [done.outcome.reason for done in manager.settles[0].ended] == ["lost"]
    assert os.listdir(manager.home / "scratch") == []


def test_a_story_is_told_until_the_manager_has_it(manager: FakeManager) -> None:
    process = manager.begin()
    spec = manager.spec()
    manager.work([manager.grant(1, "sleep 600", spec)], spec)
    manager.until(lambda: manager.started)
    process.send_signal(signal.SIGKILL)
    process.wait()
    manager.hang_up()
    dead = manager.joins[0].runner
    manager.spawn()
    manager.greet()
    manager.hang_up()  # gone before it could answer
    manager.accept()
    assert manager.settles[-1].runner == dead
    manager.until(lambda: dead not in os.listdir(manager.runners))


def test_living_runners_are_left_alone(manager: FakeManager) -> None:
    manager.begin()
    first = manager.joins[0].runner
    manager.hang_up()
    manager.spawn()
    manager.accept()
    manager.accept()
    assert manager.settles == []
    assert first in os.listdir(manager.runners)
