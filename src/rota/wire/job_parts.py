"""What views of jobs consist of: sizes, amounts, reasons and attempts.

Field names are the contract. Times are aware datetimes (ISO-8601 UTC in JSON), durations seconds, sizes bytes.
"""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct, field

from rota.plan.size import CORE, Size


class SizeView(Struct, gc=False):
    """The size of a job."""

    cpus: float
    mem_bytes: int
    disk_bytes: int
    time_s: float
    gpus: int


def size_view(size: Size) -> SizeView:
    """A size for people: whole cores instead of hundredths."""
    return SizeView(size.cpus / CORE, size.mem, size.disk, size.time_s, size.gpus)


class QuantityView(Struct, gc=False):
    """One quantity of a job in four independent values; null where there is none."""

    asked: float | None = None  #: as the user gave it, before defaults, rules of the site and learning
    learned: float | None = None  #: the learning group's present estimate; only in `show`
    given: float | None = None  #: what the newest attempt was started with
    used: float | None = None  #: measured at the end


class BytesView(Struct, gc=False):
    """A quantity in bytes; per host for a job on several hosts."""

    asked: int | None = None
    learned: int | None = None
    given: int | None = None
    used: int | None = None


class AmountsView(Struct, kw_only=True, gc=False):
    """Requested, learned, allocated and used amounts."""

    cores: QuantityView  #: asked: null if the request counts other resources; used: the mean over its run time
    mem_bytes: BytesView
    disk_bytes: BytesView  #: used: null unless it ran in a scratch directory; other directories are not measured
    time_s: QuantityView  #: run time. Given: the walltime, or else the expected run time
    walltime_s: QuantityView  #: the job is ended after this time; null: no limit


class ReasonView(Struct, gc=False):
    code: str
    message: str


class BehavedView(Struct, gc=False):
    """The result of one behaviour."""

    behaviour: str
    ok: bool
    message: str


class AttemptView(Struct, kw_only=True, gc=False):
    """One execution of a job."""

    attempt: int
    state: str  #: complete, failed, cancelled, lost, void, or the job's state while it is open
    reason: ReasonView | None = None
    exit_code: int | None = None
    signal: str | None = None
    host: str | None = None
    runner: str | None = None
    scheduled_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    wall_s: float | None = None  #: without suspended time
    cpu_s: float | None = None
    peak_mem_bytes: int | None = None
    peak_disk_bytes: int | None = None
    stdout_bytes: int | None = None
    stderr_bytes: int | None = None
    size: SizeView | None = None  #: allocated
    resources: str | None = None  #: allocated by a plan: ids, like 1-8,17
    behaviours: list[BehavedView] = field(default_factory=list)
    hosts: list[str] = field(default_factory=list)  #: all hosts; the command ran on the first, `host`
    out_bytes: int | None = None  #: written to stdout, including what was not kept
    err_bytes: int | None = None
    output_missing: ReasonView | None = None  #: why part of the output that should be kept is missing
    amounts: AmountsView | None = None  #: asked, given and used


class StoryLine(Struct, gc=False):
    """Something that happened to a job."""

    at: datetime
    attempt: int
    event: str
    text: str


class PromisedView(Struct, gc=False):
    """What a reservation was promised when it began with fewer resources."""

    cores: int
    hosts: list[str]
    given_cores: int
    message: str  #: what was missing, and why


class LearnedView(Struct, gc=False):
    """The learning group's estimate of a job's size; null where there is none."""

    mem_bytes: int | None = None
    disk_bytes: int | None = None
    time_s: float | None = None
