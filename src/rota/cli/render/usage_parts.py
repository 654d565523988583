"""The parts into which reports split the time of machines: few words for condition, usage and state. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final, NamedTuple

from rota.wire.usage_views import MachineUsageRow, MachineUsageView

BUSY: Final = "busy"  #: jobs have it
INSTALLING: Final = "installing"  #: it is provisioned for a job
IDLE: Final = "idle"
DOWN: Final = "down"  #: free, and nothing could start: away, drained, suspected or closed
ASLEEP: Final = "asleep"
MANUAL: Final = "manual"
BROKEN: Final = "broken"
REMOVED: Final = "removed"
UNKNOWN: Final = "unknown"  #: before it joined, or while no manager was running
#: In the order of columns and bars.
PARTS: Final = (BUSY, INSTALLING, IDLE, DOWN, ASLEEP, MANUAL, BROKEN, REMOVED, UNKNOWN)
#: Parts that a table always has.
USUAL: Final = (BUSY, IDLE)

_MICROS: Final = 1_000_000


class Window(NamedTuple):
    """The time of one key in one window: part → seconds."""

    at: datetime
    until: datetime
    seconds: dict[str, float]


def part_of(row: MachineUsageRow) -> str:
    """The part that a row counts in."""
    if row.condition in (REMOVED, UNKNOWN):
        return row.condition
    if row.state == UNKNOWN:
        return UNKNOWN
    if row.condition in (MANUAL, BROKEN):
        return row.condition
    if row.state in (ASLEEP, "away"):
        return ASLEEP if row.state == ASLEEP else DOWN
    if row.usage in ("waiting", "installing"):
        return INSTALLING
    if row.usage in ("running", "scheduled"):
        return BUSY
    return IDLE if row.state == "alive" else DOWN


def parts(rows: Iterable[MachineUsageRow]) -> dict[str, float]:
    """Part → seconds, those that occur, in order. Added up in microseconds, so that nothing is lost."""
    sums: dict[str, int] = {}
    for row in rows:
        part = part_of(row)
        sums[part] = sums.get(part, 0) + round(row.seconds * _MICROS)
    return {part: sums[part] / _MICROS for part in PARTS if sums.get(part)}


def busy_share(seconds: dict[str, float]) -> float | None:
    """Busy time as a share of the time in which jobs could run; None: there was none. Sleep is such time: the
    machine would have been woken."""
    busy = seconds.get(BUSY, 0.0) + seconds.get(INSTALLING, 0.0)
    could = busy + seconds.get(IDLE, 0.0) + seconds.get(ASLEEP, 0.0)
    return busy / could if could else None


def by_key(view: MachineUsageView) -> dict[str, dict[str, float]]:
    """Key → part → seconds, over all windows."""
    rows: dict[str, list[MachineUsageRow]] = {key: [] for key in view.machines}
    for row in view.rows:
        rows.setdefault(row.host, []).append(row)
    return {key: parts(its) for key, its in rows.items()}


def windows_of(view: MachineUsageView) -> dict[str, list[Window]]:
    """Key → its windows in order, with those in which nothing is known."""
    rows: dict[tuple[str, datetime], list[MachineUsageRow]] = {}
    for row in view.rows:
        rows.setdefault((row.host, row.at), []).append(row)
    ends = list(zip(view.edges, view.edges[1:], strict=False))
    return {key: [Window(at, end, parts(rows.get((key, at), ()))) for at, end in ends] for key in view.machines}


def contract_rows(view: MachineUsageView) -> list[dict[str, object]]:
    """The rows of `--json`: key, condition, usage and seconds, summed over windows and states of the node."""
    sums: dict[tuple[str, str, str], int] = {}
    for row in view.rows:
        key = (row.host, row.condition, row.usage)
        sums[key] = sums.get(key, 0) + round(row.seconds * _MICROS)
    return [
        {"host": host, "condition": condition, "usage": usage, "seconds": spent / _MICROS}
        for (host, condition, usage), spent in sums.items()
    ]
