"""An observation: what one ended attempt showed about its learning group."""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

from rota.core.rows import ObservationRow
from rota.units import MAX_BYTES, MAX_SECONDS

#: A learned resource.
Resource = Literal["mem", "disk", "time"]
RESOURCES: Final[tuple[Resource, ...]] = ("mem", "disk", "time")

#: Reason code of a failure → resource that was lacking.
LACKED: Final[dict[str, Resource]] = {"memory": "mem", "disk": "disk", "time": "time", "walltime": "time"}

COMPLETE: Final = "complete"


class Observation(Struct, frozen=True, array_like=True, gc=False):
    """An ended attempt: what it used, what it was given, and how it ended."""

    at: float  #: when it ended
    mem: int  #: peak in bytes; 0: not measured; negative: only an upper bound is known (`at_most`)
    disk: int  #: peak in bytes; 0: not measured
    time_s: float  #: from start to end
    outcome: str = COMPLETE  #: or a reason code
    input_bytes: int | None = None
    given_mem: int = 0
    given_disk: int = 0
    given_time_s: float = 0.0  #: its walltime, or its expected duration

    def used(self, resource: Resource) -> float:
        if resource == "mem":
            return self.mem
        return self.disk if resource == "disk" else self.time_s

    @property
    def most_mem(self) -> int:
        """The upper bound of its memory peak, if only that is known; else 0."""
        return -self.mem if -MAX_BYTES <= self.mem < 0 else 0

    def too_small(self) -> float:
        """The amount of the lacking resource that is proven too small."""
        lacked = LACKED[self.outcome]
        if lacked == "time":
            # An estimate never ends a job, so only the elapsed time is proven too short.
            return self.time_s if 0 <= self.time_s <= MAX_SECONDS else 0.0
        return max(self.mem, self.given_mem) if lacked == "mem" else max(self.disk, self.given_disk)

    def is_measured(self, resource: Resource) -> bool:
        """Was this resource measured, with a plausible value?"""
        if resource == "time":
            return 0 <= self.time_s <= MAX_SECONDS
        return 0 < self.used(resource) <= MAX_BYTES


def at_most(size: int) -> int:
    """Encode an upper bound of the peak for `Observation.mem`.

    Negative, which older versions take for not measured.
    """
    return -size


def observation_row(
    group: str,
    place: int,
    seen: Observation,
    job: int | None = None,
    asked_mem: int | None = None,
    asked_disk: int | None = None,
    asked_time_s: float | None = None,
) -> ObservationRow:
    """The row of an observation at this place of its group (see `Model.observe`)."""
    return ObservationRow(
        group, place, seen.at, seen.mem, seen.disk, seen.time_s, seen.outcome, seen.input_bytes, seen.given_mem,
        seen.given_disk, seen.given_time_s, job, asked_mem, asked_disk, asked_time_s,
    )  # fmt: skip


def observation_of(row: ObservationRow) -> Observation:
    """The observation in a row."""
    return Observation(
        row.at, row.mem, row.disk, row.time_s, row.outcome, row.input_bytes, row.given_mem, row.given_disk,
        row.given_time_s,
    )  # fmt: skip
