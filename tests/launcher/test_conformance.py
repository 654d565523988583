"""What every launcher must do. None of these tests reaps a child that it did not start."""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest

from rota.launcher.base import (
    Begun,
    CannotRun,
    Captured,
    Discarded,
    Ended,
    IntoFile,
    Launcher,
    NotReady,
    OnTerminal,
    OutputPipes,
    Piped,
    StartOrder,
    Stdio,
    User,
    shell,
)
from rota.launcher.variables import Variables

KEY = (1, 1, 7)
PATH = os.environb.get(b"PATH", b"/usr/bin:/bin")
CORES = sorted(os.sched_getaffinity(0))
#: A leader that waits for a child in a group of its own. (A shell without a terminal makes no groups.)
TWO_GROUPS = b"""
import os, time
if not os.fork():
    os.setpgid(0, 0)
    print(os.getpid(), flush=True)
    time.sleep(600)
os.wait()
os._exit(6)
"""
Found = TypeVar("Found")


def until(look: Callable[[], Found | None], what: str) -> Found:
    give_up = time.monotonic() + 60
    while (found := look()) is None:
        assert time.monotonic() < give_up, f"in vain: {what}"
        time.sleep(0.002)
    return found


def variables(*entries: bytes) -> Variables:
    return Variables([b"PATH=" + PATH, *entries], PATH)


def order(text: str, stdio: Stdio | None = None, **fields: Any) -> StartOrder:
    made = StartOrder(KEY, "command", shell(text.encode()), variables(), b"/", stdio or Discarded())
    return msgspec.structs.replace(made, **fields)


def end_of(launcher: Launcher, pid: int) -> Ended:
    def look() -> Ended | None:
        if launcher.fd >= 0 and select.select([launcher.fd], [], [], 0)[0]:
            launcher.receive()
        return launcher.reap(pid)

    return until(look, f"the end of {pid}")


def exit_code(launcher: Launcher, pid: int) -> int:
    return os.waitstatus_to_exitcode(end_of(launcher, pid)[1])


def written(pipes: OutputPipes, stream: int) -> bytes:
    """All that there is now: what a process wrote is there before its end is told."""
    text = b""
    while True:
        try:
            text += pipes.read(stream, 65536)
        except BlockingIOError:
            return text


def read_all(fd: int) -> bytes:
    text = b""
    while True:
        select.select([fd], [], [], 60)
        try:
            piece = os.read(fd, 65536)
        except OSError:  # the last user of a terminal has closed it
            break
        if not piece:
            break
        text += piece
    os.close(fd)
    return text


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


# ------------------------------------------------------------------ streams


def test_a_shell_writes_to_its_pipes_and_its_end_is_told_afterwards(launcher: Launcher, tmp_path: Path) -> None:
    pipes = launcher.output_pipes()
    for n in (1, 2):  # one job after the other
        text = b'pwd; echo "$X"; echo wrong >&2; exit 3'
        pid = launcher.start_shell(KEY, text, variables(b"X=%d" % n), os.fsencode(tmp_path), pipes, ())
        assert exit_code(launcher, pid) == 3
        assert written(pipes, pipes.out) == os.fsencode(tmp_path) + b"\n%d\n" % n
        assert written(pipes, pipes.err) == b"wrong\n"
    pipes.close()


def test_more_output_than_a_pipe_holds_comes_whole(launcher: Launcher) -> None:
    pipes = launcher.output_pipes()
    begun = launcher.start(order("i=0; while [ $i -lt 40000 ]; do echo $i; i=$((i+1)); done", Captured(pipes)))
    text = b""

    def look() -> Ended | None:
        nonlocal text
        if launcher.fd >= 0 and select.select([launcher.fd], [], [], 0)[0]:
            launcher.receive()
        ended = launcher.reap(begun.pid)
        text += written(pipes, pipes.out)
        return ended

    until(look, "it ends")
    assert text == b"".join(b"%d\n" % n for n in range(40000))
    pipes.close()


