"""A note says everything about a task: it becomes the same task again, and that the same note."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.core.jobs.outcome import Behaved, Outcome
from rota.launcher.inside import InsideLauncher
from rota.plan.size import Size
from rota.runner.launch.notes import (
    VERSION,
    BehavioursNote,
    HookNote,
    TaskNote,
    Unreadable,
    decode,
    encode,
    note_of,
    task_of,
)
from rota.runner.start.cores import Share
from rota.runner.start.environment import Catalogue
from rota.runner.task import LeaseQueue, Seat
from rota.wire.job_structs import RunSpec
from rota.wire.orders import Allocation, Grant

_TEXT = st.text(max_size=8)
_TIME = st.floats(0, 1e6)
_MAYBE_TIME = st.none() | _TIME
_NUMBER = st.integers(0, 1 << 40)
_WORDS = st.lists(_TEXT, max_size=3).map(tuple)
_OUTCOMES = st.builds(
    Outcome, exit_code=st.none() | st.integers(0, 255), reason=_TEXT, started_at=_MAYBE_TIME, out_len=_NUMBER
)
_SPECS = st.builds(
    RunSpec, id=_NUMBER, env=_NUMBER, cwd=st.just("/tmp"), user=_TEXT, name=_TEXT, group=_TEXT,
    size=st.builds(Size, cpus=st.integers(1, 800), mem=_NUMBER), walltime_s=_MAYBE_TIME, scratch=st.booleans(),
    pipefail=st.booleans(), on_exit=_WORDS, on_failure=_WORDS, interactive=st.booleans(),
)  # fmt: skip
_GRANTS = st.builds(
    Grant, job=_NUMBER, attempt=st.integers(1, 9), token=_NUMBER, spec=_NUMBER,
    cmd=_TEXT | st.lists(_TEXT, max_size=3), rank=_NUMBER,
    allocation=st.none() | st.builds(Allocation, cpu_list=st.just("0-1"), walltime_s=st.none()),
)  # fmt: skip
_NOTES = st.builds(
    TaskNote, version=st.just(VERSION), grant=_GRANTS, spec=_SPECS, stored=st.binary(max_size=20), seat=_NUMBER,
    runs=st.integers(0, 9), pid=_NUMBER, start_time=_NUMBER, started_at=_TIME, began=_TIME,
    cores=st.sets(st.integers(0, 64), max_size=4).map(lambda cores: tuple(sorted(cores))), scratch=st.booleans(),
    nodefile=st.none() | _TEXT, preparing=st.booleans(), prepared=st.booleans(),
    behaviours=st.none()
    | st.builds(
        BehavioursNote, outcome=_OUTCOMES, todo=_WORDS, by=_MAYBE_TIME, spent=_TEXT,
        done=st.lists(st.builds(Behaved, _TEXT, st.booleans(), _TEXT), max_size=2).map(tuple),
    ),
    concluding=st.none() | _OUTCOMES,
    hooks=st.lists(st.builds(HookNote, _TEXT, _NUMBER, _TIME, _TEXT), max_size=2).map(tuple),
    frozen=st.booleans(), suspended_since=_MAYBE_TIME, suspended_at=_TIME, suspended_s=_TIME,
    suspend_wanted=st.booleans(), in_suspend_hook=st.booleans(), walltime_s=_MAYBE_TIME,
    warned=st.lists(st.tuples(_TIME, _TEXT), max_size=2).map(tuple), deadline=_MAYBE_TIME, kill_at=_MAYBE_TIME,
    reason=_TEXT, message=_TEXT, cpu_s=_TIME, peak_mem=_NUMBER, peak_disk=_NUMBER, sampled=st.booleans(),
    starting=st.booleans(),
)  # fmt: skip


@given(_NOTES)
def test_a_note_becomes_a_task_and_that_the_same_note(note: TaskNote) -> None:
    read = decode(encode(note))
    assert read == note
    env = Catalogue("/nowhere").rebuilt(read.grant, read.spec, read.stored)
    seat = Seat(read.seat, LeaseQueue(env.size))
    if read.cores:
        seat.share = Share(frozenset(read.cores), binds=True, fences=False)
    task = task_of(read, env, seat=seat, launcher=_LAUNCHER, scratch_root="/nowhere")
    assert note_of(task, read.hooks, starting=read.starting) == note


_LAUNCHER = InsideLauncher()
_PLAIN: dict[str, Any] = {
    "grant": Grant(1, 1, 1, 1, "true", 1),
    "spec": RunSpec(1, 1, "/", "", "", "", Size(), None, False, False),
    "stored": b"",
    "seat": 1,
    "runs": 0,
}


@pytest.mark.parametrize("state", [b"", b"\x93\x01", encode(["a", 2])])
def test_what_is_no_note_is_refused(state: bytes) -> None:
    with pytest.raises(Unreadable):
        decode(state)


def test_a_note_of_a_later_version_is_refused_and_one_with_more_fields_is_not() -> None:
    with pytest.raises(Unreadable, match="version"):
        decode(encode(TaskNote(VERSION + 1, **_PLAIN)))
    fields = msgspec.msgpack.decode(encode(TaskNote(VERSION, **_PLAIN)))
    assert decode(encode([*fields, "later"])) == TaskNote(VERSION, **_PLAIN)
