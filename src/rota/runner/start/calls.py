"""Starts the calls of Python functions: as a fork of a template that has imported the module, else in an
interpreter of their own.

A template is made for the second call of a module, is used when it is ready, and never waited for. So whatever a
module does when it is imported, it does it in calls that are jobs like any other, with their limits and output; a
template only makes calls begin sooner.
"""

from __future__ import annotations

import time
from math import inf
from typing import Final

import msgspec

from rota.core.jobs.command import Call
from rota.launcher.base import Begun, CannotRun, Discarded, Launcher, NotReady, Refused, StartOrder
from rota.launcher.variables import Variables
from rota.runner.log import say
from rota.runner.start.hook_process import TEMPLATE, Script
from rota.runner.start.own_variables import OF_ONE_JOB
from rota.runner.task import Task

DEFAULT_PYTHON: Final = b"python3"
#: Templates of a runner; the one that was not used for longest makes room.
MOST: Final = 8
#: After one has given up, no other is made for its module for so long.
_AGAIN_AFTER_S: Final = 30.0
_NO_LEASE: Final = (0, 0, 0)

#: User, interpreter, environment, working directory, cores and module: calls that can share a template.
Kind = tuple[str, str, bytes, bytes, int, str]


def words_of_call(call: Call, *mode: bytes) -> tuple[bytes | None, list[bytes]]:
    """What executes a call, or serves a module: the interpreter with our file."""
    python = call.python.encode("utf-8", "surrogateescape") or DEFAULT_PYTHON
    from rota.launcher.forks import FILE  # late: most runners never start a call

    return None, [python, FILE, *(mode or (b"call",))]


def request_of(call: Call) -> bytes:
    """What the file of a call has in the beginning; its outcome follows."""
    return msgspec.json.encode(call)


class Known:
    """What is known about the calls of one kind."""

    __slots__ = ("apart", "calls", "later", "launcher", "pid", "used")

    def __init__(self) -> None:
        self.calls = 0  #: that began in an interpreter of their own
        self.apart = False  #: its module must be imported anew for each call
        self.later = 0.0  #: no template is made before
        self.pid = 0  #: of its template; 0: there is none
        self.launcher: Launcher | None = None
        self.used = 0.0


class Calls:
    """Starts calls, and keeps templates."""

    def __init__(self, running: dict[int, Script]) -> None:
        """`running`: processes that belong to no task."""
        self._running = running
        self._known: dict[Kind, Known] = {}

    def start(self, task: Task, call: Call, order: StartOrder) -> Begun:
        """Start a call. Raises `Refused` or `CannotRun`."""
        launcher = task.launcher
        if not launcher.forks or task.spec.scratch or task.grant.errand is not None:
            return launcher.start(order)
        kind = self._kind(task, call)
        known = self._known.get(kind)
        if known is None:
            if len(self._known) >= 16 * MOST:
                self._known = {each: one for each, one in self._known.items() if one.pid or one.apart}
            known = self._known[kind] = Known()
        if known.pid and known.launcher is launcher:
            try:
                begun = launcher.start(msgspec.structs.replace(order, fork_of=known.pid))
            except NotReady as why:
                if why.why:
                    self._end(known, why.why)
            else:
                known.used = time.monotonic()
                return begun
        known.calls += 1
        begun = launcher.start(order)
        if known.calls > 1 and not known.pid and not known.apart and time.monotonic() >= known.later:
            self._make(task, call, known)
        return begun

    def _kind(self, task: Task, call: Call) -> Kind:
        env = task.env
        return task.spec.user, call.python, env.stored, env.cwd, env.size.cpus, call.module

    def _make(self, task: Task, call: Call, known: Known) -> None:
        """Have a template made for the calls of this kind. Nothing depends on that."""
        living = [each for each in self._known.values() if each.pid]
        if len(living) >= MOST:
            self._end(min(living, key=lambda each: each.used), "")
        known.later = time.monotonic() + _AGAIN_AFTER_S
        words = words_of_call(call, b"serve", call.module.encode("utf-8", "surrogateescape"))
        # It is no process of any job: nothing of one may be in its environment.
        entries = [entry for entry in task.env.entries() if entry.partition(b"=")[0] not in OF_ONE_JOB]
        variables = Variables(entries, task.env.path)
        order = StartOrder(_NO_LEASE, "template", words, variables, task.env.cwd, Discarded(), template=True)
        try:
            begun = task.launcher.start(order)
        except (Refused, CannotRun) as why:
            say(f"no template for {call.module}: {why}")
            return
        known.pid, known.launcher, known.used = begun.pid, task.launcher, time.monotonic()
        self._running[begun.pid] = Script(
            TEMPLATE, _NO_LEASE, task.launcher, begun, deadline=inf, done=lambda _: self._ended(known, begun.pid)
        )

    def _end(self, known: Known, why: str) -> None:
        """It is used no more."""
        pid, known.pid = known.pid, 0
        if known.launcher is not None:
            why = known.launcher.end_template(pid) or why
        known.apart = known.apart or why == "threads"
        if why in ("changed", "large"):
            known.later = 0.0  # the next one is as good as new

    def _ended(self, known: Known, pid: int) -> None:
        """Its process has ended."""
        if known.pid == pid:
            self._end(known, "gone")
