"""How soon an engine is asked again what it has."""

from __future__ import annotations

import pytest

from rota.manager.pools.driver import soon_s


def test_surveys_in_vain_become_rarer() -> None:
    assert [soon_s(number, settle_s=60) for number in range(6)] == [1, 2, 4, 8, 15, 15]
    assert soon_s(10**9, settle_s=3600) == 15


@pytest.mark.parametrize("settle_s", [1.0, 2.0, 10.0, 60.0])
def test_there_are_two_surveys_at_least_before_a_runner_is_given_up(settle_s: float) -> None:
    assert soon_s(100, settle_s=settle_s) <= max(1.0, settle_s / 2)
