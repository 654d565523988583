"""Turns `Clause`s into SQL: one sub-select of job ids, with the jobs of open uploads left out."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from rota.store.base import Clause

#: Past this many, `SELECT … UNION SELECT …` would meet SQLite's limit.
MOST_CLAUSES = 400

_TOP = (1 << 63) - 1


def merge_ranges(clauses: Sequence[Clause]) -> list[tuple[int, int]]:
    """The id ranges of these clauses, in order and without overlap."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted((clause.low, clause.high or _TOP) for clause in clauses):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        elif low <= high:
            merged.append((low, high))
    return merged


def is_range(clause: Clause) -> bool:
    """Does the clause speak of ids only?"""
    return not (clause.group or clause.user or clause.host or clause.submission or clause.state)


class Where:
    """SQL that selects the ids of matching jobs, and its parameters."""

    __slots__ = ("params", "parts", "sql")

    def __init__(self, clauses: Sequence[Clause], *, hidden: Sequence[int], above: int = 0, limit: int = 0) -> None:
        self.params: list[str | int] = []
        self.parts: list[str] = []
        hide = f" AND j.in_submission NOT IN ({','.join(map(str, hidden))})" if hidden else ""
        if above:
            hide += f" AND j.id > {int(above)}"
        tail = f" ORDER BY j.id LIMIT {int(limit)}" if limit else ""
        ranges = merge_ranges([clause for clause in clauses if is_range(clause)])
        if len(ranges) == 1:
            self.params += ranges[0]
            self.parts.append(f"SELECT j.id FROM jobs AS j WHERE j.id BETWEEN ? AND ?{hide}{tail}")
        elif ranges:
            self.params.append(msgspec.json.encode(ranges).decode())
            self.parts.append(
                "SELECT j.id FROM json_each(?) AS r CROSS JOIN jobs AS j WHERE j.id BETWEEN"
                f" json_extract(r.value, '$[0]') AND json_extract(r.value, '$[1]'){hide}{tail}"
            )
        for clause in dict.fromkeys(clauses):
            if not is_range(clause):
                self.parts.append(f"SELECT j.id FROM jobs AS j WHERE {self._terms(clause)}{hide}{tail}")
        wrapped = (f"SELECT id FROM ({part})" for part in self.parts) if limit else self.parts
        self.sql = " UNION ".join(wrapped)

    def _terms(self, clause: Clause) -> str:
        terms: list[str] = []
        if clause.low > 0:
            terms.append("j.id >= ?")
            self.params.append(clause.low)
        if clause.high:
            terms.append("j.id <= ?")
            self.params.append(clause.high)
        if clause.submission:
            terms.append(
                "(j.id, j.in_submission) IN (SELECT k.id, s.n FROM submissions AS s CROSS JOIN jobs AS k"
                " WHERE s.id = ? AND k.id BETWEEN s.low AND s.high AND k.in_submission = s.n)"
            )
            self.params.append(clause.submission)
        if clause.state:
            # The first half is what the partial index asks for, word by word.
            terms.append("j.state > 12 AND j.state = ?" if clause.state > 12 else "j.state = ?")
            self.params.append(clause.state)
        named = [("grp", clause.group), ("user", clause.user)]
        if clause.group or clause.user:
            says = " AND ".join(f"{column} = ?" for column, value in named if value)
            terms.append(f"j.in_group IN (SELECT n FROM groups WHERE {says})")
            self.params += [value for _, value in named if value]
        if clause.host:
            terms.append(
                "EXISTS (SELECT 1 FROM attempts AS a WHERE a.job = j.id AND a.number = j.attempt AND a.host = ?)"
            )
            self.params.append(clause.host)
        return " AND ".join(terms)
