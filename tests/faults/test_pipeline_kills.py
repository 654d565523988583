"""kill -9 of the client, manager and runner of a session at random moments: it goes on, and builds nothing twice.

Every attempt makes a directory of its own as the first thing that it does, and its element's as the last. Rota
never touches them: what it says is compared with what they say.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

from tests.deployment import Deployment, deployment, wait_until

_STAGES = ("fetch", "build", "pack")
_VICTIMS = (
    *("client", "manager", "runner", "client manager", "client runner"),
    *("manager runner", "client manager runner"),
)
#: The exit status of a client.
_NO_MANAGER = 4
#: An element is built after what it depends on, and packed after it was built, or it fails for good.
_PIPELINE = """\
limits: {builders: 2}
stages:
  - name: fetch
    skip_if: test -e present/{name}
    run: mkdir fetch/{name}.$ROTA_JOB_ID.$ROTA_ATTEMPT && mkdir -p fetch/{name}
    retries: 100
  - name: build
    needs: dependencies
    run: mkdir build/{name}.$ROTA_JOB_ID.$ROTA_ATTEMPT && test -d {before} && sleep 0.01 && mkdir -p build/{name}
    takes: {builders: 1}
    retries: 100
  - name: pack
    run: mkdir pack/{name}.$ROTA_JOB_ID.$ROTA_ATTEMPT && test -d build/{name} && mkdir -p pack/{name}
    retries: 100
defaults: {before: .}
elements:
  e0: {}
