"""What every store promises about the records of a site."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from rows import a_world, changes

from rota.store.home.backup import back_up
from rota.store.home.restore import Restoration
from rota.store.sqlite.database import APPLICATION_ID
from rota.store.sqlite.statements import migrations
from rota.store.sqlite.store import SqliteStore


def test_records_are_kept_as_they_were_written(store, reopen):
    odd = '{"text":"quotes \\" \\\\ \\n, ünï😀","n":[1,2.5,null,true]}'
    written = {
        ("queue", "night"): odd,
        ("queue", "a b'c"): "[]",
        ("setting", "night"): '"x"',
        ("quota", "*,/"): "1",
    }
    store.commit(changes(site=dict(written)))
    assert reopen(store).load().site == written


def test_a_record_is_known_by_its_kind_and_name(store):
    store.commit(changes(site={("queue", "a"): "1", ("rule", "a"): "2", ("queue", "b"): "3"}))
    store.commit(changes(site={("queue", "a"): "4", ("rule", "a"): None, ("rule", "nothing"): None}))
    assert store.load().site == {("queue", "a"): "4", ("queue", "b"): "3"}


def test_a_batch_may_have_both_new_and_removed_records(store):
    store.commit(changes(site={("host", f"n{n}"): "{}" for n in range(4)}))
    store.commit(changes(site={("host", "n1"): None, ("host", "n2"): '{"gpus":2}', ("host", "n9"): "{}"}))
    assert store.load().site == {
        ("host", "n0"): "{}", ("host", "n2"): '{"gpus":2}', ("host", "n3"): "{}", ("host", "n9"): "{}",
    }  # fmt: skip


def test_ten_thousand_records_are_one_batch(store, reopen):
    many = {("resource", str(n)): f'{{"host":"n{n // 16}","cpu":{n // 8}}}' for n in range(1, 10_001)}
    store.commit(changes(site=dict(many)))
    store = reopen(store)
    assert store.load().site == many
    store.commit(changes(site=dict.fromkeys(many)))
    assert store.load().site == {}


def test_a_batch_with_only_a_record_is_not_empty(store):
    assert changes(site={("queue", "a"): None})
    assert not changes()


def test_a_backup_has_the_records_and_restoring_brings_them_back(home: Path, tmp_path: Path) -> None:
    store = SqliteStore(home, reserve=0)
    store.commit(a_world())
    store.commit(changes(site={("queue", "night"): '{"priority":1}'}))
    target = tmp_path / "backup.db"
    back_up(home, str(target), force=False, store=store)
    store.close()
    with Restoration(tmp_path / "other", target, replace=False) as restoration:
        restoration.put_in_place(pause=False)
    again = SqliteStore(tmp_path / "other", reserve=0)
    assert again.load().site == {("queue", "night"): '{"priority":1}'}
    again.close()


def test_a_database_of_the_schema_before_gets_an_empty_table(home: Path) -> None:
    home.mkdir(mode=0o700)
    with closing(sqlite3.connect(home / "rota.db", isolation_level=None)) as db:
        db.executescript(
            f"PRAGMA application_id={APPLICATION_ID}; PRAGMA journal_mode=WAL; {migrations()[1]} {migrations()[2]}"
            "PRAGMA user_version=2;"
        )
    store = SqliteStore(home, reserve=0)
    assert store._writer.execute("PRAGMA user_version").fetchone() == (max(migrations()),)
    assert store.load().site == {}
    store.commit(changes(site={("queue", "a"): "1"}))
    assert store.load().site == {("queue", "a"): "1"}
    store.close()
