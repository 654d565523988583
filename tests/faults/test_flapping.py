"""Thousands of days on a flapping network: the larger dose of `tests/core/machines/test_flapping.py`."""

from __future__ import annotations

import pytest

from tests.core.flapping import live_through

_BLOCK = 100


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("first", [0, *range(1000, 4000, _BLOCK)])
def test_days_on_a_flapping_network_end_every_job_once(first: int) -> None:
    for seed in range(first, first + _BLOCK):
        live_through(seed)
