"""How long the elements of a session take yet, from how long they, or others, took; and the session as a whole."""

from __future__ import annotations

from statistics import median
from typing import NamedTuple

from rota.core.forecast.critical_path import CriticalPath, critical_path
from rota.manager.views.session_snapshot import SessionSnapshot


class ElementDurations(NamedTuple):
    """Seconds by element. `left_s` is None where nothing has been measured, or where it takes longer than that."""

    spent_s: list[float]
    left_s: list[float | None]
    share: float  #: of the elements that are over, how many had work to do


def element_durations(taken: SessionSnapshot) -> ElementDurations:
    """An element is expected to take as long as the last time, or else as long as others usually do."""
    spent = taken.durations.tolist()
    for cell in taken.running:
        if cell.element < len(spent):
            spent[cell.element] += cell.run_s
    worked = [now.worked for now in taken.elements]
    over = [now.at is None for now in taken.elements]
    done = [s for s, w, o in zip(spent, worked, over, strict=True) if w and o]
    usual = median(done) if done else None
    left: list[float | None] = []
    for element, before in enumerate(taken.measured_s):
        whole = before or usual
        rest = None if whole is None or spent[element] >= whole else whole - spent[element]
        left.append(0.0 if over[element] else rest)
    return ElementDurations(spent, left, len(done) / sum(over) if done else 1.0)


def longest_chain(taken: SessionSnapshot, durations: ElementDurations) -> CriticalPath:
    """The elements that have to be done one after the other and take longest yet."""
    parents = [each.depends for each in taken.definition.elements]
    if not any(taken.needs):
        parents = [()] * len(parents)
    return critical_path(parents, [each or 0.0 for each in durations.left_s], range(len(parents)))


def session_left_s(taken: SessionSnapshot, durations: ElementDurations, path: CriticalPath) -> float | None:
    """About how long the session takes yet: the longest chain, or all work at the width that it has had so far.
    None: it is over, or nothing is known."""
    begun = [spent > 0 for spent in durations.spent_s]
    work = sum(
        (left or 0.0) * (1.0 if was else durations.share)
        for left, was in zip(durations.left_s, begun, strict=True)
    )
    width = max(1.0, sum(durations.spent_s) / taken.elapsed_s) if taken.elapsed_s > 0 else 1.0
    return max(path.length, work / width) or None
