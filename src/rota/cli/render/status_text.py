"""`rota status` as text: a table of groups that fits the terminal, with progress and expected ends. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from rota.cli.render.text import SafeText, block, cells, count, cut, harmless, paint, side_by_side
from rota.core.states import LEASED, TERMINAL, State
from rota.units import about_duration

if TYPE_CHECKING:
    from rota.wire.views import ManagerView, StatusView

_FULL: Final = "█"
_PARTS: Final = " ▏▎▍▌▋▊▉"
#: Columns for several states each, where there is no room for a column per state.
_FOLDED: Final = {
    "waiting": ("dependent", "blocked", "held", "ready", "delayed", "scheduled"),
    "running": ("starting", "running", "suspended", "finishing", "lost"),
    "complete": ("complete",),
    "failed": ("failed",),
    "cancelled": ("cancelled",),
}
_RUNNING: Final = [state.label for state in LEASED if state is not State.SCHEDULED]
_DONE: Final = [state.label for state in TERMINAL]


class Canvas(NamedTuple):
    """The size of the terminal; None if nothing may be cut."""

    columns: int | None = None
    lines: int | None = None
    colour: bool = False


def status_text(
    found: StatusView, space: Canvas, *, now: datetime | None = None, states: Collection[str] = ()
) -> SafeText:
    """The whole text.

    If there are more groups than lines, only the busiest are shown. `states` get a column even if no job is in
    them.
    """
    if not found.counts:
        return block(["no jobs", *([still] if (still := standstill(found)) else [])])
    now = now or datetime.now(UTC)
    end = summary(found, now)
    if still := standstill(found):
        end.append(still)
    names = sorted(found.groups)
    left_out = 0
    if space.lines is not None:
        fit = max(1, space.lines - len(end) - 1)  # the head
        if len(names) > 1 and len(names) + 1 > fit:  # with the line of totals
            fit = max(1, fit - 2)
            left_out = max(0, len(names) - fit)
            names = sorted(busiest(found.groups)[:fit])
    lines = _table(found, names, space, now, {*states, *found.counts})
    if left_out:
        lines.insert(len(names) + 1, f"… and {count(left_out, 'more group')}")
    return block([*lines, *(cut(line, space.columns) if space.columns else line for line in end)])


def summary(found: StatusView, now: datetime) -> list[str]:
    """Rate, cores in use and expected end, as far as they are known."""
    if done(found.counts) == sum(found.counts.values()):
        return []
    lines = []
    if found.rate:
        lines.append(f"rate: {rate_text(found.rate)}")
    if found.cores:
        lines.append(f"cores: {found.cores_in_use:g} of {found.cores:g} in use")
    if found.expected_end:
        left = left_text(found.expected_end, now)
        lines.append(f"expected end: {found.expected_end.astimezone():%Y-%m-%d %H:%M:%S}, in {left}")
    said = ["  ".join(lines)] if lines else []
    return [*said, *_end_unknown(found)]


def _end_unknown(found: StatusView) -> list[str]:
    """Why there is no expected end, or what it leaves out."""
    why = found.end_reason or next(iter(found.group_end_reasons.values()), None)
    if why is None or found.paused or found.draining:
        return []  # or `standstill` has the reason
    group = next((name for name, each in found.group_end_reasons.items() if each == why), "")
    whose = f"group '{harmless(group)}': " if group and len(found.groups) > 1 else ""
    said = "this leaves out: " if found.expected_end else "expected end: not known: "
    return [f"{said}{whose}{harmless(why.message)}"]


def standstill(view: ManagerView | StatusView) -> str | None:
    """Why no job starts, or none can be added; None if nothing is in the way."""
    if view.disk_full:
        full = f"the disk mounted at {view.disk_full} is full"
        return f"{full}: no jobs can be added, and ends are recorded when there is room; free some space"
    if view.safe_mode:
        return f"nothing starts because of a bug ({view.safe_mode}); 'rota manager resume' lets jobs start"
    if view.draining:
        return "the manager is draining: it stops when nothing runs ('rota manager resume' prevents it)"
    if view.paused:
        return "the manager is paused ('rota manager resume' lets jobs start)"
    return None


def busiest(groups: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Groups by number of running jobs, then of waiting jobs."""

    def rank(group: str) -> tuple[int, int, str]:
        counts = groups[group]
        return (-_sum(counts, _RUNNING), done(counts) - sum(counts.values()), group)

    return sorted(groups, key=rank)


def done(counts: Mapping[str, int]) -> int:
    return _sum(counts, _DONE)


def rate_text(rate: float) -> str:
    """Jobs a second, or a minute or an hour when that is easier to read."""
    for per, seconds in (("s", 1), ("min", 60), ("h", 3600)):
        number = rate * seconds
        if number >= 1 or per == "h":
            return f"{number:,.0f}/{per}" if number >= 10 else f"{number:.1f}/{per}"
    raise AssertionError


