"""Encodes `Changes` as the statements of a commit: each by name, with its whole list of rows as JSON."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final

import msgspec

from rota.core.changes import Changes, Row

#: (statement, its lists as JSON or its numbers), in the order in which they must run.
Batch = list[tuple[str, tuple[str | int | float, ...]]]

#: Up to this many rows are written one by one. Each is a step that hands over the interpreter lock.
_FEW: Final = 4
#: Integers that SQLite can store.
_LARGEST: Final = (1 << 63) - 1


def encode(changes: Changes) -> Batch:
    """The statements for these changes. A statement without rows is left out."""
    batch: Batch = []

    def write(name: str, rows: Collection[Row]) -> None:
        if rows:
            batch.append((name, (_text(rows),)))

    if changes.moved_by:
        batch += [(name, (changes.moved_by,)) for name in ("move_jobs", "move_attempts")]
    write("undo_jobs", changes.undone)
    write("pass_inputs", [row for row in changes.submissions if row[5:] and row[5]])
    write("upsert_submissions", last_submissions(changes.submissions))
    write("insert_envs", changes.envs)
    write("insert_specs", changes.specs)
    own, shared, spans = _share(changes.jobs)
    respecified = list(changes.respecified.values())
    write("insert_groups", {row[2:4] for row in (*shared, *respecified)})
    write("widen_submissions", spans)
    if own:
        batch.append(("insert_jobs", (_text(own), _text(shared))))
    write("respecify_jobs", respecified)
    write("rekey_jobs", list(changes.rekeyed.values()))
    _relink(changes, write)
    write("insert_edges", changes.edges)
    write("insert_children", changes.children)
    write("upsert_runners", changes.runners)
    write("insert_attempts", changes.attempts)
    write("start_attempts", last_words(changes.starts))
    write("end_attempts", last_words(changes.ends, started_at=7))
    write("regive_attempts", list(changes.regiven.values()))
    write("void_attempts", changes.voids)
    write("insert_pruned", changes.pruned)
    write("update_jobs", list(changes.job_states.values()))
    write("insert_events", changes.events)
    write("forget_observations", changes.forgotten)
    write("insert_observations", changes.observations)
    write("add_tally", [(group, state, n) for (group, state), n in changes.tally.items()])
    write("add_dep_groups", list(changes.dep_groups.items()))
    write("upsert_limits", [(name, text) for name, text in changes.limits.items() if text is not None])
    write("remove_limits", [(name,) for name, text in changes.limits.items() if text is None])
    write("upsert_site", [(*key, text) for key, text in changes.site.items() if text is not None])
    write("remove_site", [key for key, text in changes.site.items() if text is None])
    write("upsert_meta", list(changes.meta.items()))
    if changes.accounts:
        batch += _sums("account", [(*map(_without_nul, key), *more) for key, more in changes.accounts.items()])
    if changes.minutes:
        batch += _sums("minute", [(minute, *more) for minute, more in changes.minutes.items()])
    write("insert_host_states", changes.host_states)
    if changes.removed:
        batch.append(("keep_highest_job", ()))
        write("remove_children", changes.removed)
        write("remove_jobs", changes.removed)
        write("remove_attempts", changes.removed)
        write("remove_events", changes.removed)
        write("remove_edges", changes.removed)
    write("remove_submissions", changes.dropped)
    return batch


def last_submissions(rows: list[Row]) -> list[Row]:
    """Keep the input's name on only the last of several adds of one input in a batch."""
    last = {(row[1], row[5]): row[0] for row in rows if row[5:] and row[5]}
    return [
        row if not row[5:] or last.get((row[1], row[5]), row[0]) == row[0] else (*row[:5], None) for row in rows
    ]


def _relink(changes: Changes, write: Callable[[str, Collection[Row]], None]) -> None:
    """Update jobs whose dependencies were replaced or removed."""
    reafter = list(changes.reafter.values())
    write("remove_children", reafter)  # by what the jobs say that they wait for, so before they say something else
    write("remove_edges", [*reafter, *changes.replaced])
    write("reattach_jobs", reafter)
    write("replace_jobs", changes.replaced)


def _sums(name: str, rows: list[Row]) -> Batch:
    """Add to the sums. Nearly always a row or two, which cost half as much without JSON."""
    if len(rows) <= _FEW and all(abs(cell) <= _LARGEST for row in rows for cell in row if isinstance(cell, int)):
        return [(f"add_{name}", row) for row in rows]
    return [(f"add_{name}s", (_text(rows),))]


def last_words(rows: list[Row], *, started_at: int = 0) -> list[Row]:
    """Keep only the last row of each attempt: `UPDATE … FROM` would pick any of several. If the column
    `started_at` is given, it keeps an earlier row's value where the last row has none."""
    found = {row[:2]: row for row in rows}
    if len(found) == len(rows):
        return rows
    if started_at:
        starts = {row[:2]: row[started_at] for row in rows if row[started_at] is not None}
        for attempt, row in found.items():
            found[attempt] = (*row[:started_at], starts.get(attempt), *row[started_at + 1 :])
    return list(found.values())


def _share(jobs: Sequence[Row]) -> tuple[list[Row], list[Row], list[Row]]:
    """Job rows in two parts, so that what the jobs of one `add` share is encoded and looked up once; and the span
    of ids of each submission."""
    own: list[Row] = []
    shared: dict[Row, int] = {}
    spans: dict[str, list[int]] = {}
    for row in jobs:
        n, submission = row[0], row[2]
        if row[13] is None and row[14] is None:
            own.append((n, row[1], row[6], shared.setdefault(row[2:6] + row[7:13], len(shared))))
        else:
            position = shared.setdefault((*row[2:6], *row[7:13], 1), len(shared))
            own.append((n, row[1], row[6], position, *row[13:]))
        span = spans.get(submission)
        if span is None:
            spans[submission] = [n, n]
        elif n > span[1]:
            span[1] = n
        elif n < span[0]:
            span[0] = n
    return own, list(shared), [(submission, *span) for submission, span in spans.items()]


def _text(rows: Iterable[Row]) -> str:
    text = msgspec.json.encode(rows).decode()
    if "\\u0000" not in text:
        return text
    # SQLite's JSON truncates a text at a NUL: a visible substitute loses less.
    clean = [[_without_nul(cell) for cell in row] for row in rows]
    return msgspec.json.encode(clean).decode()


def _without_nul(cell: object) -> object:
    return cell.replace("\0", "\ufffd") if isinstance(cell, str) else cell
