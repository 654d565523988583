"""The launcher as a process of its own, with its runner: starts, ends, output, and what goes wrong with those."""

from __future__ import annotations

import contextlib
import hashlib
import os
import resource
import select
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from rota.launcher.base import (
    CannotRun,
    Captured,
    Discarded,
    IntoFile,
    OnTerminal,
    Piped,
    Refused,
    StartOrder,
    shell,
)
from rota.launcher.variables import Variables
from tests.launcher.desk import Desk, OtherRunner, gone, wait_until


def test_it_tells_exit_codes_usage_and_output(shared_desk: Desk) -> None:
    desk = shared_desk
    assert desk.run("echo out; echo err >&2; exit 7") == (7, b"out\n", b"err\n")
    assert desk.run("kill -9 $$")[0] == -9
    pid = desk.start("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done").pid
    assert desk.outcome(pid) == 0
    usage = desk.ended[pid][2]
    assert usage.ru_utime + usage.ru_stime > 0
    assert usage.ru_maxrss > 0
    assert desk.launcher.children() == 0


def test_a_job_gets_nothing_of_the_launcher(shared_desk: Desk) -> None:
    desk = shared_desk
    code, out, _ = desk.run("ls /proc/$$/fd; pwd; grep -E 'Sig(Blk|Ign)' /proc/self/status; umask")
    assert code == 0
    *fds, where, blocked, ignored, umask = out.decode().split("\n")[:-1]
    assert fds == ["0", "1", "2"]
    assert where == "/tmp"
    for line in (blocked, ignored):
        assert int(line.split()[1], 16) & 0x7FFFFFFF == 0  # others are of the C library, and this test's own
    assert int(umask, 8) == os.umask(os.umask(0o022))


def test_large_output_is_exact_and_never_all_in_memory(shared_desk: Desk) -> None:
    desk = shared_desk
    pipes = desk.pipes()
    digest, total = hashlib.sha256(), 0
    text = "seq 1 1500000; echo end >&2"
    pid = desk.start(text, stdio=Captured(pipes)).pid
    while pid not in desk.ended:
        desk.listen(lambda: len(desk.output[pipes.out]) > 0 or pid in desk.ended)
        digest.update(desk.output[pipes.out])
        total += len(desk.output[pipes.out])
        desk.output[pipes.out].clear()
        assert os.fstat(pipes.out).st_blocks * 512 < 4 << 20
    desk.read(pipes.out)
    desk.read(pipes.err)
    digest.update(desk.output[pipes.out])
    assert total + len(desk.output[pipes.out]) == 10_888_896
    assert digest.hexdigest() == hashlib.sha256(subprocess.check_output(["seq", "1500000"])).hexdigest()
    assert desk.output[pipes.err] == b"end\n"


def test_a_job_waits_for_a_runner_that_does_not_read_and_no_other_job_does(shared_desk: Desk) -> None:
    desk = shared_desk
    pipes = desk.pipes()
    desk.reads = False
    slow = desk.start("yes", key=(1, 1, 1), stdio=Captured(pipes)).pid
    wait_until(lambda: os.fstat(pipes.out).st_size >= 512 * 1024)
    desk.reads = True
    desk.launcher.receive()  # not read
    assert desk.run("echo other", key=(2, 1, 2)) == (0, b"other\n", b"")
    assert os.fstat(pipes.out).st_size < 2 << 20
    desk.read(pipes.out)
    desk.listen(lambda: len(desk.output[pipes.out]) > 4 << 20)
    desk.launcher.signal(slow, signal.SIGKILL)
    assert desk.outcome(slow) == -9
    desk.read(pipes.out)
    assert set(bytes(desk.output[pipes.out]).split(b"\n")[:-1]) == {b"y"}


