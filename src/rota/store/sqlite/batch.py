"""Encodes `Changes` as the statements of a commit: each by name, with its whole list of rows as JSON."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import astuple, replace

from rota.core.changes import Changes
from rota.core.rows import EndRow, StartRow, SubmissionRow

#: (statement, its lists as JSON or its numbers), in the order in which they must run.
Batch = list[tuple[str, tuple[str | int | float, ...]]]
#: Adds the rows of a statement to the batch.
Write = Callable[[str, Collection[object]], None]

#: Up to this many rows are written one by one. Each is a step that hands over the interpreter lock.
_FEW: Final = 4
#: Integers that SQLite can store.
_LARGEST: Final = (1 << 63) - 1

_R = TypeVar("_R", StartRow, EndRow)


def encode(changes: Changes) -> Batch:
    """The statements for these changes. A statement without rows is left out."""
    batch: Batch = []

    def write(name: str, rows: Collection[object]) -> None:
        if rows:
            batch.append((name, (_text(rows),)))

    if changes.moved_by:
        batch += [(name, (changes.moved_by,)) for name in ("move_jobs", "move_attempts")]
    write("undo_jobs", changes.undone)
    write("pass_inputs", [row for row in changes.submissions if row.input])
    write("upsert_submissions", last_submissions(changes.submissions))
    write("insert_envs", changes.envs)
    write("insert_specs", changes.specs)
    if changes.jobs or changes.respecified:
        _write_jobs(changes, batch, write)
    write("rekey_jobs", list(changes.rekeyed.values()))
    _relink(changes, write)
    write("insert_edges", changes.edges)
    write("insert_children", changes.children)
    write("upsert_runners", changes.runners)
    write("insert_attempts", changes.attempts)
    write("start_attempts", _last_of_each(changes.starts))
    write("end_attempts", last_ends(changes.ends))
    write("keep_returned", list({(row.job, row.number): row for row in changes.returned}.values()))
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
    write("remove_limits", [name for name, text in changes.limits.items() if text is None])
    write("upsert_site", [(*key, text) for key, text in changes.site.items() if text is not None])
    write("remove_site", [key for key, text in changes.site.items() if text is None])
    write("upsert_intents", [row for row in changes.intents.values() if row is not None])
    write("remove_intents", [name for name, row in changes.intents.items() if row is None])
    write("upsert_meta", [(key, fact) for key, fact in changes.meta.items() if fact is not None])
    write("remove_meta", [key for key, fact in changes.meta.items() if fact is None])
    if changes.accounts:
        batch += _sums("account", [(*key, *astuple(more)) for key, more in changes.accounts.items()])
    if changes.minutes:
        batch += _sums("minute", [(minute, *astuple(more)) for minute, more in changes.minutes.items()])
    write("insert_machine_rows", changes.machines)
    if changes.removed:
        batch.append(("keep_highest_job", ()))
        write("remove_children", changes.removed)
        write("remove_jobs", changes.removed)
        write("remove_attempts", changes.removed)
        write("remove_returned", changes.removed)
        write("remove_events", changes.removed)
        write("remove_edges", changes.removed)
    write("remove_submissions", changes.dropped)
    return batch


def last_submissions(rows: list[SubmissionRow]) -> list[SubmissionRow]:
    """Keep the input's name on only the last of several adds of one input in a batch."""
    if not any(row.input for row in rows):
        return rows
    last = {(row.user, row.input): row.id for row in rows if row.input}
    return [
        row if not row.input or last[row.user, row.input] == row.id else replace(row, input=None) for row in rows
    ]


def last_ends(rows: list[EndRow]) -> list[EndRow]:
    """Keep only the last end of each attempt, with an earlier one's start where the last has none."""
    found = _last_of_each(rows)
    if len(found) == len(rows):
        return rows
    starts = {(row.job, row.number): row.started_at for row in rows if row.started_at is not None}
    return [replace(row, started_at=starts.get((row.job, row.number))) for row in found]


