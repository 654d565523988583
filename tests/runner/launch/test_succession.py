"""A runner is killed and another takes its place: its jobs go on, end once, and lose nothing."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from rota.core.attempts.leases import Finished
from rota.launcher import journal, procfs
from rota.runner.contain import fences
from rota.runner.contain.fence import Fence
from rota.wire import messages as m
from tests.deployment import is_alive, wait_until
from tests.runner.manager import FakeManager, ref

_UNTIL = "until test -e {0}; do sleep 0.02; done"
_N = 5


@pytest.fixture
def runner(manager: FakeManager) -> subprocess.Popen[bytes]:
    return manager.begin()


def begin(manager: FakeManager, text: str, **fields: Any) -> m.Grant:
    """A job, once it runs and has touched `begun`."""
    spec = manager.spec(**fields)
    grant = manager.grant(1, f"touch {manager.home}/begun; {text}", spec)
    manager.work([grant], spec)
    manager.until(lambda: (manager.home / "begun").exists())
    return grant


def touch(manager: FakeManager, name: str) -> None:
    (manager.home / name).touch()


def exists(manager: FakeManager, name: str) -> None:
    manager.until(lambda: (manager.home / name).exists())


def kill(manager: FakeManager, runner: subprocess.Popen[bytes]) -> None:
    runner.kill()
    runner.wait()
    manager.hang_up()


def replace(manager: FakeManager, runner: subprocess.Popen[bytes]) -> m.Join:
    """Kill it; what the next one says when it joins."""
    kill(manager, runner)
    return again(manager)


def again(manager: FakeManager) -> m.Join:
    manager.spawn()
    return manager.accept()


def launchers(manager: FakeManager) -> list[int]:
    """The launcher processes of this test."""
    found = []
    for pid in procfs.table():
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if b"rota.launcher" not in words or os.fsencode(str(manager.runners)) not in b"\0".join(words):
                continue
            began = journal.read(os.fsdecode(words[words.index(b"--dir") + 1])).began
        except OSError:
            continue
        # A child of one looks the same until it executes its program.
        if began is not None and began.pid == pid:
            found.append(pid)
    return sorted(found)


def ended_once(manager: FakeManager) -> Finished:
    (done,) = manager.wait_for([1])
    assert [each.job for each in manager.ended] == [1], manager.log()
    assert not manager.settles
    return done


# ------------------------------------------------------------------ the agent dies


def test_a_job_goes_on_with_the_next_runner_and_ends_once(
    manager: FakeManager, runner: subprocess.Popen[bytes]
) -> None:
    begin(manager, f"echo one; echo wrong >&2; {_UNTIL.format('go')}; echo two; exit 3")
    first = manager.joins[0]
    join = replace(manager, runner)
    assert [held.job for held in join.held] == [1], manager.log()
    assert (join.runner, join.epoch) == (first.runner, first.epoch + 1)
    touch(manager, "go")
    done = ended_once(manager)
    assert done.outcome.exit_code == 3
    assert manager.output(done) == (b"one\ntwo\n", b"wrong\n")
    assert manager.run("echo next")[0].outcome.exit_code == 0


def test_what_ends_while_there_is_no_runner_is_told_by_the_next(
    manager: FakeManager, runner: subprocess.Popen[bytes]
) -> None:
    begin(manager, f"{_UNTIL.format('go')}; seq 100000; touch over; kill -TERM $$")
    kill(manager, runner)
    touch(manager, "go")
    wait_until((manager.home / "over").exists, "it has ended")
    again(manager)
    done = ended_once(manager)
    assert done.outcome.signal == signal.SIGTERM
    assert manager.output(done)[0] == "".join(f"{n}\n" for n in range(1, 100001)).encode()


def test_outcomes_that_were_not_acknowledged_are_told_again(
    manager: FakeManager, runner: subprocess.Popen[bytes]
) -> None:
    manager.auto_ack = False
    spec = manager.spec()
    manager.work([manager.grant(job, f"echo {job}; exit {job}", spec) for job in (1, 2)], spec)
    manager.wait_for([1, 2])
    begin(manager, "sleep 1000")  # else there would be no launcher to find
    manager.ended.clear()
    manager.auto_ack = True
    join = replace(manager, runner)
    assert sorted((held.job, held.over) for held in join.held) == [(1, False), (1, True), (2, True)]
    done = manager.wait_for([1, 2])
    assert [each.outcome.exit_code for each in done] == [1, 2]
    assert [manager.output(each)[0] for each in done] == [b"1\n", b"2\n"]


def test_a_lease_that_was_not_started_is_not_held(manager: FakeManager, runner: subprocess.Popen[bytes]) -> None:
    spec = manager.spec()
    grants = [manager.grant(job, f"echo {job} >> witness; sleep 1000", spec) for job in (1, 2)]
    manager.work(grants, spec, seats=1)
    manager.until(lambda: manager.started)
    join = replace(manager, runner)
    assert [held.job for held in join.held] == [1]


def test_the_walltime_of_a_job_ends_without_a_runner(
    manager: FakeManager, runner: subprocess.Popen[bytes]
) -> None:
    grant = begin(manager, "sleep 1000", walltime_s=2.0)
    manager.until(lambda: manager.started)
    kill(manager, runner)
    (pid,) = [each.pid for each in manager.started if each.job == grant.job]
    wait_until(lambda: not is_alive(pid), "it was ended")
    again(manager)
    assert ended_once(manager).outcome.reason == "walltime"


def test_a_scratch_directory_and_cores_stay_those_of_the_job(
    manager: FakeManager, runner: subprocess.Popen[bytes]
) -> None:
    text = f"echo $ROTA_CPU_LIST > list; pwd; {_UNTIL.format(f'{manager.home}/go')}; cat list"
    begin(manager, text, scratch=True)
    replace(manager, runner)
    touch(manager, "go")
    done = ended_once(manager)
    assert done.outcome.exit_code == 0
    path = manager.output(done)[0].split()[0].decode()
    assert not os.path.exists(path)


def test_a_behaviour_in_progress_goes_on_and_the_rest_follows(
    manager: FakeManager, runner: subprocess.Popen[bytes]
) -> None:
    first = f"run: echo first >> said; {_UNTIL.format('go')}; echo why >&2; exit 4"
    begin(manager, "echo printed; exit 2", on_failure=(first, "run: echo second >> said"), on_exit=("run: true",))
    exists(manager, "said")
    replace(manager, runner)
    touch(manager, "go")
    done = ended_once(manager)
    assert done.outcome.exit_code == 2
    assert [(each.ok, each.message) for each in done.outcome.behaviours] == [
        (False, "exit 4: why"),
        (True, ""),
        (True, ""),
    ]
    assert (manager.home / "said").read_text().split() == ["first", "second"]
    assert manager.output(done)[0] == b"printed\n"


@pytest.mark.parametrize("hook", ["prologue", "epilogue"])
def test_a_hook_in_progress_goes_on(manager: FakeManager, hook: str) -> None:
    home = manager.home
    for name in ("prologue", "epilogue"):
        waits = f"touch {home}/in_hook; {_UNTIL.format(f'{home}/go')}" if name == hook else "true"
        path = home / name
        path.write_text(f"#!/bin/sh\necho {name} >> {home}/said; {waits}\n")
        path.chmod(0o755)
        manager.rules[name] = str(path)
    runner = manager.begin()
    spec = manager.spec()
    manager.work([manager.grant(1, f"echo job >> {home}/said; exit 3", spec)], spec)
    exists(manager, "in_hook")
    replace(manager, runner)
    touch(manager, "go")
    assert ended_once(manager).outcome.exit_code == 3
    assert (home / "said").read_text().split() == ["prologue", "job", "epilogue"]


def test_a_suspended_job_stays_suspended_until_it_is_resumed(
    manager: FakeManager, runner: subprocess.Popen[bytes]
) -> None:
    grant = begin(manager, f"{_UNTIL.format('go')}; touch went", walltime_s=600.0)
    manager.send(m.Suspend([ref(grant)]))
    manager.until(lambda: any(report.paused for report in manager.reports))
    replace(manager, runner)
    touch(manager, "go")
    manager.send(m.Suspend([ref(grant)]))
    manager.until(lambda: len([report for report in manager.reports if report.paused]) > 1)
    assert not (manager.home / "went").exists()
    manager.send(m.Suspend([ref(grant)], on=False))
    assert ended_once(manager).outcome.exit_code == 0


def test_a_job_that_was_frozen_in_the_last_moment_of_its_runner_goes_on(
    manager: FakeManager, runner: subprocess.Popen[bytes]
) -> None:
    begin(manager, _UNTIL.format("go"))
    fenced: dict[str, Fence] = {}

    def is_fenced() -> bool:
        for each in (manager.home / "runners").iterdir():
            fenced.update(fences.of_runner(each.name))
        return bool(fenced)

    manager.until(is_fenced)
    for fence in fenced.values():  # as the runner does before it notes that
        assert fence.freeze(True)
    replace(manager, runner)
    touch(manager, "go")
    assert ended_once(manager).outcome.exit_code == 0


def test_a_terminal_goes_on_for_the_client_that_attaches_again(
    manager: FakeManager, runner: subprocess.Popen[bytes]
) -> None:
    text = "stty -echo; printf 12345; read word; echo got $word; exit 6"
    grant = begin(manager, text, interactive=True)

    def shown(n: int) -> bytes:
        said = [each for each in manager.said if isinstance(each, m.ChannelData) and each.n == n]
        return b"".join(each.data for each in said)

    key = (grant.job, grant.attempt, grant.token)
    manager.send(m.StartChannel(_N, *key, [], attach=True))
    manager.until(lambda: shown(_N) == b"12345")
    replace(manager, runner)
    manager.send(m.StartChannel(_N + 1, *key, [], attach=True, seen=5))
    manager.send(m.ChannelData(_N + 1, 0, b"it\n"))
    manager.until(lambda: b"got it" in shown(_N + 1))
    assert b"12345" not in shown(_N + 1)
    assert ended_once(manager).outcome.exit_code == 6


def test_what_a_client_runs_in_a_job_ends_with_the_runner_but_the_job_does_not(
    manager: FakeManager, runner: subprocess.Popen[bytes]
) -> None:
    grant = begin(manager, _UNTIL.format("go"))
    manager.until(lambda: manager.started)
    key = (grant.job, grant.attempt, grant.token)
    words = ["sh", "-c", f"echo $$ > {manager.home}/inside; exec sleep 1000"]
    manager.send(m.StartChannel(_N, *key, words))
    manager.until(lambda: (manager.home / "inside").exists() and (manager.home / "inside").read_text().strip())
    pid = int((manager.home / "inside").read_text())
    replace(manager, runner)
    manager.until(lambda: not is_alive(pid))
    touch(manager, "go")
    assert ended_once(manager).outcome.exit_code == 0


def test_the_part_of_a_job_stays_open(manager: FakeManager, runner: subprocess.Popen[bytes]) -> None:
    spec = manager.spec(id=9)
    part = m.Part(7, 1, 70, 9, m.Allocation(nodes=(("here", 1), ("there", 1))))
    manager.send(m.Work([], [], [spec], [(1, b"PATH=/usr/bin:/bin")], [part]))
    manager.until(lambda: any(report.opened for report in manager.reports))
    join = replace(manager, runner)
    assert [each.job for each in join.parts] == [7]
    manager.send(m.StartChannel(_N, 7, 1, 70, ["sh", "-c", "cat $ROTA_NODEFILE"]))
    manager.until(lambda: any(isinstance(each, m.ChannelEnd) and each.exit_code == 0 for each in manager.said))
    manager.send(m.ClosePart([m.LeaseRef(7, 1, 70)]))
    manager.until(lambda: any(report.shut for report in manager.reports))


def test_a_runner_that_is_replaced_twice_keeps_one_launcher_for_what_is_left(
    manager: FakeManager, runner: subprocess.Popen[bytes]
) -> None:
    begin(manager, f"echo a; {_UNTIL.format('go')}; echo b")
    replace(manager, runner)
    replace(manager, manager.processes[-1])
    manager.until(lambda: len(launchers(manager)) == 2)
    touch(manager, "go")
    assert manager.output(ended_once(manager))[0] == b"a\nb\n"
    manager.until(lambda: len(launchers(manager)) == 1)


# ------------------------------------------------------------------ the launcher dies, or both


def test_jobs_go_on_without_their_launcher_and_new_ones_get_another(
    manager: FakeManager, runner: subprocess.Popen[bytes]
) -> None:
    begin(manager, f"echo one; {_UNTIL.format('go')}; echo two; exit 3")
    manager.until(lambda: manager.started)
    (before,) = launchers(manager)
    os.kill(before, signal.SIGKILL)
    manager.until(lambda: [pid for pid in launchers(manager) if pid != before])
    spec = manager.spec()
    manager.work([manager.grant(2, "echo new", spec)], spec)
    manager.until(lambda: manager.ended or manager.returned)
    touch(manager, "go")
    (done,) = manager.wait_for([1])
    assert done.outcome.exit_code == 3
    assert manager.output(done)[0] == b"one\ntwo\n"
    assert manager.run("echo new")[0].outcome.exit_code == 0


def test_jobs_of_an_adopted_launcher_that_dies_are_lost_and_nothing_of_them_is_left(
    manager: FakeManager, runner: subprocess.Popen[bytes]
) -> None:
    begin(manager, "echo one; sleep 1000")
    manager.until(lambda: manager.started)
    (launcher,) = launchers(manager)
    replace(manager, runner)
    os.kill(launcher, signal.SIGKILL)
    done = ended_once(manager)
    assert done.outcome.reason == "lost"
    assert not is_alive(manager.started[0].pid)
    assert manager.run("echo new")[0].outcome.exit_code == 0


def test_jobs_whose_runner_and_launcher_die_are_settled_by_proof(
    manager: FakeManager, runner: subprocess.Popen[bytes]
) -> None:
    begin(manager, "sleep 1000")
    manager.until(lambda: manager.started)
    (launcher,) = launchers(manager)
    runner.kill()
    os.kill(launcher, signal.SIGKILL)
    runner.wait()
    manager.hang_up()
    join = again(manager)
    assert join.runner != manager.joins[0].runner
    (settle,) = manager.settles
    assert [(each.job, each.outcome.reason) for each in settle.ended] == [(1, "lost")]
    assert not is_alive(manager.started[0].pid)


# ------------------------------------------------------------------ leaving


def test_usr1_leaves_the_jobs_to_the_next_runner(manager: FakeManager, runner: subprocess.Popen[bytes]) -> None:
    begin(manager, f"echo one; {_UNTIL.format('go')}; echo two")
    manager.until(lambda: manager.started)
    runner.send_signal(signal.SIGUSR1)
    assert runner.wait(60) == 0
    manager.hang_up()
    join = again(manager)
    assert [held.job for held in join.held] == [1]
    touch(manager, "go")
    assert manager.output(ended_once(manager))[0] == b"one\ntwo\n"


def test_a_runner_that_leaves_takes_its_launchers_along(
    manager: FakeManager, runner: subprocess.Popen[bytes]
) -> None:
    assert manager.run("echo new")[0].outcome.exit_code == 0
    runner.send_signal(signal.SIGTERM)
    assert runner.wait(60) == 0
    assert launchers(manager) == []
    assert [each.name for each in manager.runners.iterdir()] == []


def test_a_job_that_kills_its_launcher_harms_no_other(
    manager: FakeManager, runner: subprocess.Popen[bytes]
) -> None:
    begin(manager, f"echo one; {_UNTIL.format('go')}; echo two")
    spec = manager.spec()
    manager.work([manager.grant(2, "kill -9 $PPID; exit 5", spec)], spec)
    manager.until(lambda: {2} & {each.job for each in manager.ended})
    touch(manager, "go")
    first, second = manager.wait_for([1, 2])
    assert (first.outcome.exit_code, second.outcome.exit_code) == (0, 5)
    assert manager.output(first)[0] == b"one\ntwo\n"


_TRACE = r"""
import ctypes, os
assert ctypes.CDLL(None).ptrace(16, os.getppid(), 0, 0) == 0  # PTRACE_ATTACH
os._exit(5)  # it stays stopped
"""


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may look into a launcher")
def test_a_job_that_traces_its_launcher_harms_no_other(
    manager: FakeManager, runner: subprocess.Popen[bytes]
) -> None:
    (manager.home / "trace.py").write_text(_TRACE)
    begin(manager, f"echo one; {_UNTIL.format('go')}; echo two")
    spec = manager.spec()
    manager.work([manager.grant(2, "exec /usr/bin/env python3 trace.py", spec)], spec)
    manager.until(lambda: {2} & {each.job for each in manager.ended})
    touch(manager, "go")
    first, second = manager.wait_for([1, 2])
    assert (first.outcome.exit_code, second.outcome.exit_code) == (0, 5)
    assert manager.output(first)[0] == b"one\ntwo\n"


_ATTACK = r"""
import os, signal, sys
for fd in range(3, 256):
    try:
        os.close(fd)
    except OSError:
        pass
