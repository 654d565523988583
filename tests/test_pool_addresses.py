"""Where runners of delegated pools reach the manager, when the pool does not say it."""

from __future__ import annotations

import pytest

from rota.errors import BadInput
from rota.pool_settings import PoolSettings, check_address

POOL = PoolSettings(name="far", engine="command")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", ""])
def test_all_addresses_of_a_machine_are_none_to_connect_to(host: str) -> None:
    with pytest.raises(BadInput, match=r"\[pools.far\]: 'address' is missing") as refused:
        check_address(POOL, host)
    assert 'address = "NAME:PORT"' in (refused.value.hint or "")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_a_loopback_address_serves_this_machine_only_and_is_warned_of(host: str) -> None:
    assert f"only runners on this machine reach {host}" in check_address(POOL, host)


@pytest.mark.parametrize("host", ["192.0.2.1", "2001:db8::1", "head.example.org"])
def test_other_addresses_are_good(host: str) -> None:
    assert check_address(POOL, host) == ""


@pytest.mark.parametrize("host", ["0.0.0.0", "127.0.0.1"])
def test_an_address_of_the_pool_is_all_that_counts(host: str) -> None:
    assert check_address(PoolSettings(name="far", engine="command", address="head:7000"), host) == ""
