"""What is done after a command has ended: recorded, bounded, and never a change of how the job ended."""

from __future__ import annotations

import os
import random
import signal
from typing import Any

import pytest

from rota.core.attempts.leases import Finished
from rota.core.jobs.outcome import Behaved
from rota.launcher import procfs
from rota.wire import messages as m
from tests.runner.manager import FakeManager, ref
from tests.runner.test_crashes import carriers


def behave(manager: FakeManager, cmd: str | list[str], **fields: Any) -> Finished:
    (done,) = manager.run(cmd, **fields)
    return done


def said(manager: FakeManager, name: str = "said") -> list[str]:
    path = manager.home / name
    return path.read_text().splitlines() if path.exists() else []


SAY = 'run: echo "{} $ROTA_OUTCOME $ROTA_EXIT_CODE/$ROTA_SIGNAL $ROTA_JOB_ID" >> said'
ALL = {
    "on_success": (SAY.format("success"),),
    "on_failure": (SAY.format("failure"),),
    "on_exit": (SAY.format("exit"),),
}


@pytest.mark.parametrize(
    ("cmd", "lines"),
    [
        ("true", ["success complete 0/ 1", "exit complete 0/ 1"]),
        ("exit 3", ["failure failed 3/ 1", "exit failed 3/ 1"]),
        ("kill -USR1 $$", ["failure failed /10 1", "exit failed /10 1"]),
        (["nosuchcmd"], ["failure failed 127/ 1", "exit failed 127/ 1"]),
    ],
)
def test_the_outcome_decides_what_is_run_and_exit_comes_last(
    joined: FakeManager, cmd: str | list[str], lines: list[str]
) -> None:
    done = behave(joined, cmd, **ALL)
    assert said(joined) == lines
    assert [behaved.ok for behaved in done.outcome.behaviours] == [True, True]
    assert [behaved.behaviour for behaved in done.outcome.behaviours][1] == ALL["on_exit"][0]


def test_a_job_without_behaviours_has_none_recorded(joined: FakeManager) -> None:
    assert behave(joined, "true").outcome.behaviours == ()


def test_a_behaviour_of_a_job_that_did_not_end_so_is_not_run(joined: FakeManager) -> None:
    done = behave(joined, "true", on_failure=(SAY.format("no"),))
    assert said(joined) == []
    assert done.outcome.behaviours == ()


def test_failures_are_recorded_and_change_nothing(joined: FakeManager) -> None:
    long = "x" * 1000
    done = behave(
        joined,
        "echo out; echo err >&2",
        on_success=(
            f"run: echo ignored; echo {long} >&2; echo the end >&2; exit 7",
            "run: kill -KILL $$",
            "dance",
        ),
        on_exit=("run: nosuchcmd", "remove", "run: a\0b"),
    )
    outcome = done.outcome
    assert (outcome.exit_code, outcome.reason) == (0, "")
    assert joined.output(done) == (b"out\n", b"err\n"), "what behaviours print is kept apart"
    seven, killed, unknown, missing, removed, nul = outcome.behaviours
    assert not seven.ok
    assert seven.message.startswith("exit 7: xxx")
    assert seven.message.endswith("x\nthe end")
    assert len(seven.message) < 220
    assert (killed.ok, killed.message) == (False, "signal 9")
    assert (unknown.ok, unknown.message) == (False, "unknown behaviour")
    assert not missing.ok
    assert missing.message.startswith("exit 127")
    assert removed == Behaved("remove", True)
    assert (nul.ok, "NUL" in nul.message) == (False, True)