def test_named_files_are_appended_to_and_the_rest_is_captured(launcher: Launcher, tmp_path: Path) -> None:
    pipes, file = launcher.output_pipes(), tmp_path / "out"
    for _ in range(2):
        begun = launcher.start(order("echo out; echo err >&2", Captured(pipes, out=str(file))))
        assert exit_code(launcher, begun.pid) == 0
        assert written(pipes, pipes.err) == b"err\n"
        assert written(pipes, pipes.out) == b""
    assert file.read_text() == "out\nout\n"
    pipes.close()


def test_a_file_that_cannot_be_opened_is_told_and_nothing_is_started(launcher: Launcher, tmp_path: Path) -> None:
    pipes = launcher.output_pipes()
    before = descriptors()
    stdio = Captured(pipes, out=str(tmp_path / "out"), err=str(tmp_path / "no" / "such"))
    with pytest.raises(CannotRun, match="no/such: No such file or directory") as caught:
        launcher.start(order(f"touch {tmp_path}/ran", stdio))
    assert (caught.value.reason, caught.value.exit_code, caught.value.permanent) == ("output_file", None, True)
    assert descriptors() == before
    assert not (tmp_path / "ran").exists()
    pipes.close()


def test_a_terminal_is_the_controlling_one_and_has_its_size(launcher: Launcher) -> None:
    begun = launcher.start(
        order("tty < /dev/tty > /dev/null && stty size; read word; echo $word", OnTerminal(7, 70))
    )
    (master,) = begun.fds
    os.write(master, b"typed\n")
    ended = end_of(launcher, begun.pid)
    assert not ended[1]
    lines = read_all(master).decode().split("\r\n")
    assert "7 70" in lines
    assert lines.count("typed") == 2, "echoed, and written"


def test_three_pipes_lead_to_the_caller(launcher: Launcher) -> None:
    begun = launcher.start(order("cat; echo done >&2", Piped()))
    inp, out, err = begun.fds
    assert not any(os.get_blocking(fd) for fd in begun.fds)
    os.write(inp, b"through")
    os.close(inp)
    assert exit_code(launcher, begun.pid) == 0
    assert (read_all(out), read_all(err)) == (b"through", b"done\n")


def test_a_file_without_a_name_holds_both_streams(launcher: Launcher, tmp_path: Path) -> None:
    begun = launcher.start(order("echo out; echo err >&2; cat", IntoFile(str(tmp_path))))
    (file,) = begun.fds
    assert exit_code(launcher, begun.pid) == 0
    assert os.pread(file, 100, 0) == b"out\nerr\n"
    os.close(file)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("stdio", [Discarded(), OnTerminal(24, 80), Piped(), IntoFile("/tmp")], ids=repr)
def test_only_the_three_streams_are_inherited_and_nothing_stays_open(
    launcher: Launcher, stdio: Stdio, tmp_path: Path
) -> None:
    before = descriptors()
    begun = launcher.start(order(f"echo /proc/self/fd/* > {tmp_path}/fds", stdio))
    assert exit_code(launcher, begun.pid) == 0
    for fd in begun.fds:
        os.close(fd)
    assert descriptors() == before
    found = {int(path.rpartition("/")[2]) for path in (tmp_path / "fds").read_text().split()}
    assert {fd for fd in found if fd < 10} <= {0, 1, 2, 3}, "3: the listing itself"
    with pytest.raises(CannotRun):
        launcher.start(order("true", stdio, cwd=b"/no/such"))
    assert descriptors() == before


# ------------------------------------------------------------------ what is started


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        pytest.param((None, [b"no-such-program"]), 127, "no-such-program: not found", id="not in PATH"),
        pytest.param((None, [b"/no/such"]), 127, "/no/such: not found", id="not there"),
        pytest.param((None, [b"/etc/passwd"]), 126, "/etc/passwd: not executable", id="no program"),
        pytest.param((None, [b"/"]), 126, "/: not executable", id="a directory"),
    ],
)
def test_what_cannot_be_executed_is_told(launcher: Launcher, words: Any, code: int, message: str) -> None:
    with pytest.raises(CannotRun, match=message) as caught:
        launcher.start(order("", words=words))
    assert (caught.value.exit_code, caught.value.permanent) == (code, True)


