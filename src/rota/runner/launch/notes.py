"""Notes: everything an agent knows about a task, in one record that its launcher keeps for the next agent. Data
only.

Later versions may add fields with defaults at the end. Times are those of the task: some are of CLOCK_MONOTONIC,
which all processes of a machine share until it is rebooted.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from rota.core.jobs.outcome import Behaved, Outcome
from rota.launcher.base import Launcher
from rota.launcher.scratch import Scratch
from rota.runner.end.behaviour_progress import BehaviourProgress
from rota.runner.start.environment import Environment
from rota.runner.start.hook_process import Script
from rota.runner.task import Seat, Task
from rota.wire.job_structs import RunSpec
from rota.wire.orders import Grant

#: A later one needs a later version of the launcher's messages too: else the next agent would give the job up.
VERSION: Final = 1


class HookNote(msgspec.Struct, frozen=True, array_like=True):
    """A hook of the site that runs for a task."""

    name: str
    pid: int  #: 0: it is about to be started
    deadline: float
    late: str = ""


class BehavioursNote(msgspec.Struct, frozen=True, array_like=True):
    """How far a task has come with its behaviours. The first of `todo` runs, or is about to be started."""

    outcome: Outcome
    todo: tuple[str, ...]
    done: tuple[Behaved, ...]
    by: float | None = None
    spent: str = ""


class TaskNote(msgspec.Struct, frozen=True, array_like=True):
    """All of a task except what its launcher knows by itself: processes, exits, output."""

    version: int
    grant: Grant
    spec: RunSpec
    stored: bytes  #: its environment, as the manager sent it
    seat: int
    runs: int  #: processes that were started for it when this was noted; a further one is what this announces
    pid: int = 0
    start_time: int = 0
    started_at: float = 0.0
    began: float = 0.0
    cores: tuple[int, ...] = ()  #: that were picked for its seat
    scratch: bool = False
    nodefile: str | None = None
    fence: str = ""  #: see `Fence.record`
    preparing: bool = False
    prepared: bool = False
    behaviours: BehavioursNote | None = None
    concluding: Outcome | None = None
    hooks: tuple[HookNote, ...] = ()
    frozen: bool = False
    suspended_since: float | None = None
    suspended_at: float = 0.0
    suspended_s: float = 0.0
    suspend_wanted: bool = False
    in_suspend_hook: bool = False
    walltime_s: float | None = None
    warned: tuple[tuple[float, str], ...] = ()
    deadline: float | None = None
    kill_at: float | None = None
    reason: str = ""
    message: str = ""
    cpu_s: float = 0.0
    peak_mem: int = 0
    peak_disk: int = 0
    sampled: bool = False
    part: bool = False
    closing: bool = False
    failed: str = ""
    starting: bool = False  #: its command, or its next behaviour, is about to be started
    ticket: str | None = None


#: Fields that a task has under the same name.
_PLAIN: Final = (
    "runs", "pid", "start_time", "started_at", "began", "nodefile", "preparing", "prepared", "concluding",
    "frozen", "suspended_since", "suspended_at", "suspended_s", "suspend_wanted", "in_suspend_hook", "walltime_s",
    "warned", "ticket", "deadline", "kill_at", "reason", "message", "cpu_s", "peak_mem", "peak_disk", "sampled",
)  # fmt: skip

encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(TaskNote).decode


class Unreadable(Exception):
    """A note of a version that is not known here, or none at all."""


def decode(state: bytes) -> TaskNote:
    """What an agent has noted of a task. Raises `Unreadable`."""
    try:
        note = _decode(state)
    except msgspec.MsgspecError as error:
        raise Unreadable(f"its state cannot be read: {error}") from None
    if note.version > VERSION:
        raise Unreadable(f"its state has version {note.version}, only {VERSION} is known here")
    return note


def note_of(task: Task, hooks: tuple[HookNote, ...] = (), *, starting: bool = False) -> TaskNote:
    """Write down a task; `hooks` are those that run for it, or are about to. `starting`: so is another process."""
    env, seat = task.env, task.seat
    # A task has no process before it is started, and these not at all.
    values: dict[str, Any] = {name: getattr(task, name, 0) for name in _PLAIN}
    after = task.behaviours
    return TaskNote(
        version=VERSION,
        grant=task.grant,
        spec=env.spec,
        stored=env.stored,
        seat=seat.id,
        cores=() if seat.share is None else tuple(sorted(seat.share.cores)),
        scratch=task.scratch is not None,
        fence="" if task.fence is None else task.fence.record(),
        behaviours=None if after is None else _behaviours(after),
        hooks=hooks,
        part=task.part,
        closing=getattr(task, "closing", False),
        failed=getattr(task, "failed", ""),
        starting=starting,
        **values,
    )


def _behaviours(after: BehaviourProgress) -> BehavioursNote:
    return BehavioursNote(after.outcome, tuple(after.todo), tuple(after.done), after.by, after.spent)


def task_of(note: TaskNote, env: Environment, *, seat: Seat, launcher: Launcher, scratch_root: str) -> Task:
    """The task as it was noted. Its fence, its cores and its processes are not made here."""
    grant = note.grant
    task = Task((grant.job, grant.attempt, grant.token), grant, env)
    task.plain = False
    task.seat, task.launcher = seat, launcher
    for name in _PLAIN:
        setattr(task, name, getattr(note, name))
    if note.scratch:
        task.scratch = Scratch(scratch_root, grant.job, grant.attempt, made=True)
    if note.behaviours is not None:
        was = note.behaviours
        task.behaviours = after = BehaviourProgress(env.spec, was.outcome, by=was.by)
        after.todo, after.done, after.spent = list(was.todo), list(was.done), was.spent
    return task


def note_of_hook(script: Script) -> HookNote:
    return HookNote(script.name, script.pid, script.deadline, script.late)