def test_behaviours_have_the_environment_and_directory_of_the_job(joined: FakeManager) -> None:
    directory = joined.home / "some dir"
    directory.mkdir()
    command = "run: pwd -P > where; env -0 | sort -z > env"
    env = b"PATH=/usr/bin:/bin\0GREETING=hello world\0ROTA_OUTCOME=old"
    done = behave(joined, "true", cwd=str(directory), on_success=(command,), env=env, name="nick")
    assert (directory / "where").read_text().strip() == str(directory.resolve())
    pairs = dict(entry.split("=", 1) for entry in (directory / "env").read_text().split("\0") if entry)
    assert pairs["GREETING"] == "hello world"
    assert pairs["ROTA_LEASE"].startswith(f"{done.token:x}@")
    assert pairs["ROTA_JOB_NAME"] == "nick"
    assert pairs["ROTA_OUTCOME"] == "complete"


def test_what_the_command_left_running_is_gone_before_its_behaviours_begin(joined: FakeManager) -> None:
    done = behave(
        joined,
        "setsid sleep 600 & echo $! > left; exit 0",
        on_exit=("run: if kill -0 $(cat left) 2>/dev/null; then exit 1; fi",),
    )
    assert done.outcome.behaviours[0].ok


def test_what_a_behaviour_leaves_running_is_ended(joined: FakeManager) -> None:
    done = behave(joined, "true", on_exit=("run: setsid sleep 600 & echo $! > left", "run: echo after >> said"))
    assert [behaved.ok for behaved in done.outcome.behaviours] == [True, True]
    assert said(joined) == ["after"]
    left = procfs.process(int((joined.home / "left").read_text()))
    assert left is None or not left.alive


@pytest.mark.parametrize("containment", ["session", "cgroup"])
def test_a_behaviour_that_takes_too_long_is_ended_and_the_next_is_run(
    manager: FakeManager, containment: str
) -> None:
    manager.rules |= {"behaviour_timeout_s": 0.3, "grace_s": 0.2, "containment": containment}
    manager.begin()
    done = behave(
        manager, "true", on_exit=("run: trap '' TERM; sleep 600 & sleep 600; sleep 600", "run: echo after >> said")
    )
    assert done.outcome.exit_code == 0
    late, after = done.outcome.behaviours
    assert not late.ok
    assert "over the 0.3 s" in late.message
    assert after.ok
    assert said(manager) == ["after"]


def test_a_killed_job_behaves_as_cancelled(joined: FakeManager) -> None:
    spec = joined.spec(**ALL)
    grant = joined.grant(1, "touch on; sleep 600", spec)
    joined.work([grant], spec)
    joined.until(lambda: (joined.home / "on").exists())
    joined.send(m.Kill([ref(grant)]))
    (done,) = joined.wait_for([1])
    assert done.outcome.reason == "kill_requested"
    assert said(joined) == ["failure cancelled /15 1", "exit cancelled /15 1"]


def test_the_behaviours_of_a_killed_job_have_its_grace_and_no_more(manager: FakeManager) -> None:
    manager.rules["grace_s"] = 0.3
    manager.begin()
    spec = manager.spec(on_failure=("run: trap '' TERM; while :; do sleep 0.1; done", "run: echo no >> said"))
    grant = manager.grant(1, "touch on; sleep 600", spec)
    manager.work([grant], spec)
    manager.until(lambda: (manager.home / "on").exists())
    manager.send(m.Kill([ref(grant)]))
    (done,) = manager.wait_for([1])
    long, never = done.outcome.behaviours
    assert not long.ok
    assert "grace" in long.message
    assert not never.ok
    assert never.message.startswith("not run")
    assert said(manager) == []


def test_a_kill_during_the_behaviours_ends_them(joined: FakeManager) -> None:
    spec = joined.spec(
        scratch=True, on_success=("run: touch ../../on; sleep 600", "run: touch ../../no", "cleanup")
    )
    grant = joined.grant(1, "true", spec)
    joined.work([grant], spec)
    joined.until(lambda: (joined.home / "on").exists())
    joined.send(m.Kill([ref(grant)]))
    (done,) = joined.wait_for([1])
    assert (done.outcome.exit_code, done.outcome.reason) == (0, ""), "the command had ended well"
    assert [behaved.ok for behaved in done.outcome.behaviours] == [False, False, True]
    assert "killed on request" in done.outcome.behaviours[0].message
    assert not (joined.home / "no").exists()
    assert os.listdir(joined.home / "scratch") == []


