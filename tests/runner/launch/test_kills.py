"""Agents and launchers that are killed at any moment under mixed load: every job runs once, and ends exactly.

Jobs append to a witness file that nothing else touches. What the next agent does not hold must not be there.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections import Counter

import pytest

from rota.core.attempts.leases import Finished
from rota.wire import messages as m
from tests.runner.launch.test_succession import kill, launchers
from tests.runner.manager import FakeManager, Gone, ref

_JOB = (
    "echo $ROTA_JOB_ID start >> {home}/witness; seq {lines}; sleep {nap}; "
    "echo $ROTA_JOB_ID end >> {home}/witness; exit {code}"
)
_QUIET = "echo $ROTA_JOB_ID start >> {home}/witness; echo $ROTA_JOB_ID end >> {home}/witness"
_BEHAVIOUR = "run: echo $ROTA_JOB_ID after >> {home}/witness"


class Campaign:
    """Leases jobs, kills, and leases again what the next agent says was never started."""

    def __init__(self, manager: FakeManager, seed: int, *, quiet: bool = False) -> None:
        """`quiet`: short jobs without output, most of which their launcher starts by itself."""
        self.manager = manager
        self.quiet = quiet
        self.random = random.Random(seed)
        self.jobs: dict[int, tuple[int, int, bool]] = {}  #: lines that it prints, its exit code, does it behave?
        self.leases: dict[int, m.Grant] = {}
        self.kills = 0
        home = manager.home
        self._plain = manager.spec()
        self._more = manager.spec(scratch=True, walltime_s=600.0, on_exit=(_BEHAVIOUR.format(home=home),))

    def add(self, count: int) -> None:
        grants = []
        for _ in range(count):
            job = len(self.jobs) + 1
            lines, code = self.random.choice([0, 1, 50, 20000]), self.random.choice([0, 0, 3])
            self.jobs[job] = (0, 0, False) if self.quiet else (lines, code, self.random.random() < 0.4)
            grants.append(self._grant(job))
        self._send(grants)

    def _grant(self, job: int, attempt: int = 1) -> m.Grant:
        lines, code, behaves = self.jobs[job]
        nap = self.random.choice(["0", "0.05", "0.3", "1"])
        text = (_QUIET if self.quiet else _JOB).format(home=self.manager.home, lines=lines, nap=nap, code=code)
        spec = self._more if behaves else self._plain
        grant = self.leases[job] = self.manager.grant(job, text, spec, attempt=attempt)
        return grant

    def _send(self, grants: list[m.Grant]) -> None:
        self.manager.work(grants, self._plain, self._more, seats=2)

    def read(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.manager.read(left)
        self._again()

    def _again(self) -> None:
        """Leases that were handed back."""
        returned, self.manager.returned = self.manager.returned, []
        keys = {ref(grant): job for job, grant in self.leases.items()}
        grants = [self._grant(keys[each], each.attempt + 1) for each in returned if each in keys]
        if grants:
            self._send(grants)

    def kill_agent(self) -> None:
        self.kills += 1
        kill(self.manager, self.manager.processes[-1])
        time.sleep(self.random.choice([0, 0, 0.3]))
        self.manager.spawn()
        if self.random.random() < 0.2:  # once more, while it begins
            self.kills += 1
            time.sleep(self.random.uniform(0, 0.6))
            kill(self.manager, self.manager.processes[-1])
            self.manager.spawn()
        while True:
            try:
                join = self.manager.accept()
                break
            except Gone:
                continue  # the connection of one that was killed
        told = {each.job for each in self.ended()}
        held = {(each.job, each.token) for each in join.held}
        fresh = []
        for job, grant in list(self.leases.items()):
            if job not in told and (job, grant.token) not in held:
                assert not self.witnessed()[job, "start"], f"job {job} ran and is not held\n{self.manager.log()}"
                fresh.append(self._grant(job, grant.attempt + 1))
        if fresh:
            self._send(fresh)

    def ended(self) -> list[Finished]:
        """All ends that were told: by an agent, or by its successor if nothing ran that could go on."""
        return self.manager.ended + [each for settle in self.manager.settles for each in settle.ended]

    def kill_launcher(self) -> None:
        for pid in launchers(self.manager):
            self.kills += 1
            with contextlib.suppress(ProcessLookupError):  # it left because it was empty
                os.kill(pid, signal.SIGKILL)

    def witnessed(self) -> Counter[tuple[int, str]]:
        path = self.manager.home / "witness"
        lines = path.read_text().splitlines() if path.exists() else []
        return Counter((int(line.split()[0]), line.split()[1]) for line in lines)

    def judge(self) -> None:
        manager = self.manager

        def all_ended() -> bool:
            self._again()
            return self.jobs.keys() <= {each.job for each in self.ended()}

        manager.until(all_ended)
        seen, outcomes = self.witnessed(), {each.job: each for each in self.ended()}
        for job, (lines, code, behaves) in self.jobs.items():
            done = outcomes[job]
            about = f"job {job} {done}\n{manager.log()}"
            assert (done.outcome.exit_code, done.outcome.reason) == (code, ""), about
            assert (seen[job, "start"], seen[job, "end"], seen[job, "after"]) == (1, 1, int(behaves)), about
            assert [each.ok for each in done.outcome.behaviours] == [True] * behaves, about
            printed = "".join(f"{n}\n" for n in range(1, lines + 1)).encode()
            assert manager.output(done)[0] == printed, about
        told = Counter((each.job, each.token, each.outcome.ended_at) for each in self.ended())
        by_job = Counter(job for job, _, _ in told)
        assert set(by_job.values()) == {1}, "an end was told in two ways"


def _run(manager: FakeManager, *, seed: int, kills: int, victim: str, quiet: bool = False) -> None:
    manager.begin()
    campaign = Campaign(manager, seed, quiet=quiet)
    while campaign.kills < kills:
        campaign.add(campaign.random.choice([20, 60] if quiet else [1, 3, 6]))
        campaign.read(campaign.random.choice([0, 0.02, 0.1, 0.4]))
        if victim == "agent":
            campaign.kill_agent()
        else:
            campaign.kill_launcher()
            campaign.read(campaign.random.choice([0, 0.3]))
    campaign.judge()


@pytest.mark.parametrize("victim", ["agent", "launcher"])
def test_no_job_is_lost_or_run_twice_if_only_one_of_the_two_is_killed(manager: FakeManager, victim: str) -> None:
    _run(manager, seed=random.randrange(10**6), kills=4, victim=victim)


@pytest.mark.parametrize("victim", ["agent", "launcher"])
def test_the_same_for_jobs_that_are_held_ahead(manager: FakeManager, victim: str) -> None:
    _run(manager, seed=random.randrange(10**6), kills=6, victim=victim, quiet=True)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("victim", ["agent", "launcher"])
@pytest.mark.parametrize("seed", range(4))
def test_two_hundred_kills_lose_none_that_is_held_ahead(manager: FakeManager, victim: str, seed: int) -> None:
    _run(manager, seed=seed, kills=50, victim=victim, quiet=True)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("victim", ["agent", "launcher"])
@pytest.mark.parametrize("seed", range(4))
def test_two_hundred_kills_lose_no_job_and_run_none_twice(manager: FakeManager, victim: str, seed: int) -> None:
    _run(manager, seed=seed, kills=50, victim=victim)
