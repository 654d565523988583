"""How machines spent their time as text: a stacked bar for each day, week or month. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from rota.cli.render import usage_parts
from rota.cli.render.chart_style import ChartStyle
from rota.cli.render.text import SafeText, harmless, painted, side_by_side
from rota.cli.render.usage_parts import Window, busy_share

#: Part → sign, sign in ASCII, colour.
_SIGNS: Final = {
    usage_parts.BUSY: ("█", "#", "36"),
    usage_parts.INSTALLING: ("▓", "+", "35"),
    usage_parts.IDLE: ("·", ".", "2"),
    usage_parts.DOWN: ("!", "!", "31"),
    usage_parts.ASLEEP: ("z", "z", "2"),
    usage_parts.MANUAL: ("m", "m", "33"),
    usage_parts.BROKEN: ("b", "b", "31"),
    usage_parts.REMOVED: ("-", "-", "2"),
    usage_parts.UNKNOWN: (" ", " ", "2"),
}
_LEAST: Final = 10  #: columns of a bar
_SHARE: Final = 6  #: columns of `100 %`, with a gap
#: Bars of one key that can be read together.
_MOST_BARS: Final = 31
_DAY_S: Final = 86_400.0


def window_for(seconds: float) -> str:
    """The default window of a plot of so long a time: the shortest with at most 31 bars, or month."""
    if seconds <= _MOST_BARS * _DAY_S:
        return "day"
    return "week" if seconds <= _MOST_BARS * 7 * _DAY_S else "month"


def plot(keys: Mapping[str, Sequence[Window]], look: ChartStyle, *, names: Mapping[str, str]) -> list[str]:
    """A bar for each window of each key, then the legend. `names`: key → its title; an empty one is not shown."""
    lines: list[str] = []
    labels = {key: [label(window.at, window.until) for window in its] for key, its in keys.items()}
    left = max((len(text) for its in labels.values() for text in its), default=0)
    columns = max(look.width - left - 2 - _SHARE, _LEAST)
    seen: set[str] = set()
    for key, its in keys.items():
        if names.get(key):
            lines += ["", harmless(names[key])] if lines else [harmless(names[key])]
        for window, text in zip(its, labels[key], strict=True):
            share = busy_share(window.seconds)
            said = "-" if share is None else f"{100 * share:.0f} %"
            seen.update(window.seconds)
            bar = _bar(window.seconds, columns, look)
            lines.append(side_by_side([text.ljust(left + 1), *bar, said.rjust(_SHARE)]))
    return [*lines, "", *_legend(seen, look)]


def label(at: datetime, until: datetime) -> str:
    """The start of a window in local time; with its hour unless it is a day or longer."""
    local = at.astimezone()
    midnight = (local.hour, local.minute, local.second) == (0, 0, 0)
    if until - at > timedelta(hours=2) and (midnight or until - at >= timedelta(hours=20)):
        return f"{local:%Y-%m-%d}"
    return f"{local:%Y-%m-%d %H:%M}"


def shares(seconds: Mapping[str, float], columns: int) -> dict[str, int]:
    """Part → columns, which add up to `columns`: rounded by the largest remainder, so that no time is left out."""
    total = sum(seconds.values())
    if total <= 0:
        return {}
    exact = {part: columns * its / total for part, its in seconds.items()}
    found = {part: int(its) for part, its in exact.items()}
    rest = columns - sum(found.values())
    for part in sorted(exact, key=lambda part: found[part] - exact[part])[:rest]:
        found[part] += 1
    return found


def _bar(seconds: Mapping[str, float], columns: int, look: ChartStyle) -> list[SafeText]:
    widths = shares(seconds, columns)
    if not widths:
        return [harmless(" " * columns)]
    return [_painted(part, width, look) for part, width in widths.items() if width]


def _painted(part: str, width: int, look: ChartStyle) -> SafeText:
    sign, plain, colour = _SIGNS[part]
    text = (plain if look.plain else sign) * width
    return painted(text, colour) if look.colours else harmless(text)


def _legend(seen: Collection[str], look: ChartStyle) -> Iterator[str]:
    line = ""
    for part in usage_parts.PARTS:
        if part not in seen:
            continue
        sign, plain, _colour = _SIGNS[part]
        text = f"{(plain if look.plain else sign).strip() or '(empty)'} {part}"
        if line and len(line) + 2 + len(text) > look.width:
            yield line
            line = ""
        line += f"  {text}" if line else text
    if line:
        yield line