count = int(sys.argv[1])
parent = os.getppid()
for _ in range(count):
    if not os.fork():
        if not os.fork():
            os.setsid()
            os._exit(0)
        os._exit(0)
while True:
    try:
        os.wait()
    except ChildProcessError:
        break
os.write(1, b"x" * 3000000)
os.kill(parent, signal.SIGKILL)
os.closerange(0, 3)
"""


def _attacked(manager: FakeManager, children: int) -> None:
    (manager.home / "attack.py").write_text(_ATTACK)
    begin(manager, f"echo one; {_UNTIL.format('go')}; echo two")
    spec = manager.spec()
    manager.work([manager.grant(2, f"exec /usr/bin/env python3 attack.py {children}", spec)], spec)
    manager.until(lambda: 2 in {each.job for each in manager.ended})
    touch(manager, "go")
    first, second = manager.wait_for([1, 2])
    assert (first.outcome.exit_code, second.outcome.exit_code) == (0, 0)
    assert manager.output(first)[0] == b"one\ntwo\n"
    assert manager.output(second)[0] == b"x" * 3000000


def test_a_job_that_fills_pipes_forks_closes_and_kills_its_launcher_harms_no_other(
    manager: FakeManager, runner: subprocess.Popen[bytes]
) -> None:
    _attacked(manager, 50)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_ten_thousand_children_harm_no_other_job(manager: FakeManager, runner: subprocess.Popen[bytes]) -> None:
    _attacked(manager, 10_000)
