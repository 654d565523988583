"""Parts of attempts whose command runs elsewhere: they are made ready, used and left clean."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from rota.core.attempts.leases import LeaseRef, PartOpened
from rota.wire import messages as m
from tests.deployment import is_alive
from tests.runner.manager import FakeManager

NODES = (("n1", 1), ("n2", 1))
CORES = sorted(os.sched_getaffinity(0))


class Parts:
    """What is said and asked of parts."""

    def __init__(self, manager: FakeManager) -> None:
        self.manager = manager
        self._channels = 0

    def opened(self) -> list[PartOpened]:
        return [said for report in self.manager.reports for said in report.opened]

    def shut(self) -> list[LeaseRef]:
        return [said for report in self.manager.reports for said in report.shut]

    def send(self, job: int = 1, **fields: Any) -> LeaseRef:
        """Tell the runner to open a part."""
        spec = self.manager.spec(**fields)
        grant = self.manager.grant(job, "", spec)
        lease = LeaseRef(grant.job, grant.attempt, grant.token)
        part = m.Part(*_key(lease), spec.id, m.Allocation(cpu_list="0", nodes=NODES))
        self.manager.send(m.Work([], [], [spec], [(1, b"PATH=/usr/local/bin:/usr/bin:/bin\0COLOUR=blue")], [part]))
        return lease

    def open(self, job: int = 1, **fields: Any) -> LeaseRef:
        lease = self.send(job, **fields)
        self.manager.until(lambda: any(said.job == job and said.ok for said in self.opened()))
        return lease

    def close(self, lease: LeaseRef) -> None:
        before = len(self.shut())
        self.manager.send(m.ClosePart([lease]))
        self.manager.until(lambda: lease in self.shut()[before:])

    def start(self, lease: LeaseRef, command: str) -> None:
        """Run a command in a part; it writes to files."""
        self._channels += 1
        self.manager.send(m.StartChannel(self._channels, *_key(lease), cmd=["sh", "-c", command]))

    def file(self, name: str) -> str:
        """What a command wrote, once it has written a whole line."""
        path = self.manager.home / name
        self.manager.until(lambda: path.exists() and path.read_text().endswith("\n"))
        return path.read_text().strip()

    def sleeper(self, lease: LeaseRef, name: str = "pid", before: str = "") -> int:
        """A process in a part, which does not end with whoever started it."""
        self.start(lease, f"{before} setsid sleep 321 & echo $! > {self.manager.home}/{name}")
        return int(self.file(name))


def _key(lease: LeaseRef) -> tuple[int, int, int]:
    return lease.job, lease.attempt, lease.token


@pytest.fixture
def parts(manager: FakeManager) -> Parts:
    manager.begin()
    return Parts(manager)


def nodefile(manager: FakeManager, job: int = 1) -> Path:
    return manager.home / "scratch" / f"{job}.1.nodes"


def test_a_part_is_opened_and_closed_and_leaves_nothing(parts: Parts) -> None:
    lease = parts.open()
    assert nodefile(parts.manager).read_text() == "n1\nn2\n"
    parts.close(lease)
    assert not nodefile(parts.manager).exists()
    assert [said.ok for said in parts.opened()] == [True]


def test_opening_it_twice_is_answered_twice(parts: Parts) -> None:
    lease = parts.open()
    spec = parts.manager.spec()
    part = m.Part(*_key(lease), spec.id, m.Allocation(cpu_list="0", nodes=NODES))
    parts.manager.send(m.Work([], [], [spec], [], [part]))
    parts.manager.until(lambda: len(parts.opened()) == 2)
    parts.close(lease)


def test_a_part_that_is_not_here_is_closed_already(parts: Parts) -> None:
    parts.close(LeaseRef(7, 1, 77))


def test_processes_in_a_part_know_their_job_and_have_its_cores(parts: Parts) -> None:
    lease = parts.open()
    parts.start(
        lease,
        f"(echo $ROTA_JOB_ID $ROTA_ATTEMPT $COLOUR $(cat $ROTA_NODEFILE)"
        f" $(grep Cpus_allowed_list /proc/self/status | cut -f2)) > {parts.manager.home}/said",
    )
    assert parts.file("said") == f"1 1 blue n1 n2 {CORES[0]}"
    parts.close(lease)


def test_everything_in_a_part_is_dead_before_it_is_shut(parts: Parts) -> None:
    parts.manager.send(m.Rules(**parts.manager.rules | {"grace_s": 0.2}))
    lease = parts.open()
    stubborn = parts.sleeper(lease, "stubborn", before="trap '' TERM HUP;")
    parts.start(lease, f"setsid sh -c \"trap '' TERM; echo \\$\\$ > {parts.manager.home}/daemon; sleep 321\" &")
    daemon = int(parts.file("daemon"))
    assert is_alive(stubborn)
    assert is_alive(daemon)
    parts.close(lease)
    assert not is_alive(stubborn)
    assert not is_alive(daemon)


def test_closing_one_part_leaves_others_and_jobs_alone(parts: Parts) -> None:
    one, other = parts.open(1), parts.open(2)
    kept = parts.sleeper(other, "kept")
    ended = parts.sleeper(one, "ended")
    spec = parts.manager.spec()
    grant = parts.manager.grant(3, f"while ! test -e {parts.manager.home}/go; do sleep 0.02; done", spec)
    parts.manager.work([grant], spec)
    parts.manager.until(lambda: parts.manager.started)
    parts.close(one)
    assert not is_alive(ended)
    assert is_alive(kept)
    (parts.manager.home / "go").touch()
    (done,) = parts.manager.wait_for([3])
    assert done.outcome.exit_code == 0
    assert is_alive(kept), "the end of a job is not that of a part"
    parts.close(other)


def test_nothing_is_started_in_a_part_that_is_closed(parts: Parts) -> None:
    lease = parts.open()
    parts.close(lease)
    parts.start(lease, "true")
    parts.manager.until(lambda: [said for said in parts.manager.said if isinstance(said, m.ChannelEnd)])


def test_a_part_has_its_own_directory_where_its_job_has(parts: Parts) -> None:
    lease = parts.open(scratch=True)
    directory = parts.manager.home / "scratch" / "1.1"
    parts.start(lease, f"pwd > {parts.manager.home}/where")
    assert parts.file("where") == str(directory)
    parts.close(lease)
    assert not directory.exists()


# ------------------------------------------------------------------ the site's hooks


def script(manager: FakeManager, name: str, text: str) -> str:
    path = manager.home / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_a_prologue_runs_before_a_part_is_open_and_an_epilogue_before_it_is_shut(manager: FakeManager) -> None:
    said = f"echo $ROTA_HOOK $ROTA_JOB_ID $(wc -l < $ROTA_NODEFILE) >> {manager.home}/said"
    manager.rules |= {"prologue": script(manager, "before", said), "epilogue": script(manager, "after", said)}
    manager.begin()
    parts = Parts(manager)
    lease = parts.open()
    assert (manager.home / "said").read_text() == "prologue 1 2\n"
    parts.close(lease)
    assert (manager.home / "said").read_text() == "prologue 1 2\nepilogue 1 2\n"


def test_a_part_whose_prologue_fails_is_not_opened_and_leaves_nothing(manager: FakeManager) -> None:
    manager.rules |= {"prologue": script(manager, "before", "echo no disk; exit 3")}
    manager.begin()
    parts = Parts(manager)
    parts.send()
    manager.until(parts.opened)
    (said,) = parts.opened()
    assert (said.ok, said.message) == (False, "the prologue failed: exit 3: no disk")
    assert [fault.job for report in manager.reports for fault in report.faults] == [1]
    assert not nodefile(manager).exists()
    assert not parts.shut()


def test_a_part_is_closed_while_its_prologue_runs(manager: FakeManager) -> None:
    manager.rules |= {"prologue": script(manager, "before", f"echo $$ > {manager.home}/pid; sleep 321")}
    manager.begin()
    parts = Parts(manager)
    lease = parts.send()
    pid = int(parts.file("pid"))
    parts.close(lease)
    assert not is_alive(pid)
    assert not parts.opened()


# ------------------------------------------------------------------ what fails


def test_a_part_survives_the_manager_and_is_named_when_the_next_one_comes(parts: Parts) -> None:
    lease = parts.open()
    pid = parts.sleeper(lease)
    manager = parts.manager
    manager.hang_up()
    assert manager.accept().parts == [lease]
    assert is_alive(pid)
    parts.close(lease)
    assert not is_alive(pid)
    manager.hang_up()
    assert manager.accept().parts == []


def test_a_part_that_is_no_longer_wanted_is_closed_when_its_runner_joins(parts: Parts) -> None:
    lease = parts.open()
    pid = parts.sleeper(lease)
    parts.manager.hang_up()
    parts.manager.accept(forget=[lease])
    parts.manager.until(lambda: lease in parts.shut())
    assert not is_alive(pid)


def test_that_nothing_is_left_is_said_until_it_is_heard(parts: Parts) -> None:
    lease = parts.open()
    manager = parts.manager
    manager.auto_ack = False
    parts.close(lease)
    manager.hang_up()
    manager.auto_ack = True
    manager.accept()
    manager.until(lambda: parts.shut().count(lease) == 2)


def test_the_successor_of_a_dead_runner_ends_what_its_parts_left(manager: FakeManager) -> None:
    process = manager.begin()
    parts = Parts(manager)
    lease = parts.open()
    pid = parts.sleeper(lease)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert is_alive(pid)
    manager.hang_up()
    manager.begin()
    (settle,) = manager.settles
    assert (settle.ended, settle.whole, settle.rebooted) == ([], True, False)
    assert not is_alive(pid)
    assert not nodefile(manager).exists()


def test_a_dead_runner_that_had_closed_its_parts_leaves_no_word_of_them(manager: FakeManager) -> None:
    process = manager.begin()
    parts = Parts(manager)
    parts.close(parts.open())
    manager.run("true")
    process.send_signal(signal.SIGKILL)
    process.wait()
    manager.hang_up()
    manager.begin()
    assert 1 not in {done.job for done in manager.settles[-1].ended}


def test_a_runner_that_is_told_to_leave_stays_while_it_has_a_part(parts: Parts) -> None:
    lease = parts.open()
    manager = parts.manager
    manager.send(m.Leave())
    manager.read(0.3)
    assert manager.processes[-1].poll() is None
    manager.send(m.ClosePart([lease]))
    manager.until(lambda: lease in parts.shut())
    assert manager.processes[-1].wait(20) == 0


def test_a_runner_that_ends_all_jobs_ends_its_parts_too(parts: Parts) -> None:
    lease = parts.open()
    pid = parts.sleeper(lease)
    parts.manager.send(m.Leave(kill=True))
    parts.manager.until(lambda: lease in parts.shut())
    assert not is_alive(pid)
    assert parts.manager.processes[-1].wait(20) == 0
