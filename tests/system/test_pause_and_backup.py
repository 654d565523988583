"""Pause, drain, backup and restore on real deployments: restarts, kills, living runners, wrong roles."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.deployment import Deployment, deployment, is_alive, wait_until

LEASED = ("scheduled", "starting", "running", "finishing", "lost")


@pytest.fixture
def second(tmp_path: Path) -> Iterator[Deployment]:
    """Another deployment, for what is restored."""
    with deployment(tmp_path / "second", grace="1s") as made:
        yield made


def counts(rota: Deployment) -> dict[str, int]:
    return dict(rota.json("status")["counts"])


def add(rota: Deployment, *commands: str) -> list[int]:
    """Jobs that are tried once only."""
    said = rota.ok("add", "-", "--quiet", "--retries", "0", input="\n".join(commands) + "\n")
    return [int(word) for word in said.split()]


def until_file(path: Path) -> str:
    """A command that runs until somebody makes this file."""
    return f"while ! test -e {path}; do sleep 0.02; done"


def running(rota: Deployment, *ids: int) -> None:
    wait_until(lambda: all(rota.states()[id] == "running" for id in ids), f"{ids} run{rota.logs()}")


def manager(rota: Deployment) -> Any:
    return rota.json("manager", "status")


def kill_manager(rota: Deployment) -> None:
    pid = rota.manager_pid()
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not is_alive(pid), "the manager is dead")


def has_ended(rota: Deployment) -> bool:
    return not (rota.home / "manager.json").exists()


def well(rota: Deployment) -> None:
    """The deployment finds nothing wrong with itself."""
    checks = {each["message"] for each in rota.json("doctor")["checks"] if each["level"] == "bad"}
    assert not {message for message in checks if "promise" in message}


# ------------------------------------------------------------------ pause and resume


def test_nothing_starts_after_the_answer_to_pause(rota: Deployment) -> None:
    add(rota, *(f"sleep 0.02; : {n}" for n in range(300)))
    wait_until(lambda: counts(rota).get("complete", 0) > 20, "some have run")
    rota.ok("manager", "pause")
    at_answer = counts(rota)
    begun = sum(at_answer.get(state, 0) for state in ("running", "finishing", "complete"))
    assert at_answer.get("scheduled", 0) == 0
    assert begun + at_answer["ready"] == 300
    wait_until(lambda: not any(counts(rota).get(state) for state in LEASED), "what ran has ended")
    assert counts(rota) == {"complete": begun, "ready": 300 - begun}
    (late,) = add(rota, "true")
    assert rota.json("show", str(late))["reason"]["code"] == "paused"
    assert manager(rota)["paused"] is True
    assert "the manager is paused" in rota.ok("manager", "status")
    assert "the manager is paused" in rota.ok("status")
    rota.ok("manager", "resume")
    rota.ok("wait", "all")
    assert counts(rota) == {"complete": 301}
    assert manager(rota)["paused"] is False


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_pause_outlives_the_manager(rota: Deployment, how: str) -> None:
    rota.start()
    gate = rota.work / "gate"
    (runs,) = add(rota, until_file(gate))
    running(rota, runs)
    rota.ok("manager", "pause")
    (waits,) = add(rota, "true")
    if how == "stop":
        rota.ok("manager", "stop")
    else:
        kill_manager(rota)
    rota.start()
    gate.touch()
    wait_until(lambda: rota.states()[runs] == "complete", "what ran has ended")
    assert rota.states()[waits] == "ready"
    rota.ok("manager", "resume")
    rota.ok("wait", "all")
    rota.ok("manager", "stop")
    rota.start()
    assert manager(rota)["paused"] is False


def test_pausing_and_resuming_twice_is_the_same_as_once(rota: Deployment) -> None:
    rota.start()
    for _ in range(2):
        assert rota.json("manager", "pause")["paused"] is True
    for _ in range(2):
        assert rota.json("manager", "resume")["paused"] is False
    rota.ok("run", "--", "true")


def test_an_idle_manager_that_is_paused_stays_while_jobs_wait(rota: Deployment, second: Deployment) -> None:
    gate = rota.work / "gate"
    for each in (rota, second):
        each.env["ROTA_IDLE_STOP"] = "1s"
    runs = rota.popen("run", "--", "sh", "-c", until_file(gate))
    wait_until(lambda: (rota.home / "manager.json").exists() and counts(rota).get("running"), "it runs")
    rota.ok("manager", "pause")
    add(rota, "true")
    gate.touch()
    assert runs.wait(timeout=60) == 0
    second.ok("run", "--", "true")
    wait_until(lambda: has_ended(second), "the one without jobs has stopped")
    assert is_alive(rota.manager_pid())


# ------------------------------------------------------------------ drain


def test_a_drain_lets_running_jobs_end_and_what_was_added_runs_after_the_restart(rota: Deployment) -> None:
    gate = rota.work / "gate"
    rota.start()
    pid = rota.manager_pid()
    (runs,) = add(rota, until_file(gate))
    running(rota, runs)
    assert rota.json("manager", "drain", "--no-wait") == {"pid": pid, "stopped": False}
    (added,) = add(rota, "true")
    assert rota.states() == {runs: "running", added: "ready"}
    assert rota.json("show", str(added))["reason"]["code"] == "draining"
    assert manager(rota)["draining"] is True
    gate.touch()
    wait_until(lambda: not is_alive(pid), "it has stopped by itself")
    rota.start()
    rota.ok("wait", "all")
    assert rota.states() == {runs: "complete", added: "complete"}


def test_drain_returns_when_the_manager_has_stopped(rota: Deployment) -> None:
    gate = rota.work / "gate"
    rota.start()
    pid = rota.manager_pid()
    (runs,) = add(rota, until_file(gate))
    running(rota, runs)
    draining = rota.popen("manager", "drain", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert draining.stderr is not None
    assert b"1 running" in draining.stderr.readline()
    gate.touch()
    out, _ = draining.communicate(timeout=60)
    assert draining.returncode == 0
    assert b"has stopped" in out
    assert not is_alive(pid)


def test_a_drain_with_nothing_running_stops_the_manager_at_once(rota: Deployment) -> None:
    rota.start()
    pid = rota.manager_pid()
    assert rota.json("manager", "drain") == {"pid": pid, "stopped": True}
    assert not is_alive(pid)
    done = rota.rota("manager", "drain")
    assert (done.returncode, "no manager" in done.stderr) == (4, True)


def test_resume_ends_a_drain_and_whoever_waits_for_it_is_told(rota: Deployment) -> None:
    gate = rota.work / "gate"
    rota.start()
    (runs,) = add(rota, until_file(gate))
    running(rota, runs)
    draining = rota.popen("manager", "drain", stderr=subprocess.PIPE)
    assert draining.stderr is not None
    draining.stderr.readline()
    rota.ok("manager", "resume")
    _, err = draining.communicate(timeout=60)
    assert draining.returncode == 2
    assert b"resumed" in err
    (added,) = add(rota, "true")
    rota.ok("wait", str(added))
    gate.touch()
    rota.ok("wait", "all")
    assert is_alive(rota.manager_pid())


def test_an_interrupt_of_the_command_leaves_the_manager_draining(rota: Deployment) -> None:
    gate = rota.work / "gate"
    rota.start()
    (runs,) = add(rota, until_file(gate))
    running(rota, runs)
    draining = rota.popen("manager", "drain", stderr=subprocess.PIPE)
    assert draining.stderr is not None
    draining.stderr.readline()
    draining.send_signal(signal.SIGINT)
    _, err = draining.communicate(timeout=60)
    assert draining.returncode == 130
    assert b"goes on draining" in err
    assert manager(rota)["draining"] is True
    gate.touch()
    wait_until(lambda: has_ended(rota), "it has stopped by itself")


# ------------------------------------------------------------------ backup


def test_a_backup_made_while_jobs_run_and_are_added_is_consistent(rota: Deployment, second: Deployment) -> None:
    rota.start()
    done = threading.Event()
    acknowledged: list[int] = []

    def work() -> None:
        number = 0
        while not done.is_set():
            number += 1
            acknowledged.extend(add(rota, *(f"sleep 0.01; : {number} {n}" for n in range(20))))

    thread = threading.Thread(target=work)
    thread.start()
    try:
        wait_until(lambda: acknowledged and counts(rota).get("complete"), "jobs run")
        made = []
        for n in range(3):
            known = len(acknowledged)
            made.append((known, rota.json("manager", "backup", f"{n}.db")))
    finally:
        done.set()
        thread.join()
    for known, backup in made:
        assert backup["path"].startswith(str(rota.work))
        assert backup["jobs"] >= known
        second.ok("manager", "restore", backup["path"], "--pause", "--replace")
        second.start()
        states = second.states()
        assert len(states) == backup["jobs"]
        assert set(acknowledged[:known]) <= set(states)
        assert not {"running", "scheduled"} & set(states.values())
        well(second)
        second.ok("manager", "stop")


def test_the_name_of_a_backup_is_chosen_from_the_deployment_and_the_time(rota: Deployment) -> None:
    rota.start()
    path = Path(rota.json("manager", "backup")["path"])
    assert path.parent == rota.work
    assert path.name.startswith(f"rota-{manager(rota)['deployment']}-")
    rota.ok("manager", "stop")
    there = rota.work / "there"
    there.mkdir()
    path = Path(rota.json("manager", "backup", str(there))["path"])  # without a manager
    assert path.parent == there
    assert path.name.startswith("rota-")


def test_mistakes_with_backups_are_told_in_one_line_and_leave_nothing(rota: Deployment) -> None:
    rota.start()
    (rota.work / "there.db").write_text("precious")
    for managed in (True, False):
        for file, status in [("there.db", 2), ("no/such/dir.db", 2), ("", 2), (f"{rota.home}/rota.db", 2)]:
            done = rota.rota("manager", "backup", file)
            assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (status, "", 1)
        if managed:
            rota.ok("manager", "stop")
    assert [path.name for path in rota.work.iterdir()] == ["there.db"]
    assert (rota.work / "there.db").read_text() == "precious"


def test_there_is_nothing_to_back_up_where_nothing_was_ever_started(rota: Deployment) -> None:
    done = rota.rota("manager", "backup")
    assert done.returncode == 3
    assert not rota.home.exists()


def test_a_manager_killed_during_a_backup_leaves_no_part_of_it(rota: Deployment, second: Deployment) -> None:
    rota.start()
    rota.ok("manager", "pause")
    rota.ok("add", "-", input="".join(f"true {n} {'x' * 500}\n" for n in range(20_000)))
    file = rota.work / "copy.db"
    backing = rota.popen("manager", "backup", str(file), stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    wait_until(lambda: list(rota.work.glob(".copy.db.*")) or file.exists(), "it has begun")
    kill_manager(rota)
    done = backing.wait(timeout=60)
    if file.exists():  # it was faster than the signal
        second.ok("manager", "restore", str(file))
    else:
        assert done != 0
    rota.start()
    assert rota.json("manager", "backup", str(file), "--force")["jobs"] == 20_000


@pytest.mark.parametrize("how", ["interrupt", "stop"])
def test_a_backup_that_is_interrupted_is_given_up_and_leaves_nothing(rota: Deployment, how: str) -> None:
    rota.start()
    rota.ok("manager", "pause")
    rota.ok("add", "-", input="".join(f"true {n} {'x' * 1000}\n" for n in range(20_000)))
    file = rota.work / "copy.db"
    backing = rota.popen("manager", "backup", str(file), stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    wait_until(lambda: list(rota.work.glob(".copy.db.*")) or file.exists(), "it has begun")
    if how == "interrupt":
        backing.send_signal(signal.SIGINT)
    else:
        rota.ok("manager", "stop")
    done = backing.wait(timeout=60)
    wait_until(lambda: not list(rota.work.glob(".copy.db.*")), "the draft is gone")
    # The copy may have been faster; who asked may then have gone before hearing of it.
    assert done != 0 or file.exists()
    if how == "stop":
        rota.start()
    assert rota.json("manager", "backup", str(file), "--force")["jobs"] == 20_000


def test_both_clients_of_python_can_pause_resume_and_back_up(rota: Deployment) -> None:
    import asyncio

    import rota as rota_package

    rota.start()
    shares: list[float] = []
    with rota_package.connect(home=rota.home) as client:
        assert client.pause_manager().paused
        assert not client.resume_manager().paused
        assert client.backup(str(rota.work / "1.db"), progress=shares.append).jobs == 0
        assert client.manager_status().draining is False
    assert shares[-1] == 1.0

    async def ask() -> int:
        async with await rota_package.connect_async(home=rota.home) as client:
            assert (await client.pause_manager()).paused
            assert not (await client.resume_manager()).paused
            made = await client.backup(str(rota.work / "2.db"), progress=shares.append)
            assert (await client.drain_manager()).draining
            return made.bytes

    assert asyncio.run(ask()) == (rota.work / "2.db").stat().st_size
    wait_until(lambda: has_ended(rota), "the drained manager has stopped")


def test_only_an_administrator_may_pause_drain_resume_or_back_up(rota: Deployment) -> None:
    rota.start()
    rota.ok("manager", "token", "add", "ann", "--out", str(rota.work / "ann.token"))
    address = wait_until(lambda: manager(rota)["address"], "it listens")
    wait_until(lambda: (rota.home / "tls" / "ca.pem").exists(), "there are certificates")
    rota.env["ROTA_TOKEN_FILE"] = str(rota.work / "ann.token")
    for words in (["pause"], ["resume"], ["drain"], ["backup", str(rota.work / "x.db")]):
        done = rota.rota("manager", *words, "--address", address)
        assert done.returncode == 5, done.stderr
    assert not (rota.work / "x.db").exists()
    assert manager(rota)["paused"] is False


# ------------------------------------------------------------------ restore


def test_waiting_jobs_run_after_a_restoration_and_those_that_ran_are_lost(
    rota: Deployment, second: Deployment
) -> None:
    witness, gate = rota.work / "witness", rota.work / "gate"
    rota.start()
    (runs,) = add(rota, f"echo once >> {witness}; {until_file(gate)}")
    running(rota, runs)
    rota.ok("manager", "pause")
    (waits,) = add(rota, "true")
    rota.ok("hold", str(waits))  # it waits in the backup for certain, and is not sent ahead
    rota.ok("manager", "resume")
    backup = rota.json("manager", "backup", "copy.db")
    rota.ok("manager", "stop", "--kill")
    done = second.rota("manager", "restore", backup["path"])
    assert done.returncode == 0
    assert "now lost" in done.stdout
    assert f"ids from {waits + 1} on" in done.stdout

    second.start()
    second.ok("release", str(waits))
    second.ok("wait", str(waits))
    assert second.states() == {runs: "lost", waits: "complete"}
    shown = second.json("show", str(runs))
    assert "restored" in [line["event"] for line in shown["story"]]
    assert shown["reason"]["code"] == "lost"
    well(second)
    second.ok("confirm-dead", str(runs))
    assert second.states()[runs] == "failed"
    assert witness.read_text() == "once\n"


def test_a_living_runner_goes_on_with_what_the_backup_knows_and_ends_the_rest(rota: Deployment) -> None:
    gate = rota.work / "gate"
    rota.start()
    (known,) = add(rota, until_file(gate))
    running(rota, known)
    backup = rota.json("manager", "backup", "copy.db")
    pids = rota.work / "pids"
    (unknown,) = add(rota, f"echo $$ > {pids}; exec sleep 1000")
    running(rota, known, unknown)
    pid = int(wait_until(lambda: pids.exists() and pids.read_text().strip(), "its pid is known"))

    refused = rota.rota("manager", "restore", backup["path"], "--replace")
    assert (refused.returncode, "manager stop" in refused.stderr) == (4, True)
    rota.ok("manager", "stop")
    refused = rota.rota("manager", "restore", backup["path"])
    assert (refused.returncode, "--replace" in refused.stderr) == (2, True)
    assert Path(rota.json("manager", "restore", backup["path"], "--replace")["kept"]).exists()

    rota.start()
    wait_until(lambda: not is_alive(pid), "what the database does not know is ended")
    assert list(rota.states()) == [known]
    running(rota, known)
    gate.touch()
    rota.ok("wait", "all")
    assert rota.states() == {known: "complete"}
    well(rota)


def test_a_job_that_ended_after_the_backup_is_not_silently_run_again(rota: Deployment) -> None:
    gate, witness = rota.work / "gate", rota.work / "witness"
    rota.start()
    (runs,) = add(rota, f"echo $ROTA_ATTEMPT >> {witness}; {until_file(gate)}")
    running(rota, runs)
    backup = rota.json("manager", "backup", "copy.db")
    gate.touch()
    rota.ok("wait", "all")
    rota.ok("manager", "stop")
    rota.ok("manager", "restore", backup["path"], "--replace")
    rota.start()
    wait_until(lambda: rota.states()[runs] in ("lost", "failed"), "nobody knows how it ended")
    if rota.states()[runs] == "lost":
        rota.ok("confirm-dead", str(runs))
    assert rota.states()[runs] == "failed"
    assert witness.read_text() == "1\n"
