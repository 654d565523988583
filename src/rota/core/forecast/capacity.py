"""The capacity of hosts and limits, now and as running jobs end."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Final

from rota.core.attempts import suspension_phases
from rota.core.forecast.expectation import NO_ROOM, ForecastSnapshot, Unknown
from rota.plan.forecast.free_capacity import CapacityPiece, FreeCapacity
from rota.plan.forecast.waiting_jobs import Forecast
from rota.plan.policy.limits import Limit
from rota.plan.size import Capacity, Size

#: Name of the capacity for jobs without cores.
CORELESS: Final = ""


def units(limit: Limit | None, wanted: int, exclusive: bool) -> int:
    """Units that a job takes of a limit; exclusive use takes all."""
    most = limit_units(limit)
    return max(wanted, most) if exclusive and most else wanted


def limit_units(limit: Limit | None) -> int | None:
    """Units of a limit on all hosts together; None: unlimited."""
    if limit is None:
        return None
    return sum(units for _host, units in limit.hosts) if limit.hosts else limit.capacity


def fitting(size: Size, host: Capacity) -> int:
    """How many jobs of this size fit on an empty host."""
    parts = ((size.cpus, host.cpus), (size.mem, host.mem), (size.disk, host.disk), (size.gpus, host.gpus))
    fits = [has // wants for wants, has in parts if wants]
    return min(fits) if size.cpus else min([*fits, host.zero_cpu_jobs])


def most_at_once(taken: ForecastSnapshot, size: Size) -> int:
    """How many jobs of this size could run at once."""
    return sum(fitting(size, host) for host in taken.capacities)


def core_width(taken: ForecastSnapshot, size: Size) -> tuple[int, Unknown | None]:
    """The cores that such a job takes from the total; more than it asks for if memory, disk or GPUs are
    scarcer."""
    most = most_at_once(taken, size)
    if not most:
        return max(1, size.cpus), NO_ROOM
    cores = sum(host.cpus for host in taken.capacities)
    return (max(size.cpus, cores // most), None) if size.cpus else (0, None)


def limit_capacity(taken: ForecastSnapshot, ends: Mapping[int, float | None]) -> dict[str, FreeCapacity]:
    """The free capacity of each limit with a number of units."""
    held: dict[str, list[CapacityPiece]] = {}
    for job in taken.leased:
        for use in job.spec.limits:
            end = ends.get(job.id)
            takes = units(taken.limits.get(use.name), use.units, use.exclusive)
            held.setdefault(use.name, []).append(
                CapacityPiece(inf if end is None else max(taken.wall, end), takes)
            )
    rooms = {}
    for name, limit in taken.limits.items():
        most = limit_units(limit)
        if most is not None:
            pieces = held.get(name, [])
            free = max(0, most - sum(piece.amount for piece in pieces))
            rooms[name] = FreeCapacity([*pieces, CapacityPiece(taken.wall, free)])
    return rooms


def host_capacity(
    taken: ForecastSnapshot, ends: Mapping[int, float | None], limits: dict[str, FreeCapacity]
) -> Forecast:
    """The free capacity of all hosts together, as packing sees it; jobs without cores apart."""
    hosts, wall = taken.capacities, taken.wall
    pieces, coreless = [], []
    cores = sum(host.cpus for host in hosts)
    places = sum(host.zero_cpu_jobs for host in hosts)
    # Leases sent ahead of need have no core yet: they come last.
    for job in sorted(taken.leased, key=lambda job: job.lease is None or job.lease.started_at is None):
        end = ends.get(job.id)
        lease = job.lease
        if lease is not None and suspension_phases.has_given_up(lease):
            continue
        at = inf if end is None else max(wall, end)
        if job.size.cpus:
            amount = min(core_width(taken, job.size)[0], max(0, cores))
            pieces.append(CapacityPiece(at, amount))
            cores -= amount
        else:
            coreless.append(CapacityPiece(at, 1))
            places -= 1
    pieces.append(CapacityPiece(wall, max(0, cores)))
    coreless.append(CapacityPiece(wall, max(0, places)))
    limits[CORELESS] = FreeCapacity(coreless)
    return Forecast(wall, FreeCapacity(pieces), limits)