def test_a_directory_that_is_not_there_is_told_on_both_ways(launcher: Launcher) -> None:
    pipes = launcher.output_pipes()
    with pytest.raises(CannotRun, match="cannot change to directory /no/such"):
        launcher.start_shell(KEY, b"true", variables(), b"/no/such", pipes, ())
    with pytest.raises(CannotRun, match="cannot change to directory /no/such"):
        launcher.start(order("true", cwd=b"/no/such"))
    pipes.close()


def test_a_script_without_an_interpreter_line_is_run_by_a_shell(launcher: Launcher, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("exit $1\n")
    script.chmod(0o755)
    begun = launcher.start(order("", words=(None, [os.fsencode(script), b"5"])))
    assert exit_code(launcher, begun.pid) == 5


def test_a_process_leads_a_session_and_finds_signals_as_usual(launcher: Launcher) -> None:
    sleeping = _sleeping(launcher)
    assert os.getsid(sleeping.pid) == sleeping.pid
    launcher.signal(sleeping.pid, signal.SIGTERM)
    assert exit_code(launcher, sleeping.pid) == -signal.SIGTERM
    begun = launcher.start(order("exec grep Sig /proc/self/status", Piped()))
    inp, out, err = begun.fds
    assert exit_code(launcher, begun.pid) == 0
    found = dict(line.split(":\t") for line in read_all(out).decode().splitlines())
    assert int(found["SigBlk"], 16) == 0
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGHUP):
        assert not int(found["SigIgn"], 16) >> (number - 1) & 1
    os.close(inp)
    os.close(err)


def test_it_runs_on_its_cores_and_the_launcher_keeps_its_own(launcher: Launcher, tmp_path: Path) -> None:
    own = os.sched_getaffinity(launcher.pid)
    begun = launcher.start(
        order(f"grep Cpus_allowed_list /proc/self/status > {tmp_path}/cores", cores={CORES[-1]})
    )
    assert exit_code(launcher, begun.pid) == 0
    assert (tmp_path / "cores").read_text().split()[1] == str(CORES[-1])
    assert not begun.unbound
    assert os.sched_getaffinity(launcher.pid) == own


def test_cores_that_are_not_there_are_told_and_it_runs_all_the_same(launcher: Launcher) -> None:
    begun = launcher.start(order("exit 4", cores={60_000}))
    assert begun.unbound
    assert exit_code(launcher, begun.pid) == 4


def test_groups_that_cannot_be_joined_do_not_keep_it_from_running(launcher: Launcher) -> None:
    begun = launcher.start(order("exit 4", cgroups=["/no/such group", "/nor this"]))
    assert exit_code(launcher, begun.pid) == 4


def test_what_is_not_built_is_refused_and_never_ignored(launcher: Launcher, tmp_path: Path) -> None:
    with pytest.raises(CannotRun):
        launcher.start(order(f"touch {tmp_path}/ran", user=User(1, 1)))
    assert not (tmp_path / "ran").exists()


def test_a_fork_of_what_is_no_template_begins_nothing(launcher: Launcher, tmp_path: Path) -> None:
    with pytest.raises(NotReady) as why:
        launcher.start(order(f"touch {tmp_path}/ran", file=b"", fork_of=os.getpid()))
    assert why.value.why == "gone"
    assert launcher.end_template(os.getpid()) == ""
    assert not (tmp_path / "ran").exists()


def test_a_file_is_read_and_written_as_descriptor_3(launcher: Launcher) -> None:
    begun = launcher.start(order('x=$(cat <&3); printf %s "$x" >&3', file=b"what was asked"))
    assert exit_code(launcher, begun.pid) == 0
    (file,) = begun.fds
    assert os.pread(file, 100, 0) == b"what was askedwhat was asked"
    os.close(file)