def left_text(end: datetime | None, now: datetime) -> str:
    return "-" if end is None else span_text((end - now).total_seconds())


def span_text(seconds: float) -> str:
    """A time in whole seconds."""
    return about_duration(seconds) if seconds >= 9.5 else f"{max(0.0, seconds):.0f}s"


def bar(share: float, size: int) -> str:
    """A bar of `size` columns, exact to an eighth of a column."""
    eighths = int(max(0.0, min(1.0, share)) * size * 8)
    text = _FULL * (eighths // 8) + (_PARTS[eighths % 8] if eighths % 8 else "")
    return text + "░" * (size - len(text))


def done_parts(counts: Mapping[str, int], size: int) -> list[tuple[str, str]]:
    """A bar of what has ended, in pieces: each with the state that it stands for, the rest with "dim"."""
    total = sum(counts.values()) or 1
    text = bar(done(counts) / total, size)
    drawn = left = size - text.count("░")
    pieces = [(text[drawn:], "dim")]
    for state in ("failed", "cancelled"):
        if n := counts.get(state, 0):
            part = min(left, max(1, round(size * n / total)))
            pieces.insert(0, (text[left - part : left], state))
            left -= part
    return [piece for piece in [(text[:left], "complete"), *pieces] if piece[0]]


def _table(found: StatusView, names: list[str], space: Canvas, now: datetime, shown: Collection[str]) -> list[str]:
    states = {s.label: (s.label,) for s in State if s.label in shown}
    folded = {name: members for name, members in _FOLDED.items() if not set(shown).isdisjoint(members)}
    if space.columns is None:
        return _drawn(found, names, states, space, now, bar_size=0)
    # The first that fits; on a very narrow terminal, lines are cut.
    layouts = ((states, 20, True), (states, 10, True), (folded, 10, True), (folded, 0, True), (folded, 0, False))
    for columns, bar_size, rates in layouts:
        bare = space._replace(colour=False)
        lines = _drawn(found, names, columns, bare, now, bar_size=bar_size, rates=rates)
        if max(map(cells, lines)) <= space.columns:
            break
    else:
        return [cut(line, space.columns) for line in lines]
    if not space.colour:
        return lines
    return _drawn(found, names, columns, space, now, bar_size=bar_size, rates=rates)


def _drawn(
    found: StatusView,
    names: list[str],
    columns: Mapping[str, Iterable[str]],
    space: Canvas,
    now: datetime,
    *,
    bar_size: int,
    rates: bool = True,
) -> list[str]:
    head = ["GROUP", *(["PROGRESS"] if bar_size else []), "ENDED", *map(str.upper, columns)]
    head += ["RATE", "ENDS IN"] if rates else ["ENDS IN"]

    def row(name: str, counts: Mapping[str, int], rate: float | None, end: datetime | None) -> list[str]:
        total = sum(counts.values())
        share = done(counts) / total if total else 0.0
        numbers = [_sum(counts, members) for members in columns.values()]
        return [
            name if space.columns is None else cut(name, max(12, space.columns // 4)),
            *([bar(share, bar_size)] if bar_size else []),
            f"{int(100 * share)}%",
            *(f"{number:,}" if number else "." for number in numbers),
            *([rate_text(rate) if rate else "-"] if rates else []),
            left_text(end, now),
        ]

    rows = [
        row(harmless(name), found.groups[name], found.group_rates.get(name), found.group_expected_end.get(name))
        for name in names
    ]
    if len(found.groups) > 1:
        rows.append(row("total", found.counts, found.rate, found.expected_end))
    left_aligned = 2 if bar_size else 1
    widths = [max(map(cells, column)) for column in zip(head, *rows, strict=True)]
    kinds = ["", *([""] if bar_size else []), "", *columns, *([""] if rates else []), ""]
    lines: list[str] = []
    for place, texts in enumerate([head, *rows]):
        parts = []
        for column, text in enumerate(texts):
            pad = " " * (widths[column] - cells(text))
            kind = "bold" if place == 0 else "dim" if text in (".", "-") else kinds[column]
            painted = paint(text, kind, on=space.colour)
            if bar_size and column == 1 and place:
                pieces = done_parts(_counts_of(found, names, place), bar_size)
                painted = side_by_side(paint(piece, state, on=space.colour) for piece, state in pieces)
            parts.append(painted + pad if column < left_aligned else pad + painted)
        lines.append(side_by_side(parts, gap="  "))
    return lines


def _counts_of(found: StatusView, names: list[str], line: int) -> Mapping[str, int]:
    return found.groups[names[line - 1]] if line <= len(names) else found.counts


def _sum(counts: Mapping[str, int], labels: Iterable[str]) -> int:
    return sum(counts.get(label, 0) for label in labels)
