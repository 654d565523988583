"""How a job spent its time: waiting, provisioning, execution and hold.

The four always add up to the time from submission to the end of the last phase, or to now. Earlier attempts count
as waiting, except for their provisioning. Pure.
"""

from __future__ import annotations

from msgspec import Struct

from rota.core.machines.provisioning import phase_of, provision_s
from rota.plan.placement.given import Given

#: The phases that follow provisioning.
RUNNING = "running"
HOLD = "hold"


class PhaseTimes(Struct, frozen=True):
    """Seconds of each phase, and the phase it is in; empty: none."""

    wait_s: float
    provision_s: float
    execute_s: float
    hold_s: float
    phase: str = ""


def phase_times(
    *,
    submitted_at: float,
    started_at: float | None,
    ended_at: float | None,
    over: bool,
    given: Given | None,
    now: float,
) -> PhaseTimes:
    """How a job spent its time up to now. `started_at`, `ended_at`: of its newest attempt, which was `given` this.
    `over`: the job is finished, and ended then."""
    provision = hold = 0.0
    phase = RUNNING if started_at is not None and ended_at is None and not over else ""
    if given is not None:
        provision = given.provisioned_s + provision_s(given.provisions, now)
        if not over and started_at is None:
            phase = phase_of(given.provisions)
        if given.hold is not None:
            until = given.hold.ended_at if given.hold.ended_at is not None else max(now, given.hold.since)
            hold = max(0.0, until - given.hold.since)
            phase = HOLD if given.hold.ended_at is None else phase
    end = ended_at if over and ended_at is not None else now
    whole = max(0.0, end - submitted_at)
    execute = 0.0
    if started_at is not None:
        execute = max(0.0, (end if ended_at is None else ended_at) - started_at)
    execute = min(execute, whole)
    provision = min(provision, whole - execute)
    return PhaseTimes(max(0.0, whole - execute - provision), provision, execute, hold, phase)