def test_a_large_file_arrives_whole_beside_captured_output(launcher: Launcher) -> None:
    pipes = launcher.output_pipes()
    begun = launcher.start(order("wc -c <&3", Captured(pipes), file=b"x" * 3_000_000))
    assert exit_code(launcher, begun.pid) == 0
    assert written(pipes, pipes.out) == b"3000000\n"
    os.close(begun.fds[-1])
    pipes.close()


# ------------------------------------------------------------------ ends


def _sleeping(launcher: Launcher) -> Begun:
    return launcher.start(order("exec sleep 600"))


def test_each_end_is_told_once_with_its_usage(launcher: Launcher) -> None:
    begun = launcher.start(order("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; exit 9"))
    pid, status, usage = end_of(launcher, begun.pid)
    assert (pid, os.waitstatus_to_exitcode(status)) == (begun.pid, 9)
    assert usage.ru_utime + usage.ru_stime > 0
    assert usage.ru_maxrss > 0
    assert launcher.reap(begun.pid) is None


def test_children_are_counted_until_their_end_was_told(launcher: Launcher) -> None:
    before = launcher.children()
    first, second = _sleeping(launcher), _sleeping(launcher)
    assert launcher.children() == before + 2
    os.kill(first.pid, signal.SIGKILL)
    end_of(launcher, first.pid)
    assert launcher.children() == before + 1
    launcher.signal(second.pid, signal.SIGKILL)
    end_of(launcher, second.pid)
    assert launcher.children() == before


def test_a_signal_reaches_the_whole_group_of_a_child(launcher: Launcher) -> None:
    begun = launcher.start(order("sleep 600 & echo ready; wait", Piped()))
    inp, out, err = begun.fds
    until(lambda: select.select([out], [], [], 0)[0] or None, "it is ready")
    launcher.signal(begun.pid, signal.SIGKILL)
    assert exit_code(launcher, begun.pid) == -signal.SIGKILL
    assert read_all(out) == b"ready\n", "`sleep` held it open"
    os.close(inp)
    os.close(err)


def test_another_group_is_signalled_only_if_it_is_of_the_same_session(launcher: Launcher) -> None:
    other = _sleeping(launcher)
    begun = launcher.start(order("", Piped(), words=(None, [os.fsencode(sys.executable), b"-c", TWO_GROUPS])))
    inp, out, err = begun.fds
    until(lambda: select.select([out], [], [], 0)[0] or None, "it says its group")
    group = int(os.read(out, 100))
    assert os.getpgid(group) == group
    launcher.signal(begun.pid, signal.SIGTERM, group=group)
    assert exit_code(launcher, begun.pid) == 6, "the shell itself was not meant"
    third = _sleeping(launcher)
    launcher.signal(third.pid, signal.SIGTERM, group=other.pid)
    assert exit_code(launcher, third.pid) == -signal.SIGTERM
    launcher.signal(other.pid, signal.SIGKILL)
    assert exit_code(launcher, other.pid) == -signal.SIGKILL
    for fd in (inp, out, err):
        os.close(fd)


def test_a_script_is_waited_for_and_killed_when_it_takes_too_long(launcher: Launcher) -> None:
    before = launcher.children()
    assert launcher.run(order("exit 0", kind="script"), 60) == 0
    status = launcher.run(order("exit 2", kind="script"), 60)
    assert status is not None
    assert os.waitstatus_to_exitcode(status) == 2
    assert launcher.run(order("sleep 600 & sleep 600", kind="script"), 0.05) is None
    assert launcher.children() <= before + 2, "at most orphans of the script, which were killed too"


def test_a_peak_within_the_launchers_own_proves_nothing(launcher: Launcher) -> None:
    assert launcher.is_own(1 << 20)
    assert not launcher.is_own(1 << 50)
