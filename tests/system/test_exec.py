"""`rota exec`, `rota connect` and `rota rsh`: commands inside a running job, in a real deployment."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deployment import ROTA, Deployment, deployment, is_alive, wait_until
from tests.typist import Typist, typing_in


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """A deployment for all tests that leave its manager alone."""
    with deployment(tmp_path_factory.mktemp("shared"), grace="1s") as made:
        yield made


@pytest.fixture
def job(shared: Deployment) -> Iterator[str]:
    """A job that runs, of this test only."""
    id = start_job(shared)
    yield id
    shared.rota("kill", id)  # unless it has ended


@pytest.fixture
def shell(shared: Deployment, job: str) -> Iterator[Typist]:
    """Somebody in a shell inside it."""
    with in_shell(shared, job) as typist:
        yield typist


_NUMBERS = itertools.count(1)


def start_job(rota: Deployment) -> str:
    environment = ("--env", "SHELL=/bin/sh", "--env", "PS1=inside> ")
    # Each another command: the one of the test before may not have ended yet.
    (id,) = rota.json("add", *environment, "--", "sleep", f"1000.{next(_NUMBERS)}")["added"]
    wait_until(lambda: rota.state(id) == "running", "the job runs")
    return str(id)


@contextlib.contextmanager
def in_shell(rota: Deployment, job: str) -> Iterator[Typist]:
    with typing_in([ROTA, "connect", job], env=rota.env, cwd=rota.work) as typist:
        typist.sees("inside> ")
        yield typist


def test_a_command_has_our_input_and_we_have_its_outputs_and_exit_code(shared: Deployment, job: str) -> None:
    done = shared.rota("exec", job, "--", "sh", "-c", "cat; echo wrong >&2; exit 7", input="words")
    assert (done.returncode, done.stdout, done.stderr) == (7, "words", "wrong\n")


def test_a_command_that_a_signal_ends_gives_128_and_its_number(shared: Deployment, job: str) -> None:
    assert shared.rota("exec", job, "--", "sh", "-c", "kill -USR1 $$").returncode == 128 + signal.SIGUSR1


def test_it_is_inside_the_job(shared: Deployment, job: str) -> None:
    seen = shared.ok("exec", job, "--env", "MORE=yes", "--", "sh", "-c", "echo $ROTA_JOB_ID $MORE; pwd")
    assert seen.split() == [job, "yes", str(shared.work)]


def test_in_json_it_is_one_value(shared: Deployment, job: str) -> None:
    done = shared.rota("exec", "--json", job, "--", "sh", "-c", "cat; echo wrong >&2; exit 7", input="words")
    found = json.loads(done.stdout)
    assert found == {
        "id": int(job), "exit_code": 7, "signal": None, "message": "", "stdout": "words", "stderr": "wrong\n",
    }  # fmt: skip
    assert done.returncode == 7


def test_ctrl_c_is_passed_on(shared: Deployment, job: str) -> None:
    script = "trap 'echo caught; exit 4' INT; echo ready; while :; do sleep 0.05; done"
    caller = shared.popen("exec", job, "--", "sh", "-c", script, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    assert caller.stdout is not None
    assert caller.stdout.readline() == b"ready\n"
    caller.send_signal(signal.SIGINT)
    assert caller.stdout.read() == b"caught\n"
    assert caller.wait(60) == 4


def test_large_data_goes_both_ways_byte_for_byte(shared: Deployment, job: str) -> None:
    data = os.urandom(5 << 20)
    done = subprocess.run(
        [ROTA, "exec", job, "--", "cat"], env=shared.env, input=data, capture_output=True, timeout=120
    )
    assert done.returncode == 0
    assert done.stdout == data


def test_a_reader_that_has_enough_ends_the_command(shared: Deployment, job: str) -> None:
    script = f"{ROTA} exec {job} -- sh -c 'echo $$ >pid; exec yes' | head -c 100000 | wc -c"
    done = subprocess.run(["sh", "-c", script], env=shared.env, cwd=shared.work, capture_output=True, timeout=60)
    assert done.stdout.strip() == b"100000", done.stderr
    pid = int((shared.work / "pid").read_text())
    wait_until(lambda: not is_alive(pid), "nothing writes any more")


def test_who_does_not_read_keeps_nobody_else_waiting(shared: Deployment, job: str) -> None:
    idle = shared.popen("exec", job, "--", "yes", stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    try:
        assert shared.ok("exec", job, "--", "echo", "hello") == "hello\n"
    finally:
        idle.kill()
        idle.wait()


def test_a_caller_that_dies_ends_the_command(shared: Deployment, job: str) -> None:
    caller = shared.popen("exec", job, "--", "sh", "-c", "echo $$; sleep 1000", stdout=subprocess.PIPE)
    assert caller.stdout is not None
    pid = int(caller.stdout.readline())
    caller.kill()
    caller.wait()
    wait_until(lambda: not is_alive(pid), "the command has ended")


def test_the_end_of_the_job_ends_the_command(shared: Deployment, job: str) -> None:
    caller = shared.popen("exec", job, "--", "sh", "-c", "echo $$; sleep 1000", stdout=subprocess.PIPE)
    assert caller.stdout is not None
    pid = int(caller.stdout.readline())
    shared.ok("kill", job)
    assert caller.wait(60) > 128
    assert not is_alive(pid)
    wait_until(lambda: shared.state(int(job)) == "cancelled", "the job is cancelled")


def test_a_lost_connection_is_told_and_exits_with_4(rota: Deployment) -> None:
    job = start_job(rota)
    caller = rota.popen(
        "exec", job, "--", "sh", "-c", "echo ready; sleep 1000", stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert caller.stdout is not None
    assert caller.stdout.readline() == b"ready\n"
    os.kill(rota.manager_pid(), signal.SIGKILL)
    _, said = caller.communicate(timeout=60)
    assert caller.returncode == 4
    assert b"the connection to the manager was lost" in said
    rota.start()
    assert rota.state(int(job)) == "running"


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        (["exec", "JOB"], 2, "there is no command after '--'"),
        (["exec", "JOB", "--node", "elsewhere", "--", "id"], 3, "has no node 'elsewhere'"),
        (["exec", "999", "--", "id"], 3, "there is no job 999"),
        (["exec", "JOB", "--env", "odd", "--", "id"], 2, "'odd' is not NAME=VALUE"),
        (["exec", "JOB", "--", "nosuchprogram"], 127, "nosuchprogram: not found"),
        (["exec", "JOB", "--job-key", "nosuchfile", "--", "id"], 5, "there is no token in nosuchfile"),
        (["connect", "--json", "JOB"], 2, "a shell is not one JSON value"),
        (["run", "-I", "file"], 2, "-I runs one command"),
        (["run", "-I", "--retries", "2", "--", "id"], 2, "--retries has no meaning for an interactive job"),
        (["rsh", "host", "id"], 2, "this is not inside a job"),
    ],
)
def test_a_mistake_is_one_line(shared: Deployment, job: str, arguments: list[str], status: int, text: str) -> None:
    done = shared.rota(*[job if word == "JOB" else word for word in arguments])
    assert done.returncode == status, done.stderr
    assert text in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_job_that_has_ended_cannot_be_entered(rota: Deployment) -> None:
    rota.ok("run", "--", "true")
    done = rota.rota("exec", "1", "--", "id")
    assert done.returncode == 2
    assert "job 1 has ended" in done.stderr


# ------------------------------------------------------------------ terminals


def test_a_shell_has_our_terminal_and_gives_it_back(shared: Deployment, job: str, shell: Typist) -> None:
    shell.type("stty size; echo job $ROTA_JOB_ID\n")
    seen = shell.sees(f"job {job}")
    assert "30 90" in seen
    shell.resize(44, 111)
    shell.type("while [ \"$(stty size)\" != '44 111' ]; do sleep 0.05; done; echo larger\n")
    shell.sees("larger\r\n")
    shell.type("exit 9\n")
    assert shell.ends() == 9
    assert shell.restored


def test_ctrl_c_goes_to_what_runs_in_the_shell_and_ctrl_d_ends_it(shell: Typist) -> None:
    shell.type("sleep 1000\n")
    shell.sees("sleep 1000\r\n")
    wait_until(lambda: not shell.restored, "the terminal is theirs")
    shell.interrupts("inside> ")
    shell.type("\x04")
    assert shell.ends() in (0, 130)  # the shell's own choice after an interrupt
    assert shell.restored


def test_the_escape_leaves_and_ends_what_runs(shared: Deployment, shell: Typist) -> None:
    shell.type("echo pid=$$, 'not ~.' he''re\n")
    pid = int(re.findall(r"pid=(\d+)", shell.sees("not ~. here"))[-1])
    shell.sees("inside> ")
    shell.type("\r~.")
    assert shell.ends() == 255
    assert shell.restored
    wait_until(lambda: not is_alive(pid), "the shell has ended")


def test_the_terminal_comes_back_when_the_connection_is_lost(rota: Deployment) -> None:
    with in_shell(rota, start_job(rota)) as shell:
        assert not shell.restored
        os.kill(rota.manager_pid(), signal.SIGKILL)
        assert shell.ends() == 4
        assert shell.restored
        assert "the connection to the manager was lost" in shell.shown


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_the_terminal_comes_back_when_we_are_told_to_leave(shell: Typist, number: int) -> None:
    assert not shell.restored
    shell.process.send_signal(number)
    assert shell.ends() == 255
    assert shell.restored


# ------------------------------------------------------------------ keys, and jobs that reach their own nodes


def test_whoever_has_the_key_of_a_job_may_enter_it_with_nothing_else(rota: Deployment, tmp_path: Path) -> None:
    (id,) = rota.json("add", "--job-key", "shared.key", "--", "sleep", "1000")["added"]
    wait_until(lambda: rota.state(id) == "running", "the job runs")
    key = rota.work / "shared.key"
    assert key.stat().st_mode & 0o777 == 0o600
    address = json.loads((rota.home / "manager.json").read_bytes())["address"]
    ca = rota.home / "tls" / "ca.pem"
    rota.ok("manager", "token", "add", "lab", "--role", "runner")  # who asks for one needs the certificates now
    elsewhere = Deployment(tmp_path / "other")
    elsewhere.env["ROTA_CA"] = str(ca)
    reach = ["--address", address, str(id), "--", "sh", "-c", "echo in $ROTA_JOB_ID"]
    assert elsewhere.ok("exec", "--job-key", str(key), *reach) == f"in {id}\n"
    wrong = elsewhere.work / "wrong.key"
    wrong.write_text("rota_key_" + "x" * 43 + "\n")
    wrong.chmod(0o600)
    refused = elsewhere.rota("exec", "--job-key", str(wrong), *reach)
    assert refused.returncode == 5
    assert key.read_text().strip() not in (rota.home / "rota.db").read_bytes().decode("latin-1")


def test_a_key_opens_no_other_job(rota: Deployment) -> None:
    (id,) = rota.json("add", "--job-key", "shared.key", "--", "sleep", "1000")["added"]
    (other,) = rota.json("add", "--", "sleep", "1000")["added"]
    wait_until(lambda: {rota.state(id), rota.state(other)} == {"running"}, "both run")
    done = rota.rota("exec", "--job-key", "shared.key", str(other), "--", "id")
    assert done.returncode == 3
    assert f"no job {other} that you may enter" in done.stderr


def test_a_job_reaches_its_own_host_as_with_ssh_and_no_other_job(rota: Deployment) -> None:
    script = f"echo words | {ROTA} rsh -x -o A=b localhost 'cat; echo $ROTA_JOB_ID' '&&' exit 6; echo $?"
    assert rota.ok("run", "--", script).split() == ["words", "1", "6"]
    (other,) = rota.json("add", "--", "sleep", "1000")["added"]
    done = rota.rota("run", "--", f"ROTA_JOB_ID={other} {ROTA} rsh localhost id")
    assert done.returncode == 5
    assert "this process belongs to job 3" in done.stderr
