"""`rota run -I` at a real pseudo-terminal: waiting, window, keys, exit code, lost connections."""

from __future__ import annotations

import contextlib
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.deployment import ROTA, Deployment, deployment, is_alive, wait_until
from tests.typist import Typist, typing_in


@contextlib.contextmanager
def terminals(top: Path, **settings: str) -> Iterator[Deployment]:
    with deployment(top, grace="1s", cores="2", **settings) as made:
        made.env |= {"SHELL": "/bin/sh", "PS1": "inside> "}
        made.start()
        yield made


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """For tests whose jobs end with them, and that leave its manager alone."""
    with terminals(tmp_path_factory.mktemp("shared"), interactive_grace="30s") as made:
        yield made


@pytest.fixture
def rota(tmp_path: Path) -> Iterator[Deployment]:
    """For one test."""
    with terminals(tmp_path, interactive_grace="30s") as made:
        yield made


def newest(rota: Deployment) -> int:
    """The job that was added last."""
    return max(rota.states())


@contextlib.contextmanager
def at(rota: Deployment, *words: str, **options: Any) -> Iterator[Typist]:
    """Somebody who has typed `rota run -I`."""
    with typing_in([ROTA, "run", "-I", *words], env=rota.env, cwd=rota.work, **options) as typist:
        yield typist


@contextlib.contextmanager
def shell(rota: Deployment, **options: Any) -> Iterator[tuple[Typist, int]]:
    """Somebody in the shell of an interactive job, and its pid."""
    with at(rota, **options) as typist:
        typist.sees("inside> ")
        typist.type("echo pid=$$ he''re\n")
        pid = int(re.findall(r"pid=(\d+)", typist.sees("here\r\n"))[-1])
        typist.sees("inside> ")
        yield typist, pid


def test_a_shell_of_its_own_with_our_window_and_our_exit_code(shared: Deployment) -> None:
    with shell(shared, rows=33, cols=99) as (typist, _):
        typist.type("stty size; tty; echo job=$ROTA_JOB_ID\n")
        seen = typist.sees(f"job={newest(shared)}\r\n")
        assert "33 99" in seen
        assert "/dev/pts/" in seen
        assert shared.state(newest(shared)) == "running"
        typist.type("exit 5\n")
        assert typist.ends() == 5
        assert typist.restored
    job = shared.json("show", str(newest(shared)))
    assert (job["state"], job["exit_code"], job["retries_left"]) == ("failed", 5, 0)


def test_the_window_changes_with_ours(shared: Deployment) -> None:
    with shell(shared) as (typist, _):
        typist.resize(44, 111)
        typist.type("while [ \"$(stty size)\" != '44 111' ]; do sleep 0.05; done; echo lar''ger\n")
        typist.sees("larger")
        typist.type("exit\n")
        assert typist.ends() == 0


def test_programs_hear_of_a_changed_window(shared: Deployment) -> None:
    script = "trap 'echo heard; exit 0' WINCH; echo ready; while :; do sleep 0.05; done"
    with at(shared, "--", "sh", "-c", script) as typist:
        typist.sees("ready")
        typist.resize(44, 111)
        typist.sees("heard")
        assert typist.ends() == 0


def test_ctrl_c_interrupts_the_program_and_not_us(shared: Deployment) -> None:
    with shell(shared) as (typist, _):
        typist.type("sh -c 'echo go''ing; sleep 1000'\n")
        typist.sees("going")
        typist.interrupts("inside> ")
        typist.type("exit 3\n")
        assert typist.ends() == 3


def test_ctrl_d_ends_the_input(shared: Deployment) -> None:
    with at(shared, "--", "cat") as typist:
        typist.type("echoed\n")
        typist.sees("echoed\r\nechoed")
        typist.type("\x04")
        assert typist.ends() == 0
        assert typist.restored
    assert shared.state(newest(shared)) == "complete"


def test_a_command_that_is_over_before_we_are_there_is_seen_all_the_same(shared: Deployment) -> None:
    with at(shared, "--", "echo here; exit 4") as typist:
        assert typist.ends() == 4
        assert "here\r\n" in typist.shown


def test_who_waits_is_told_why_and_ctrl_c_cancels(rota: Deployment) -> None:
    rota.ok("add", "--cpus", "2", "--", "sleep", "1000")
    wait_until(lambda: rota.state(1) == "running", "the machine is busy")
    with at(rota, "--cpus", "2") as typist:
        assert "job 2 waits" in typist.sees("waiting for room")
        typist.type("\x03")
        assert typist.ends() == 130
    assert rota.state(2) == "cancelled"


