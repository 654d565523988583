"""Fences made by a script of the site instead of control groups.

It is called as `SCRIPT VERB JOB ATTEMPT CPU_LIST [PID]` and must be quick: the runner waits for it.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable

from rota.launcher.base import CannotRun, Discarded, Key, Launcher, Refused, StartOrder
from rota.launcher.variables import Variables
from rota.plan.site.bitset import spans_of
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

    __slots__ = ("_added", "_cores", "_launcher", "_script")

    def __init__(
        self,
        job: int,
        attempt: int,
        *,
        launcher: Launcher,
        script: str,
        cores: Collection[int] = (),
        trail: ProcessTrail | None = None,
    ) -> None:
        super().__init__(job, attempt, {}, trail)
        self._launcher = launcher
        self._script = script
        self._cores = spans_of(sorted(cores))
        self._added: set[int] = set()

    def run(self, verb: str, *more: str) -> bool:
        words = [verb, str(self.job), str(self.attempt), self._cores, *more]
        return run_script(self._launcher, self._script, words, key=(self.job, self.attempt, 0))

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


def run_script(
    launcher: Launcher, script: str, words: list[str], *, key: Key = (0, 0, 0), limit_s: float = LIMIT_S
) -> bool:
    """Call it and wait for its end; False, and a line in the log, if it failed or took too long."""
    path = os.fsencode(script)
    search = os.environb.get(b"PATH", b"/usr/sbin:/usr/bin:/sbin:/bin")
    order = StartOrder(
        key=key,
        kind="script",
        words=(path, [path, *(word.encode() for word in words)]),
        variables=Variables([b"PATH=" + search], search),
        cwd=b"/",
        stdio=Discarded(),
    )
    called = f"{script} {' '.join(words)}"
    try:
        status = launcher.run(order, limit_s)
    except (Refused, CannotRun) as why:
        say(f"{called}: {why}")
        return False
    if status is None:
        say(f"{called}: timed out after {limit_s:g} s")
    elif status:
        say(f"{called}: failed with {os.waitstatus_to_exitcode(status)}")
    return status == 0
