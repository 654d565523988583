"""Fences made by a script of the site instead of control groups.

It is called as `SCRIPT VERB JOB ATTEMPT CPU_LIST [PID]` and must be quick: the runner waits for it.
"""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Collection, Iterable

from rota.plan.site.bitset import spans_of
from rota.runner import libc
from rota.runner.contain.fence import Fence
from rota.runner.contain.process_trail import ProcessTrail
from rota.runner.log import say

#: How a fence of a script begins in the journal; no path of a group does.
BY_SCRIPT = "script:"
LIMIT_S = 10.0


class ScriptFence(Fence):
    """A fence that a script of the site makes. Verbs: make, add, freeze, thaw, kill, clean.

    Where the script fails, signals are used as on a host without control groups.
    """

    __slots__ = ("_added", "_cores", "_script")

    def __init__(
        self,
        job: int,
        attempt: int,
        *,
        script: str,
        cores: Collection[int] = (),
        trail: ProcessTrail | None = None,
    ) -> None:
        super().__init__(job, attempt, {}, trail)
        self._script = script
        self._cores = spans_of(sorted(cores))
        self._added: set[int] = set()

    def run(self, verb: str, *more: str) -> bool:
        return run_script(self._script, [verb, str(self.job), str(self.attempt), self._cores, *more])

    @property
    def exists(self) -> bool:
        return True

    @property
    def holds(self) -> bool:
        return True

    def outside(self, pids: Iterable[int]) -> list[int]:
        return [pid for pid in pids if pid not in self._added]

    def add(self, pid: int) -> bool:
        super().add(pid)
        self._added.add(pid)
        return self.run("add", str(pid))

    def keep_to(self, cores: Collection[int]) -> bool:
        self._cores = spans_of(sorted(cores))
        return self.run("make")  # again: it has other cores now

    def _freeze(self, on: bool) -> bool:
        return self.run("freeze" if on else "thaw") or super()._freeze(on)

    def kill(self) -> None:
        self.run("kill")
        super().kill()

    def remove(self) -> bool:
        self.run("clean")
        return True  # a second call would not succeed either

    def remove_patiently(self) -> bool:
        return self.remove()

    def record(self) -> str:
        return BY_SCRIPT + self._script


def run_script(script: str, words: list[str], *, limit_s: float = LIMIT_S) -> bool:
    """Call it and wait for its end; False, and a line in the log, if it failed or took too long."""
    path = os.fsencode(script)
    argv = libc.strings([path, *(word.encode() for word in words)])
    variables = libc.strings([b"PATH=" + os.environb.get(b"PATH", b"/usr/sbin:/usr/bin:/sbin:/bin")])
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    actions = libc.FileActions([(null, 0), (null, 1), (null, 2)])
    called = f"{script} {' '.join(words)}"
    try:
        pid = libc.spawn(path, libc.address(argv), libc.address(variables), actions.address)
    except OSError as error:
        say(f"{called}: {error}")
        return False
    finally:
        actions.close()
        os.close(null)
    handle = os.pidfd_open(pid)
    try:
        if not select.select([handle], [], [], limit_s)[0]:
            say(f"{called}: timed out after {limit_s:g} s")
            os.killpg(pid, signal.SIGKILL)  # a session of its own
    finally:
        os.close(handle)
    status = os.waitpid(pid, 0)[1]
    if status:
        say(f"{called}: failed with {os.waitstatus_to_exitcode(status)}")
    return not status
