"""The size of a job's next attempt: from what was asked, what its group learned, and its own failures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

from msgspec import Struct

from rota.core.learning.model import MIN_SUCCESSES, Model
from rota.core.learning.observation import LACKED, RESOURCES, Resource
from rota.plan.ask import Request
from rota.plan.size import Floor, Size
from rota.units import MAX_BYTES, MAX_SECONDS

#: Which value is used: the learned one (`no`), the larger one (`higher`), or the user's (`always`). Empty:
#: `higher` for values that the user gave, `no` for defaults. `always` applies only to given values: a default is
#: not a user's choice.
Override = Literal["", "no", "higher", "always"]

_M: Final = 1 << 20
_G: Final = 1 << 30
_HOUR: Final = 3600.0
_NO_LIMIT: Final = Size(mem=MAX_BYTES, disk=MAX_BYTES, time_s=float(MAX_SECONDS))


def round_mem(size: float) -> int:
    """Round bytes up: to 128M below 1G, 512M below 8G, 2G above. Few distinct sizes make few reservation
    groups."""
    for below, step in ((_G, 128 * _M), (8 * _G, 512 * _M)):
        if size <= below:
            return _up(size, step)
    return _up(size, 2 * _G)


def _up(size: float, step: int) -> int:
    whole = int(size)
    return -(-(whole + (whole < size)) // step) * step


def round_time(seconds: float) -> float:
    """Round up to 1, 5, 15 or 30 minutes, then to whole hours."""
    for limit in (60.0, 300.0, 900.0, 1800.0):
        if seconds <= limit:
            return limit
    return -(-seconds // _HOUR) * _HOUR


class LearnedSizes:
    """What a learning group has learned, as it was at one moment: the sizes of its jobs follow from it alone."""

    __slots__ = ("_figures", "_known", "_largest")

    def __init__(self, model: Model, largest: Size | None) -> None:
        self._figures = {resource: model.figures(resource) for resource in RESOURCES}
        self._largest = largest
        self._known: dict[tuple[Size, tuple[str, ...], str], Size] = {}  #: of jobs without a floor or input size

    def recommend(self, resource: Resource, *, asked: float, input_bytes: int | None = None) -> float | None:
        return self._figures[resource].recommend(asked, input_bytes)

    def size(self, request: Request, floor: Floor | None, input_bytes: int | None) -> Size:
        """The size of the next attempt of a job with this request."""
        usual = floor is None and input_bytes is None
        key = (request.size, request.given, request.override)
        found = self._known.get(key) if usual else None
        if found is None:
            override: Override = request.override  # type: ignore[assignment]  # checked when it was added
            given = frozenset(request.given)
            found = _decided(
                request.size, given, override, self, floor or _NO_FLOOR, self._largest, input_bytes
            ).used
            if usual and len(self._known) < _REMEMBERED:
                self._known[key] = found
        return found


_NO_FLOOR: Final = Floor()
#: Decisions cached per model.
_REMEMBERED: Final = 64


def after_failure(
    reason: str, *, peak_mem: int, elapsed_s: float, peak_disk: int, size: Size, floor: Floor | None = None
) -> Floor | None:
    """The minimum for the next attempt after a failure at this size; `floor` is the previous minimum."""
    lacked = LACKED.get(reason)
    if lacked is None:
        return floor
    floor = floor or _NO_FLOOR
    if lacked == "time":
        return Floor(floor.mem, floor.disk, max(floor.time_s, min(elapsed_s, MAX_SECONDS) + _HOUR))
    if lacked == "mem":
        return Floor(max(floor.mem, _more(_next_mem, peak_mem, size.mem)), floor.disk, floor.time_s)
    return Floor(floor.mem, max(floor.disk, _more(_next_disk, peak_disk, size.disk)), floor.time_s)


def _more(following: Callable[[int], int], peak: int, had: int) -> int:
    """A measured peak may be below what the attempt had: then grow from what it had, or it fails again."""
    asked = following(peak)
    return asked if asked > had else following(had)


def _next_mem(peak: int) -> int:
    return max(peak + _G, peak * 2 if peak <= 8 * _G else -(-peak * 13 // 10))


def _next_disk(peak: int) -> int:
    return -(-peak * 13 // 10)


class Decision(Struct, frozen=True, array_like=True, gc=False):
    """The size to use, and the learned values (rounded; None: nothing learned)."""

    used: Size
    mem: int | None = None
    disk: int | None = None
    time_s: float | None = None


def decide(
    asked: Size,
    *,
    given: frozenset[str] = frozenset(),
    override: Override = "",
    model: Model | None = None,
    floor: Floor | None = None,
    largest: Size | None = None,
    input_bytes: int | None = None,
) -> Decision:
    """Decide the size of a job's next attempt.

    `given`: which of mem, disk and time the user gave. The floor of the job itself always applies: repeating a
    size that just proved too small is pointless. Learned values and floors never exceed the largest host; what the
    user asked for is left alone.
    """
    if floor is None and input_bytes is None:
        if model is None:
            return Decision(asked)
        # Thousands of equal jobs become ready at once.
        key = (asked, given, override, largest)
        known = model.memo.get(key)
        if isinstance(known, Decision):
            return known
        if len(model.memo) >= _REMEMBERED:
            model.memo.clear()
        decision = model.memo[key] = _decided(asked, given, override, model, _NO_FLOOR, largest, None)
        return decision
    return _decided(asked, given, override, model, floor or _NO_FLOOR, largest, input_bytes)


def advice(model: Model) -> object:
    """Everything in a model that decisions depend on: while it is equal, so are the decisions."""
    return [_advice(model, resource) for resource in RESOURCES]


def _advice(model: Model, resource: Resource) -> tuple[object, ...]:
    advised = (model.recommend(resource, asked=0.0), model.at_most(resource))
    rounded = [
        None if each is None else round_time(each) if resource == "time" else round_mem(each) for each in advised
    ]
    return min(model.count(resource), MIN_SUCCESSES), *rounded, model.line(resource)


def _decided(
    asked: Size,
    given: frozenset[str],
    override: Override,
    model: Model | LearnedSizes | None,
    floor: Floor,
    largest: Size | None,
    input_bytes: int | None,
) -> Decision:
    mem = disk = time_s = None
    if model is not None:
        mem = _learned_bytes(model.recommend("mem", asked=asked.mem, input_bytes=input_bytes), asked.mem)
        disk = _learned_bytes(model.recommend("disk", asked=asked.disk, input_bytes=input_bytes), asked.disk)
        raw = model.recommend("time", asked=asked.time_s, input_bytes=input_bytes)
        time_s = None if raw is None or raw == asked.time_s else round_time(raw)
    top = largest or _NO_LIMIT
    least_s = round_time(floor.time_s) if floor.time_s else 0.0
    used = Size(
        asked.cpus,
        int(_chosen(asked.mem, mem, round_mem(floor.mem), top.mem, _rule("mem", given, override))),
        int(_chosen(asked.disk, disk, round_mem(floor.disk), top.disk, _rule("disk", given, override))),
        _chosen(asked.time_s, time_s, least_s, _NO_LIMIT.time_s, _rule("time", given, override)),
        asked.gpus,
    )
    return Decision(used, mem, disk, time_s)


def _learned_bytes(recommended: float | None, asked: int) -> int | None:
    """A recommendation equal to what was asked means that too little is known."""
    return None if recommended is None or recommended == asked else round_mem(recommended)


def _rule(field: str, given: frozenset[str], override: Override) -> Override:
    """The override that applies to one field."""
    if field in given:
        return override or "higher"
    return "higher" if override == "higher" else "no"


def _chosen(asked: float, learned: float | None, floor: float, top: float, override: Override) -> float:
    used = asked
    if learned is not None and override != "always":
        learned = min(learned, top)
        used = learned if override == "no" else max(asked, learned)
    return max(used, min(floor, top))
