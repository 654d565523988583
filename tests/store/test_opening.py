"""A store is made from its URL, and the home has a lock of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from rows import a_world, an_add

from rota.errors import BadInput, StoreRefused
from rota.store.home.home_lock import HomeLock
from rota.store.opening import default_url, open_store


@pytest.mark.parametrize(
    "url", ["postgresql://db/rota", "", "rota.db", "/home/ann/rota.db", "SQLITE:///x/rota.db"]
)
def test_an_unknown_scheme_is_refused_and_the_known_ones_are_named(url: str) -> None:
    with pytest.raises(BadInput, match="no store") as caught:
        open_store(url)
    assert "sqlite:///" in (caught.value.hint or "")
    assert "memory:" in (caught.value.hint or "")


@pytest.mark.parametrize(
    "rest",
    ["//host/x/rota.db", "///x/other.db", "///x/rota.db#1", "///x/rota.db?run=x", "///x/rota.db?speed=1", ""],
)
def test_a_url_that_names_no_database_of_rota_is_refused(rest: str) -> None:
    with pytest.raises(BadInput):
        open_store(f"sqlite:{rest}")


def test_the_store_of_a_home_may_have_any_path(tmp_path: Path) -> None:
    home = tmp_path / "a b%20c?d#e"
    store = open_store(default_url(home))
    store.commit(a_world())
    store.close()
    assert (home / "rota.db").is_file()
    again = open_store(default_url(home))
    assert [job.id for job in again.jobs([1, 2, 3])] == [1, 2, 3]
    again.close()


def test_a_store_is_asked_for_approval_before_it_changes(url: str) -> None:
    """Both stores tell their deployment."""
    store = open_store(url)
    made = a_world()
    made.meta = {"deployment": "d1"}
    store.commit(made)
    store.close()
    told: list[str] = []
    open_store(url, approve=told.append).close()
    assert told == ["d1"]

    def refuse(deployment: str) -> None:
        raise StoreRefused("not ours")

    with pytest.raises(StoreRefused, match="not ours"):
        open_store(url, approve=refuse)


def test_stores_in_memory_without_a_name_are_apart() -> None:
    one, two = open_store("memory:"), open_store("memory:")
    one.commit(an_add(1))
    assert two.jobs([1]) == []


def test_the_lock_of_a_home_is_taken_and_released_without_a_store(home: Path) -> None:
    lock = HomeLock(home)
    assert lock.holds()
    with pytest.raises(StoreRefused, match="another manager") as caught:
        HomeLock(home)
    assert caught.value.code == "locked"
    lock.release()
    assert not lock.holds()
    HomeLock(home).release()
    assert not (home / "rota.db").exists()
