"""26 hours of a flapping network, many times: every job that ran ends, exactly once."""

from __future__ import annotations

import pytest

from tests.core.flapping import live_through
from tests.dose import half


@pytest.mark.parametrize("seed", range(half(12)))
def test_a_day_on_a_flapping_network_ends_every_job_once(seed: int) -> None:
    live_through(seed)
