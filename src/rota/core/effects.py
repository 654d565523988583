"""Effects: what to do once a decision is on disk.

Named in the imperative. They carry data, never callables, may be repeated safely, and name leases by (job,
attempt, token). `manager.loop.perform` carries them out.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from rota.core.events import Asker
from rota.core.jobs.job import Job
from rota.core.jobs.outcome import Outcome
from rota.errors import RotaError
from rota.plan.placement.decisions import Opened


class Effect(Struct, frozen=True, gc=False):
    """Base of all effects."""


class StartAnew(Effect, frozen=True):
    """Recover from the store in a new process image: what is in memory is not all that is on disk."""

    why: str


class SendReply(Effect, frozen=True):
    """Answer a request."""

    to: Asker
    body: Any


class Refuse(Effect, frozen=True):
    """Answer a request with an error."""

    to: Asker
    error: RotaError


class SendWork(Effect, frozen=True):
    """Open these seats and start these leases at a runner."""

    runner: str
    seats: list[Opened]
    jobs: list[Job]
    #: (job, attempt, token) of each job when this was decided: it may have moved on by the time this is sent
    leases: list[tuple[int, int, int]] = []


class SendParts(Effect, frozen=True):
    """Open parts of these leases at a runner."""

    runner: str
    jobs: list[Job]
    leases: list[tuple[int, int, int]]


class CloseParts(Effect, frozen=True):
    """Have a runner end everything in these parts and report when nothing is left."""

    runner: str
    leases: list[tuple[int, int, int]]


class SendRules(Effect, frozen=True):
    """Accept a runner; `forget` lists leases that it holds and that are no longer valid."""

    runner: str
    forget: list[tuple[int, int, int]]


class AcknowledgeReport(Effect, frozen=True):
    """Tell a runner that its report is on disk, so that it stops repeating it."""

    runner: str
    seq: int


class KillAttempts(Effect, frozen=True):
    """Have a runner end these attempts: TERM, then KILL."""

    runner: str
    leases: list[tuple[int, int, int]]
    checkpoint: str = ""  #: signal to send first, with time to write a checkpoint; empty: none


class SuspendAttempts(Effect, frozen=True):
    """Have a runner freeze (`on`) or thaw these attempts. It reports when that is done, even if it already was."""

    runner: str
    leases: list[tuple[int, int, int]]
    on: bool


class SignalAttempts(Effect, frozen=True):
    """Have a runner send a signal to all processes (`everything`) of these attempts, or to their first process
    group."""

    runner: str
    leases: list[tuple[int, int, int]]
    signal: str
    everything: bool


class ChangeWalltime(Effect, frozen=True):
    """Give an attempt another walltime."""

    runner: str
    lease: tuple[int, int, int]
    walltime_s: float


class EndMeeting(Effect, frozen=True):
    """Answer a process of a member of a gang that waited for the others."""

    to: Asker
    exit_code: int
    message: str = ""


class NotifyStarted(Effect, frozen=True):
    """Tell followers of its output that a job began to run."""

    job: int
    attempt: int
    runner: str


class NotifySettled(Effect, frozen=True):
    """Tell watchers that a job is settled: finished, or blocked until a person acts."""

    job: Job
    state: int
    outcome: Outcome | None


class NotifyReopened(Effect, frozen=True):
    """Tell watchers that a settled job may run again."""

    job: int


class RecallLeases(Effect, frozen=True):
    """Have a runner hand back these leases, unless they have started."""

    runner: str
    leases: list[tuple[int, int, int]]


class SleepNodes(Effect, frozen=True):
    """Run the sleep command for each of these nodes."""

    hosts: list[str]


class WakeNodes(Effect, frozen=True):
    """Run the wake command for each of these nodes."""

    hosts: list[str]


class RunServerScript(Effect, frozen=True):
    """Run the site's prologue or epilogue for an attempt on the manager's host."""

    hook: str
    job: int
    attempt: int
    token: int
    about: dict[str, str]  #: environment variables of the script


class StopServerScript(Effect, frozen=True):
    """Stop a prologue whose attempt is over."""

    job: int
    attempt: int


class DismissRunner(Effect, frozen=True):
    """Let an idle runner leave; with a reason, send it away."""

    runner: str
    why: str = ""


class RemoveSegments(Effect, frozen=True):
    """Delete these segments of output; the record that they were pruned is on disk."""

    segments: list[str]
