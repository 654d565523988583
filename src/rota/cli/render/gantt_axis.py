"""The time axis of a Gantt chart in the terminal. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from math import inf
from typing import Final

from rota.pictures.schedule import STEPS_S

_DAY_S: Final = 86_400


def axis(begin: float, end: float, now: int | None, columns: int, left: int) -> Iterator[str]:
    """Local times above marks; and where now is."""
    ticks = list(ticks_of(begin, end, columns))
    labels, marks = [" "] * columns, [" "] * columns
    for at, text in ticks:
        if at + len(text) <= columns and all(each == " " for each in labels[max(at - 1, 0) : at + len(text) + 1]):
            labels[at : at + len(text)] = text
        marks[at] = "'"
    if now is not None:
        text = "v now"
        at = min(now, columns - 1)
        if at + len(text) > columns:
            text = "now v"
            at -= len(text) - 1
        marks[at : at + len(text)] = text
    yield f"{' ' * left} {''.join(labels)}".rstrip()
    yield f"{' ' * left} {''.join(marks)}".rstrip()


def ticks_of(begin: float, end: float, columns: int) -> Iterator[tuple[int, str]]:
    """Round local times: column and text of each."""
    span = end - begin
    most = max(columns // 10, 1)
    step = float(next((each for each in STEPS_S if span / each <= most), 0))
    while not step or span / step > most:
        step = (step or STEPS_S[-1]) * 10
    offset = (datetime.fromtimestamp(begin).astimezone().utcoffset() or timedelta()).total_seconds()
    number = -int(-(begin + offset) // step)
    while (moment := number * step - offset) < end:
        column = column_of(moment, begin, end, columns)
        if 0 <= column < columns:
            yield column, _moment_text(datetime.fromtimestamp(moment), step)
        number += 1


def _moment_text(local: datetime, step: float) -> str:
    if step >= 100 * _DAY_S:
        return f"{local:%Y-%m-%d}"
    if step >= _DAY_S or (local.hour, local.minute, local.second) == (0, 0, 0):
        return f"{local:%a} {local.day} {local:%b}"
    return f"{local:%H:%M:%S}" if step < 60 else f"{local:%H:%M}"


def column_of(moment: float, begin: float, end: float, columns: int) -> int:
    if moment in (inf, -inf):
        return columns if moment > 0 else 0
    return min(max(round((moment - begin) / (end - begin) * columns), 0), columns)