def test_a_lease_that_is_killed_before_it_started_has_no_behaviours(joined: FakeManager) -> None:
    spec = joined.spec(**ALL)
    grant = joined.grant(1, "true", spec)
    joined.work([grant], spec, seats=0)
    joined.send(m.Kill([ref(grant)]))
    joined.until(lambda: joined.returned)
    assert said(joined) == []


def test_leaving_with_kill_still_runs_the_behaviours_within_the_grace(manager: FakeManager) -> None:
    manager.rules["grace_s"] = 2.0
    process = manager.begin()
    spec = manager.spec(**ALL)
    manager.work([manager.grant(1, "touch on; sleep 600", spec)], spec)
    manager.until(lambda: (manager.home / "on").exists())
    manager.send(m.Leave(kill=True))
    manager.wait_for([1])
    process.wait(30)
    assert said(manager) == ["failure cancelled /15 1", "exit cancelled /15 1"]


def test_the_seat_is_taken_until_the_behaviours_are_done(joined: FakeManager) -> None:
    spec = joined.spec(on_exit=("run: touch on; while ! test -e go; do sleep 0.02; done",))
    joined.work([joined.grant(1, "true", spec), joined.grant(2, "touch second", spec)], spec, seats=1)
    joined.until(lambda: (joined.home / "on").exists() and joined.started)
    assert joined.ended == []
    assert not (joined.home / "second").exists()
    (joined.home / "go").touch()
    joined.wait_for([1, 2])


def test_live_output_goes_on_to_be_there_while_behaviours_run(joined: FakeManager) -> None:
    spec = joined.spec(on_exit=("run: touch on; while ! test -e go; do sleep 0.02; done; echo hidden >&2",))
    joined.work([joined.grant(1, "echo shown", spec)], spec)
    joined.until(lambda: (joined.home / "on").exists() and joined.started)
    joined.send(m.Tail(1, 1))
    joined.until(lambda: joined.live)
    (joined.home / "go").touch()
    joined.wait_for([1])
    joined.until(lambda: joined.live_ends)
    assert b"".join(chunk.data for chunk in joined.live) == b"shown\n"


# ------------------------------------------------------------------ cleanup


def test_the_scratch_directory_is_there_for_behaviours_and_gone_after(joined: FakeManager) -> None:
    done = behave(joined, "echo precious > result", scratch=True, on_success=("run: cp result ../../saved",))
    assert (joined.home / "saved").read_text() == "precious\n"
    assert os.listdir(joined.home / "scratch") == []
    assert len(done.outcome.behaviours) == 1


def test_cleanup_removes_the_scratch_directory_only_where_it_is_named(joined: FakeManager) -> None:
    good, bad = joined.run(
        "test -e ../ok || { touch ../ok; exit 0; }; exit 1", "exit 1", scratch=True, on_success=("cleanup",)
    )
    assert good.outcome.behaviours == (Behaved("cleanup", True),)
    (kept,) = bad.outcome.behaviours
    path = joined.home / "scratch" / f"{bad.job}.1"
    assert kept.ok
    assert kept.message.endswith(f"kept in {path}")
    assert path.is_dir()
    assert not (joined.home / "scratch" / f"{good.job}.1").exists()


def test_cleanup_at_exit_removes_it_always_and_later_behaviours_have_the_directory_of_submission(
    joined: FakeManager,
) -> None:
    done = behave(joined, "exit 1", scratch=True, on_failure=("cleanup",), on_exit=("run: pwd -P > where",))
    assert [behaved.ok for behaved in done.outcome.behaviours] == [True, True]
    assert (joined.home / "where").read_text().strip() == str(joined.home.resolve())
    assert os.listdir(joined.home / "scratch") == []


