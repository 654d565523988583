"""The Gantt chart as text, with time from left to right and a row for each group of resources.

Pure. Without colours a bar is the job's id and a line: `=` running, `-` planned, `_` ended, `x` failed.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator
from itertools import groupby
from math import inf
from typing import Final, NamedTuple

from rota.cli.render.chart_style import ChartStyle
from rota.cli.render.gantt_axis import axis, column_of
from rota.cli.render.gantt_bars import ENDED, FAILED, KEPT, Bar, HostResources, Run, items, owned
from rota.cli.render.gantt_signs import INKS, SIGNS, STATES
from rota.cli.render.text import SafeText, cells, cut, harmless, painted, side_by_side
from rota.plan.language.hostlist import fold
from rota.plan.site.bitset import parse_spans
from rota.wire.gantt import GanttHost, GanttJob, GanttView

#: What a cell may hold besides a bar, which is its number from 1 on.
_FREE: Final = 0
_NOT_USABLE: Final = -1
#: Many jobs, by how much of a host they used: -10 is hardly anything, -18 all of it.
_MERGED: Final = -10
_LEVELS: Final = "▁▂▃▄▅▆▇█"
_PLAIN_LEVELS: Final = "12345678"
_LEAST_CODE: Final = _MERGED - len(_LEVELS)

#: Background colours that differ clearly from each other, for dark text: of 256, or of the basic ones.
_MANY: Final = (110, 180, 114, 174, 146, 187, 218, 152, 143, 116, 216, 108)
_FEW: Final = (42, 43, 46, 45, 47)

_LEAST: Final = 20  #: columns for time
_DAY_S: Final = 86_400
_FEW_JOBS: Final = 2000  #: up to this many, drawing the chart twice costs nothing
_LENGTHS: Final = 24  #: the default chart is this many median jobs long


class ChartRow(NamedTuple):
    """Resources with the same schedule."""

    label: str
    places: tuple[int, ...]  #: one for each column


def chart(view: GanttView, begin: float, end: float, look: ChartStyle) -> list[str]:
    """The lines of the chart between two times: the axis, the rows, the legend."""
    now = view.now.timestamp()
    names = [_name(each) for each in view.hosts]
    room = min(max([len(name) for name in names] + [8]) + 10, max(look.width // 3, 12))
    columns = max(look.width - room - 1, _LEAST)
    together = SharedPlaces()
    hosts = owned(view)
    bars = items(view, hosts)
    rows = list(folded(view, hosts, bars, begin, end, columns, together))
    shown = rows[: look.rows] if look.rows else rows
    left = min(room, max((cells(row.label) for row in shown), default=4))
    if left < room and len(bars) <= _FEW_JOBS:  # what the labels do not need is for time
        columns = max(look.width - left - 1, _LEAST)
        rows = list(folded(view, hosts, bars, begin, end, columns, together))
        shown = rows[: look.rows] if look.rows else rows
    at_now = column_of(now, begin, end, columns)
    lines = list(axis(begin, end, at_now if begin <= now < end else None, columns, left))
    lines += [f"{_padded(row.label, left, look)} " + _drawn(row.places, bars, together, look) for row in shown]
    if len(shown) < len(rows):
        lines.append(
            f"{'...' if look.plain else '…'} and {len(rows) - len(shown):,} more rows (--rows 0 shows all)"
        )
    seen = {place for row in shown for place in row.places}
    return [*lines, "", *legend(look, seen=seen, over={bars[place - 1].line for place in seen if place > 0})]


def legend(look: ChartStyle, *, seen: Collection[int] = (), over: Collection[str] = ()) -> list[str]:
    """The legend, wrapped to the width. Signs of the past are listed only if they are drawn."""
    dots = "..." if look.plain else "···"
    lines = [""]
    parts = ["|ID=== runs", "|ID--- planned", f"{dots} free", "/// may not be used"]
    ends = {KEPT: "kept", ENDED: "ended", FAILED: "failed or killed"}
    parts += [f"|ID{3 * sign} {word}" for sign, word in ends.items() if sign in over]
    if any(_LEAST_CODE < place <= _MERGED for place in seen):
        parts.append(f"{'123' if look.plain else '▂▄▆'} many jobs, merged")
    signs = ((3 * sign, word) for code, (sign, word) in SIGNS.items() if code in seen)
    parts += [f"{sign.strip() or '(empty)'} {word}" for sign, word in signs]
    if any(place <= _LEAST_CODE for place in seen):
        parts.append("|ID+ID*** jobs that share")
    for part in parts:
        if lines[-1] and len(lines[-1]) + 2 + len(part) > look.width:
            lines.append("")
        lines[-1] += f"  {part}" if lines[-1] else part
    return lines


# ------------------------------------------------------------------ cells


class SharedPlaces:
    """Codes for cells that several jobs share; smaller than all other codes."""

    def __init__(self) -> None:
        self._codes: dict[tuple[int, ...], int] = {}
        self._members: dict[int, tuple[int, ...]] = {}

    def members(self, place: int) -> tuple[int, ...]:
        """The bars in a cell, as numbers from 1 on."""
        return self._members.get(place, (place,))

    def joined(self, place: int, number: int) -> int:
        """The code of the cell with one more bar."""
        members = tuple(sorted({*self.members(place), number}))
        code = self._codes.setdefault(members, _LEAST_CODE - len(self._codes))
        self._members[code] = members
        return code


def folded(
    view: GanttView,
    owners: list[HostResources],
    bars: list[Bar],
    begin: float,
    end: float,
    columns: int,
    together: SharedPlaces,
) -> Iterator[ChartRow]:
    """The rows. Resources of a host with the same schedule share one, and so do hosts that look alike."""
    domains = {host.host.partition(".")[2] for host in view.hosts}
    domain = f".{domains.pop()}" if len(domains) == 1 else "."  # one that all share tells nothing
    alike: dict[tuple[str, tuple[tuple[int, ...], ...]], list[tuple[str, list[str]]]] = {}
    for host, parts in _by_host(view, owners, bars, begin, end, columns, together):
        same = alike.setdefault((_state(host), tuple(places for places, _ids in parts)), [])
        same.append((host.host.removesuffix(domain), [_spans(ids) for _places, ids in parts]))
    for (state, rows), hosts in alike.items():
        names = harmless(fold(host for host, _ids in hosts))
        for number, places in enumerate(rows):
            ids = hosts[0][1][number] if len(hosts) == 1 else f"part {number + 1}"
            yield ChartRow(f"{names} {ids}{state}" if len(rows) > 1 else f"{names}{state}", places)


def _by_host(
    view: GanttView,
    owners: list[HostResources],
    bars: list[Bar],
    begin: float,
    end: float,
    columns: int,
    together: SharedPlaces,
) -> Iterator[tuple[GanttHost, list[tuple[tuple[int, ...], list[Run]]]]]:
    """Each host, with its resources grouped by equal schedule: cells, and ranges of ids."""
    owned_by = [(low, high, number) for number, its in enumerate(owners) for low, high in its.runs]
    # Only where something begins or ends can there be a difference.
    edges = sorted(
        {low for low, _high, _host in owned_by}
        | {high + 1 for _low, high, _host in owned_by}
        | {edge for bar in bars for low, high in bar.runs for edge in (low, high + 1)}
    )
    grid = [array("l", bytes(array("l").itemsize * len(edges))) for _ in range(columns)]

    def fill(since: float, until: float, run: Run, what: int, sharing: set[int]) -> None:
        from_ = min(column_of(since, begin, end, columns), columns - 1)
        to = column_of(until, begin, end, columns)
        if what > 0:
            to = max(to, from_ + 1)  # however short it is, it is seen
        first, last = bisect_left(edges, run[0]), bisect_left(edges, run[1] + 1)
        _fill(grid, from_, to, first, last, what, sharing, together)

    for since, until, run, what in _background(view, owners):
        if since < end and until > begin:
            fill(since, until, run, what, set())
    sharing = {number for number, bar in enumerate(bars, 1) if bar.shares}
    for number, bar in enumerate(bars, 1):
        if bar.start < end and bar.end > begin:
            for run in bar.runs:
                fill(bar.start, bar.end, run, number, sharing)
    rows = list(zip(*grid, strict=True))
    groups: dict[int, dict[tuple[int, ...], list[Run]]] = {}
    for low, high, number in owned_by:
        same = groups.setdefault(number, {})
        for at in range(bisect_left(edges, low), bisect_left(edges, high + 1)):
            same.setdefault(rows[at], []).append((edges[at], edges[at + 1] - 1))
    for number, each in enumerate(owners):
        yield each.host, list(groups.get(number, {}).items())


def _background(view: GanttView, owners: list[HostResources]) -> Iterator[tuple[float, float, Run, int]]:
    """What lies behind the bars: start, end, resources, code."""
    past = view.past
    now = view.now.timestamp()
    runs = {each.host.host: each.runs for each in owners}
    for host, its in owners:
        since = (now if past is not None else -inf) if not host.usable else inf
        if host.usable and host.available_until is not None:
            since = host.available_until.timestamp()
        code = STATES.get(host.condition, (_NOT_USABLE,))[0]  # nothing is said of one that is automated
        for run in its:
            yield since, inf, run, code
            for closes, opens in view.closed.get(host.hours, ()):
                yield closes.timestamp(), opens.timestamp(), run, _NOT_USABLE
    for span in past.states if past is not None else ():
        if span.state in STATES:
            for run in runs.get(span.host, ()):
                yield span.start.timestamp(), span.end.timestamp(), run, STATES[span.state][0]
    for merged in past.merged if past is not None else ():
        cores = sum(high - low + 1 for low, high in runs.get(merged.host, ()))
        share = min(merged.cores / cores, 1.0) if cores else 1.0
        if share > 0:
            level = min(int(share * len(_LEVELS)), len(_LEVELS) - 1)
            for run in runs.get(merged.host, ()):
                yield merged.start.timestamp(), merged.end.timestamp(), run, _MERGED - level


def _fill(
    grid: list[array[int]],
    from_: int,
    to: int,
    first: int,
    last: int,
    what: int,
    sharing: set[int],
    together: SharedPlaces,
) -> None:
    """Put a code into cells. It covers what was there, unless both are `sharing` jobs: then both are shown."""
    some = array("l", [what]) * (last - first)
    for column in range(from_, to):
        places = grid[column]
        if what in sharing and any(place <= _LEAST_CODE or place in sharing for place in places[first:last]):
            for at in range(first, last):
                there = places[at]
                places[at] = together.joined(there, what) if there <= _LEAST_CODE or there in sharing else what
        else:
            places[first:last] = some


def _spans(runs: list[tuple[int, int]]) -> str:
    joined: list[list[int]] = []
    for low, high in sorted(runs):
        if joined and joined[-1][1] == low - 1:
            joined[-1][1] = high
        else:
            joined.append([low, high])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in joined)


def _state(host: GanttHost) -> str:
    """Why the host is not usable, in parentheses; empty if it is."""
    if host.usable:
        return ""
    said = host.state if host.state != "alive" else "drain" if host.drain else "no runner"
    if host.condition != "automated":
        said = host.condition
    return f" ({said})"


def _name(host: GanttHost) -> str:
    return harmless(host.host) + _state(host)


# ------------------------------------------------------------------ on the screen


def _drawn(places: tuple[int, ...], bars: list[Bar], together: SharedPlaces, look: ChartStyle) -> SafeText:
    parts = []
    for what, same in groupby(places):
        length = sum(1 for _ in same)
        if what == _FREE:
            parts.append(_painted(("." if look.plain else "·") * length, "2", look))
        elif what == _NOT_USABLE:
            parts.append(_painted("/" * length, "2", look))
        elif what in SIGNS:
            parts.append(_painted(SIGNS[what][0] * length, INKS.get(what, "2"), look))
        elif what > _LEAST_CODE and what < 0:
            parts.append(_painted((_PLAIN_LEVELS if look.plain else _LEVELS)[_MERGED - what] * length, "36", look))
        elif what < 0:
            ids = [bars[number - 1].id for number in together.members(what)]
            parts.append(_painted(_shared_block(ids, length), _colour(ids[0], look), look))
        else:
            bar = bars[what - 1]
            parts.append(_painted(_block(bar, length), _bar_colour(bar, look), look))
    return side_by_side(parts)


def _block(bar: Bar, length: int) -> str:
    """A bar of `length` columns: its start, its id if there is room, and a line."""
    id = str(bar.id)
    if len(id) == length:
        return id if length > 1 else "|"
    return ("|" + (id if len(id) < length else "")).ljust(length, bar.line)


def _shared_block(ids: list[int], length: int) -> str:
    """Jobs that share `length` columns: as many ids as there is room for, then stars."""
    text = "|"
    for id in ids:
        more = f"{'+' if len(text) > 1 else ''}{id}"
        if len(text) + len(more) >= length:
            break
        text += more
    return text.ljust(length, "*") if length > 1 else "*"


def _bar_colour(bar: Bar, look: ChartStyle) -> str:
    if bar.line == FAILED:
        return "38;5;16;48;5;203" if look.colours >= 256 else "30;41"
    return _colour(bar.id, look)


def _colour(id: int, look: ChartStyle) -> str:
    if look.colours >= 256:
        return f"38;5;16;48;5;{_MANY[id % len(_MANY)]}"
    return f"30;{_FEW[id % len(_FEW)]}"


def _painted(text: str, code: str, look: ChartStyle) -> SafeText:
    return painted(text, code) if look.colours else harmless(text)


def _padded(label: str, width: int, look: ChartStyle) -> str:
    """The label in `width` columns. The middle is cut, since names of hosts often differ at their ends."""
    text = label
    if cells(label) > width:
        tail = width // 2
        text = cut(label, width - tail)[:-1] + ("~" if look.plain else "…")
        text += label[-tail:] if cells(label[-tail:]) <= tail else ""
    return text + " " * (width - cells(text))


def span_of(view: GanttView, since: float | None, until: float | None) -> tuple[float, float]:
    """Start and end of the chart.

    By default it shows a little of the past and all planned jobs, but not so much that a job of median length is
    too small to see. A chart that begins in the past ends soon after now.
    """
    now = view.now.timestamp()
    last = until
    if last is None:
        lengths = sorted((job.end - max(job.start, view.now)).total_seconds() for job in view.jobs if job.end)
        usual = lengths[len(lengths) // 2] if lengths else 0.0
        room = max(_LENGTHS * usual, 600.0)
        if since is not None and since < now:
            room = max((now - since) / 3, 60.0)
        last = min(max(last_end(view), now + 60.0), max(since or now, now) + room)
    first = since
    if first is None:
        base = min(now, last - 1.0)
        first = base - max((last - base) / 20, 0.5)
    return first, max(last, first + 1.0)


def last_end(view: GanttView) -> float:
    """The last expected end; -inf if there is none."""
    return max((job.end.timestamp() for job in view.jobs if job.end is not None), default=-inf)


def without_resources(jobs: Iterable[GanttJob]) -> list[GanttJob]:
    """Jobs that have no row, since they hold no resources."""
    return [job for job in jobs if not job.resources]


def numbers(spans: str | None) -> list[int]:
    """The ids of these spans."""
    return parse_spans(spans) if spans else []
