"""Settings about energy, as the engine has them."""

from __future__ import annotations

import pytest

from rota.core.machines.energy_rules import KeepAlive, rules_from
from rota.errors import BadInput
from rota.settings import Settings


def test_settings_become_rules() -> None:
    rules = rules_from(Settings(sleep_cmd="a b", wake_cmd="c", sleep_after=1.0, keep_alive="2 where gpu='YES', 1"))
    assert rules.sleeps
    assert rules.wakes
    assert rules.sleep_after_s == 1.0
    assert rules.keep_alive == (KeepAlive(2, "gpu='YES'"), KeepAlive(1))
    assert not rules_from(Settings()).sleeps


@pytest.mark.parametrize("settings", [{"wake_cmd": "'"}, {"sleep_cmd": " "}, {"keep_alive": "many"}])
def test_settings_that_mean_nothing_are_refused(settings: dict[str, str]) -> None:
    with pytest.raises(BadInput):
        rules_from(Settings(**settings))  # type: ignore[arg-type]
