"""What one ended attempt showed about its learning group."""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

from rota.units import MAX_BYTES, MAX_SECONDS

#: What is learned.
Resource = Literal["mem", "disk", "time"]
RESOURCES: Final[tuple[Resource, ...]] = ("mem", "disk", "time")

#: The outcomes of attempts that did not get enough of something, and of what.
LACKED: Final[dict[str, Resource]] = {"memory": "mem", "disk": "disk", "time": "time", "walltime": "time"}

COMPLETE: Final = "complete"


class Observation(Struct, frozen=True, array_like=True, gc=False):
    """One ended attempt: what it used, what it was given, and how it ended."""

    at: float  #: when it ended
    mem: int  #: peak, in bytes; 0 = not measured; below 0 = not known, but no more than that (`at_most`)
    disk: int  #: peak, in bytes; 0 = not measured
    time_s: float  #: from start to end
    outcome: str = COMPLETE  #: or the code of the reason
    input_bytes: int | None = None
    given_mem: int = 0
    given_disk: int = 0
    given_time_s: float = 0.0  #: its walltime, or the time it was expected to take

    def used(self, resource: Resource) -> float:
        if resource == "mem":
            return self.mem
        return self.disk if resource == "disk" else self.time_s

    @property
    def most_mem(self) -> int:
        """The most that its peak of memory can have been, if that is all that is known of it; else 0."""
        return -self.mem if -MAX_BYTES <= self.mem < 0 else 0

    def too_small(self) -> float:
        """How much of what it lacked is proven not to be enough."""
        lacked = LACKED[self.outcome]
        if lacked == "time":
            # The time it was expected to take never ends a job: only what passed is proven.
            return self.time_s if 0 <= self.time_s <= MAX_SECONDS else 0.0
        return max(self.mem, self.given_mem) if lacked == "mem" else max(self.disk, self.given_disk)

    def is_measured(self, resource: Resource) -> bool:
        """Was this measured, and can it be true?"""
        if resource == "time":
            return 0 <= self.time_s <= MAX_SECONDS
        return 0 < self.used(resource) <= MAX_BYTES


def at_most(size: int) -> int:
    """How `Observation.mem` says that the peak is not known but was no more than this. (Versions that do not know
    of it take what is below 0 for not measured.)"""
    return -size


#: An observation as it is stored: its place in the group (see `Model.observe`), then its fields in order.
Row = tuple[int, float, int, int, float, str, int | None, int, int, float]


def to_row(place: int, seen: Observation) -> Row:
    return (
        place,
        seen.at,
        seen.mem,
        seen.disk,
        seen.time_s,
        seen.outcome,
        seen.input_bytes,
        seen.given_mem,
        seen.given_disk,
        seen.given_time_s,
    )
