"""Converts expected times to the types of views."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from rota.core.forecast.expectation import Expected, Unknown
from rota.wire.views import ReasonView

#: Later times cannot be written as a date.
_FAR_S: Final = 253_402_300_799.0


def expected_views(expected: Expected) -> tuple[datetime | None, datetime | None, ReasonView | None]:
    """Start, end, and why one is missing, for a view."""
    unknown = expected.unknown
    return (
        None if expected.start is None else moment(expected.start),
        None if expected.end is None else moment(expected.end),
        None if unknown is None else reason_view(unknown),
    )


def moment(wall: float) -> datetime:
    """A time for a view."""
    return datetime.fromtimestamp(min(wall, _FAR_S), UTC)


def reason_view(why: Unknown) -> ReasonView:
    """Why a time is unknown."""
    return ReasonView(why.code, why.message)
