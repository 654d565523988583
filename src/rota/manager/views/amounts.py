"""Amounts as clients see them: asked, learned, given and used, from one function for all views."""

from __future__ import annotations

from typing import NamedTuple

from rota.core.accounts.amounts import asked_of, attempt_walltime, cores_of, given_s
from rota.core.jobs.job import Spec
from rota.core.learning.next_attempt_size import Decision
from rota.plan.placement.given import Given
from rota.plan.size import CORE, Size
from rota.wire.views import AmountsView, BytesView, QuantityView


class Attempted(NamedTuple):
    """An attempt: with what it was started, and what was measured once it had ended."""

    spec: Spec  #: as it was then
    size: Size
    given: Given | None
    cpu_s: float | None = None
    peak_mem: int | None = None
    peak_disk: int | None = None
    wall_s: float | None = None


def amounts(spec: Spec, attempt: Attempted | None = None) -> AmountsView:
    """Amounts of a specification and of one attempt, without the learned ones."""
    asked = asked_of(spec, attempt.given if attempt is not None else None)
    cpus = None if asked.cpus is None else asked.cpus / CORE
    found = AmountsView(
        cores=QuantityView(asked=cpus),
        mem_bytes=BytesView(asked=asked.mem),
        disk_bytes=BytesView(asked=asked.disk),
        time_s=QuantityView(asked=asked.time_s),
        walltime_s=QuantityView(asked=asked.walltime_s),
    )
    if attempt is not None:
        _add(found, attempt)
    return found


def _add(found: AmountsView, attempt: Attempted) -> None:
    size, wall_s = attempt.size, attempt.wall_s
    found.cores.given = cores_of(size, attempt.given) / CORE
    found.mem_bytes.given = size.mem
    found.disk_bytes.given = size.disk
    found.time_s.given = given_s(attempt.spec, size, attempt.given)
    found.walltime_s.given = attempt_walltime(attempt.spec, attempt.given)
    if attempt.cpu_s is not None and wall_s:
        found.cores.used = round(attempt.cpu_s / wall_s, 4)
    found.mem_bytes.used = attempt.peak_mem
    found.disk_bytes.used = attempt.peak_disk if attempt.spec.scratch else None
    found.time_s.used = found.walltime_s.used = wall_s


def add_learned(found: AmountsView, decided: Decision) -> None:
    """Add what was learned about its learning group."""
    found.mem_bytes.learned = decided.mem
    found.disk_bytes.learned = decided.disk
    found.time_s.learned = decided.time_s
