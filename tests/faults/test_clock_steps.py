"""Clock steps, end to end: the wall clock of a real manager and its runner is set by years while jobs run.

The clock is that of a small library which both are started with; nothing else on the machine notices.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.deployment import Deployment, deployment, is_alive, wait_until

YEARS = 2 * 366 * 86_400
#: More than it takes until a step is believed.
HOUR = 3700
#: Manager and runner follow a step each by itself, and end up a few milliseconds apart on a busy machine.
APART_S = 1.0


class Stepped:
    """A deployment whose clock can be set."""

    def __init__(self, rota: Deployment, file: Path, library: Path) -> None:
        self.rota = rota
        self._file = file
        self._library = library

    def start(self) -> None:
        """Only the manager and what it starts have that clock."""
        env = self.rota.env
        self.rota.env = env | {"LD_PRELOAD": str(self._library), "STEP_FILE": str(self._file)}
        self.rota.start()
        self.rota.env = env

    def set_clock(self, by: int, *, passed: int = 0) -> None:
        fresh = self._file.with_suffix(".new")
        fresh.write_text(f"{by} {passed}")
        fresh.replace(self._file)

    def add(self, *words: str) -> int:
        (job,) = self.rota.json("add", "--rerun", "--backoff", "1s", *words)["added"]
        return int(job)

    def until(self, state: str, *jobs: int) -> None:
        wait_until(lambda: all(self.rota.state(job) == state for job in jobs), f"{jobs} are {state}")

    def shown(self, job: int) -> Any:
        return self.rota.json("show", str(job))

    def is_sane(self, job: int) -> None:
        """Whatever its state: its attempts are in order, and took about what they can have taken."""
        for attempt in self.shown(job)["attempts"]:
            told = [attempt[name] for name in ("scheduled_at", "started_at", "ended_at") if attempt[name]]
            times = [datetime.fromisoformat(each).timestamp() for each in told]
            assert all(after - before > -APART_S for before, after in pairwise(times)), told
            assert attempt["wall_s"] is None or 0 <= attempt["wall_s"] < HOUR / 10


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("library") / "step_clock.so"
    source = Path(__file__).with_name("step_clock.c")
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", str(made), str(source)], check=True)
    return made


@pytest.fixture(params=[YEARS, -YEARS], ids=["forward", "back"])
def by(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
def stepped(tmp_path: Path, library: Path) -> Iterator[Stepped]:
    with deployment(tmp_path, cores="4") as rota:
        made = Stepped(rota, tmp_path / "step", library)
        made.set_clock(0)
        made.start()
        yield made


def at(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def test_a_clock_that_is_set_by_years_while_jobs_run_stops_nothing_and_every_sum_stays_sane(
    stepped: Stepped, by: int
) -> None:
    rota = stepped.rota
    rota.ok("manager", "token", "add", "short", "--expires", "1h", "--out", str(rota.work / "token"))
    done = stepped.add("--", "echo", "kept")
    stepped.until("complete", done)
    lost = stepped.add("--retries", "0", "--", "sleep", "1000")
    stepped.until("running", lost)

    stepped.set_clock(by)
    short = stepped.add("--", "true")
    again = stepped.add("--retries", "1", "--", "false")
    stepped.until("complete", short)
    stepped.until("failed", again)
    assert len(stepped.shown(again)["attempts"]) == 2, "a delay is over in spite of the clock"

    (runner,), manager = rota.runner_pids(), rota.manager_pid()
    os.kill(runner, signal.SIGKILL)
    os.kill(manager, signal.SIGKILL)
    wait_until(lambda: not is_alive(manager), "the manager is gone")
    stepped.start()
    later = stepped.add("--", "true")
    stepped.until("complete", later)
    stepped.until("failed", lost)

    jobs = [done, lost, short, again, later]
    for job in jobs:
        stepped.is_sane(job)
    assert abs(at(stepped.shown(later)["submitted_at"]) - time.time()) < HOUR / 2, "nobody agrees yet"
    assert rota.ok("logs", str(done)) == "kept\n"
    assert "short" in [each["name"] for each in rota.json("manager", "token", "list")["tokens"]]
    used = sum(each["wall_s"] or 0.0 for job in jobs for each in stepped.shown(job)["attempts"])
    (sums,) = rota.json("accounting")["rows"]
    assert sums["used_s"] == pytest.approx(used, abs=1.0)


def test_a_step_is_followed_when_it_is_still_there_an_hour_later_and_jobs_end_across_it(
    stepped: Stepped, by: int
) -> None:
    gate = stepped.rota.work / "gate"
    long = stepped.add("--", "sh", "-c", f"until [ -e {gate} ]; do sleep 0.05; done")
    stepped.until("running", long)
    stepped.set_clock(by)
    log = stepped.rota.home / "logs" / "manager.log"
    wait_until(lambda: "the system clock was set" in log.read_text(), "the step is seen")
    assert stepped.rota.json("manager", "status")["clock_off_s"] == pytest.approx(by, abs=60)
    stepped.set_clock(by, passed=HOUR)
    wait_until(lambda: "is confirmed, and followed" in log.read_text(), "the step is followed")
    later = stepped.add("--", "true")
    stepped.until("complete", later)
    assert abs(at(stepped.shown(later)["submitted_at"]) - (time.time() + by + HOUR)) < HOUR / 2
    gate.touch()
    stepped.until("complete", long)
    (attempt,) = stepped.shown(long)["attempts"]
    assert attempt["started_at"] <= attempt["ended_at"]
    assert 0 <= attempt["wall_s"] < 2 * HOUR
    stepped.is_sane(later)
