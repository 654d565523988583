"""Decodes the JSON columns. They are NULL in nearly all rows."""

from __future__ import annotations

import msgspec

from rota.core.jobs.job import After
from rota.core.jobs.outcome import Behaved
from rota.core.output.output_report import OutputReport
from rota.plan.placement.given import Given
from rota.plan.size import Floor, Size

_after = msgspec.json.Decoder(tuple[After, ...])
_behaviours = msgspec.json.Decoder(tuple[Behaved, ...])
_floor = msgspec.json.Decoder(Floor)
_given = msgspec.json.Decoder(Given)
_kept = msgspec.json.Decoder(OutputReport)
_size = msgspec.json.Decoder(Size)


def after(text: str | None) -> tuple[After, ...]:
    """The dependencies of a job."""
    return _after.decode(text) if text else ()


def after_text(parents: tuple[After, ...]) -> str | None:
    """The inverse of `after`."""
    return msgspec.json.encode(parents).decode() if parents else None


def behaviours(text: str | None) -> tuple[Behaved, ...]:
    """The results of the behaviours of an attempt."""
    return _behaviours.decode(text) if text else ()


def floor(text: str | None) -> Floor | None:
    """The minimum that a job asks for after its failures."""
    return _floor.decode(text) if text else None


def given(text: str | None) -> Given | None:
    """The planner's allocation of an attempt."""
    return _given.decode(text) if text else None


def kept(text: str | None) -> OutputReport | None:
    """The report on the output of an attempt."""
    return _kept.decode(text) if text else None


def size(text: str | None) -> Size | None:
    """The size of an attempt, if it differs from the specification."""
    return _size.decode(text) if text else None
