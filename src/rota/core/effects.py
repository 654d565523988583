"""What must be done after a decision is on disk: in the imperative, idempotent, fenced.

Effects carry data, never callables; `manager.loop.perform` carries them out.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from rota.core.events import Asker
from rota.core.jobs.job import Job, Outcome
from rota.errors import RotaError
from rota.plan.placement import Opened


class Effect(Struct, frozen=True, gc=False):
    """Base of all effects."""


class Reply(Effect, frozen=True):
    to: Asker
    body: Any


class Refuse(Effect, frozen=True):
    to: Asker
    error: RotaError


class SendWork(Effect, frozen=True):
    """Seats to open and leases to start at a runner."""

    runner: str
    seats: list[Opened]
    jobs: list[Job]
    #: (job, attempt, token) of each: a job may have moved on by the time this is sent
    leases: list[tuple[int, int, int]] = []


class SendParts(Effect, frozen=True):
    """Parts of leases to open at a runner; (job, attempt, token) as in `SendWork`."""

    runner: str
    jobs: list[Job]
    leases: list[tuple[int, int, int]]


class CloseParts(Effect, frozen=True):
    """Have a runner end everything in these parts, and say when nothing is left."""

    runner: str
    leases: list[tuple[int, int, int]]


class SendRules(Effect, frozen=True):
    """A runner was accepted; `forget` names leases it holds that are no longer valid."""

    runner: str
    forget: list[tuple[int, int, int]]


class AcknowledgeReport(Effect, frozen=True):
    runner: str
    seq: int


class KillAttempts(Effect, frozen=True):
    runner: str
    leases: list[tuple[int, int, int]]
    checkpoint: str = ""  #: a signal that they get first, and time to write a checkpoint


class SuspendAttempts(Effect, frozen=True):
    """Have a runner stop these attempts, or let them go on. It says when that is done, or that it was before."""

    runner: str
    leases: list[tuple[int, int, int]]
    on: bool


class SignalAttempts(Effect, frozen=True):
    """Have a runner send a signal, by name, to all processes of these attempts or to their first process group."""

    runner: str
    leases: list[tuple[int, int, int]]
    signal: str
    everything: bool


class SetWalltime(Effect, frozen=True):
    """Tell a runner that an attempt has another walltime."""

    runner: str
    lease: tuple[int, int, int]
    walltime_s: float


class NotifyStarted(Effect, frozen=True):
    """A job began to run (for those who follow its output)."""

    job: int
    attempt: int
    runner: str


class NotifySettled(Effect, frozen=True):
    """A job is settled: finished, or blocked for good unless somebody acts."""

    job: Job
    state: int
    outcome: Outcome | None


class NotifyReopened(Effect, frozen=True):
    """A settled job may run again."""

    job: int


class RecallLeases(Effect, frozen=True):
    """Have a runner hand back these leases, unless they have started."""

    runner: str
    leases: list[tuple[int, int, int]]


class SleepNodes(Effect, frozen=True):
    """Run the command that puts a node to sleep, for each of these."""

    hosts: list[str]


class WakeNodes(Effect, frozen=True):
    """Run the command that wakes a node, for each of these."""

    hosts: list[str]


class RunServerScript(Effect, frozen=True):
    """Run the site's prologue or epilogue for an attempt on the manager's host."""

    hook: str
    job: int
    attempt: int
    token: int
    about: dict[str, str]  #: its variables


class StopServerScript(Effect, frozen=True):
    """The attempt is over before its prologue is."""

    job: int
    attempt: int


class DismissRunner(Effect, frozen=True):
    """Let a runner leave, or, if it is told why, send it away."""

    runner: str
    why: str = ""


class RemoveSegments(Effect, frozen=True):
    """Remove these segments of output: it is recorded that they were pruned."""

    segments: list[str]
