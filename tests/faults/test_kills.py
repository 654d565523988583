"""kill -9 of manager, runner and job, singly and together, at random moments, with a witness file.

The jobs themselves write down when they start and end; that file, which Rota never touches, is the
truth that its own records are compared with.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from tests.deployment import Deployment, deployment, is_alive, wait_until

_WITNESSED = (
    'echo "$ROTA_JOB_ID $ROTA_ATTEMPT $$ start" >> {file}; sleep {seconds}; '
    'echo "$ROTA_JOB_ID $ROTA_ATTEMPT $$ end" >> {file}; : {number}'
)


class Campaign:
    """Adds jobs, kills things, brings them back, and compares what was recorded with what was seen."""

    def __init__(self, rota: Deployment, seed: int) -> None:
        self.rota = rota
        self.random = random.Random(seed)
        self.witness = rota.work / "witness"
        self.witness.touch()
        self.acknowledged: dict[int, int] = {}  #: job → retries
        self._number = 0

    def add(self, count: int) -> None:
        """Some jobs that may be started once only, some that may be tried again."""
        for retries in (0, 50):
            lines = []
            for _ in range(count):
                self._number += 1
                seconds = self.random.choice(["0", "0.01", "0.05", "0.2"])
                lines.append(_WITNESSED.format(file=self.witness, seconds=seconds, number=self._number))
            done = self.rota.rota(
                "add", "-", "--retries", str(retries), "--backoff", "0s", "--quiet", input="\n".join(lines) + "\n"
            )
            if done.returncode == 0:
                self.acknowledged |= {int(word): retries for word in done.stdout.split()}

    def kill_something(self) -> None:
        """One of the processes, or several at once."""
        victims = self.random.choice(
            ["manager", "runner", "job", "manager runner", "manager job", "runner job", "manager runner job"]
        )
        pids = []
        if "manager" in victims:
            with contextlib.suppress(OSError, ValueError):
                pids.append(self.rota.manager_pid())
        if "runner" in victims:
            pids += self.rota.runner_pids()
        if "job" in victims:
            pids += self._job_pids()
        self.random.shuffle(pids)
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _job_pids(self) -> list[int]:
        started, ended = set(), set()
        for _job, _attempt, pid, what in self.seen():
            (started if what == "start" else ended).add(pid)
        return [pid for pid in started - ended if is_alive(pid) and b"witness" in _cmdline(pid)]

    def seen(self) -> list[tuple[int, int, int, str]]:
        lines = [line.split() for line in self.witness.read_text().splitlines()]
        return [(int(job), int(attempt), int(pid), what) for job, attempt, pid, what in lines]

    def judge(self) -> None:
        """Everything acknowledged has ended, and nothing happened that must not."""
        wait_until(self._all_ended, f"all jobs ended: {self.rota.logs()}", seconds=120)
        states = self.rota.states()
        assert set(self.acknowledged) <= set(states), "an acknowledged job is gone"
        starts: dict[int, list[int]] = defaultdict(list)
        running: dict[int, int] = {}
        ends: Counter[int] = Counter()
        for job, attempt, _pid, what in self.seen():
            if what == "start":
                assert attempt not in starts[job], f"job {job}: attempt {attempt} was started twice"
                starts[job].append(attempt)
                running[job] = attempt
            else:
                assert running[job] == attempt, f"job {job}: attempt {attempt} ended after a later one began"
                ends[job] += 1
        for job, retries in self.acknowledged.items():
            assert starts[job] == sorted(starts[job]), f"job {job}: attempts out of order {starts[job]}"
            if retries == 0:
                assert len(starts[job]) <= 1, f"job {job} with no retries was started {len(starts[job])} times"
            if states[job] == "complete":
                assert ends[job] >= 1, f"job {job} is complete, but nobody saw it end"
        with self.rota.client() as client:
            for shown in map(client.job, self.acknowledged):
                outcomes = [attempt.state for attempt in shown.attempts]
                assert outcomes.count("complete") == (shown.state == "complete"), f"job {shown.id}: {outcomes}"
        assert self.rota.json("doctor") is not None

    def _all_ended(self) -> bool:
        with self.rota.client() as client:
            return set(client.status().counts) <= {"complete", "failed", "cancelled"}


def _cmdline(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _campaign(tmp_path: Path, *, rounds: int, seed: int) -> None:
    with deployment(tmp_path, grace="1s", touch_s="0.5s", lost_after="5s") as rota:
        rota.start()
        campaign = Campaign(rota, seed)
        for _ in range(rounds):
            campaign.add(3)
            time.sleep(campaign.random.random() * 0.3)
            campaign.kill_something()
            rota.rota("manager", "start")
        campaign.judge()
        assert campaign.acknowledged


def test_nothing_is_lost_or_done_twice_when_anything_is_killed(tmp_path: Path) -> None:
    _campaign(tmp_path, rounds=15, seed=1)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(2, 6))
def test_nothing_is_lost_or_done_twice_in_a_hundred_rounds(tmp_path: Path, seed: int) -> None:
    _campaign(tmp_path, rounds=100, seed=seed)
