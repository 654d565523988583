"""One attempt that is being executed, from its spawn until nothing of it is left. Data only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rota.runner.journal import Key
from rota.runner.output import Capture

if TYPE_CHECKING:
    from rota.runner.cgroup import Group
    from rota.runner.scratch import Scratch
    from rota.runner.seats import Pipes, Seat
    from rota.wire.messages import RunSpec


class Task:
    """What the runner knows about a running attempt."""

    __slots__ = (
        "began",
        "cgroup",
        "cpu_s",
        "deadline",
        "doubtful",
        "err",
        "key",
        "kill_at",
        "known",
        "message",
        "oom_kills",
        "out",
        "peak_disk",
        "peak_mem",
        "pid",
        "pipes",
        "reason",
        "sampled",
        "scratch",
        "seat",
        "shell",
        "spec",
        "start_time",
        "started_at",
        "status",
        "usage",
        "we_killed",
    )

    def __init__(self, key: Key, seat: Seat, pipes: Pipes, spec: RunSpec, *, pid: int, shell: bool) -> None:
        self.key = key
        self.seat = seat
        self.pipes = pipes
        self.spec = spec
        self.pid = pid
        self.shell = shell  #: run by a shell, whose exit codes 126 and 127 have a meaning
        self.start_time = 0  #: clock ticks since boot, give or take a tick
        self.started_at = 0.0
        self.began = 0.0  #: monotonic
        self.status: int | None = None  #: of wait(2), once the first process has been reaped
        self.usage: Any = None  #: its rusage
        self.out: Capture | None = None
        self.err: Capture | None = None
        self.cpu_s = 0.0  #: of adopted orphans
        self.peak_mem = 0
        self.peak_disk = 0
        self.sampled = False
        self.oom_kills = 0  #: the kernel's count at the first sample
        self.reason = ""  #: why the runner ends it
        self.message = ""
        self.deadline: float | None = None  #: when its walltime is over
        self.kill_at: float | None = None  #: when grace is over; TERM has been sent if set
        self.we_killed = False
        self.doubtful = False  #: others may hold its pipes
        self.known: dict[int, int] = {}  #: descendants seen: pid -> start time
        self.cgroup: Group | None = None
        self.scratch: Scratch | None = None
