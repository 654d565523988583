"""Time zones by name or offset."""

from __future__ import annotations

from datetime import datetime

import pytest

from rota.errors import BadInput
from rota.time_zones import zone_of


@pytest.mark.parametrize(("name", "hours"), [("UTC", 0), ("", 0), ("z", 0), ("+02:00", 2), ("-0930", -9.5)])
def test_zones_have_names_or_offsets(name: str, hours: float) -> None:
    offset = datetime(2026, 1, 1, tzinfo=zone_of(name)).utcoffset()
    assert offset is not None
    assert offset.total_seconds() == hours * 3600


@pytest.mark.parametrize("name", ["Europe/Nowhere", "../etc/passwd", "/etc/passwd", "+99:00", "a\0b", "x" * 300])
def test_a_zone_that_is_not_there_is_refused(name: str) -> None:
    with pytest.raises(BadInput, match="no time zone"):
        zone_of(name)
