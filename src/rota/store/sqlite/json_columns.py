"""Columns that hold JSON, and what they mean. Null, as in nearly all rows, is nothing."""

from __future__ import annotations

import msgspec

from rota.core.jobs.job import After, Behaved
from rota.core.output.output_report import OutputReport
from rota.plan.placement import Given
from rota.plan.size import Floor, Size

_after = msgspec.json.Decoder(tuple[After, ...])
_behaviours = msgspec.json.Decoder(tuple[Behaved, ...])
_floor = msgspec.json.Decoder(Floor)
_given = msgspec.json.Decoder(Given)
_kept = msgspec.json.Decoder(OutputReport)
_size = msgspec.json.Decoder(Size)


def after(text: str | None) -> tuple[After, ...]:
    """What a job waits for."""
    return _after.decode(text) if text else ()


def after_text(parents: tuple[After, ...]) -> str | None:
    """The opposite of `after`."""
    return msgspec.json.encode(parents).decode() if parents else None


def behaviours(text: str | None) -> tuple[Behaved, ...]:
    """What became of the behaviours of an attempt."""
    return _behaviours.decode(text) if text else ()


def floor(text: str | None) -> Floor | None:
    """The least that a job asks for after its own failures."""
    return _floor.decode(text) if text else None


def given(text: str | None) -> Given | None:
    """What the planner gave to an attempt."""
    return _given.decode(text) if text else None


def kept(text: str | None) -> OutputReport | None:
    """What is known of the output of an attempt."""
    return _kept.decode(text) if text else None


def size(text: str | None) -> Size | None:
    """The size of an attempt where it was not that of the specification."""
    return _size.decode(text) if text else None
