"""Translates `Clause`s to SQL over `jobs AS j`; jobs of unfinished uploads are excluded."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from rota.pool_names import runners_like
from rota.store.base import Clause
from rota.store.sqlite.statements import statements

#: With more terms than this, `SELECT … UNION SELECT …` would exceed SQLite's limit.
MOST_PARTS: Final = 400

_TOP: Final = (1 << 63) - 1

#: Does an attempt have a part on this host, besides its first? The allocation is an array
#: (`plan.placement.given.Given`): element 3 has its hosts, and element 7 says whether it only holds them.
_OTHER_HOST: Final = (
    "NOT coalesce(a.given ->> 7, false)"
    " AND EXISTS (SELECT 1 FROM json_each(a.given, '$[3]') AS n WHERE n.key > 0 AND n.value ->> 0 = ?)"
)

_NEWEST: Final = "a.job = j.id AND a.number = j.attempt"

#: A stored command as `one_line` has it (see `command_to_text`).
_ONE_LINE: Final = (
    "CASE unicode(j.cmd) WHEN 1 THEN (SELECT group_concat(value, ' ') FROM json_each(substr(j.cmd, 2)))"
    " WHEN 2 THEN substr(j.cmd, 2) ELSE j.cmd END"
)
#: Characters that differ in stored commands: those between the words, and those that JSON escapes.
_ENCODED: Final = frozenset(' ,[]"\\') | frozenset(map(chr, range(32)))


class JobsPart(msgspec.Struct, frozen=True):
    """Part of a selection of jobs: `SELECT … FROM {source} WHERE {condition}`."""

    condition: str
    params: tuple[str | int | float, ...]
    source: str = "jobs AS j"

    def ids(self) -> str:
        return f"SELECT j.id FROM {self.source} WHERE {self.condition}"


def hide_uploads(connection: sqlite3.Connection) -> str:
    """A condition that leaves out the jobs of uploads in progress; "" when there are none."""
    hidden = connection.execute(statements()["open_submissions"]).fetchall()
    return f" AND j.in_submission NOT IN ({','.join(str(n) for (n,) in hidden)})" if hidden else ""


def parts_of(connection: sqlite3.Connection, clauses: Sequence[Clause], *, above: int = 0) -> list[JobsPart]:
    """One part per clause; all clauses on ids alone become one part. Leaves out clauses that cannot match and ids
    up to `above`."""
    also = hide_uploads(connection)
    plain = [clause for clause in clauses if _is_range(clause)]
    parts = list(_range_part(merge_ranges(plain, above=above), also=also))
    for clause in dict.fromkeys(clauses):
        if not _is_range(clause):
            parts += _part(connection, clause, above=above, also=also)
    return parts


def merge_ranges(clauses: Sequence[Clause], *, above: int = 0) -> list[tuple[int, int]]:
    """The id ranges of these clauses above an id, sorted and without overlap."""
    return merge_spans((max(clause.low, above + 1), clause.high or _TOP) for clause in clauses)


def merge_spans(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same numbers as sorted ranges without overlap."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(spans):
        if low > high:
            continue
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return merged


def _is_range(clause: Clause) -> bool:
    return clause == Clause(low=clause.low, high=clause.high, indexes=clause.indexes)


def _range_part(ranges: list[tuple[int, int]], *, also: str) -> Iterator[JobsPart]:
    if ranges == [(1, _TOP)]:
        yield JobsPart(f"true{also}", ())
    elif len(ranges) == 1:
        yield JobsPart(f"j.id BETWEEN ? AND ?{also}", ranges[0])
    elif ranges:
        text = msgspec.json.encode(ranges).decode()
        yield JobsPart(
            f"j.id BETWEEN r.value ->> 0 AND r.value ->> 1{also}",
            (text,),
            source="json_each(?) AS r CROSS JOIN jobs AS j",
        )


def _part(connection: sqlite3.Connection, clause: Clause, *, above: int, also: str) -> Iterator[JobsPart]:
    """Looks up names first, so that SQLite's query planner sees numbers and picks the right index."""
    low, high = max(clause.low, above + 1), clause.high or _TOP
    source = "jobs AS j"
    terms: list[str] = []
    params: list[str | int | float] = []
    # An array has few elements compared with a group or a state, so its index is the best choice.
    weak = "+" if clause.array else ""
    if clause.array:
        terms.append("j.array_id = ?")
        params.append(clause.array)
    if clause.array and clause.indexes:
        source = "json_each(?) AS r CROSS JOIN jobs AS j"
        params.insert(0, msgspec.json.encode(merge_spans(clause.indexes)).decode())
        terms.append("j.array_index BETWEEN r.value ->> 0 AND r.value ->> 1")
    if clause.submission:
        row = connection.execute(statements()["span_of_submission"], (clause.submission,)).fetchone()
        if row is None:
            return
        low, high = max(low, row[1]), min(high, row[2])
        terms.append("+j.in_submission = ?")
        params.append(row[0])
    if clause.group or clause.group_prefix or clause.user:
        names = {"grp": clause.group, "prefix": clause.group_prefix, "user": clause.user}
        numbers = connection.execute(statements()["groups_named"], names).fetchall()
        if not numbers:
            return
        # The index lists one group in order of id. With several groups that order is lost, and walking the ids
        # finds a page faster.
        several = ",".join(str(n) for (n,) in numbers)
        terms.append(f"{weak}j.in_group = {several}" if len(numbers) == 1 else f"+j.in_group IN ({several})")
    if clause.state:
        # The first half repeats the condition of the partial index word for word, so that SQLite uses it.
        terms.append("j.state > 12 AND j.state = ?" if clause.state > 12 and not weak else f"{weak}j.state = ?")
        params.append(clause.state)
    for condition, value in _of_specs(clause):
        # Specifications are few beside jobs, or else each is read once.
        terms.append(f"+j.spec IN (SELECT id FROM specs WHERE {condition})")
        params.append(value)
    for condition, values in _of_names(clause):
        terms.append(condition)
        params += values
    if clause.host:
        terms.append(f"EXISTS (SELECT 1 FROM attempts AS a WHERE {_NEWEST} AND (a.host = ? OR {_OTHER_HOST}))")
        params += (clause.host, clause.host)
    if clause.pool:
        named = "j.spec IN (SELECT id FROM specs WHERE coalesce(spec ->> 'pool', '') = ?)"
        there = "a.host GLOB ? OR a.host IN (SELECT value FROM json_each(?))"
        terms.append(f"({named} OR EXISTS (SELECT 1 FROM attempts AS a WHERE {_NEWEST} AND ({there})))")
        params += (clause.pool, runners_like(clause.pool), msgspec.json.encode(clause.pool_hosts).decode())
    if clause.exits:
        terms.append(f"EXISTS (SELECT 1 FROM attempts AS a WHERE {_NEWEST} AND a.exit_code BETWEEN ? AND ?)")
        params += clause.exits
    if clause.before:
        terms.append("coalesce(j.ended_at, j.submitted_at) < ?")
        params.append(clause.before)
    if clause.cmd_text:
        terms.append(contains(clause.cmd_text))
        params.append(pattern(clause.cmd_text))
    if low > 1 or high < _TOP:
        terms.append("j.id BETWEEN ? AND ?")
        params += (low, high)
    yield JobsPart(" AND ".join(terms) + also, tuple(params), source)


