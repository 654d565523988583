"""Sessions as they are stored: a record, the definition, and rows of cells, each under a key of `Changes.meta`.

Only what has changed in a step is written with it: the end of a job costs one small row.
"""

from __future__ import annotations

from array import array
from typing import Final

import msgspec

from rota.core.pipelines.definition import Definition
from rota.core.pipelines.left_out import LeftOut, read_left_out
from rota.core.pipelines.progress import ROW, Status
from rota.core.pipelines.session import Session
from rota.core.pipelines.session_records import CellRow, LeftOutRow, SessionRecord
from rota.core.turn import Turn

#: Keys: the prefix and the number of the session; then nothing, `.definition`, the number of a row, or
#: `.left.` and the number of a row of elements that were not selected.
PREFIX: Final = "pipeline."
_DEFINITION: Final = "definition"
_LEFT_OUT: Final = "left."
_UNDER_WAY: Final = (Status.READY, Status.RUNNING)


def write_definition(turn: Turn, session: Session) -> None:
    """Write what never changes."""
    text = msgspec.json.encode(session.definition).decode()
    turn.changes.meta[f"{PREFIX}{session.number}.{_DEFINITION}"] = text


def write_session(turn: Turn, session: Session) -> None:
    """Write what has changed."""
    meta, number = turn.changes.meta, session.number
    if session.changed:
        meta[f"{PREFIX}{number}"] = msgspec.json.encode(session.record).decode()
        session.changed = False
    dirty = session.progress.dirty
    for row in dirty:
        meta[f"{PREFIX}{number}.{row}"] = msgspec.json.encode(_row(session, row)).decode()
    dirty.clear()
    if session.left is not None and session.left.changed:
        _write_left_out(meta, number, session.left)


def _write_left_out(meta: dict[str, str | None], number: int, left: LeftOut) -> None:
    rows = [msgspec.json.encode(row).decode() for row in left.rows()]
    for at, row in enumerate(rows):
        meta[_left_out_key(number, at)] = row
    for at in range(len(rows), left.stored):
        meta[_left_out_key(number, at)] = None
    left.changed, left.stored = False, len(rows)


def _left_out_key(number: int, row: int) -> str:
    return f"{PREFIX}{number}.{_LEFT_OUT}{row}"


def forget_session(turn: Turn, session: Session) -> None:
    """Remove everything that is stored of a session."""
    keys = ["", f".{_DEFINITION}", *(f".{row}" for row in range(session.whole // ROW + 1))]
    for key in keys:
        turn.changes.meta[f"{PREFIX}{session.number}{key}"] = None
    for row in range(session.left.stored if session.left is not None else 0):
        turn.changes.meta[_left_out_key(session.number, row)] = None


def _row(session: Session, row: int) -> CellRow:
    progress = session.progress
    first, last = row * ROW, (row + 1) * ROW
    cells = slice(first * progress.width, last * progress.width)
    measured = session.measured_s[first:last]
    return CellRow(
        bytes(progress.statuses[cells]),
        progress.jobs[cells].tobytes(),
        progress.marks[cells].tobytes() if any(progress.marks[cells]) else b"",
        session.flow.marks.digests[first:last],
        session.durations[first:last].tobytes(),
        measured.tobytes() if any(measured) else b"",
    )


def read_sessions(meta: dict[str, str]) -> list[Session]:
    """All sessions that are stored."""
    found: dict[int, dict[str, str]] = {}
    for key, text in meta.items():
        if key.startswith(PREFIX):
            number, _, part = key.removeprefix(PREFIX).partition(".")
            found.setdefault(int(number), {})[part] = text
    return [_session(parts) for _number, parts in sorted(found.items())]


def _session(parts: dict[str, str]) -> Session:
    record = msgspec.json.decode(parts[""], type=SessionRecord)
    session = Session(record, msgspec.json.decode(parts[_DEFINITION], type=Definition))
    progress = session.progress
    width = progress.width
    for part, text in parts.items():
        if not part.isdecimal():
            continue
        row = msgspec.json.decode(text, type=CellRow)
        first = int(part) * ROW
        at, end = first * width, first * width + len(row.statuses)
        progress.statuses[at:end] = row.statuses
        progress.jobs[at:end] = array("Q", row.jobs)
        if row.marks:
            progress.marks[at:end] = array("Q", row.marks)
        session.flow.marks.digests[first : first + len(row.digests)] = row.digests
        session.durations[first : first + len(row.durations) // 4] = array("f", row.durations)
        session.measured_s[first : first + len(row.measured) // 4] = array("f", row.measured)
    if left := sorted((part for part in parts if part.startswith(_LEFT_OUT)), key=lambda part: (len(part), part)):
        rows = [msgspec.json.decode(parts[part], type=LeftOutRow) for part in left]
        session.left = read_left_out(rows, width)
    for cell, status in enumerate(progress.statuses):
        if status == Status.READY and not progress.jobs[cell]:
            progress.statuses[cell] = Status.AHEAD  # no job was made as yet
    progress.recount()
    session.under_way = {
        progress.jobs[cell]: cell for cell, status in enumerate(progress.statuses) if status in _UNDER_WAY
    }
    session.flow.go_on()
    return session


def numbers_of(record: SessionRecord) -> set[int]:
    """The numbers of the specifications of its jobs."""
    numbers = {record.conditions, *(number for work in record.works for number in (work.spec, work.after_failure))}
    return numbers - {0}
