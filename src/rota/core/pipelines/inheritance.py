"""What a session takes over from the former one of its file: what was done, and how long elements take. Pure."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator

from rota.core.pipelines.left_out import LeftOut
from rota.core.pipelines.progress import ROW
from rota.core.pipelines.session import Session


def inherit(session: Session, former: Session) -> None:
    """What was done before, of the same elements at the same stages, need not be done again. What is known of
    elements that the session leaves out is kept for the next one."""
    past = _Past(session, former)
    elements = session.definition.elements
    for element, each in enumerate(elements):
        if seconds := past.seconds(each.name):
            session.measured_s[element] = seconds
            session.progress.dirty.add(element // ROW)
        if not session.record.rerun:
            for stage, mark in past.marks(each.name, (elements[parent].name for parent in each.depends)):
                session.progress.set_mark(session.progress.cell(element, stage), mark)
    session.flow.marks.remember()
    if session.left is not None:
        _keep(session, past)


def _keep(session: Session, past: _Past) -> None:
    """Keep what is known of elements that are left out."""
    known = session.left
    assert known is not None
    left = session.left = LeftOut((), known.width, stored=known.stored)
    for name, parents in zip(known.names, known.depends, strict=True):
        marks = array("Q", bytes(8 * left.width))
        for stage, mark in past.marks(name, parents):
            marks[stage] = mark
        seconds = past.seconds(name)
        if seconds or any(marks):
            left.names.append(name)
            left.marks.extend(marks)
            left.measured_s.append(seconds)


class _Past:
    """What is known of elements, by name, when a session is over, for the one that comes after it."""

    def __init__(self, session: Session, former: Session) -> None:
        columns = {stage.name: column for column, stage in enumerate(former.definition.stages)}
        stages = enumerate(session.definition.stages)
        self._columns = [(stage, columns[each.name]) for stage, each in stages if each.name in columns]
        self._former = former
        self._left = former.left
        self._places = {each.name: place for place, each in enumerate(former.definition.elements)}
        self._left_places = {name: place for place, name in enumerate(former.left.names)} if former.left else {}
        self._outcomes = former.flow.outcomes()

    def seconds(self, name: str) -> float:
        """How long an element takes: as in the last session that it got through; a failure may come early."""
        place = self._places.get(name)
        if place is None:
            place = self._left_places.get(name)
            return self._left.measured_s[place] if self._left is not None and place is not None else 0.0
        took, before = self._former.durations[place], self._former.measured_s[place]
        return took if took and (not before or self._outcomes[place] == "ok") else before

    def marks(self, name: str, parents: Iterable[str]) -> Iterator[tuple[int, int]]:
        """Stages with the marks of an element, which depends on these."""
        progress = self._former.progress
        place = self._places.get(name)
        if place is not None:
            for stage, column in self._columns:
                if mark := progress.marks[progress.cell(place, column)]:
                    yield stage, mark
            return
        place = self._left_places.get(name)
        if self._left is None or place is None:
            return
        took_part = [at for parent in parents if (at := self._places.get(parent)) is not None]
        for stage, column in self._columns:
            mark = self._left.marks[place * self._left.width + column]
            # What ran while it was left out makes it run again, as `begin_anew` does in one session.
            anew = self._former.route.needs[column] and any(
                progress.jobs[progress.cell(at, column)] for at in took_part
            )
            if mark and not anew:
                yield stage, mark
