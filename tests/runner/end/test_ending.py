"""A job has ended when all its processes are gone; kills reach all of them."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rota.launcher import procfs
from rota.wire import messages as m
from tests.runner.manager import DEADLINE_S, FakeManager, ref

#: Writes its own pid to a file, then waits for a very long time, deaf to TERM if told so.
SURVIVOR = """
import os, signal, sys, time
if "deaf" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if "daemon" in sys.argv:
    if os.fork(): os._exit(0)
    os.setsid()
    if os.fork(): os._exit(0)
if "bare" in sys.argv and "daemon" in sys.argv:
    os.execve(sys.executable, [sys.executable, sys.argv[0], sys.argv[1], "deaf"], {})
with open(sys.argv[1] + ".new", "w") as file:
    file.write(str(os.getpid()))
os.rename(sys.argv[1] + ".new", sys.argv[1])
time.sleep(600)
"""


@pytest.fixture
def survivor(manager: FakeManager) -> Iterator[str]:
    """A command line that leaves a process behind; its first word after it is where the pid goes."""
    import sys

    script = manager.home / "survivor.py"
    script.write_text(SURVIVOR)
    yield f"{sys.executable} {script}"
    for pid in manager.home.glob("pid*"):
        assert not alive(int(pid.read_text())), f"{pid.name} is left"


def alive(pid: int) -> bool:
    seen = procfs.process(pid)
    return seen is not None and seen.alive


def wait_for_file(path: Path) -> int:
    end = time.monotonic() + DEADLINE_S
    while not path.exists():
        assert time.monotonic() < end
        time.sleep(0.01)
    return int(path.read_text())


def start(manager: FakeManager, command: str, **fields: object) -> m.Grant:
    spec = manager.spec(**fields)
    grant = manager.grant(1, command, spec)
    manager.work([grant], spec)
    return grant


@pytest.mark.parametrize("containment", ["auto", "cgroup", "session"])
@pytest.mark.parametrize("kind", ["", "deaf", "daemon", "daemon deaf", "daemon bare"])
def test_kill_reaches_the_whole_tree(manager: FakeManager, survivor: str, kind: str, containment: str) -> None:
    manager.rules |= {"grace_s": 0.3, "containment": containment}
    manager.begin()
    grant = start(manager, f"{survivor} pid1 {kind} & {survivor} pid2; wait")
    wait_for_file(manager.home / "pid1")
    wait_for_file(manager.home / "pid2")
    manager.send(m.Kill([ref(grant)]))
    (done,) = manager.wait_for([1])
    assert done.outcome.reason == "kill_requested"
    assert done.outcome.signal in (signal.SIGTERM, signal.SIGKILL)


@pytest.mark.parametrize("kind", ["", "deaf", "daemon", "daemon deaf", "daemon bare"])
def test_what_a_job_leaves_behind_is_ended_before_the_job_has_ended(
    manager: FakeManager, survivor: str, kind: str
) -> None:
    manager.rules["grace_s"] = 0.2
    manager.begin()
    start(manager, f"{survivor} pid1 {kind} & while ! test -e pid1; do sleep 0.01; done; exit 4")
    (done,) = manager.wait_for([1])
    assert (done.outcome.exit_code, done.outcome.reason) == (4, "")
    assert not alive(wait_for_file(manager.home / "pid1"))
    (after,) = manager.run("echo clean")
    assert manager.output(after)[0] == b"clean\n"


def test_a_survivor_of_one_job_does_not_disturb_another(manager: FakeManager, survivor: str) -> None:
    manager.rules["grace_s"] = 0.2
    manager.begin()
    spec = manager.spec()
    keeper = manager.grant(1, f"{survivor} pid1 daemon; while ! test -e go; do sleep 0.01; done", spec)
    manager.work([keeper], spec, seats=1)
    pid = wait_for_file(manager.home / "pid1")
    manager.run(*["true"] * 20, seats=2)
    assert alive(pid), "the daemon of a job that still runs is left alone"
    (manager.home / "go").touch()
    manager.wait_for([1])
    assert not alive(pid)


def test_a_stopped_job_can_be_killed(joined: FakeManager) -> None:
    grant = start(joined, "kill -STOP $$")
    joined.until(lambda: joined.started)
    joined.send(m.Kill([ref(grant)]))
    (done,) = joined.wait_for([1])
    assert done.outcome.reason == "kill_requested"


def test_a_job_that_forks_wildly_can_be_killed(manager: FakeManager) -> None:
    manager.rules["grace_s"] = 0.1
    manager.begin()
    command = "trap '' TERM; f() { sleep 600 & sleep 0.01; f & sleep 600; }; touch on; f & f & wait"
    grant = start(manager, command)
    end = time.monotonic() + DEADLINE_S
    while not (manager.home / "on").exists():
        assert time.monotonic() < end
    manager.send(m.Kill([ref(grant)]))
    (done,) = manager.wait_for([1])
    assert done.outcome.reason == "kill_requested"
    token = f"{grant.token:x}@".encode()
    marks = {pid: procfs.environ_value(pid, b"ROTA_LEASE") or b"" for pid in procfs.table()}
    left = [pid for pid, mark in marks.items() if mark.startswith(token) and alive(pid)]
    assert left == []


def test_an_unstarted_lease_that_is_killed_is_handed_back(joined: FakeManager) -> None:
    spec = joined.spec()
    first, second = joined.grant(1, "sleep 600", spec), joined.grant(2, "touch ran", spec)
    joined.work([first, second], spec)
    joined.until(lambda: joined.started)
    joined.send(m.Kill([ref(second)]))
    joined.until(lambda: joined.returned == [ref(second)])
    joined.send(m.Kill([ref(first)]))
    joined.wait_for([1])
    assert not (joined.home / "ran").exists()


def test_a_kill_with_the_wrong_token_does_nothing(joined: FakeManager) -> None:
    grant = start(joined, "while ! test -e go; do sleep 0.01; done")
    joined.until(lambda: joined.started)
    joined.send(m.Kill([m.LeaseRef(grant.job, grant.attempt, grant.token + 1)]))
    (joined.home / "go").touch()
    (done,) = joined.wait_for([1])
    assert done.outcome.exit_code == 0


def test_walltime_ends_a_job_with_that_reason(manager: FakeManager) -> None:
    manager.rules["grace_s"] = 0.2
    manager.begin()
    polite, deaf = manager.run("sleep 600", "trap '' TERM; while :; do sleep 0.05; done", walltime_s=0.3, seats=2)
    for done in (polite, deaf):
        assert done.outcome.reason == "walltime"
        assert "0.3" in done.outcome.message
    assert polite.outcome.signal == signal.SIGTERM
    assert deaf.outcome.signal == signal.SIGKILL


def test_a_sigkill_from_outside_is_not_called_lack_of_memory(joined: FakeManager) -> None:
    (done,) = joined.run("kill -KILL $$")
    assert (done.outcome.signal, done.outcome.reason) == (signal.SIGKILL, "")


def test_cpu_time_of_processes_left_behind_counts(joined: FakeManager) -> None:
    burn = "python3 -c 'import time\nwhile time.process_time() < 0.5: pass' & sleep 0.02; exit 0"
    manager = joined
    manager.send(m.Rules(**{**manager.rules, "grace_s": 20.0}))
    spec = manager.spec()
    deaf = f"trap '' TERM; {burn}"
    manager.work([manager.grant(1, deaf, spec)], spec)
    (done,) = manager.wait_for([1])
    assert done.outcome.cpu_s >= 0.45
