"""What the tests of the launcher process do with it, as a runner would."""

from __future__ import annotations

import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from rota.launcher import libc
from rota.launcher.base import Begun, Captured, Ended, Key, Kind, StartOrder, Stdio, shell
from rota.launcher.client.processes import Adopted, attach, start_launcher
from rota.launcher.client.remote import RemoteLauncher
from rota.launcher.client.spooled import SpoolReader
from rota.launcher.variables import Variables

PATIENCE_S = 60.0
KEEP = 1 << 20
_PATH = b"/usr/bin:/bin"


class Desk:
    """One runner with one launcher, which reads all output at once unless it is told not to."""

    def __init__(self, launcher: RemoteLauncher, adopted: list[Adopted] | None = None) -> None:
        self.launcher = launcher
        self.adopted = {task.key: task for task in adopted or []}
        self.output: dict[int, bytearray] = {}  #: by stream
        self.ended: dict[int, Ended] = {}
        self._pipes: dict[int, SpoolReader] = {}
        self.reads = True
        self._over = False
        for task in self.adopted.values():
            if task.pipes is not None:
                self.read_from(task.pipes)

    @classmethod
    def begin(
        cls, directory: Path, *, keep: int = KEEP, orphan_after_s: float = 600.0, grace_s: float = 5.0
    ) -> Desk:
        libc.become_subreaper()
        launcher = start_launcher(str(directory), 1)
        launcher.obey(keep_output=keep, orphan_after_s=orphan_after_s, grace_s=grace_s)
        return cls(launcher)

    @classmethod
    def again(cls, directory: Path, epoch: int) -> Desk:
        return cls(*attach(str(directory), epoch))

    def read_from(self, pipes: SpoolReader) -> None:
        for stream in (pipes.out, pipes.err):
            self._pipes[stream] = pipes
            self.output[stream] = bytearray()

    def pipes(self) -> SpoolReader:
        pipes = self.launcher.output_pipes()
        self.read_from(pipes)
        return pipes

    def start(
        self,
        text: str,
        *,
        key: Key = (1, 1, 1),
        stdio: Stdio | None = None,
        kind: Kind = "command",
        more: str = "",
    ) -> Begun:
        """Start a shell, with new pipes unless something else is said."""
        if stdio is None:
            stdio = Captured(self.pipes())
        variables = Variables([b"PATH=" + _PATH, b"ROTA_LEASE=%d" % key[2], *more.encode().split()], _PATH)
        return self.launcher.start(StartOrder(key, kind, shell(text.encode()), variables, b"/tmp", stdio))

    def listen(self, until: Callable[[], bool]) -> None:
        """Take in what the launcher tells until something holds."""
        limit = time.monotonic() + PATIENCE_S
        while not until():
            assert time.monotonic() < limit, "it took too long"
            select.select([self.launcher.fd], [], [], 0.05)
            self.take_in()

    def take_in(self) -> None:
        streams = self.launcher.receive()
        if self.reads:
            for stream in streams:
                self.read(stream)
        while (ended := self.launcher.reap()) is not None:
            self.ended[ended[0]] = ended

    def read(self, stream: int) -> None:
        pipes = self._pipes[stream]
        while True:
            try:
                self.output[stream] += pipes.read(stream, 65536)
            except BlockingIOError:
                return

    def outcome(self, pid: int) -> int:
        """Wait for its end: its exit code, or the negated number of a signal."""
        self.listen(lambda: pid in self.ended)
        return os.waitstatus_to_exitcode(self.ended[pid][1])

    def run(self, text: str, key: Key = (1, 1, 1)) -> tuple[int, bytes, bytes]:
        """Exit code, stdout and stderr of a command."""
        pipes = self.pipes()
        code = self.outcome(self.start(text, key=key, stdio=Captured(pipes)).pid)
        self.read(pipes.out)
        self.read(pipes.err)
        return code, bytes(self.output[pipes.out]), bytes(self.output[pipes.err])

    def end(self) -> None:
        """Leave nothing behind."""
        launcher = self.launcher
        if self._over:
            return
        self._over = True
        if not launcher.dead and not launcher.fenced:
            launcher.leave(kill=True)
            wait_until(lambda: gone(launcher.pid))
        launcher.close()


def alone(test: Callable[[Desk, Path], None]) -> Callable[[Path], None]:
    """Run a test in a process of its own, which has no other children.

    It becomes the parent of all that its launcher leaves behind. The process of the tests has children that no
    runner may count, reap or kill, such as the one that commands are forked from.
    """

    def run(place: Path) -> None:
        pid = os.fork()
        if not pid:
            try:
                desk = Desk.begin(place)
                test(desk, place)
                desk.end()
                os._exit(0)
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(1)
        assert os.waitpid(pid, 0)[1] == 0, "see the captured stderr"

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


class OtherRunner:
    """A runner in a process of its own, to be killed."""

    def __init__(self, does: Callable[[Callable[[str], None]], None]) -> None:
        """`does` gets a function that tells this process something, and the runner waits when it is done."""
        here, there = os.pipe()
        self.pid = os.fork()
        if not self.pid:
            try:
                does(lambda text: _tell(there, text))
                os.write(there, b"done\n")
                while True:
                    signal.pause()
            except BaseException as error:
                os.write(there, f"failed: {error!r}\n".encode())
            finally:
                os._exit(1)
        os.close(there)
        self._said = os.fdopen(here)

    def says(self) -> str:
        line = self._said.readline().strip()
        assert line, "the other runner is gone"
        assert not line.startswith("failed"), line
        return line

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        self._said.close()


def _tell(fd: int, text: str) -> None:
    os.write(fd, text.encode() + b"\n")


def gone(pid: int) -> bool:
    """Is this process dead, even if it was not reaped?"""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def wait_until(holds: Callable[[], bool]) -> None:
    limit = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < limit, "it took too long"
        time.sleep(0.01)