def test_who_waits_gets_the_terminal_when_there_is_room(rota: Deployment) -> None:
    rota.ok("add", "--cpus", "2", "--", "sleep", "1000")
    with at(rota, "--cpus", "2") as typist:
        typist.sees("job 2 waits")
        rota.ok("kill", "1")
        typist.sees("inside> ")
        typist.type("exit 6\n")
        assert typist.ends() == 6


def test_the_terminal_is_kept_while_the_manager_is_away(rota: Deployment) -> None:
    with shell(rota) as (typist, pid):
        typist.type("memory=42\n")
        typist.sees("inside> ")
        os.kill(rota.manager_pid(), signal.SIGKILL)
        typist.sees("the connection to the manager was lost; trying again")
        wait_until(lambda: typist.restored, "our terminal is ours meanwhile")
        rota.start()
        typist.sees("attached again")
        typist.type("echo remembered $memory $$\n")
        typist.sees(f"remembered 42 {pid}")
        typist.type("exit 8\n")
        assert typist.ends() == 8
        assert typist.restored
    assert rota.json("show", "1")["exit_code"] == 8


def test_a_job_that_ends_while_the_manager_is_away_gives_its_exit_code(rota: Deployment) -> None:
    with at(rota, "--", "echo ready; while [ ! -e go ]; do sleep 0.05; done; exit 9") as typist:
        typist.sees("ready")
        os.kill(rota.manager_pid(), signal.SIGKILL)
        typist.sees("trying again")
        (rota.work / "go").touch()
        rota.start()
        assert typist.ends() == 9


def test_a_closed_window_hangs_up_and_ends_the_job(shared: Deployment) -> None:
    with shell(shared) as (typist, pid):
        typist.hang_up()
        typist.ends()
        wait_until(lambda: shared.state(newest(shared)) == "failed", "the job has ended")
        assert not is_alive(pid)
    job = shared.json("show", str(newest(shared)))
    assert (job["signal"], job["reason"]["message"]) == ("HUP", "its terminal was hung up")


def test_the_escape_hangs_up(shared: Deployment) -> None:
    with shell(shared) as (typist, pid):
        typist.type("\r~.")
        assert typist.ends() == 128 + signal.SIGHUP
        assert typist.restored
        assert not is_alive(pid)


def test_a_client_that_is_gone_for_good_ends_the_job_after_a_while(tmp_path: Path) -> None:
    with terminals(tmp_path, interactive_grace="3s") as rota, shell(rota) as (typist, pid):
        typist.process.kill()
        wait_until(lambda: rota.state(1) == "failed", "the job has ended")
        assert not is_alive(pid)


def test_a_killed_job_gives_the_terminal_back(shared: Deployment) -> None:
    with shell(shared) as (typist, _):
        shared.ok("kill", str(newest(shared)))
        assert typist.ends() > 0
        assert typist.restored
        assert "cancelled" in typist.shown


def test_its_walltime_ends_it(shared: Deployment) -> None:
    with at(shared, "--walltime", "2s") as typist:
        typist.sees("inside> ")
        assert typist.ends() == 0
        assert "its walltime is over" in typist.shown
        assert typist.restored
    shown = shared.json("show", str(newest(shared)))
    assert (shown["state"], len(shown["attempts"])) == ("complete", 1)


def test_without_a_limit_it_may_run_for_twelve_hours(shared: Deployment) -> None:
    before = len(shared.states())
    with at(shared, "--walltime", "20h", "--", "sleep 1000") as typist:
        wait_until(lambda: len(shared.states()) > before, "it was added")
        wait_until(lambda: shared.state(newest(shared)) == "running", "it runs")
        assert shared.json("show", str(newest(shared)))["walltime_s"] == 12 * 3600
        typist.hang_up()
        typist.ends()


def test_without_a_terminal_of_our_own_it_reads_what_we_give_it(shared: Deployment) -> None:
    done = shared.rota("run", "-I", "--", "read word; echo got $word; exit 7", input="something\n")
    assert done.returncode == 7
    assert "got something" in done.stdout


def test_a_shell_in_the_terminal_runs_jobs_in_the_background(shared: Deployment) -> None:
    with at(shared, "--", "sh", "-i") as typist:
        typist.sees("inside> ")
        typist.type("sleep 1000 &\n")
        typist.sees("inside> ")
        typist.type("kill %1; wait; echo ov''er; exit 0\n")
        typist.sees("over")
        assert typist.ends() == 0


def test_another_terminal_takes_over(shared: Deployment) -> None:
    from rota.client.channels import Opening
    from rota.client.live_channel import LiveChannel
    from rota.wire import messages as m

    with shell(shared) as (typist, _), shared.client() as client:
        other = LiveChannel(client, Opening(job=newest(shared), attach=True))
        assert isinstance(other.poll(60), m.ChannelCredit)
        typist.sees("it was attached somewhere else")
        other.send(b"exit 4\n")
        assert typist.ends() == 4
