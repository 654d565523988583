"""A batch: keys of one table that run one after the other in one process."""

from __future__ import annotations

from msgspec import Struct

from rota.populate.config.configuration import Bin, Table
from rota.populate.source.base import Key


class Batch(Struct, frozen=True, kw_only=True):
    """Its token is its id everywhere: in the ledger, in the transport and in logs."""

    token: str
    table: Table
    bin: Bin
    keys: tuple[Key, ...]


def spec_of(table: Table) -> dict[str, object]:
    """What the interpreter of a table is told about it, by the manager and in each batch."""
    query = table.sql
    spec: dict[str, object] = {
        "name": table.name,
        "bins": table.has_conditions,
        "on_timeout": table.on_timeout,
        "attempts": table.attempts,
        "mark": table.mark,
    }
    if query is not None:
        spec["sql"] = {
            "connect": query.connect, "keys": query.keys, "key": list(query.key), "target": query.target,
        }  # fmt: skip
    return spec


def order_of(batch: Batch) -> dict[str, object]:
    """What a worker is given: JSON, the argument of `rota_tables.batch.run`."""
    return {
        "token": batch.token,
        # A worker asks for no keys, so it needs no conditions.
        "table": {**spec_of(batch.table), "bins": False},
        "job_timeout": batch.table.job_timeout_s,
        "keys": list(batch.keys),
    }
