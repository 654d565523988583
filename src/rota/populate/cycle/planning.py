"""Which keys go into which batch. Pure: tokens come in as an argument."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from msgspec.structs import replace

from rota.populate.batch import Batch
from rota.populate.config.configuration import Table
from rota.populate.source.base import Key, Look, Wanted, text_of


def wanted_of(table: Table, *, in_flight: int = 0) -> list[Wanted]:
    """What to ask for: as many keys of each bin as one cycle may hand out.

    `in_flight`: keys that the ledger may call free although their batch still lives, so more are asked for.
    """
    return [Wanted(each.where, table.serial * table.parallel + in_flight) for each in table.bins]


def plan(table: Table, look: Look, *, in_flight: Collection[bytes], new_token: Callable[[], str]) -> list[Batch]:
    """The batches of one table and cycle: of each bin at most `parallel`, filled with `serial` keys each.

    No key is in two of them, and none of those in flight is in any.
    """
    batches: list[Batch] = []
    taken = set(in_flight)
    for bin_, free in zip(table.bins, look.free, strict=True):
        keys: list[Key] = []
        for key in free:
            text = text_of(key)
            if text not in taken and len(keys) < table.serial * table.parallel:
                taken.add(text)
                keys.append(key)
        for start in range(0, len(keys), table.serial):
            some = tuple(keys[start : start + table.serial])
            batches.append(Batch(token=new_token(), table=table, bin=bin_, keys=some))
    return batches


def claimed(batches: Sequence[Batch], got: Mapping[str, Sequence[Key]]) -> list[Batch]:
    """The batches with the keys that the ledger gave them, in their order; those that got none are left out."""
    found: list[Batch] = []
    for batch in batches:
        theirs = {text_of(key) for key in got.get(batch.token, ())}
        keys = tuple(key for key in batch.keys if text_of(key) in theirs)
        if keys:
            found.append(replace(batch, keys=keys))
    return found
