"""Reads all live state from SQLite into a `StoreSnapshot` when a manager starts."""

from __future__ import annotations

import gc
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from rota.core.jobs.command import command_from_text
from rota.core.jobs.job import Spec
from rota.core.rows import EdgeRow, GroupMember, IntentRow, MachineRow, ObservationRow, RunnerRow
from rota.core.stored import OBSERVATIONS, StoredAttempt, StoredJob, StoreSnapshot
from rota.errors import StoreFailed
from rota.store import json_columns
from rota.store.sqlite.database import damaged
from rota.store.sqlite.statements import statements

_BLOCK: Final = 1 << 14
_NO_JOB: Final = 255
#: Letters made by `state_block` → terminal state number, or 0 for a live job.
_LETTERS: Final = bytes(n - 64 if 76 <= n <= 78 else 0 for n in range(256))
_FIRST_TERMINAL: Final = 12

#: floor, input_bytes, array and index.
_rare = msgspec.json.Decoder(tuple[str | None, int | None, int | None, int | None])
_spec = msgspec.json.Decoder(Spec)


def attempt(row: Sequence[Any]) -> StoredAttempt:
    """An attempt from its row, all columns in their order."""
    *columns, size, behaviours, given, kept = row
    made = StoredAttempt(*columns)
    if size is not None:
        made.size = json_columns.size(size)
    if behaviours is not None:
        made.behaviours = json_columns.behaviours(behaviours)
    if given is not None:
        made.given = json_columns.given(given)
    if kept is not None:
        made.kept = json_columns.kept(kept)
    return made


def load(connection: sqlite3.Connection, *, path: Path) -> StoreSnapshot:
    """Remove unfinished uploads, then read. Raises `StoreRefused` if the database is damaged."""
    collecting = gc.isenabled()
    # A million new objects, all of which stay: garbage collection meanwhile is wasted time.
    gc.disable()
    try:
        _remove_open_uploads(connection)
        connection.execute("BEGIN")
        try:
            return _read(connection)
        finally:
            connection.execute("ROLLBACK")
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
            raise StoreFailed(f"{path} could not be read: {error}", hint="check the disk") from error
        raise damaged(path, error) from error
    except (msgspec.MsgspecError, ValueError, TypeError, LookupError) as error:
        raise damaged(path, error) from error
    finally:
        if collecting:
            gc.enable()


def _remove_open_uploads(connection: sqlite3.Connection) -> None:
    sql = statements()
    if not connection.execute(sql["open_submissions"]).fetchall():
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute(sql["keep_highest_job"])
        for what in ("attempts", "events", "edges", "children", "jobs", "submissions"):
            connection.execute(sql[f"remove_open_{what}"])
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _read(connection: sqlite3.Connection) -> StoreSnapshot:
    sql = statements()

    def rows(name: str, *params: str | int) -> list[Any]:
        return connection.execute(sql[name], params).fetchall()

    ((next_job, next_spec, next_env),) = rows("next_ids")
    ((replaced,),) = rows("all_replaced")
    specs = {n: _spec.decode(text) for n, text in rows("all_specs")}
    # In most deployments no specification is in a group, and this search can be skipped.
    members = {n for n, spec in specs.items() if spec.dep_groups}
    edges = rows("all_edges")
    return StoreSnapshot(
        jobs=_live_jobs(connection),
        open_attempts=[attempt(row) for row in rows("open_attempts")],
        specs=specs,
        env_ids=dict(rows("all_envs")),
        outcomes=_outcomes(connection, below=next_job),
        tally={(group, state): n for group, state, n in rows("all_tally")},
        runners=[RunnerRow(*row) for row in rows("open_runners")],
        meta=dict(rows("all_meta")),
        next_job=next_job,
        next_spec=next_spec,
        next_env=next_env,
        limits=dict(rows("all_limits")),
        site={(kind, name): value for kind, name, value in rows("all_site")},
        dep_groups=dict(rows("all_dep_groups")),
        bad_members=[GroupMember(*row) for row in rows("gone_wrong", msgspec.json.encode(members).decode())]
        if members
        else [],
        edges=[EdgeRow(parent, child) for parent, child, _ in edges],
        edge_specs={child: spec for _, child, spec in edges if spec in members},
        observations=[ObservationRow(*row) for row in rows("newest_observations", OBSERVATIONS)],
        machines={row[0]: MachineRow(*row) for row in rows("last_machine_rows")},
        replaced=msgspec.json.decode(replaced, type=list[int]),
        intents=[IntentRow(*row) for row in rows("all_intents")],
    )


def _live_jobs(connection: sqlite3.Connection) -> list[StoredJob]:
    sql = statements()
    # Mapped here rather than joined in SQL, so that a million jobs share the same few strings.
    groups = {n: (group, user) for n, group, user in connection.execute(sql["all_groups"])}
    submissions = dict(connection.execute(sql["live_submissions"]).fetchall())
    jobs: list[StoredJob] = []
    add = jobs.append
    for (
        n, key, submission, spec, group, cmd, state, attempt, tries, submitted_at, ready_at, due_at, ended_at,
        code, message, after, rare,
    ) in connection.execute(sql["live_jobs"]):  # fmt: skip
        name, user = groups[group]
        argv = command_from_text(cmd) if cmd[:1] < " " else cmd
        parents = json_columns.after(after) if after else ()
        add(
            StoredJob(
                n, key, submissions[submission], spec, name, user, argv, state, attempt, tries, submitted_at,
                ready_at, due_at, ended_at, code, message, parents,
            )
        )  # fmt: skip
        if rare:
            job = jobs[-1]
            floor, job.input_bytes, job.array, job.index = _rare.decode(rare)
            job.floor = json_columns.floor(floor)
    return jobs


def _outcomes(connection: sqlite3.Connection, *, below: int) -> bytes:
    sql = statements()
    outcomes = bytearray([_NO_JOB]) * below
    for low in range(0, below, _BLOCK):
        span = (low, low + _BLOCK - 1)
        count, first, last, letters = connection.execute(sql["state_block"], span).fetchone()
        if count and count == last - first + 1 == len(letters):
            outcomes[first : last + 1] = letters.encode("ascii").translate(_LETTERS)
        elif count:
            for n, state in connection.execute(sql["state_rows"], span):
                outcomes[n] = state if state >= _FIRST_TERMINAL else 0
    return bytes(outcomes)