"""


def _sums(processed: int, skipped: int) -> dict[str, int]:
    return {"processed": processed, "skipped": skipped, "failed": 0, "blocked": 0, "terminated": 0}


class Campaign:
    """Runs a pipeline whose elements depend on one another, kills, and brings back, until the session is over."""

    def __init__(self, rota: Deployment, *, elements: int, seed: int) -> None:
        self.rota = rota
        self.random = random.Random(seed)
        self.elements = [f"e{number}" for number in range(elements)]
        self.present = self.elements[::7]  #: need no fetching
        self.killed: list[str] = []
        for name in (*_STAGES, "present"):
            (rota.work / name).mkdir()
        for element in self.present:
            (rota.work / "present" / element).touch()
        rest = "".join(self._element(number) for number in range(1, elements))
        (rota.work / "p.yaml").write_text(_PIPELINE + rest)
        self.clients = 0
        self.client: subprocess.Popen[bytes] = self.run()

    def _element(self, number: int) -> str:
        first, second = number // 2, self.random.randrange(number)
        depends = ", ".join(f"e{each}" for each in sorted({first, second}))
        return f"  e{number}: {{depends: [{depends}], before: build/e{first}}}\n"

    def run(self) -> subprocess.Popen[bytes]:
        self.clients += 1
        with (self.rota.work / "events").open("wb") as events:
            return self.rota.popen("pipeline", "run", "p.yaml", "--json", stdout=events)

    def starts(self, stage: str) -> dict[str, list[tuple[int, int]]]:
        """Element → jobs and attempts that began."""
        found: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for name in os.listdir(self.rota.work / stage):
            element, *attempt = name.split(".")
            if attempt:
                found[element].append((int(attempt[0]), int(attempt[1])))
        return {element: sorted(attempts) for element, attempts in found.items()}

    def let_go_on(self, *, most: int) -> bool:
        """Until some more elements have come to be built. False: the session is over."""
        wanted = len(self.starts("build")) + self.random.randrange(most)
        wait_until(lambda: len(self.starts("build")) >= wanted or self._is_over(), "more is built", seconds=300)
        return not self._is_over()

    def _is_over(self) -> bool:
        """Has the client seen the end? One that has lost the manager is started again."""
        status = self.client.poll()
        if status == _NO_MANAGER:
            self.client = self.run()
        return status not in (None, _NO_MANAGER)

    def kill_something(self) -> None:
        """One of the processes, or several at once."""
        self.kill(self.random.choice(_VICTIMS))

    def kill(self, victims: str) -> None:
        pids = [self.client.pid] if "client" in victims else []
        if "manager" in victims:
            with contextlib.suppress(OSError, ValueError):
                pids.append(self.rota.manager_pid())
        if "runner" in victims:
            pids += self.rota.runner_pids()
        self.random.shuffle(pids)
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.killed.append(victims)

    def bring_back(self) -> None:
        self.rota.ok("manager", "start")
        if "client" in self.killed[-1]:
            self.client.wait()
            self.client = self.run()

    def summary(self) -> dict[str, dict[str, dict[str, int]]]:
        """Of the session, which ends well."""
        wait_until(self._is_over, f"the session is over: {self.killed}", seconds=600)
        status = self.client.wait()
        said = (self.rota.work / "events").read_text()
        assert status == 0, f"killed: {self.killed}; {said[-3000:]}{self.rota.logs()}"
        return dict(json.loads(said.splitlines()[-1]))

    def judge(self) -> None:
        """Everything was done once, and the sums say so."""
        summary = self.summary()
        begun = {stage: self.starts(stage) for stage in _STAGES}
        skipped = {"fetch": len(self.present), "build": 0, "pack": 0}
        processed = {stage: len(self.elements) - skipped[stage] for stage in _STAGES}
        assert {stage: len(begun[stage]) for stage in _STAGES} == processed
        self._judge_attempts(begun)
        # A client that is killed after the end of its session is followed by one that starts another session.
        if self.clients == 1 or summary["elements"] != dict.fromkeys(self.elements, "skipped"):
            assert summary["stages"] == {stage: _sums(processed[stage], skipped[stage]) for stage in _STAGES}
            assert summary["elements"] == dict.fromkeys(self.elements, "ok")
            self.client = self.run()
            summary = self.summary()
        # Once more, there is nothing left to do.
        assert summary["stages"] == dict.fromkeys(_STAGES, _sums(0, len(self.elements)))
        assert {stage: self.starts(stage) for stage in _STAGES} == begun

    def _judge_attempts(self, begun: dict[str, dict[str, list[tuple[int, int]]]]) -> None:
        """Nothing was begun again of which the end was known."""
        with self.rota.client() as client:
            for stage in _STAGES:
                for element, attempts in begun[stage].items():
                    jobs = {job for job, _ in attempts}
                    assert len(jobs) == 1, f"{stage} of {element} was two jobs: {attempts}"
                    if len(attempts) == 1:
                        continue
                    shown = client.job(jobs.pop())
                    codes = {each.attempt: each.reason and each.reason.code for each in shown.attempts}
                    for _, attempt in attempts[:-1]:
                        assert codes[attempt] == "lost", f"{stage} of {element} was begun again: {codes}"


def _campaign(tmp_path: Path, *, elements: int, kills: int, seed: int) -> None:
    with deployment(tmp_path, grace="1s", touch_s="0.5s", lost_after="5s") as rota:
        rota.start()
        campaign = Campaign(rota, elements=elements, seed=seed)
        for _ in range(kills):
            if not campaign.let_go_on(most=max(2, elements // kills)):
                break
            campaign.kill_something()
            campaign.bring_back()
        campaign.judge()
        assert campaign.killed


def test_a_session_goes_on_and_builds_nothing_twice_whatever_is_killed(tmp_path: Path) -> None:
    _campaign(tmp_path, elements=60, kills=5, seed=1)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(2, 6))
def test_a_session_of_two_thousand_elements_goes_on_whatever_is_killed(tmp_path: Path, seed: int) -> None:
    _campaign(tmp_path, elements=2000, kills=40, seed=seed)


def test_a_client_that_is_killed_after_the_end_of_its_session_finds_all_done(tmp_path: Path) -> None:
    with deployment(tmp_path, grace="1s", touch_s="0.5s", lost_after="5s") as rota:
        rota.start()
        campaign = Campaign(rota, elements=10, seed=1)
        wait_until(lambda: campaign.starts("build"), "something is built", seconds=120)
        os.kill(campaign.client.pid, signal.SIGSTOP)  # it does not see the end
        with rota.client() as client:
            wait_until(lambda: client.pipelines()[0].state == "ended", "the session has ended", seconds=120)
        campaign.kill("client")
        campaign.bring_back()
        campaign.judge()
