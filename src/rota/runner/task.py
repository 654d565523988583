"""One attempt that is being executed, from its spawn until nothing of it is left. Data only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rota.core.leases import Started
from rota.runner.journal import Key
from rota.runner.output import Capture

if TYPE_CHECKING:
    from rota.runner.cgroup import Group
    from rota.runner.scratch import Scratch
    from rota.runner.seats import Pipes, Seat
    from rota.wire.messages import RunSpec


class Task:
    """What the runner knows about a running attempt.

    Most of it is never needed for a short job, so it stays with the class until it is set.
    """

    over = False
    plain = True  #: nothing has happened to it that a short, quiet job has not
    status: int | None = None  #: of wait(2), once the first process has been reaped
    usage: Any = None  #: its rusage
    out: Capture | None = None
    err: Capture | None = None
    cpu_s = 0.0  #: of adopted orphans
    peak_mem = 0
    peak_disk = 0
    sampled = False
    oom_kills = 0  #: the kernel's count at the first sample
    reason = ""  #: why the runner ends it
    message = ""
    deadline: float | None = None  #: when its walltime is over
    kill_at: float | None = None  #: when grace is over; TERM has been sent if set
    doubtful = False  #: others may hold its pipes
    cgroup: Group | None = None
    scratch: Scratch | None = None
    _known: dict[int, int] | None = None

    def __init__(
        self, key: Key, seat: Seat, pipes: Pipes, spec: RunSpec, pid: int, shell: bool,
        start_time: int, started_at: float, began: float,
    ) -> None:  # fmt: skip
        self.key = key
        self.seat = seat
        self.pipes = pipes
        self.spec = spec
        self.pid = pid
        self.shell = shell  #: run by a shell, whose exit codes 126 and 127 have a meaning
        self.start_time = start_time  #: clock ticks since boot, give or take a tick
        self.started_at = started_at
        self.began = began  #: monotonic

    def started(self) -> Started:
        """What is told about its beginning."""
        return Started(*self.key, self.seat.id, self.started_at, self.pid)

    @property
    def known(self) -> dict[int, int]:
        """Descendants that were seen: pid -> start time."""
        if self._known is None:
            self._known = {}
        return self._known
