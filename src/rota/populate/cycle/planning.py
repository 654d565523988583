"""Which keys go into which batch. Pure: tokens come in as an argument."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from rota.populate.batch import Batch
from rota.populate.config.configuration import Table
from rota.populate.source.base import Key, Look, Wanted, text_of


def wanted_of(table: Table) -> list[Wanted]:
    """What to ask for: as many keys of each bin as one cycle may hand out."""
    return [Wanted(each.where, table.serial * table.parallel) for each in table.bins]


def pause_s(*, began: float, ended: float, target_s: float) -> float:
    """From the end of a cycle to the start of the next; an overrun starts it at once."""
    return max(began + target_s - ended, 0.0)


def plan(table: Table, look: Look, *, new_token: Callable[[], str]) -> list[Batch]:
    """The batches of one table and cycle: of each bin at most `parallel`, filled with `serial` keys each.

    No key is in two of them. Which keys other batches have is the ledger's business: those are not free.
    """
    batches: list[Batch] = []
    taken: set[bytes] = set()
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
    """The batches with the keys that the ledger gave them, in order, without the batches that got none."""
    found: list[Batch] = []
    for batch in batches:
        theirs = {text_of(key) for key in got.get(batch.token, ())}
        keys = tuple(key for key in batch.keys if text_of(key) in theirs)
        if keys:
            found.append(replace(batch, keys=keys))
    return found