def _of_specs(clause: Clause) -> Iterator[tuple[str, str]]:
    """The conditions of a clause on specifications, each with its parameter."""
    for name, default in (("queue", "default"), ("project", ""), ("gang", "")):
        if value := getattr(clause, name):
            yield f"coalesce(spec ->> '{name}', '{default}') = ?", value


def _of_names(clause: Clause) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The conditions of a clause on names, each with its parameters. In a pipeline a name is `STAGE ELEMENT`; its
    first word is the name of the specification."""
    named = "+j.spec IN (SELECT id FROM specs WHERE coalesce(spec ->> 'name', '') = ?)"
    begins = "instr(char(10) || {}, char(10) || ?) = 1"
    of_specs = begins.format("(spec ->> 'name')")
    prefixed = f"+j.spec IN (SELECT id FROM specs WHERE {of_specs})"
    for text, of_spec, of_element in (
        (clause.name, named, "j.pipeline_element = ?"),
        (clause.name_prefix, prefixed, begins.format("j.pipeline_element")),
    ):
        stage, blank, element = text.partition(" ")
        if blank:
            yield f"({of_spec} OR ({named} AND {of_element}))", (text, stage, element)
        elif text:
            yield of_spec, (text,)


def contains(text: str) -> str:
    """The condition that a command contains a text, given its `pattern`."""
    # Like `folded`, `LIKE` ignores case for ASCII letters only. Commands are decoded only if that can matter.
    command = "j.cmd" if _ENCODED.isdisjoint(text) else _ONE_LINE
    return f"({command}) LIKE ? ESCAPE '\\'"


def pattern(text: str) -> str:
    """What `contains` is given for a text."""
    if "\0" in text:
        return ""  # no command contains it, and `LIKE` would end the text there
    for sign in "\\%_":
        text = text.replace(sign, f"\\{sign}")
    return f"%{text}%"
