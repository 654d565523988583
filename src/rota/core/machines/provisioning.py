"""The provisioning of one machine for an attempt: waiting, installing, then done or failed.

Pure: time is an argument, every step returns a new record. The engine and the simulator use the same steps.

With a command on the manager's host, provisioning ends when the machine is back: `rota node ready` was called, or
the command has succeeded and another agent process has joined from the machine. With a command on the machine
itself it ends when that has succeeded or has restarted the machine.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from rota.plan.placement.given import Provision
from rota.units import format_duration

WAITING: Final = "waiting"  #: asked for; its command has not begun
INSTALLING: Final = "installing"  #: its command has begun, and the machine is not back
DONE: Final = "done"
FAILED: Final = "failed"


class ProvisionLimits(Struct, frozen=True, kw_only=True):
    """How long each phase may take."""

    waiting_s: float = 600.0
    installing_s: float = 1800.0


def is_over(provision: Provision) -> bool:
    return provision.phase in (DONE, FAILED)


def begin(provision: Provision, now: float, *, ticket: str = "") -> Provision:
    """Its command begins. `ticket`: hash of the secret that it is given."""
    if provision.phase != WAITING:
        return provision if not ticket else replace(provision, ticket=ticket)
    return replace(provision, phase=INSTALLING, began_at=max(now, provision.asked_at), ticket=ticket)


def accept(provision: Provision, now: float) -> Provision:
    """Its command has succeeded."""
    if is_over(provision):
        return provision
    provision = replace(begin(provision, now, ticket=provision.ticket), accepted=True)
    return _over(provision, DONE, now) if provision.here else provision


def say_ready(provision: Provision) -> Provision:
    """`rota node ready` was called for the machine."""
    return provision if is_over(provision) else replace(provision, ready=True)


def come_back(provision: Provision, *, boot_id: str, now: float) -> Provision:
    """Another agent has joined from the machine."""
    if provision.phase != INSTALLING:
        return provision
    if not provision.here:
        return replace(provision, returned=True)
    # It was restarted while its own command ran, which is how an installation ends.
    restarted = bool(boot_id and provision.boot_id) and boot_id != provision.boot_id
    return _over(provision, DONE, now) if restarted else provision


def settle(provision: Provision, now: float, *, answers: bool) -> Provision:
    """Is it done by now? `answers`: the agent of the machine is connected."""
    back = provision.ready or (provision.accepted and provision.returned)
    if provision.phase == INSTALLING and not provision.here and back and answers:
        return _over(provision, DONE, now)
    return provision


def fail(provision: Provision, now: float) -> Provision:
    return provision if is_over(provision) else _over(provision, FAILED, now)


def due_at(provision: Provision, limits: ProvisionLimits) -> float | None:
    """When its phase has taken too long (wall time); None: it is over."""
    if is_over(provision):
        return None
    if provision.began_at is None:
        return provision.asked_at + limits.waiting_s
    return provision.began_at + limits.installing_s


def lateness(provision: Provision, now: float, limits: ProvisionLimits) -> str:
    """The failure if its phase has taken too long; empty: it has not."""
    due = due_at(provision, limits)
    if due is None or now < due:
        return ""
    if provision.phase == WAITING:
        return f"{provision.host} was not begun to be provisioned within {format_duration(limits.waiting_s)}"
    return f"{provision.host} was not ready within {format_duration(limits.installing_s)}"


def provision_s(provisions: tuple[Provision, ...], now: float) -> float:
    """Seconds from the common request of these machines to the last one's end or now."""
    if not provisions:
        return 0.0
    begun = min(each.asked_at for each in provisions)
    ended = max(now if each.ended_at is None else each.ended_at for each in provisions)
    return max(0.0, ended - begun)


def phase_of(provisions: tuple[Provision, ...]) -> str:
    """The phase of all of them together: `installing` once one is; empty: all are over."""
    phases = {each.phase for each in provisions}
    if INSTALLING in phases or (WAITING in phases and DONE in phases):
        return INSTALLING
    return WAITING if WAITING in phases else ""


def _over(provision: Provision, phase: str, now: float) -> Provision:
    return replace(provision, phase=phase, ended_at=max(now, provision.began_at or provision.asked_at))
