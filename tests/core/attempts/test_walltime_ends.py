"""Reaching the walltime: the normal end of jobs that only hold resources or somebody's terminal, a failure of all
others, which is tried again only if `retry_on` says so."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.core.events import ServerScriptEnded
from rota.core.hooks.hook_records import ScriptState
from rota.core.jobs.explain import why
from rota.core.jobs.job import Condition, Spec
from rota.core.jobs.outcome import Outcome
from rota.core.states import TERMINAL, State
from rota.plan.language.retry_codes import RETRY_CODES
from tests.core.machine import Entry, Machine, spec
from tests.core.test_planned import add, reason, running
from tests.dose import dose

#: What a runner says of a command that it ended at its walltime.
TOLD: dict[str, Any] = {"signal": 15, "reason": "walltime", "message": "over its walltime of 60 s"}
MINUTE = "core=1,walltime=0:1:0"


@pytest.fixture
def m() -> Machine:
    machine = Machine(cpus=200)
    machine.with_runner()
    return machine


def over(m: Machine, job: int, after_s: float = 60.0, **more: Any) -> None:
    """The walltime of a running job is over."""
    began = m.wall
    m.advance(after_s)
    m.end(job, Outcome(**{**TOLD, "started_at": began, "ended_at": m.wall, **more}))


def learned(m: Machine) -> list[str]:
    """How the attempts ended that were taken as examples."""
    return [row.outcome for row in m.store.load().observations]


HOLDERS = [{"types": (kind,)} for kind in ("container", "deploy", "cosystem")] + [{"interactive": True}]


@pytest.mark.parametrize("fields", HOLDERS)
@pytest.mark.parametrize("how", [{}, {"exit_code": 3, "signal": None}, {"exit_code": 0, "signal": None}])
def test_the_walltime_is_the_normal_end_of_jobs_that_hold_something(
    m: Machine, fields: dict[str, Any], how: dict[str, Any]
) -> None:
    retries = 0 if "interactive" in fields else 3
    job = add(m, request=MINUTE, retries=retries, **fields)
    child = m.add("child", after=((job, Condition.OK, False),)).added[0]
    over(m, job, **how)
    (row,) = m.store.jobs([job])
    assert (row.state, row.reason_code) == (State.COMPLETE, None)
    (attempt,) = m.store.attempts(job)
    assert (attempt.outcome, attempt.exit_code, attempt.signal) == ("complete", None, None)
    assert child in running(m), "what waits for it goes on at once"
    assert learned(m) == [], "that it ended says nothing about what it needs"


def test_it_is_their_normal_end_whatever_is_retried(m: Machine) -> None:
    job = add(m, request=MINUTE, retries=3, types=("container",), retry_on=("walltime",))
    over(m, job)
    assert m.state(job) is State.COMPLETE


@pytest.mark.parametrize("fields", HOLDERS[:3])
def test_their_command_may_still_end_and_fail_by_itself(m: Machine, fields: dict[str, Any]) -> None:
    done = add(m, request=MINUTE, retries=3, **fields)
    m.end(done, Outcome(exit_code=0))
    failed = add(m, request=MINUTE, retries=3, **fields)
    m.end(failed, Outcome(exit_code=2))
    assert m.states(done, failed) == [State.COMPLETE, State.DELAYED]


def test_a_kill_at_the_end_of_its_time_is_a_kill(m: Machine) -> None:
    job = add(m, request=MINUTE, types=("container",))
    m.do("kill", job)
    m.pump()
    assert m.state(job) is State.CANCELLED


def test_a_job_with_a_command_of_its_own_fails_at_its_walltime_and_is_not_retried(m: Machine) -> None:
    job = add(m, walltime_s=60.0, retries=3)
    child = m.add("child", after=((job, Condition.OK, False),)).added[0]
    over(m, job)
    assert m.states(job, child) == [State.FAILED, State.BLOCKED]
    assert reason(m, job) == "walltime"


def test_it_is_retried_if_it_asks_for_that(m: Machine) -> None:
    job = add(m, walltime_s=60.0, retries=1, retry_on=("walltime",))
    over(m, job)
    assert m.state(job) is State.DELAYED
    m.advance(100.0)
    m.pump()
    over(m, job)
    assert (m.state(job), reason(m, job)) == (State.FAILED, "walltime")


@pytest.mark.parametrize("retried", [True, False])
def test_a_walltime_end_raises_the_time_asked_for_only_if_it_is_retried(m: Machine, retried: bool) -> None:
    job = add(m, walltime_s=60.0, retries=1, retry_on=("walltime",) if retried else None)
    over(m, job)
    (row,) = m.store.jobs([job])
    assert (row.floor.time_s if row.floor is not None else 0.0) == (3660.0 if retried else 0.0)
    assert learned(m) == ["walltime"], "others may need more as well"


@dose(40)
@given(
    retry_on=st.none() | st.sets(st.sampled_from(RETRY_CODES)).map(tuple),
    code=st.sampled_from([code for code in RETRY_CODES if code != "provision"]),  # that is tried again at once
    permanent=st.booleans(),
)
def test_an_attempt_is_retried_after_what_retry_on_names(
    retry_on: tuple[str, ...] | None, code: str, permanent: bool
) -> None:
    m = Machine(cpus=200)
    m.with_runner()
    job = add(m, retries=1, retry_on=retry_on)
    said = {"exit": {"exit_code": 1}, "signal": {"signal": 9}}.get(code, {"reason": code})
    m.end(job, Outcome(**said, permanent=permanent))
    wanted = code != "walltime" and not permanent if retry_on is None else code in retry_on
    assert m.state(job) is (State.DELAYED if wanted else State.FAILED)


def test_a_specification_of_the_last_release_is_read_with_the_default() -> None:
    old = {"user": "ann", "cwd": "/", "env": 1, "retries": 3, "walltime_s": 60.0}
    assert msgspec.json.decode(msgspec.json.encode(old), type=Spec).retry_on is None


# ------------------------------------------------------------------ reservations


def reserved(m: Machine, **fields: Any) -> tuple[int, int]:
    """A reservation that runs, and one that waits for it."""
    job = add(m, request="core=1,walltime=0:10:0", at=m.wall + 100, retries=3, **fields)
    child = m.add("child", after=((job, Condition.OK, False),)).added[0]
    m.advance(100.0)
    m.pump()
    assert running(m) == {job}
    return job, child


@pytest.mark.parametrize("retry_on", [None, ("walltime", "exit")])
def test_a_reservation_fails_at_its_walltime_and_promises_no_second_run(
    m: Machine, retry_on: tuple[str, ...] | None
) -> None:
    job, child = reserved(m, retry_on=retry_on)
    over(m, job, 600.0)
    assert m.states(job, child) == [State.FAILED, State.BLOCKED]
    assert reason(m, job) == "walltime"
    (row,) = m.store.jobs([job])
    assert row.floor is None


@pytest.mark.parametrize(("after_s", "backoff_s", "again"), [(10.0, 30.0, True), (500.0, 300.0, False)])
def test_a_reservation_is_retried_while_a_second_run_can_begin_in_its_time(
    m: Machine, after_s: float, backoff_s: float, again: bool
) -> None:
    job, child = reserved(m, backoff_s=backoff_s)
    m.advance(after_s)
    m.end(job, Outcome(exit_code=1))
    if not again:
        assert m.states(job, child) == [State.FAILED, State.BLOCKED]
        assert reason(m, job) == "exit"
        return
    assert m.states(job, child) == [State.DELAYED, State.DEPENDENT]
    m.advance(2 * backoff_s)
    m.pump()
    assert running(m) == {job}, "what was promised comes"


def test_an_idempotent_reservation_that_asks_again_at_its_end_is_over(m: Machine) -> None:
    job, child = reserved(m, types=("idempotent",))
    began = m.wall
    m.advance(600.0)
    m.end(job, Outcome(exit_code=99, started_at=began, ended_at=m.wall))
    assert m.states(job, child) == [State.FAILED, State.BLOCKED]
    assert reason(m, job) == "exit"


def test_a_reservation_whose_prologue_fails_near_its_end_is_settled_at_once() -> None:
    m = Machine(cpus=200)
    m.world.use(ScriptState).prologue = True
    m.with_runner()
    job = add(m, request="core=1,walltime=0:0:20", at=m.wall + 100, retries=3)
    child = m.add("child", after=((job, Condition.OK, False),)).added[0]
    m.advance(100.0)
    m.pump()
    lease = m.world.jobs[job].lease
    assert lease is not None
    m.happened(ServerScriptEnded("prologue", job, m.world.jobs[job].attempt, lease.token, "exit 1"))
    m.pump()
    assert m.states(job, child) == [State.FAILED, State.BLOCKED]
    assert reason(m, job) == "server_prologue"


def test_a_reservation_that_is_over_is_not_opened_again_by_a_retry(m: Machine) -> None:
    job, _child = reserved(m)
    over(m, job, 600.0)
    answered = m.do("retry", job)
    assert (answered.changed, answered.unchanged) == ([], [job])
    assert (m.state(job), reason(m, job)) == (State.FAILED, "walltime")
    (told,) = why(m.world, m.load([job])[job], wall=m.wall)
    assert (told.code, told.hint) == ("walltime", ""), "nobody is told to retry it"


# ------------------------------------------------------------------ containers, suspension, several nodes


def test_a_container_that_is_over_is_complete_and_ends_what_still_runs_inside(m: Machine) -> None:
    box = add(m, request="core=2,walltime=0:1:0", types=("container",), retries=3)
    inner = add(m, request="core=1,walltime=0:0:50", types=(f"inner={box}",), retries=3)
    later = add(m, request="core=2,walltime=0:0:50", types=(f"inner={box}",), retries=3)
    assert running(m) == {box, inner}
    over(m, box)
    m.pump()
    m.pump()
    assert m.states(box, inner) == [State.COMPLETE, State.FAILED]
    assert reason(m, inner) == "container"
    assert m.state(later) is State.READY, "no second attempt of the container takes it in"


def test_suspended_time_does_not_bring_the_normal_end_nearer(m: Machine) -> None:
    job = add(m, request=MINUTE, types=("container",), retries=3)
    m.do("suspend", job)
    m.pump()
    assert m.state(job) is State.SUSPENDED
    m.advance(500.0)
    m.do("resume", job)
    m.pump()
    over(m, job)
    assert m.state(job) is State.COMPLETE


def test_a_container_over_several_nodes_is_complete_when_its_parts_are_closed() -> None:
    m = Machine(cpus=400, hosts=2)
    for host in ("h1", "h2"):
        m.join(m.start_runner(host))
    m.pump()
    job = add(m, request="/host=2/core=4,walltime=0:1:0", types=("container",), retries=3)
    m.pump()
    over(m, job)
    m.pump()
    assert m.state(job) is State.COMPLETE
    assert len(m.store.attempts(job)) == 1


# ------------------------------------------------------------------ the whole class


KINDS: list[dict[str, Any]] = [{}, {"types": ("noop",)}, {"types": ("idempotent",)}, *HOLDERS]


@dose(30)
@given(
    kinds=st.lists(st.tuples(st.sampled_from(KINDS), st.booleans()), min_size=1, max_size=4),
    lengths=st.lists(st.integers(10, 90), min_size=4, max_size=4),
)
def test_whatever_reaches_its_walltime_has_one_attempt_and_ends_as_its_kind_says(
    kinds: list[tuple[dict[str, Any], bool]], lengths: list[int]
) -> None:
    m = Machine(cpus=400)
    m.with_runner()
    entries = [
        Entry(
            f"job {n}",
            spec(
                request=(f"core=1,walltime={length}s",),
                at=m.wall + 100.0 if reserve else None,
                retries=0 if "interactive" in fields else 3,
                **fields,
            ),
        )
        for n, ((fields, reserve), length) in enumerate(zip(kinds, lengths, strict=False))
    ]
    jobs = m.answer(m.send_chunk(entries)).added
    for _second in range(25):
        m.advance(10.0)
        m.pump()
        for job in sorted(running(m)):
            lease = m.world.jobs[job].lease
            assert lease is not None
            assert lease.given is not None
            began, length = lease.started_at, lease.given.walltime_s
            if began is not None and length is not None and m.wall >= began + length:
                m.end(job, Outcome(**{**TOLD, "started_at": began, "ended_at": m.wall}))
    assert all(m.state(job) in TERMINAL for job in jobs)
    for job, (fields, _reserve) in zip(jobs, kinds, strict=True):
        (attempt,) = m.store.attempts(job)
        normal = fields in HOLDERS or fields == {"types": ("noop",)}
        assert attempt.outcome == ("complete" if normal else "failed")
