"""A suspended job: the cores that it resumes on, and for how long."""

from __future__ import annotations

from rota.plan.reasons import Waits
from rota.plan.schedule.plan_entry import Option, PlanEntry
from rota.plan.snapshot import state
from rota.plan.timeline.shapes import Shape, Short


class ExactShape(Shape):
    """The shape of exactly these resources."""

    def __init__(self, mask: int) -> None:
        self.fits = []
        self.eligible = mask
        self.least = mask.bit_count()
        self.plain, self.bounded, self.greedy, self.ordered, self.whole_hosts = False, False, False, False, False
        self.family, self.number = ("exactly", mask), 1
        self.even = self.possible = True

    def may_fit(self, free: int) -> bool:
        return free & self.eligible == self.eligible

    def choose(self, free: int, short: Short | None = None) -> int:
        mask = self.eligible
        if free & mask != mask or (short is not None and short(mask) & mask):
            return 0
        return mask


@state
class SuspendedJob:
    """A suspended job, and what it needs to resume."""

    entry: PlanEntry
    ids: tuple[int, ...]
    mask: int  #: the ones that the present site still has
    left_s: float
    hard: bool  #: does a walltime end it?
    since: float
    until: float  #: it keeps memory and the like until then, if it has no planned start

    def __init__(
        self, entry: PlanEntry, ids: tuple[int, ...], mask: int, *, left_s: float, hard: bool, since: float
    ) -> None:
        self.entry = entry
        self.ids = ids
        self.mask = mask
        self.left_s = left_s
        self.hard = hard
        self.since = since
        self.until = since


def prepare(pinned: SuspendedJob) -> None:
    """Give it one option: its own cores, for the time that it has left."""
    entry = pinned.entry
    entry.options = (Option(ExactShape(pinned.mask), pinned.left_s, pinned.hard),)
    entry.least, entry.shortest, entry.even = pinned.mask.bit_count(), pinned.left_s, False
    entry.alternative = 0
    if not pinned.mask or pinned.mask.bit_count() < len(pinned.ids):
        entry.trouble = Waits("resuming", "some of the cores that it had are not there any more")
