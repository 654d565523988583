"""Short ways to write the rows of `Changes` in the tests of stores."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import msgspec

from rota.core.changes import Changes
from rota.core.jobs.job import Spec
from rota.core.rows import (
    AfterRow,
    AttemptRow,
    EdgeRow,
    EndRow,
    EnvRow,
    EventRow,
    GivenRow,
    JobRow,
    JobStateRow,
    MachineRow,
    ObservationRow,
    RekeyedRow,
    ReplacedRow,
    RespecifiedRow,
    Row,
    RunnerRow,
    SpecRow,
    StartRow,
    SubmissionRow,
    VoidRow,
)
from rota.core.states import State

SPEC = msgspec.json.encode(Spec(user="ann", cwd="/home/ann", env=1)).decode()


def key_of(text: object) -> str:
    return hashlib.sha1(str(text).encode()).hexdigest()


def job_row(n: int, **other: Any) -> JobRow:
    row: dict[str, Any] = {
        "id": n, "key": key_of(n), "submission": "s1", "spec_id": 1, "group": "default", "user": "ann",
        "cmd": f"echo {n}", "state": State.READY, "submitted_at": 1000.25, "ready_at": 1000.25,
        "reason_code": None, "reason_message": None, "after": None, "input_bytes": None, "array": None,
        "index": None,
    }  # fmt: skip
    return JobRow(**(row | other))


def attempt_row(job: int, number: int = 1, **other: Any) -> AttemptRow:
    row: dict[str, Any] = {
        "job": job, "number": number, "token": job, "runner": "r", "host": "h", "leased_at": 1.0, "spec_id": 1,
        "size": None, "given": None,
    }  # fmt: skip
    return AttemptRow(**(row | other))


def observation(group: str, place: int = 0, **other: Any) -> ObservationRow:
    row: dict[str, Any] = {
        "group": group, "place": place, "at": 1000.1 + place, "mem": 1 << 33, "disk": 0, "time_s": 0.1,
        "outcome": "complete", "input_bytes": None, "given_mem": 1 << 30, "given_disk": 5, "given_time_s": 3600.0,
    }  # fmt: skip
    return ObservationRow(**(row | other))


def end_row(job: int, number: int = 1, **other: Any) -> EndRow:
    row: dict[str, Any] = {
        "job": job, "number": number, "outcome": "complete", "exit_code": 0, "signal": None,
        "reason_code": None, "reason_message": None, "started_at": 1001.5, "ended_at": 1002.125,
        "cpu_s": 0.1, "peak_mem": 1 << 40, "peak_disk": 0, "segment": "seg-1", "offset": 7,
        "out_len": 3, "err_len": 0, "out_total": 3, "err_total": 0, "behaviours": None, "kept": None,
    }  # fmt: skip
    return EndRow(**(row | other))


def state_row(n: int, state: int, **other: Any) -> JobStateRow:
    row: dict[str, Any] = {
        "job": n, "state": state, "attempt": 0, "tries": 0, "due_at": None, "ready_at": None, "ended_at": None,
        "reason_code": None, "reason_message": None, "floor": None,
    }  # fmt: skip
    return JobStateRow(**(row | other))


#: Lists whose rows may be written as tuples in `changes`.
_KINDS: dict[str, type[Row]] = {
    "submissions": SubmissionRow, "envs": EnvRow, "specs": SpecRow, "edges": EdgeRow, "children": EdgeRow,
    "replaced": ReplacedRow, "starts": StartRow, "voids": VoidRow, "events": EventRow, "runners": RunnerRow,
    "machines": MachineRow, "respecified": RespecifiedRow, "reafter": AfterRow, "regiven": GivenRow,
    "rekeyed": RekeyedRow,
}  # fmt: skip


def changes(**lists: Any) -> Changes:
    """These lists, of rows or of tuples with the fields of rows."""
    made = Changes()
    for name, value in lists.items():
        kind = _KINDS.get(name)
        if kind is not None and isinstance(value, dict):
            value = {key: row if isinstance(row, Row) else kind(*row) for key, row in value.items()}
        elif kind is not None:
            value = [row if isinstance(row, Row) else kind(*row) for row in value]
        setattr(made, name, value)
    return made


def an_add(
    *ids: int, submission: str = "s1", answer: str | None = "{}", at: float = 1000.0, **other: Any
) -> Changes:
    """An `add` of these jobs, sealed unless `answer` is None."""
    return changes(
        submissions=[SubmissionRow(submission, other.get("user", "ann"), at, len(ids), answer)],
        jobs=[job_row(n, submission=submission, **other) for n in ids],
    )


def a_world() -> Changes:
    """A little of everything, in one batch."""
    made = an_add(1, 2, 3)
    made.envs = [EnvRow(1, "digest-1", base64.b64encode(b"A=1\0B=\xff").decode())]
    made.specs = [SpecRow(1, SPEC)]
    made.runners = [RunnerRow("r1", "host1", "boot-1", 41, 12345, 999.5)]
    leased: dict[str, Any] = {"runner": "r1", "host": "host1", "leased_at": 1001.0}
    made.attempts = [attempt_row(1, token=(1 << 63) - 1, **leased), attempt_row(2, token=5, **leased)]
    made.starts = [StartRow(1, 1, 1001.5, 77, 2)]
    made.ends = [end_row(1)]
    made.job_states = {
        1: state_row(1, State.COMPLETE, attempt=1, tries=1, ended_at=1002.125),
        2: state_row(2, State.SCHEDULED, attempt=1, ready_at=1000.25),
    }
    made.events = [EventRow(1001.0, 2, 1, "leased", "to r1")]
    made.tally = {("default", int(State.COMPLETE)): 1}
    made.meta = {"name": "here"}
    return made