def test_terminals_pipes_files_and_nothing(shared_desk: Desk, tmp_path: Path) -> None:
    desk = shared_desk
    begun = desk.start("tty >/dev/null && stty size", stdio=OnTerminal(33, 44))
    assert desk.outcome(begun.pid) == 0
    assert os.read(begun.fds[0], 100) == b"33 44\r\n"
    os.close(begun.fds[0])

    begun = desk.start("cat; echo err >&2", stdio=Piped(), kind="exec")
    stdin, stdout, stderr = begun.fds
    os.write(stdin, b"through")
    os.close(stdin)
    assert desk.outcome(begun.pid) == 0
    assert os.read(stdout, 100) == b"through"
    assert os.read(stdout, 100) == b""
    assert os.read(stderr, 100) == b"err\n"
    os.close(stdout)
    os.close(stderr)

    begun = desk.start("echo hook; echo err >&2", stdio=IntoFile(str(tmp_path)), kind="hook")
    assert desk.outcome(begun.pid) == 0
    assert os.pread(begun.fds[0], 100, 0) == b"hook\nerr\n"
    os.close(begun.fds[0])

    named = tmp_path / "out"
    pipes = desk.pipes()
    begun = desk.start("echo named; echo err >&2", stdio=Captured(pipes, out=str(named)))
    assert desk.outcome(begun.pid) == 0
    assert named.read_text() == "named\n"
    desk.read(pipes.err)
    assert desk.output[pipes.err] == b"err\n"


def test_what_cannot_be_started_says_why(shared_desk: Desk, tmp_path: Path) -> None:
    desk = shared_desk
    with pytest.raises(CannotRun, match="cannot write its output") as error:
        desk.start("true", stdio=Captured(desk.pipes(), out=str(tmp_path / "no" / "file")))
    assert error.value.reason == "output_file"
    assert desk.launcher.children() == 0
    assert desk.run("echo next") == (0, b"next\n", b"")


def test_a_script_is_waited_for_and_killed_when_it_takes_too_long(shared_desk: Desk) -> None:
    desk = shared_desk

    def order(text: bytes) -> StartOrder:
        return StartOrder((1, 1, 1), "script", shell(text), Variables([b"PATH=/bin"], b"/bin"), b"/", Discarded())

    other = desk.start("exit 4", key=(2, 1, 2)).pid
    assert desk.launcher.run(order(b"exit 3"), 60.0) == 3 << 8
    assert desk.launcher.run(order(b"sleep 1000"), 0.05) is None
    assert desk.outcome(other) == 4


def test_what_is_told_during_a_call_makes_the_descriptor_readable(shared_desk: Desk) -> None:
    desk = shared_desk
    pipes = desk.pipes()
    pid = desk.start("echo out; exit 3", stdio=Captured(pipes)).pid
    while (ended := desk.launcher.reap(pid)) is None:
        desk.launcher.children()
    assert ended[1] == 3 << 8
    # Everything has come with the answers.
    assert select.select([desk.launcher.fd], [], [], 60)[0]
    assert pipes.out in desk.launcher.receive()

    def silent() -> bool:
        if not select.select([desk.launcher.fd], [], [], 0)[0]:
            return True
        desk.take_in()  # the end of something that an earlier test has started
        return False

    wait_until(silent)


def test_only_children_that_were_not_reaped_are_signalled(shared_desk: Desk) -> None:
    desk = shared_desk
    pid = desk.start("sleep 1000").pid
    desk.launcher.signal(pid, signal.SIGTERM)
    assert desk.outcome(pid) == -signal.SIGTERM
    for each in (pid, os.getpid()):
        with pytest.raises(ProcessLookupError):
            desk.launcher.signal(each, signal.SIGKILL)


def test_orphans_are_counted_and_told_when_they_end(shared_desk: Desk) -> None:
    desk = shared_desk
    code, output, _ = desk.run("setsid sleep 1000 & echo $!")
    assert code == 0
    assert desk.launcher.children() == 1
    os.kill(int(output), signal.SIGKILL)
    assert desk.outcome(int(output)) == -9
    assert desk.launcher.children() == 0


def test_a_launcher_that_holds_nothing_leaves_and_clears_away(place: Path) -> None:
    desk = Desk.begin(place)
    assert desk.run("exit 3")[0] == 3
    desk.launcher.leave()
    with pytest.raises(Refused):
        desk.start("true", key=(2, 1, 2))
    assert place.exists()
    desk.launcher.release((1, 1, 1))
    desk.launcher.flush()
    assert os.waitpid(desk.launcher.pid, 0)[1] == 0
    assert not place.exists()
    desk.launcher.close()


