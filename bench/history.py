"""Writes finished jobs into a deployment through the `Store`, as if they had run there long ago."""

from __future__ import annotations

import base64
import hashlib
import os
import pwd
from pathlib import Path
from typing import NamedTuple

import msgspec

from rota.core.changes import Changes
from rota.core.jobs.job import Spec
from rota.core.rows import AttemptRow, EndRow, EnvRow, JobRow, JobStateRow, SpecRow, SubmissionRow
from rota.core.states import State
from rota.store.sqlite.store import SqliteStore

_BATCH = 20_000


class Spread(NamedTuple):
    """When and where they ran: one after the other begins, on one host after the other."""

    since: float = 1_700_000_000.0
    every_s: float = 1.0
    length_s: float = 1.0
    hosts: int = 1

    def begin(self, job: int) -> float:
        return self.since + job * self.every_s

    def host(self, job: int) -> str:
        return "history" if self.hosts == 1 else f"n{job % self.hosts:03}"


def write_finished(home: Path, count: int, *, failed_every: int = 0, spread: Spread | None = None) -> None:
    """Add `count` jobs that are complete, or every so many failed, with one attempt each. No manager may be
    running there."""
    store = SqliteStore(home)
    try:
        known = store.load()
        user = pwd.getpwuid(os.getuid()).pw_name
        env, spec, first = known.next_env, known.next_spec, known.next_job
        data = b"BENCH=1"
        changes = Changes()
        changes.envs.append(EnvRow(env, hashlib.sha256(data).hexdigest(), base64.b64encode(data).decode()))
        changes.specs.append(
            SpecRow(spec, msgspec.json.encode(Spec(user=user, cwd="/", env=env, group="history")).decode())
        )
        store.commit(changes)
        for low in range(first, first + count, _BATCH):
            ids = range(low, min(low + _BATCH, first + count))
            store.commit(
                _finished(ids, spec=spec, user=user, failed_every=failed_every, spread=spread or Spread())
            )
    finally:
        store.close()


def _finished(ids: range, *, spec: int, user: str, failed_every: int, spread: Spread) -> Changes:
    """One submission whose jobs all ended."""
    changes, submission = Changes(), f"history-{ids.start}"
    changes.submissions.append(
        SubmissionRow(submission, user, 1.0, len(ids), '{"added":[],"existing":[],"retried":[]}')
    )
    for job in ids:
        at = spread.begin(job)
        key = hashlib.blake2b(b"history %d" % job, digest_size=16).hexdigest()
        cmd = f"echo the job with the number {job} was here"
        changes.jobs.append(
            JobRow(job, key, submission, spec, "history", user, cmd, int(State.READY), at, at, None, None, None)
        )
        changes.attempts.append(AttemptRow(job, 1, job, "history", spread.host(job), at, spec))
        state = State.FAILED if failed_every and job % failed_every == 0 else State.COMPLETE
        end = at + spread.length_s
        failed = int(state is State.FAILED)
        changes.ends.append(
            EndRow(
                job, 1, state.label, failed, None, None, None, at, end, 0.01, 1 << 20, 0, None, None, 0, 0, 0, 0
            )
        )  # fmt: skip
        changes.job_states[job] = JobStateRow(job, int(state), 1, 1, None, at, end, None, None, None)
        count = ("history", int(state))
        changes.tally[count] = changes.tally.get(count, 0) + 1
    return changes