def _last_of_each(rows: list[_R]) -> list[_R]:
    """Keep only the last row of each attempt: `UPDATE … FROM` would pick any of several."""
    found = {(row.job, row.number): row for row in rows}
    return rows if len(found) == len(rows) else list(found.values())


def _relink(changes: Changes, write: Write) -> None:
    """Update jobs whose dependencies were replaced or removed."""
    if not changes.reafter and not changes.replaced:
        return
    jobs, reafter = list(changes.reafter), list(changes.reafter.values())
    write("remove_children", jobs)  # by what the jobs say that they wait for, so before they say something else
    write("remove_edges", [*jobs, *(row.job for row in changes.replaced)])
    write("reattach_jobs", reafter)
    write("replace_jobs", changes.replaced)


def _sums(name: str, rows: list[tuple[Any, ...]]) -> Batch:
    """Add to the sums. Nearly always a row or two, which cost half as much without JSON."""
    if len(rows) <= _FEW and all(abs(cell) <= _LARGEST for row in rows for cell in row if isinstance(cell, int)):
        return [(f"add_{name}", tuple(map(_without_nul, row))) for row in rows]
    return [(f"add_{name}s", (_text(rows),))]


class _Shared(Struct, frozen=True, array_like=True, gc=False):
    """What many new jobs have in common."""

    submission: str
    spec_id: int
    group: str
    user: str
    state: int
    submitted_at: float
    ready_at: float | None
    reason_code: str | None
    reason_message: str | None
    after: str | None
    more: int = 0  #: 1: their own rows go on with input_bytes, array and index; 2: and the element of a pipeline


def _write_jobs(changes: Changes, batch: Batch, write: Write) -> None:
    """New and modified jobs. What the jobs of one `add` share is encoded and looked up once."""
    own: list[tuple[object, ...]] = []
    shared: dict[_Shared, int] = {}
    spans: dict[str, list[int]] = {}
    for row in changes.jobs:
        more = 2 if row.pipeline_element else int(row.input_bytes is not None or row.array is not None)
        same = _Shared(
            row.submission, row.spec_id, row.group, row.user, row.state, row.submitted_at, row.ready_at,
            row.reason_code, row.reason_message, row.after, more,
        )  # fmt: skip
        position = shared.get(same)
        if position is None:
            position = shared[same] = len(shared)
        n = row.id
        if more == 2:
            own.append(
                (n, row.key, row.cmd, position, row.input_bytes, row.array, row.index, row.pipeline_element)
            )
        elif more:
            own.append((n, row.key, row.cmd, position, row.input_bytes, row.array, row.index))
        else:
            own.append((n, row.key, row.cmd, position))
        span = spans.get(row.submission)
        if span is None:
            spans[row.submission] = [n, n]
        elif n > span[1]:
            span[1] = n
        elif n < span[0]:
            span[0] = n
    respecified = list(changes.respecified.values())
    groups = {(row.group, row.user) for row in shared} | {(row.group, row.user) for row in respecified}
    write("insert_groups", groups)
    write("widen_submissions", [(submission, *span) for submission, span in spans.items()])
    if own:
        batch.append(("insert_jobs", (_text(own), _text(list(shared)))))
    write("respecify_jobs", respecified)


def _text(rows: Iterable[object]) -> str:
    text = msgspec.json.encode(rows).decode()
    if "\\u0000" not in text:
        return text
    # SQLite's JSON truncates a text at a NUL: a visible substitute loses less.
    return msgspec.json.encode(_clean(msgspec.to_builtins(rows))).decode()


def _clean(value: object) -> object:
    if isinstance(value, (list, tuple, set)):
        return [_clean(each) for each in value]
    return _without_nul(value)


def _without_nul(cell: Any) -> Any:
    return cell.replace("\0", "\ufffd") if isinstance(cell, str) else cell
