"""Turns an `Order` and a search into SQL over the jobs of a `JobsPart`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

import msgspec

from rota.store.base import Order
from rota.store.sqlite.clauses import JobsPart, contains, pattern

Params = list[str | int | float | bytes]

_NEWEST: Final = " LEFT JOIN attempts AS a ON a.job = j.id AND a.number = j.attempt"
#: A job's row does not change when an attempt begins: an open attempt is found by its own short index.
_BEGUN: Final = (
    "coalesce((SELECT o.started_at FROM attempts AS o WHERE o.job = j.id AND o.outcome IS NULL), a.started_at)"
)
#: Orders by properties of attempts.
_OF_ATTEMPTS: Final = {
    "started": "a.started_at",
    "wall": "a.ended_at - a.started_at",
    "cpu": "a.cpu_s",
    "mem": "a.peak_mem",
}
#: The attempt that `_BEGUN` is the start of.
_COUNTS_FOR_START: Final = (
    "(t.outcome IS NULL OR j.attempt = t.number AND NOT EXISTS (SELECT 1 FROM attempts AS o"
    " WHERE o.job = j.id AND o.outcome IS NULL AND o.started_at IS NOT NULL))"
)
#: The sort expression of each order, and the join it needs.
_BY: Final = {
    "submitted": ("j.submitted_at", ""),
    "started": (_BEGUN, _NEWEST),
    "ended": ("j.ended_at", ""),
    **{name: (_OF_ATTEMPTS[name], _NEWEST) for name in ("wall", "cpu", "mem")},
    # The rank is an offset into a table passed as bytes: the fastest way to look up a number.
    "priority": ("substr(?, 4 * j.spec + 1, 4)", ""),
}


def searched(part: JobsPart, search: str, named: Collection[int]) -> JobsPart:
    """The jobs of a part with this text in the command, or in the element of a pipeline, or with one of the named
    specifications."""
    if not search:
        return part
    found = f"{contains(search)} OR j.pipeline_element LIKE ? ESCAPE '\\'"
    params: tuple[str | int | float, ...] = (*part.params, pattern(search), pattern(search))
    if named:
        found += " OR j.spec IN (SELECT value FROM json_each(?))"
        params = (*params, msgspec.json.encode(list(named)).decode())
    return msgspec.structs.replace(part, condition=f"({part.condition}) AND ({found})", params=params)


def statement(part: JobsPart, order: Order, *, specs: Mapping[int, int], limit: int) -> tuple[str, Params]:
    """A statement that returns all ids, or the first `limit`, as one JSON array; and its parameters.

    Jobs are visited in the direction of the order. Where the sort value grows with the ids, as times do, the first
    jobs visited are the first of the list, and hardly any is displaced later.
    """
    way = "DESC" if order.descending else "ASC"
    if order.by == "id" or (order.by == "priority" and len(set(specs.values())) < 2):
        inner = f"SELECT j.id AS id FROM {part.source} WHERE {part.condition} ORDER BY j.id {way} LIMIT {limit:d}"
        return f"SELECT json_group_array(id) FROM ({inner})", list(part.params)
    value, join = _BY[order.by]
    params: Params = list(part.params)
    best = way
    if order.by == "priority":
        params.insert(0, _ranks(specs, descending=order.descending))
        best = "DESC"
    # An explicit limit, even -1, makes SQLite keep the inner order.
    inner = (
        f"SELECT j.id AS id, {value} AS value FROM {part.source}{join} WHERE {part.condition}"
        f" ORDER BY j.id {way} LIMIT -1"
    )
    first = f"SELECT id FROM ({inner}) ORDER BY value {best} NULLS LAST, id {way} LIMIT {limit:d}"
    return f"SELECT json_group_array(id) FROM ({first})", params


def among_attempts(part: JobsPart, order: Order, *, limit: int) -> str | None:
    """A statement that finds the same jobs without visiting all of them; None: the order is not by attempts.

    It looks at the first attempts only, twice as many as wanted, and visits their jobs afterwards. If most of
    these are not the newest attempts of their jobs it returns too few rows, and its answer must be ignored.
    """
    value = _OF_ATTEMPTS.get(order.by)
    if value is None:
        return None
    way = "DESC" if order.descending else "ASC"
    inner = (
        f"SELECT a.job AS job, a.number AS number, a.outcome AS outcome, {value} AS value FROM attempts AS a"
        f" WHERE {value} IS NOT NULL ORDER BY a.job {way} LIMIT -1"
    )
    first = f"SELECT * FROM ({inner}) ORDER BY value {way}, job {way} LIMIT {2 * limit:d}"
    counts = _COUNTS_FOR_START if order.by == "started" else "j.attempt = t.number"
    theirs = (
        f"SELECT j.id AS id FROM ({first}) AS t CROSS JOIN jobs AS j ON j.id = t.job AND {counts}"
        f" WHERE {part.condition} ORDER BY t.value {way}, j.id {way} LIMIT {limit:d}"
    )
    return f"SELECT json_group_array(id) FROM ({theirs})"


def _ranks(specs: Mapping[int, int], *, descending: bool) -> bytes:
    """Four bytes per specification: the larger, the sooner its jobs come. Zero: the priority is unknown."""
    levels = sorted(set(specs.values()), reverse=not descending)
    ranks = {priority: rank.to_bytes(4) for rank, priority in enumerate(levels, 1)}
    table = bytearray(4 * (max(specs) + 1))
    for spec, priority in specs.items():
        table[4 * spec : 4 * spec + 4] = ranks[priority]
    return bytes(table)
