"""The prologue and the epilogue of a node: when they run, what they know, and what happens if they fail."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import msgspec
import pytest

from rota.wire import messages as m
from tests.runner.manager import FakeManager, ref


def script(manager: FakeManager, name: str, text: str) -> str:
    path = manager.home / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def lines(manager: FakeManager, name: str = "said") -> list[str]:
    path = manager.home / name
    return path.read_text().splitlines() if path.exists() else []


def begin(manager: FakeManager, **rules: object) -> None:
    manager.rules |= rules
    manager.begin()


def say(manager: FakeManager, word: str) -> str:
    return f"echo {word} >> {manager.home}/said"


# ------------------------------------------------------------------ all is well


def test_a_prologue_runs_before_the_command_and_an_epilogue_after_everything(manager: FakeManager) -> None:
    begin(
        manager,
        prologue=script(manager, "before", say(manager, "prologue")),
        epilogue=script(manager, "after", say(manager, "epilogue")),
    )
    left = f"(trap '' HUP; sleep 0.3; {say(manager, 'child')}) & {say(manager, 'job')}"
    (done,) = manager.run(left, seats=1)
    assert done.outcome.exit_code == 0
    assert lines(manager)[:2] == ["prologue", "job"]
    assert lines(manager)[-1] == "epilogue"


def test_what_runs_is_told_while_it_runs(manager: FakeManager) -> None:
    begin(manager, prologue=script(manager, "before", "true"), epilogue=script(manager, "after", "true"))
    manager.run("true")
    told = [phase.name for report in manager.reports for phase in report.phases]
    assert told == ["prologue", "epilogue"]


def test_hooks_know_the_job_but_nothing_of_its_own_variables(manager: FakeManager) -> None:
    show = f"env | grep -E '^(ROTA_|SECRET)' | sort >> {manager.home}/said"
    begin(manager, prologue=script(manager, "before", show), epilogue=script(manager, "after", show))
    (done,) = manager.run("exit 3", env=b"PATH=/usr/bin:/bin\0SECRET=1", name="it", user="ann")
    said = lines(manager)
    for word in (f"ROTA_JOB_ID={done.job}", "ROTA_USER=ann", "ROTA_JOB_NAME=it", "ROTA_HOOK=prologue"):
        assert word in said
    assert "ROTA_EXIT_CODE=3" in said
    assert "ROTA_OUTCOME=failed" in said
    assert not [line for line in said if line.startswith("SECRET")]


def test_hooks_find_the_list_of_nodes(manager: FakeManager) -> None:
    begin(
        manager,
        prologue=script(manager, "before", f"cat $ROTA_NODEFILE >> {manager.home}/said"),
        epilogue=script(manager, "after", f"cat $ROTA_NODEFILE >> {manager.home}/said"),
    )
    spec = manager.spec()
    grant = manager.grant(1, "cat $ROTA_NODEFILE", spec)
    grant = msgspec.structs.replace(grant, allocation=m.Allocation("0", (("h1", 2),)))
    manager.work([grant], spec)
    (done,) = manager.wait_for([1])
    assert manager.output(done)[0] == b"h1\nh1\n"
    assert lines(manager) == ["h1"] * 4


def test_what_hooks_print_goes_to_the_log_and_not_to_the_output(manager: FakeManager) -> None:
    begin(manager, prologue=script(manager, "before", "echo good morning"))
    (done,) = manager.run("echo output")
    assert manager.output(done) == (b"output\n", b"")
    assert "good morning" in manager.log()


def test_the_walltime_of_a_job_begins_after_its_prologue(manager: FakeManager) -> None:
    begin(manager, prologue=script(manager, "before", "sleep 1"))
    (done,) = manager.run("sleep 0.3", walltime_s=0.9)
    assert done.outcome.reason == ""


def test_an_epilogue_also_runs_for_a_command_that_cannot_be_found(manager: FakeManager) -> None:
    begin(manager, epilogue=script(manager, "after", say(manager, "epilogue")))
    (done,) = manager.run(["/no/such/command"])
    assert done.outcome.reason == "not_found"
    assert lines(manager) == ["epilogue"]


def test_many_short_jobs_have_their_hooks(manager: FakeManager) -> None:
    begin(
        manager,
        prologue=script(manager, "before", say(manager, "p")),
        epilogue=script(manager, "after", say(manager, "e")),
    )
    done = manager.run(*["true"] * 20, seats=4)
    assert [each.outcome.exit_code for each in done] == [0] * 20
    assert sorted(lines(manager)) == ["e"] * 20 + ["p"] * 20


# ------------------------------------------------------------------ failures


def test_a_failing_prologue_hands_the_lease_back_and_says_why(manager: FakeManager) -> None:
    begin(
        manager,
        prologue=script(manager, "before", "echo no scratch here >&2; exit 7"),
        epilogue=script(manager, "after", say(manager, "epilogue $ROTA_OUTCOME")),
    )
    spec = manager.spec()
    grants = [manager.grant(n, f"touch {manager.home}/ran", spec) for n in (1, 2)]
    manager.work(grants, spec, seats=1)
    manager.until(lambda: len(manager.returned) == 2)
    (fault,) = [each for report in manager.reports for each in report.faults]
    assert (fault.job, fault.hook) == (1, "prologue")
    assert "exit 7" in fault.message
    assert "no scratch here" in fault.message
    assert not (manager.home / "ran").exists()
    assert manager.ended == []
    assert lines(manager) == ["epilogue voided"]


def test_a_prologue_that_is_not_there_fails(manager: FakeManager) -> None:
    begin(manager, prologue="/no/such/prologue")
    spec = manager.spec()
    manager.work([manager.grant(1, "true", spec)], spec)
    manager.until(lambda: manager.returned)
    (fault,) = [each for report in manager.reports for each in report.faults]
    assert "not found" in fault.message


def test_a_prologue_that_takes_too_long_is_killed_and_has_failed(manager: FakeManager) -> None:
    begin(manager, prologue=script(manager, "before", "sleep 1000 & wait"), hook_timeout_s=0.3)
    spec = manager.spec()
    manager.work([manager.grant(1, "true", spec)], spec)
    manager.until(lambda: manager.returned)
    (fault,) = [each for report in manager.reports for each in report.faults]
    assert "over its 0.3 s" in fault.message


def test_a_failing_epilogue_is_told_and_the_outcome_stays(manager: FakeManager) -> None:
    begin(manager, epilogue=script(manager, "after", "exit 1"))
    (done,) = manager.run("exit 4")
    assert done.outcome.exit_code == 4
    (fault,) = [each for report in manager.reports for each in report.faults]
    assert fault.hook == "epilogue"


@pytest.mark.parametrize("checkpoint", ["", "USR2"])
def test_a_job_that_is_killed_during_its_prologue_never_runs(manager: FakeManager, checkpoint: str) -> None:
    waits = f"touch {manager.home}/begun; exec sleep 1000"
    begin(
        manager,
        prologue=script(manager, "before", waits),
        epilogue=script(manager, "after", say(manager, "epilogue")),
    )
    spec = manager.spec()
    grant = manager.grant(1, f"touch {manager.home}/ran", spec)
    manager.work([grant], spec)
    manager.until((manager.home / "begun").exists)
    manager.send(m.Kill([ref(grant)], checkpoint))
    manager.until(lambda: manager.returned)
    assert not (manager.home / "ran").exists()
    assert not [each for report in manager.reports for each in report.faults]
    assert lines(manager) == ["epilogue"]


def test_a_kill_does_not_cut_an_epilogue_short(manager: FakeManager) -> None:
    waits = f"touch {manager.home}/begun; until test -e {manager.home}/go; do sleep 0.05; done; " + say(
        manager, "done"
    )
    begin(manager, epilogue=script(manager, "after", waits))
    spec = manager.spec()
    grant = manager.grant(1, "true", spec)
    manager.work([grant], spec)
    manager.until((manager.home / "begun").exists)
    manager.send(m.Kill([ref(grant)]))
    manager.read(0.3)
    assert manager.ended == []
    (manager.home / "go").touch()
    (done,) = manager.wait_for([1])
    assert done.outcome.exit_code == 0
    assert lines(manager) == ["done"]


def test_a_daemon_that_a_prologue_leaves_ends_with_the_job(manager: FakeManager) -> None:
    leaves = f"setsid sh -c 'echo $$ > {manager.home}/daemon; exec sleep 1000' & sleep 0.2"
    begin(manager, prologue=script(manager, "before", leaves))
    manager.run(f"kill -0 $(cat {manager.home}/daemon)")
    (pid,) = lines(manager, "daemon")
    assert not _alive(int(pid))


# ------------------------------------------------------------------ the runner dies


@pytest.mark.parametrize("hook", ["prologue", "epilogue"])
def test_what_a_dead_runner_was_doing_for_a_job_is_ended_and_told(manager: FakeManager, hook: str) -> None:
    waits = (
        f"echo $$ > {manager.home}/begun.new; mv {manager.home}/begun.new {manager.home}/begun; exec sleep 1000"
    )
    manager.rules |= {hook: script(manager, "hook", waits)}
    runner = manager.begin()
    spec = manager.spec()
    manager.work([manager.grant(1, "exit 5", spec)], spec)
    manager.until((manager.home / "begun").exists)
    (pid,) = lines(manager, "begun")
    runner.send_signal(signal.SIGKILL)
    runner.wait()
    manager.hang_up()
    manager.begin()
    (settle,) = manager.settles
    # Nobody executed its command during the prologue; during the epilogue it had ended.
    told = [done.outcome.exit_code for done in settle.ended]
    assert told == ([] if hook == "prologue" else [5])
    assert not _alive(int(pid))


def test_a_runner_that_comes_back_says_that_a_job_has_not_begun(manager: FakeManager) -> None:
    waits = f"touch {manager.home}/begun; until test -e {manager.home}/go; do sleep 0.05; done"
    begin(manager, prologue=script(manager, "before", waits))
    spec = manager.spec()
    manager.work([manager.grant(1, "true", spec)], spec)
    manager.until((manager.home / "begun").exists)
    manager.hang_up()
    join = manager.accept()
    (held,) = join.held
    assert held.started_at is None
    assert held.seat
    (manager.home / "go").touch()
    (done,) = manager.wait_for([1])
    assert done.outcome.exit_code == 0


def _alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False
    return os.path.exists(f"/proc/{pid}") and stat.rpartition(b")")[2].split()[0] not in (b"Z", b"X")
