"""A launcher in the runner's own process: the fastest, but the end of the runner is the end of its jobs.

The working directory of the process is that of the job that was started last.
"""

from __future__ import annotations

import os
import select
import signal
import socket
from collections.abc import Collection, Sequence

from rota.launcher import libc, process, procfs
from rota.launcher.affinity import bind_child, on_cores
from rota.launcher.base import (
    SHELL,
    Begun,
    Decided,
    Ended,
    Key,
    NotReady,
    OutputPipes,
    Refused,
    StartOrder,
    refuse_unbuilt,
    shell,
)
from rota.launcher.own_peak import OwnPeak
from rota.launcher.pipes import HeldPipes
from rota.launcher.stdio import PreparedStdio
from rota.launcher.variables import Variables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rota.launcher.forks import Forks

_WNOHANG = os.WNOHANG
_shell_argv = libc.strings([b"sh", b"-c", b""])
_shell_at = libc.address(_shell_argv)


class InsideLauncher:
    """Implements `Launcher` with system calls of this process, which must have one thread and be a sub-reaper
    (`libc.become_subreaper`)."""

    fd = -1
    lasting = False
    forks = True

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._forks: Forks | None = None  #: once there is a template
        self._null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        # As they are: these are called for every short job.
        self.children = procfs.OwnChildren().count
        self.is_own = OwnPeak(self.pid).covers

    # -------------------------------------------------------------- starting

    def output_pipes(self) -> HeldPipes:
        return HeldPipes(self._null)

    def start_shell(
        self, key: Key, text: bytes, variables: Variables, cwd: bytes, pipes: OutputPipes, cores: Collection[int]
    ) -> int:
        actions_at: int = pipes.actions_at  # type: ignore[attr-defined]  # `HeldPipes`: no check on this path
        try:
            os.chdir(cwd)
            _shell_argv[2] = text
            pid = libc.spawn(SHELL, _shell_at, variables.address, actions_at)
        except (OSError, ValueError):
            # Once more, slowly, to say what is wrong (or, if that has passed, to start it).
            pid = process.start(shell(text), variables, actions_at, cwd=cwd)
        if cores:
            bind_child(pid, cores)
        return pid

    def start(self, order: StartOrder) -> Begun:
        refuse_unbuilt(order)
        if order.template:
            return self._start_template(order)
        if order.file is None:
            return self._start(order)
        try:
            from rota.launcher.forks import request_file  # late: most runners never start a call

            file = request_file(order.file)
        except OSError as error:
            raise Refused(f"cannot prepare: {error.strerror}") from None
        try:
            begun = self._fork(order, file) if order.fork_of else self._start(order, (file,))
        except BaseException:
            os.close(file)
            raise
        return Begun(begun.pid, begun.start_time, (*begun.fds, file), begun.unbound)

    def _start(self, order: StartOrder, more: Sequence[int] = ()) -> Begun:
        stdio = PreparedStdio(order.stdio, self._null, more)

        def spawn() -> int:
            return process.start(
                order.words, order.variables, stdio.actions_at, cwd=order.cwd, cgroups=order.cgroups
            )

        try:
            pid, unbound = on_cores(order.cores, spawn) if order.cores else (spawn(), "")
        except BaseException:
            stdio.failed()
            raise
        return Begun(pid, procfs.start_time_now(), stdio.started(), unbound)

    def _start_template(self, order: StartOrder) -> Begun:
        ours, its = socket.socketpair()
        try:
            begun = self._start(order, (its.fileno(),))
        except BaseException:
            ours.close()
            raise
        finally:
            its.close()
        if self._forks is None:
            from rota.launcher.forks import Forks

            self._forks = Forks()
        self._forks.add(begun.pid, ours)
        return begun

    def _fork(self, order: StartOrder, file: int) -> Begun:
        if self._forks is None:
            raise NotReady("gone")
        stdio = PreparedStdio(order.stdio, self._null, (file,))
        try:
            begun = self._forks.fork(order, stdio.sources[:3], file)
        except BaseException:
            stdio.failed()
            raise
        return Begun(begun.pid, begun.start_time, stdio.started())

    def end_template(self, pid: int) -> str:
        return "" if self._forks is None else self._forks.end(pid)

    def run(self, order: StartOrder, limit_s: float) -> int | None:
        pid = self.start(order).pid
        handle = os.pidfd_open(pid)
        try:
            in_time = bool(select.select([handle], [], [], limit_s)[0])
            if not in_time:
                os.killpg(pid, signal.SIGKILL)
        finally:
            os.close(handle)
        status = os.waitpid(pid, 0)[1]
        return status if in_time else None

    def rest(self) -> None:
        os.chdir("/")

    # -------------------------------------------------------------- ending

    def receive(self) -> Collection[int]:
        return ()

    def reap(self, pid: int = -1) -> Ended | None:
        try:
            ended = os.wait4(pid, _WNOHANG)
        except ChildProcessError:
            return None
        return ended if ended[0] else None

    def signal(self, pid: int, number: int, *, group: int = 0) -> None:
        os.killpg(group if group > 1 and process.in_session(group, pid) else pid, number)

    def alone(self, pid: int) -> bool:
        return False

    # -------------------------------------------------------------- leases ahead: its caller starts them as soon

    def hold(
        self,
        key: Key,
        text: bytes,
        variables: Variables,
        cwd: bytes,
        pipes: OutputPipes,
        cores: Collection[int],
        *,
        after: Key,
        note: bytes,
        until: float,
    ) -> None:
        raise Refused("this launcher holds nothing ahead")

    def withdraw(self, key: Key) -> bool:
        return False

    def decided(self) -> Collection[Decided]:
        return ()

    # -------------------------------------------------------------- for a successor: there is none

    def flush(self) -> None:
        pass

    def note(self, key: Key, state: bytes) -> None:
        pass

    def release(self, key: Key) -> None:
        pass

    def limits(
        self, key: Key, *, end_at: float | None, kill_grace_s: float, cgroups: Collection[str] = ()
    ) -> None:
        pass
