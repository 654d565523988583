"""What must be done after a decision is on disk: in the imperative, idempotent, fenced.

Effects carry data, never callables; `manager.perform` carries them out.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from rota.core.events import Asker
from rota.core.job import Job, Outcome
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


class DismissRunner(Effect, frozen=True):
    """Let a runner leave."""

    runner: str
