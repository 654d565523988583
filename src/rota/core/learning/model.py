"""The model of one learning group: what its attempts teach about the size of its next job.

A pure function of the newest observations: equal rows give equal recommendations, whatever was asked in between.
Rounding, overrides and the bound of the largest host are in `core.learning.sizing`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from rota.core.learning.figures import Figures
from rota.core.learning.observation import (
    COMPLETE,
    LACKED,
    RESOURCES,
    Observation,
    Resource,
    observation_of,
    observation_row,
)
from rota.core.learning.percentile import ERA, KEPT, DecayingValues, first_era
from rota.core.learning.regression import MAX_POINTS, FittedLine, fit
from rota.core.rows import ObservationRow
from rota.plan.size import Size
from rota.units import MAX_BYTES, MAX_SECONDS

#: With fewer successes the user's value is used.
MIN_SUCCESSES: Final = 3
#: A failure for lack of a resource counts until this many attempts have succeeded after it. One job in twenty may
#: lack something without the rest needing more: counting longer wastes much and hardly prevents a failure.
FAILURE_COUNTS_FOR: Final = 5
#: Failures kept of each kind.
KEPT_FAILURES: Final = 64
#: Durations kept per requested time, and number of requested times.
KEPT_TIMES: Final = 64
#: Successes after which the line is fitted again.
LINE_EVERY: Final = 16


def _row_order(row: ObservationRow) -> tuple[int, bool, float]:
    """Order rows by age. The place of a failure is the number of the next success."""
    return row.place, row.outcome == COMPLETE, row.at


class CachedSize(NamedTuple):
    """A size computed from a model, and how long it stays valid. For jobs without a floor or input size."""

    learned: Size | None  #: None: as asked
    model: Model
    until: int  #: valid for fewer successes than this
    lacked: int
    largest: Size | None  #: capacity of the largest host at the time

    def holds(self, model: Model, largest: Size | None) -> bool:
        """Is it still valid?"""
        return (
            self.model is model
            and model.taken < self.until
            and self.lacked == model.lacked
            and self.largest == largest
        )


class Model:
    """The observations of one learning group."""

    __slots__ = (
        "_bounds",
        "_failures",
        "_lines",
        "_others",
        "_pending",
        "_percentiles",
        "_successes",
        "_taken",
        "_took",
        "_values",
        "lacked",
        "last_advice",
        "memo",
    )

    def __init__(self) -> None:
        self._taken = 0  # successes ever; the number of the next one
        self._successes: deque[tuple[int, Observation]] = deque()
        self._failures: dict[Resource, deque[tuple[int, Observation]]] = {}
        self._others: deque[tuple[int, Observation]] = deque(maxlen=KEPT_FAILURES)
        self._values: dict[Resource, DecayingValues] = {resource: DecayingValues() for resource in RESOURCES}
        self._bounds = DecayingValues()  # upper bounds of memory, for successes whose peak is unknown
        self._pending: list[tuple[int, Observation]] = []  # successes not yet in the values
        self._percentiles: dict[Resource, tuple[float, float]] = {}
        self._lines: dict[Resource, tuple[int, FittedLine | None]] = {}
        self._took: dict[float | None, deque[float]] = {}  # requested time → durations; not stored
        self.last_advice: object = None  #: `sizing.advice` when waiting jobs were last re-examined
        self.lacked = 0  #: attempts ever that lacked a resource
        #: Results that callers computed from this model; cleared by the next observation.
        self.memo: dict[object, object] = {}

    @classmethod
    def from_rows(cls, rows: Iterable[ObservationRow]) -> Model:
        """Restore the model that wrote these rows, or any newer part of them."""
        model = cls()
        for row in sorted(rows, key=_row_order):
            model._taken = row.place  # old rows are gone, but places go on
            model.observe(observation_of(row))
        return model

    def rows(self) -> Iterator[ObservationRow]:
        """The rows to store, without the name of the group; `from_rows` restores the model from them."""
        kept = [*self._successes, *self._others]
        for failures in self._failures.values():
            kept += failures
        return iter(sorted((observation_row("", place, seen) for place, seen in kept), key=_row_order))

    def observe(self, seen: Observation) -> int:
        """Learn from an ended attempt. Returns its place, to be stored with it: the number of earlier
        successes."""
        place = self._taken
        if self.memo:
            self.memo.clear()
        if seen.outcome == COMPLETE:
            self._taken = place + 1
            self._successes.append((place, seen))
            self._pending.append((place, seen))
            if len(self._successes) > KEPT:
                oldest = first_era(place // ERA) * ERA
                while self._successes[0][0] < oldest:
                    self._successes.popleft()
                if len(self._pending) > KEPT:
                    self._fold()
        elif (lacked := LACKED.get(seen.outcome)) is not None:
            self.lacked += 1
            self._failures.setdefault(lacked, deque(maxlen=KEPT_FAILURES)).append((place, seen))
        else:
            self._others.append((place, seen))
        return place

    def _fold(self) -> None:
        """Bring the values up to date. Done lazily, because jobs often end many at a time."""
        pending, self._pending = self._pending, []
        self._percentiles.clear()
        era = (self._taken - 1) // ERA
        mem, disk, time_s = self._values["mem"], self._values["disk"], self._values["time"]
        mem.extend([(seen.mem, at // ERA) for at, seen in pending if 0 < seen.mem <= MAX_BYTES], era)
        self._bounds.extend([(most, at // ERA) for at, seen in pending if (most := seen.most_mem)], era)
        disk.extend([(seen.disk, at // ERA) for at, seen in pending if 0 < seen.disk <= MAX_BYTES], era)
        time_s.extend([(seen.time_s, at // ERA) for at, seen in pending if 0 <= seen.time_s <= MAX_SECONDS], era)

    @property
    def taken(self) -> int:
        """Successes ever."""
        return self._taken

    def fresh_until(self) -> int:
        """The number of successes up to which a size computed now stays valid.

        A sixteenth more than now, or fewer if a failure stops counting before. A new failure invalidates it at
        once.
        """
        until = self._taken + max(1, self._taken // 16)
        for failures in self._failures.values():
            for place, _seen in failures:
                if self._taken < place + FAILURE_COUNTS_FOR < until:
                    until = place + FAILURE_COUNTS_FOR
        return until

    def figures(self, resource: Resource, *, line: bool = True) -> Figures:
        """All that recommendations for this resource depend on now; `line`: also for jobs with an input size."""
        key = (resource, line)
        known = self.memo.get(key)
        if isinstance(known, Figures):
            return known
        values, enough = self.values(resource), self.count(resource) >= MIN_SUCCESSES
        figures = self.memo[key] = Figures(
            resource,
            enough,
            values.largest() if values else 0.0,
            self._percentile(resource) if enough else (0.0, 0.0),
            tuple((seen.too_small(), seen.input_bytes) for seen in self.counting(resource)),
            self.line(resource) if line else None,
        )
        return figures

    def recommend(self, resource: Resource, *, asked: float, input_bytes: int | None = None) -> float | None:
        """How much the next job should get, not rounded; None: nothing is known."""
        return self.figures(resource, line=input_bytes is not None).recommend(asked, input_bytes)

    def at_most(self, resource: Resource) -> float | None:
        """The recommendation for a job that asked for more than it needs, not rounded; None: too little is
        known."""
        return self.figures(resource, line=False).at_most()

    def _percentile(self, resource: Resource) -> tuple[float, float]:
        """The lowest and highest value that the percentile can have."""
        known = self._percentiles.get(resource)
        if known is None:
            values = self.values(resource)
            if resource == "mem" and self._bounds:
                known = values.between(self._bounds)
            else:
                known = (values.percentile(),) * 2
            self._percentiles[resource] = known
        return known

    def count(self, resource: Resource) -> int:
        """Successes with a value, or a bound, for this resource."""
        measured = len(self.values(resource))
        return measured + len(self._bounds) if resource == "mem" else measured

    def values(self, resource: Resource) -> DecayingValues:
        """The measured values of the successes."""
        if self._pending:
            self._fold()
        return self._values[resource]

    def counting(self, resource: Resource, input_bytes: int | None = None) -> list[Observation]:
        """The failures for lack of this resource that still count.

        One with a larger input proves nothing for a smaller one.
        """
        return [
            seen
            for place, seen in self._failures.get(resource, ())
            if self._taken - place < FAILURE_COUNTS_FOR
            and (input_bytes is None or seen.input_bytes is None or seen.input_bytes <= input_bytes)
        ]

    def line(self, resource: Resource) -> FittedLine | None:
        """The fitted dependence on the input size; None: too few observations."""
        step = 4 if self._taken < 4 * LINE_EVERY else LINE_EVERY
        upto = self._taken - self._taken % step
        fitted = self._lines.get(resource)
        if fitted is None or fitted[0] != upto:
            # Limited to rows that a restored model would have too.
            fitted = self._lines[resource] = (upto, fit(self._points(resource, upto - KEPT + ERA, upto)))
        return fitted[1]

    def _points(self, resource: Resource, first: int, upto: int) -> list[tuple[float, float]]:
        points: list[tuple[float, float]] = []
        for place, seen in reversed(self._successes):
            if place < first or len(points) == MAX_POINTS:
                break
            if place < upto and seen.input_bytes is not None and seen.is_measured(resource):
                points.append((seen.input_bytes, seen.used(resource)))
        return points

    def took(self, asked_s: float | None, time_s: float) -> None:
        """Record the duration of a success by the time asked for."""
        times = self._took.get(asked_s)
        if times is None:
            if len(self._took) >= KEPT_TIMES:
                del self._took[next(iter(self._took))]
            times = self._took[asked_s] = deque(maxlen=KEPT_TIMES)
        times.append(time_s)

    def times(self, asked_s: float | None) -> list[float]:
        """Durations of the newest successes that asked for as much time. Safe to call from another thread."""
        times = list(self._took.get(asked_s, ()))
        if asked_s is None and len(times) < MIN_SUCCESSES:
            times = [seen.time_s for _place, seen in list(self._successes)[-KEPT_TIMES:]]
        return times

    @property
    def forgotten(self) -> int:
        """Rows with a smaller place are no longer needed."""
        return self._successes[0][0] if self._successes else 0

    @property
    def successes(self) -> int:
        return len(self._successes)

    def kept(self) -> list[Observation]:
        """All kept observations, oldest first."""
        kept = [seen for _, seen in (*self._successes, *self._others)]
        for failures in self._failures.values():
            kept += (seen for _, seen in failures)
        return sorted(kept, key=lambda seen: seen.at)
