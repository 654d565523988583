"""What every store promises about runners that delegated pools were asked for."""

from __future__ import annotations

from msgspec.structs import replace
from rows import changes

from rota.core.rows import IntentRow

ROW = IntentRow(
    "rota-1-far-a", "far", '[[100,1,2,3.5,0],[["l",1,false]],0]', 90.5, "hash", "", "", 1, False, "", 1000.25
)


def test_intents_are_kept_changed_and_removed(store, reopen):
    other = replace(ROW, name="rota-1-far-b", ticket="other", pool="ünï")
    store.commit(changes(intents={ROW.name: ROW, other.name: other}))
    assert store.load().intents == [ROW, other]
    bound = replace(ROW, key="k", engine_id="17_3", state=4, withdrawn=True, runner="r1")
    store.commit(changes(intents={ROW.name: bound}))
    store = reopen(store)
    assert store.load().intents == [bound, other]
    store.commit(changes(intents={ROW.name: None, other.name: None, "unknown": None}))
    assert store.load().intents == []


def test_a_batch_with_only_a_removed_intent_is_not_empty():
    assert changes(intents={"a": None})


def test_ten_thousand_intents_are_one_batch(store):
    many = {f"r{n:05}": replace(ROW, name=f"r{n:05}", ticket=f"t{n}") for n in range(10_000)}
    store.commit(changes(intents=dict(many)))
    assert store.load().intents == list(many.values())