def test_cleanup_without_scratch_is_refused(joined: FakeManager) -> None:
    done = behave(joined, "true", on_exit=("cleanup",))
    assert [(behaved.ok, behaved.message) for behaved in done.outcome.behaviours] == [
        (False, "the job has no scratch directory")
    ]
    assert joined.home.exists()


# ------------------------------------------------------------------ the runner dies


def test_a_runner_killed_during_behaviours_still_tells_how_the_command_ended(manager: FakeManager) -> None:
    process = manager.begin()
    spec = manager.spec(
        scratch=True,
        on_failure=("run: echo one >> ../../said", "run: echo two >> ../../said; setsid sleep 600 & sleep 600"),
        on_exit=("run: echo three >> ../../said", "cleanup", "remove"),
    )
    grant = manager.grant(1, "echo kept; exit 4", spec)
    manager.work([grant], spec)
    manager.until(lambda: said(manager) == ["one", "two"] and manager.started)
    process.send_signal(signal.SIGKILL)
    process.wait()
    manager.hang_up()
    assert carriers([grant])
    manager.begin()
    assert carriers([grant]) == []
    (settle,) = manager.settles
    (done,) = settle.ended
    assert (done.outcome.exit_code, done.outcome.reason) == (4, "")
    assert manager.output(done)[0] == b"kept\n"
    assert [behaved.ok for behaved in done.outcome.behaviours] == [True, False, False, True, True]
    assert "died during" in done.outcome.behaviours[1].message
    assert "died before" in done.outcome.behaviours[2].message
    assert said(manager) == ["one", "two"], "nothing is run twice"
    assert os.listdir(manager.home / "scratch") == [], "the successor has cleaned up"


@pytest.mark.parametrize("seed", range(6))
def test_whenever_a_runner_is_killed_no_behaviour_is_run_twice_or_wrongly_recorded(
    manager: FakeManager, seed: int
) -> None:
    rng = random.Random(seed)
    process = manager.begin()
    manager.auto_ack = rng.random() < 0.5
    spec = manager.spec(on_success=("run: echo $ROTA_JOB_ID a >> said", "run: echo $ROTA_JOB_ID b >> said"))
    grants = [manager.grant(n, "echo $ROTA_JOB_ID c >> said", spec) for n in range(1, 31)]
    manager.work(grants, spec, seats=3)
    kill_after = rng.randint(3, 60)
    manager.until(lambda: len(said(manager)) >= kill_after)
    process.send_signal(signal.SIGKILL)
    process.wait()
    manager.hang_up()
    manager.auto_ack = True
    manager.begin()
    assert carriers(grants) == []
    lines = said(manager)
    assert len(lines) == len(set(lines))
    told = {done.job: done for done in manager.ended} | {done.job: done for done in manager.settles[0].ended}
    for job, done in told.items():
        if done.outcome.reason == "lost":
            assert f"{job} b" not in lines, "then the end of its command was written down"
            continue
        assert f"{job} c" in lines
        for behaved, letter in zip(done.outcome.behaviours, "ab", strict=True):
            assert f"{job} {letter}" in lines or not behaved.ok
    assert {int(line.split()[0]) for line in lines} <= told.keys()


def test_a_runner_killed_before_the_command_ended_keeps_the_directory_that_only_success_removes(
    manager: FakeManager,
) -> None:
    process = manager.begin()
    spec = manager.spec(scratch=True, on_success=("cleanup",))
    manager.work([manager.grant(1, "touch ../../on; sleep 600", spec)], spec)
    manager.until(lambda: (manager.home / "on").exists() and manager.started)
    process.send_signal(signal.SIGKILL)
    process.wait()
    manager.hang_up()
    manager.begin()
    assert [done.outcome.reason for done in manager.settles[0].ended] == ["lost"]
    assert os.listdir(manager.home / "scratch") == ["1.1"]