def test_nothing_is_kept_of_scripts_and_of_what_entered_a_job(place: Path) -> None:
    desk = Desk.begin(place)
    script = StartOrder((8, 1, 0), "script", shell(b"exit 0"), Variables([], b"/bin"), b"/", Discarded())
    assert desk.launcher.run(script, 60.0) == 0
    command = desk.start("read line < /dev/null; exec sleep 1000", key=(1, 1, 1)).pid
    for _ in range(3):
        entered = desk.start("exit 4", kind="exec", stdio=OnTerminal(24, 80))
        assert desk.outcome(entered.pid) == 4
        os.close(entered.fds[0])
    second = Desk.again(place, 2)
    assert list(second.adopted) == [(1, 1, 1)]
    assert [process.pid for process in second.adopted[1, 1, 1].processes] == [command]
    second.launcher.leave()
    second.launcher.signal(command, signal.SIGKILL)
    second.launcher.release((1, 1, 1))
    second.launcher.flush()
    wait_until(lambda: gone(desk.launcher.pid))
    desk.launcher.close()
    second.launcher.close()


def test_a_runner_without_room_for_descriptors_loses_neither_them_nor_the_launcher(place: Path) -> None:
    def runner(tell: Callable[[str], None]) -> None:
        desk = Desk.begin(place)
        open_now = len(os.listdir("/proc/self/fd"))
        resource.setrlimit(resource.RLIMIT_NOFILE, (open_now + 8, open_now + 40))
        made = []
        with contextlib.suppress(OSError):
            while True:
                made.append(desk.pipes())
        tell(str(len(made)))
        with contextlib.suppress(Refused):
            for _ in range(20):
                desk.start("true", key=(2, 1, 2), stdio=Piped(), kind="exec")
        tell(str(desk.outcome(desk.start("exit 7", stdio=Captured(made[0])).pid)))
        tell(str(desk.launcher.dead))
        resource.setrlimit(resource.RLIMIT_NOFILE, (open_now + 40, open_now + 40))
        desk.launcher.close()
        tell(str(desk.launcher.pid))

    other = OtherRunner(runner)
    assert int(other.says()) > 2
    assert other.says() == "7"
    assert other.says() == "False"
    launcher = int(other.says())
    other.kill()
    Desk.again(place, 2).end()
    wait_until(lambda: gone(launcher))


def test_signals_do_not_end_it(shared_desk: Desk) -> None:
    desk = shared_desk
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        os.kill(desk.launcher.pid, number)
    assert desk.run("echo lives") == (0, b"lives\n", b"")


def test_it_cannot_be_looked_into(shared_desk: Desk) -> None:
    desk = shared_desk
    # In /proc it belongs to root, whoever runs it.
    assert Path(f"/proc/{desk.launcher.pid}/environ").stat().st_uid == 0
    if os.geteuid():
        with pytest.raises(PermissionError):
            Path(f"/proc/{desk.launcher.pid}/environ").read_bytes()


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a file system")
def test_a_full_disk_starts_nothing_and_ends_nothing(place: Path) -> None:
    place.parent.mkdir(exist_ok=True)
    disk = place.parent / "small"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], check=True)
    try:
        desk = Desk.begin(disk / "launcher-1")
        before = desk.start("read line < /dev/null; sleep 1000", key=(1, 1, 1)).pid
        with open(disk / "fill", "wb") as file, contextlib.suppress(OSError):
            while True:
                os.write(file.fileno(), bytes(4096))
        # The last page of the journal could hold its intent, and perhaps not how it ends.
        with pytest.raises(Refused, match="cannot record it"):
            desk.start("true", key=(2, 1, 2))
        assert not gone(before)
        (disk / "fill").unlink()
        assert desk.run("echo again", key=(3, 1, 3)) == (0, b"again\n", b"")
        desk.end()
    finally:
        subprocess.run(["umount", "-l", disk], check=True)
        shutil.rmtree(disk, ignore_errors=True)


def test_a_job_with_very_many_children_or_closed_descriptors_hurts_no_other(shared_desk: Desk) -> None:
    desk = shared_desk
    many = desk.start("i=0; while [ $i -lt 2000 ]; do (exit 0) & i=$((i+1)); done; wait", key=(1, 1, 1)).pid
    orphans = desk.start("for i in $(seq 300); do setsid true & done", key=(2, 1, 2)).pid
    closes = desk.start("exec 0<&- 1>&- 2>&-; sleep 0.1; exit 5", key=(3, 1, 3)).pid
    full = desk.start("exec 3>&1; head -c 3000000 /dev/zero; exit 6", key=(4, 1, 4)).pid
    assert desk.run("echo other", key=(5, 1, 5)) == (0, b"other\n", b"")
    assert [desk.outcome(each) for each in (many, orphans, closes, full)] == [0, 0, 5, 6]
