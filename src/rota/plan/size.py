"""How much a host has, and how much of it a job takes."""

from __future__ import annotations

from msgspec import Struct

#: Processors are counted in hundredths of a core, which makes fractions exact.
CORE = 100


class Size(Struct, frozen=True, array_like=True, gc=False):
    """What one job takes of one host, and how long it is expected to run."""

    cpus: int = CORE  #: hundredths of a core
    mem: int = 0  #: bytes
    disk: int = 0  #: bytes
    time_s: float = 3600.0  #: an estimate; no job is killed for it
    gpus: int = 0


class Floor(Struct, frozen=True, array_like=True, gc=False):
    """The least a job asks for after its own failures."""

    mem: int = 0
    disk: int = 0
    time_s: float = 0.0


class Capacity(Struct, frozen=True, gc=False):
    """What a host offers to jobs."""

    cpus: int  #: hundredths of a core
    mem: int
    disk: int
    gpus: int = 0
    pool: str = ""  #: that the host belongs to

    @property
    def zero_cpu_jobs(self) -> int:
        """How many jobs without a processor may run at once."""
        return max(4, 4 * self.cpus // 100)
