"""However managers are started, stopped and killed: no two ever use one home."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deployment import Deployment, deployment, is_alive, wait_until

pytestmark = pytest.mark.cold


@pytest.fixture
def rota(tmp_path: Path) -> Iterator[Deployment]:
    with deployment(tmp_path) as made:
        yield made


def managers(rota: Deployment) -> list[int]:
    """Processes that are managers of this home, or about to be; not what a manager is about to execute."""
    found = []
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            if name.isdigit() and is_alive(int(name)):
                words = Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0")
                if b"rota.manager" in words and os.fsencode(rota.home) in words:
                    found.append(int(name))
    return [pid for pid in found if parent_of(pid) not in found]


def parent_of(pid: int) -> int:
    """A child looks like its parent, files included, until it executes something else."""
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return 0


def users(rota: Deployment, pids: list[int]) -> set[int]:
    """Those of them that have a database of this home open: a manager has, from its lock to its end."""
    database = str(rota.home / "rota.db")
    found = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            for handle in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    if os.readlink(f"/proc/{pid}/fd/{handle}").removesuffix(" (deleted)") == database:
                        found.add(pid)
    return found


class Witness:
    """Looks again and again how many managers use the home."""

    def __init__(self, rota: Deployment) -> None:
        self._rota = rota
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self.seen: set[int] = set()
        self.together: list[set[int]] = []

    def __enter__(self) -> Witness:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._done.is_set():
            using = users(self._rota, managers(self._rota))
            self.seen |= using
            if len(using) > 1:
                # Not at one moment: of those that were seen before and after each other one may have ended.
                using = users(self._rota, sorted(using)) & users(self._rota, sorted(using, reverse=True))
                if len(using) > 1:
                    self.together.append(using)
            time.sleep(0.005)


def test_of_many_that_race_while_others_are_killed_never_two_use_the_home(rota: Deployment) -> None:
    command = [sys.executable, "-P", "-m", "rota.manager", "--home", str(rota.home)]
    racers: list[subprocess.Popen[bytes]] = []
    killed = set()
    with Witness(rota) as witness:
        for number in range(1, 4):
            new = [subprocess.Popen(command, env=rota.env, stderr=subprocess.DEVNULL) for _ in range(10)]
            racers += new
            # They come one after the other on a busy machine: whoever is in is killed while others still start.
            holder = wait_until(lambda: users(rota, managers(rota)), f"a manager in round {number}").pop()
            os.kill(holder, signal.SIGKILL)
            wait_until(lambda gone=holder: not is_alive(gone), "its death")
            killed.add(holder)
        for racer in racers[:-10]:
            wait_until(lambda one=racer: one.poll() is not None or one.pid in users(rota, [one.pid]), "an end")
        rota.start()
        wait_until(lambda: len(managers(rota)) == 1, "all but one to leave")
        wait_until(lambda: witness.seen & set(managers(rota)), "the witness to look")
    assert not witness.together
    assert len(killed) == 3
    assert rota.json("manager", "status")["pid"] == managers(rota)[0] == rota.manager_pid()
    for racer in racers:
        if racer.poll() is None:
            racer.kill()
        racer.wait()


def test_many_who_start_one_all_get_the_same(rota: Deployment) -> None:
    starters = [rota.popen("manager", "start", "--quiet", stdout=subprocess.PIPE) for _ in range(6)]
    said = {starter.communicate()[0] for starter in starters}
    assert [starter.returncode for starter in starters] == [0] * 6
    assert said == {b"%d\n" % rota.manager_pid()}
    wait_until(lambda: managers(rota) == [rota.manager_pid()], "the losers to leave")


def test_a_start_while_the_last_one_stops_ends_with_one_that_can_be_reached(rota: Deployment) -> None:
    rota.start()
    with Witness(rota) as witness:
        for _ in range(3):
            before = rota.manager_pid()
            rota.ok("manager", "stop", "--no-wait")
            # Perhaps it still answers: then it is the one that is there.
            while rota.json("manager", "start")["pid"] == before:
                pass
            wait_until(lambda gone=before: not is_alive(gone), "the last one to end")
            assert rota.json("manager", "status")["pid"] == rota.manager_pid() != before
            assert (rota.home / "manager.json").exists()
    assert not witness.together


def test_a_manager_whose_home_is_removed_ends_and_leaves_the_next_one_alone(rota: Deployment) -> None:
    rota.start()
    before = rota.manager_pid()
    shutil.rmtree(rota.home)
    rota.start()
    wait_until(lambda: not is_alive(before), "the one without a home to end")
    assert managers(rota) == [rota.manager_pid()]
    assert rota.json("manager", "status")["pid"] == rota.manager_pid()
