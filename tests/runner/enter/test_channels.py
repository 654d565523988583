"""Processes that are started inside running jobs, and terminals of interactive ones, by a real runner."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rota.wire import messages as m
from tests.deployment import is_alive
from tests.runner.manager import FakeManager, ref

N = 5


class Inside:
    """One running job, and a channel into it."""

    def __init__(
        self, manager: FakeManager, cmd: str = "sleep 1000", allocation: m.Allocation | None = None, **fields: Any
    ) -> None:
        self.manager = manager
        spec = manager.spec(**fields)
        self.grant = msgspec.structs.replace(manager.grant(1, cmd, spec), allocation=allocation)
        manager.work([self.grant], spec)
        manager.until(lambda: manager.started)

    def open(self, *cmd: str, n: int = N, **options: Any) -> None:
        token = self.grant.token
        self.manager.send(m.StartChannel(n, 1, 1, token, list(cmd), **options))

    def put(self, data: bytes, n: int = N) -> None:
        self.manager.send(m.ChannelData(n, 0, data))

    def shown(self, stream: int = 1, n: int = N) -> bytes:
        said = [each for each in self.manager.said if isinstance(each, m.ChannelData)]
        return b"".join(each.data for each in said if each.n == n and each.stream == stream)

    def sees(self, text: bytes, n: int = N) -> None:
        self.manager.until(lambda: text in self.shown(n=n))

    def end(self, n: int = N) -> m.ChannelEnd:
        def ended() -> list[m.ChannelEnd]:
            return [each for each in self.manager.said if isinstance(each, m.ChannelEnd) and each.n == n]

        return self.manager.until(ended)[0]

    def ran(self, *cmd: str, **options: Any) -> bytes:
        """What a command writes that is run to its end."""
        self.open(*cmd, **options)
        assert self.end().exit_code == 0, self.manager.said
        return self.shown()


@pytest.fixture
def inside(joined: FakeManager) -> Inside:
    return Inside(joined)


# ------------------------------------------------------------------ commands


def test_a_command_gets_its_input_and_tells_its_outputs_and_its_exit_code(inside: Inside) -> None:
    inside.open("sh", "-c", "cat; echo wrong >&2; exit 3")
    inside.put(b"some ")
    inside.put(b"input")
    inside.put(b"")
    end = inside.end()
    assert (end.exit_code, end.signal, end.lost) == (3, None, False)
    assert (inside.shown(1), inside.shown(2)) == (b"some input", b"wrong\n")


def test_a_command_that_a_signal_ends_says_which(inside: Inside) -> None:
    inside.open("sh", "-c", "kill -USR1 $$")
    assert (inside.end().exit_code, inside.end().signal) == (None, signal.SIGUSR1)


def test_a_signal_reaches_it(inside: Inside) -> None:
    inside.open("sh", "-c", "trap 'echo caught; exit 4' INT; echo ready; while :; do sleep 0.05; done")
    inside.sees(b"ready")
    inside.manager.send(m.ChannelSignal(N, signal.SIGINT))
    assert inside.end().exit_code == 4
    assert b"caught" in inside.shown()


def test_it_has_the_environment_and_the_directory_of_the_job(inside: Inside) -> None:
    seen = inside.ran("sh", "-c", "echo $ROTA_JOB_ID $ROTA_ATTEMPT $EXTRA; pwd", env=["EXTRA=more"])
    assert seen.decode().split() == ["1", "1", "more", str(inside.manager.home)]


def test_another_directory_can_be_asked_for(inside: Inside) -> None:
    assert inside.ran("pwd", cwd="/usr") == b"/usr\n"


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
@pytest.mark.parametrize("core", ["0", "1"])
def test_it_runs_on_the_cores_of_the_job(joined: FakeManager, core: str) -> None:
    inside = Inside(joined, "sleep 1000", allocation=m.Allocation(cpu_list=core))
    shown = inside.ran("grep", "Cpus_allowed_list", "/proc/self/status").decode()
    with open(f"/proc/{joined.started[0].pid}/status") as file:
        assert shown == next(line for line in file if line.startswith("Cpus_allowed_list"))


@pytest.mark.parametrize(
    ("cmd", "code", "text"), [("nosuchprogram", 127, "not found"), ("/etc/passwd", 126, "executable")]
)
def test_a_command_that_cannot_be_run_says_so(inside: Inside, cmd: str, code: int, text: str) -> None:
    inside.open(cmd)
    assert inside.end().exit_code == code
    assert text in inside.end().message


def test_a_job_that_is_not_here_cannot_be_entered(inside: Inside) -> None:
    inside.manager.send(m.StartChannel(N, 1, 1, inside.grant.token + 1, ["true"]))
    end = inside.end()
    assert (end.exit_code, end.signal) == (None, None)
    assert "does not run here" in end.message


# ------------------------------------------------------------------ flow control


def test_output_stops_where_nobody_takes_it_and_other_channels_go_on(inside: Inside) -> None:
    inside.open("sh", "-c", "yes")
    inside.manager.until(lambda: len(inside.shown()) >= m.WINDOW)
    inside.open("echo", "still here", n=6)
    assert inside.end(6).exit_code == 0
    assert len(inside.shown()) == m.WINDOW
    inside.manager.send(m.ChannelCredit(N, 1000))
    inside.manager.until(lambda: len(inside.shown()) > m.WINDOW)
    assert len(inside.shown()) == m.WINDOW + 1000
    inside.manager.send(m.ChannelEnd(N))


def test_large_input_and_output_arrive_whole(inside: Inside) -> None:
    data = os.urandom(1 << 20)
    inside.open("cat")
    room, sent, credited = 0, 0, 0
    while len(inside.shown()) < len(data):
        room = sum(each.size for each in inside.manager.said if isinstance(each, m.ChannelCredit)) - sent
        if room and sent < len(data):
            piece = data[sent : sent + min(room, m.PIECE)]
            inside.put(piece)
            sent += len(piece)
            if sent == len(data):
                inside.put(b"")
        else:
            inside.manager.read(0.5)
        taken = len(inside.shown())
        if taken - credited > m.PIECE:
            inside.manager.send(m.ChannelCredit(N, taken - credited))
            credited = taken
    assert inside.shown() == data
    assert inside.end().exit_code == 0


def test_what_a_command_leaves_behind_does_not_keep_its_channel_open(inside: Inside) -> None:
    inside.open("sh", "-c", "sleep 1000 & echo $!")
    assert inside.end().exit_code == 0
    assert is_alive(int(inside.shown()))


# ------------------------------------------------------------------ the end of one side


def test_hanging_up_ends_the_command(inside: Inside) -> None:
    inside.open("sh", "-c", "echo $$; sleep 1000")
    inside.sees(b"\n")
    pid = int(inside.shown())
    inside.manager.send(m.ChannelEnd(N))
    _gone(inside.manager, pid)


def test_a_command_that_ignores_being_hung_up_is_killed(inside: Inside) -> None:
    inside.open("sh", "-c", "trap '' HUP TERM; echo $$; while :; do sleep 0.1; done")
    inside.sees(b"\n")
    pid = int(inside.shown())
    inside.manager.send(m.ChannelEnd(N, lost=True))
    _gone(inside.manager, pid)


def test_a_lost_connection_to_the_manager_ends_the_command_and_not_the_job(inside: Inside) -> None:
    manager = inside.manager
    inside.open("sh", "-c", "echo $$; sleep 1000")
    inside.sees(b"\n")
    pid = int(inside.shown())
    manager.hang_up()
    join = manager.accept()
    assert [held.job for held in join.held] == [1]
    _gone(manager, pid)
    assert is_alive(manager.started[0].pid)


@pytest.mark.parametrize("tty", [False, True])
def test_the_end_of_the_job_ends_the_command(joined: FakeManager, tty: bool) -> None:
    inside = Inside(joined, "while [ ! -e go ]; do sleep 0.05; done")
    inside.open("sh", "-c", "trap '' HUP TERM; echo $$; while :; do sleep 0.1; done", tty=tty)
    inside.sees(b"\n")
    pid = int(inside.shown())
    (joined.home / "go").touch()
    (done,) = joined.wait_for([1])
    assert done.outcome.exit_code == 0
    assert not is_alive(pid)
    assert inside.end().signal == signal.SIGKILL


def test_a_killed_job_takes_the_command_with_it(inside: Inside) -> None:
    inside.open("sh", "-c", "echo $$; sleep 1000")
    inside.sees(b"\n")
    inside.manager.send(m.Kill([ref(inside.grant)]))
    inside.manager.wait_for([1])
    assert not is_alive(int(inside.shown()))


def _gone(manager: FakeManager, pid: int) -> None:
    manager.until(lambda: not is_alive(pid))


# ------------------------------------------------------------------ terminals


def test_a_terminal_has_a_size_and_hears_of_another(inside: Inside) -> None:
    script = "trap 'stty size; exit 0' WINCH; stty size; echo $TERM; while :; do sleep 0.05; done"
    inside.open("sh", "-c", script, tty=True, rows=33, cols=99, term="xterm-fancy")
    inside.sees(b"xterm-fancy")
    assert b"33 99" in inside.shown()
    inside.manager.send(m.ChannelResize(N, 44, 111))
    inside.sees(b"44 111")
    assert inside.end().exit_code == 0


def test_ctrl_c_interrupts_what_is_in_the_foreground_of_a_terminal(inside: Inside) -> None:
    inside.open("sh", "-c", "trap 'echo caught; exit 5' INT; echo ready; while :; do sleep 0.05; done", tty=True)
    inside.sees(b"ready")
    inside.put(b"\x03")
    assert inside.end().exit_code == 5
    assert b"caught" in inside.shown()


@pytest.mark.parametrize("typed", [b"line\n\x04", b"line\n", b"line"])
def test_the_end_of_the_input_reaches_a_program_at_a_terminal(inside: Inside, typed: bytes) -> None:
    inside.open("sh", "-c", "cat; echo over", tty=True)
    inside.put(typed)
    if b"\x04" not in typed:
        inside.put(b"")
    assert inside.end().exit_code == 0
    assert b"over" in inside.shown()


def test_without_a_command_it_is_the_shell_of_the_user(inside: Inside) -> None:
    inside.open(tty=True, env=["SHELL=/bin/sh", "PS1=prompt> "])
    inside.sees(b"prompt> ")
    inside.put(b"exit 6\n")
    assert inside.end().exit_code == 6


# ------------------------------------------------------------------ interactive jobs


def test_what_an_interactive_job_shows_before_somebody_attaches_is_kept_for_them(joined: FakeManager) -> None:
    inside = Inside(joined, "echo early; read answer; echo got $answer; exit 7", interactive=True)
    inside.open(attach=True, rows=33, cols=99)
    inside.sees(b"early")
    inside.put(b"late\n")
    inside.sees(b"got late")
    assert inside.end().exit_code == 7
    assert joined.wait_for([1])[0].outcome.exit_code == 7


def test_who_attaches_again_gets_what_was_not_received(joined: FakeManager) -> None:
    inside = Inside(joined, "printf 0123456789; sleep 1000", interactive=True)
    inside.open(attach=True)
    inside.sees(b"0123456789")
    joined.hang_up()
    joined.accept()
    inside.open(n=6, attach=True, seen=4)
    inside.sees(b"456789", n=6)
    assert inside.shown(n=6) == b"456789"


def test_a_terminal_that_nobody_attaches_to_is_hung_up(manager: FakeManager) -> None:
    manager.rules["interactive_grace_s"] = 0.2
    manager.begin()
    Inside(manager, "sleep 1000", interactive=True)
    (done,) = manager.wait_for([1])
    assert done.outcome.signal == signal.SIGHUP
    assert "hung up" in done.outcome.message


def test_a_terminal_whose_owner_hangs_up_is_hung_up_at_once(joined: FakeManager) -> None:
    inside = Inside(joined, "sleep 1000", interactive=True)
    inside.open(attach=True)
    joined.until(lambda: joined.said)
    joined.send(m.ChannelEnd(N))
    assert joined.wait_for([1])[0].outcome.signal == signal.SIGHUP


def test_an_interactive_job_that_ignores_being_hung_up_is_killed(joined: FakeManager) -> None:
    cmd = "trap '' HUP TERM; echo ready; while :; do sleep 0.1; done"
    inside = Inside(joined, cmd, interactive=True)
    inside.open(attach=True)
    inside.sees(b"ready")
    joined.send(m.ChannelEnd(N))
    assert joined.wait_for([1])[0].outcome.signal == signal.SIGKILL


def test_what_nobody_was_there_to_see_is_kept_as_the_output(joined: FakeManager) -> None:
    (done,) = joined.run("echo unseen", interactive=True)
    assert done.outcome.exit_code == 0
    assert joined.output(done)[0] == b"unseen\r\n"


# ------------------------------------------------------------------ from inside


RSH = [sys.executable, "-c", "from rota.cli.rsh import main; main()"]


def test_a_process_of_a_job_reaches_its_nodes_through_the_runner(joined: FakeManager) -> None:
    script = Path(joined.home / "rsh")
    script.write_text(f"#!/bin/sh\nexec {sys.executable} -c 'from rota.cli.rsh import main; main()' \"$@\"\n")
    script.chmod(0o700)
    spec = joined.spec()
    grant = joined.grant(1, "echo words | ./rsh -x -l me me@other 'cat >there' '&&' exit 9; echo $?", spec)
    joined.work([grant], spec)
    (ask,) = joined.until(lambda: [each for each in joined.said if isinstance(each, m.OpenChannel)])
    assert (ask.job, ask.node, ask.cmd) == (1, "other", ["sh", "-c", "cat >there && exit 9"])
    assert ask.n < 0
    joined.send(m.ChannelCredit(ask.n, m.WINDOW))
    joined.until(lambda: m.ChannelData(ask.n, 0, b"") in joined.said)
    assert m.ChannelData(ask.n, 0, b"words\n") in joined.said
    joined.send(m.ChannelData(ask.n, 2, b"heard\n"))
    joined.send(m.ChannelEnd(ask.n, 9))
    (done,) = joined.wait_for([1])
    assert joined.output(done) == (b"9\n", b"heard\n")


def test_a_process_of_no_job_gets_nowhere(inside: Inside) -> None:
    env = inside.ran("env").decode()
    relay = next(line for line in env.splitlines() if line.startswith("ROTA_RELAY="))
    variables = {**os.environ, "ROTA_RELAY": relay.partition("=")[2], "ROTA_JOB_ID": "1"}
    asking = subprocess.Popen([*RSH, "host", "id"], env=variables, stderr=subprocess.PIPE)
    inside.manager.until(lambda: asking.poll() is not None)
    _, said = asking.communicate()
    assert asking.returncode == 255
    assert b"only processes of a job that runs here" in said


def test_a_caller_that_leaves_hangs_up(joined: FakeManager) -> None:
    spec = joined.spec()
    rsh = f"{sys.executable} -c 'from rota.cli.rsh import main; main()'"
    grant = joined.grant(1, f"{rsh} other sleep 1000 & sleep 1000", spec)
    joined.work([grant], spec)
    (ask,) = joined.until(lambda: [each for each in joined.said if isinstance(each, m.OpenChannel)])
    joined.send(m.Kill([ref(grant)]))
    joined.wait_for([1])
    joined.until(lambda: [each for each in joined.said if isinstance(each, m.ChannelEnd) and each.n == ask.n])


def test_a_runner_that_leaves_takes_its_door_with_it(joined: FakeManager) -> None:
    joined.run("true")
    (runner,) = joined.processes
    runner.send_signal(signal.SIGTERM)
    end = time.monotonic() + 30
    while runner.poll() is None and time.monotonic() < end:
        try:
            joined.read(0.1)
        except Exception:
            break
    runner.wait(30)
    assert list(joined.runners.iterdir()) == []
