"""Examples, one for each promise about jobs, told as a person would tell them."""

from __future__ import annotations

import pytest

from rota.core import effects as e
from rota.core import events
from rota.core.answers import Added, compact_answer, expand_answer
from rota.core.jobs.allowed_actions import would_change
from rota.core.jobs.job import Condition
from rota.core.jobs.outcome import Outcome
from rota.core.jobs.retry import MAX_DELAY_S, delay_s
from rota.core.states import HOLDABLE, LIVE, State
from rota.core.turn import Batch, Turn
from rota.core.world import NO_JOB
from rota.errors import BadInput, Denied, NeverFits, NotFound
from rota.plan.size import Size
from tests.core.machine import Entry, Machine, spec
from tests.core.runners import ModelRunner

S = State
OK, ANY, NOT_OK = Condition.OK, Condition.ANY, Condition.NOT_OK


@pytest.fixture
def m() -> Machine:
    """A manager and one host with four cores and a runner."""
    machine = Machine()
    machine.with_runner()
    return machine


def runner(m: Machine) -> ModelRunner:
    return next(model for model in m.runners.values() if not model.dead)


def chain(*lines: tuple[str, tuple[tuple[int, Condition, bool], ...]]) -> list[Entry]:
    return [Entry(cmd, spec(), after) for cmd, after in lines]


def in_state(m: Machine, state: State) -> int:
    """A job in this state, whatever else had to happen for it."""
    match state:
        case S.READY:
            return m.add("wide", size=Size(cpus=400)).added[0] if m.running() else _waits_for_room(m)
        case S.DEPENDENT:
            (parent,) = m.add("parent").added
            return m.add("child", after=((parent, OK, False),)).added[0]
        case S.BLOCKED:
            (parent,) = m.add("parent").added
            m.end(parent, exit_code=1)
            return m.add("child", after=((parent, OK, False),)).added[0]
        case S.DELAYED:
            (id,) = m.add("again", retries=3).added
            m.end(id, exit_code=1)
            return id
        case S.HELD:
            (id,) = m.add("held", size=Size(cpus=400)).added if m.running() else (_waits_for_room(m),)
            m.do("hold", id)
            return id
        case S.SCHEDULED:
            m.disconnect(runner(m))
            m.join(runner(m))
            m.commit()
            request = m.send_chunk([Entry("leased", spec())])
            assert request
            return m.world.next_job - 1
        case S.RUNNING:
            return m.add("runs").added[0]
        case S.FINISHING:
            (id,) = m.add("killed").added
            m.act("kill", id)
            return id
        case S.LOST:
            (id,) = m.add("lost").added
            m.disconnect(runner(m))
            m.advance(61)
            m.pump()
            return id
        case S.COMPLETE | S.FAILED:
            (id,) = m.add("ends", retries=0).added
            m.end(id, exit_code=int(state is S.FAILED))
            return id
        case S.CANCELLED:
            id = in_state(m, S.HELD)
            m.do("kill", id)
            return id
        case _:
            raise ValueError(state)


def _waits_for_room(m: Machine) -> int:
    m.add("fills", size=Size(cpus=400))
    return m.add("waits").added[0]


REACHABLE = sorted(LIVE - {S.STARTING, S.SUSPENDED})


# ------------------------------------------------------------------ 1: the same command again


def test_the_same_command_in_two_adds_is_one_job(m: Machine) -> None:
    first = m.add("a")
    again = m.add("a", "b")
    assert again.existing == first.added
    assert len(again.added) == 1
    m.end(first.added[0])
    later = m.add("a")
    assert (later.existing, later.complete, later.added) == (first.added, first.added, [])
    assert m.add("a", fresh=True).added == [3]
    assert m.add("a").existing == [3]


def test_five_equal_lines_are_five_jobs_and_the_same_five_again(m: Machine) -> None:
    first = m.add(*["a"] * 5)
    assert len(set(first.added)) == 5
    assert m.add(*["a"] * 6).existing == first.added


def test_a_failed_or_cancelled_job_is_retried_when_it_is_added_again(m: Machine) -> None:
    failed, cancelled = m.add("a", "b").added
    m.end(failed, exit_code=1)
    m.do("kill", cancelled)
    assert m.states(failed, cancelled) == [S.FAILED, S.CANCELLED]
    assert failed not in m.world.jobs
    assert m.add("a", "b").retried == [failed, cancelled]
    assert m.states(failed, cancelled) == [S.RUNNING, S.RUNNING]
    assert [m.world.jobs[id].attempt for id in (failed, cancelled)] == [2, 2]


def test_a_removed_job_is_new_when_it_is_added_again(m: Machine) -> None:
    (id,) = m.add("a").added
    m.end(id)
    m.do("remove", id)
    assert m.add("a").added == [id + 1]


def test_entries_can_be_fresh_one_by_one(m: Machine) -> None:
    m.add("a", "b")
    answer = m.add("a", "b", fresh=frozenset({1}))
    assert (answer.existing, answer.added) == ([1], [3])


# ------------------------------------------------------------------ 2: order


def test_equal_priorities_run_in_order_of_submission_and_the_highest_first(m: Machine) -> None:
    (block,) = m.add("block", size=Size(cpus=400)).added
    low = m.add("l1", "l2", size=Size(cpus=400)).added
    (high,) = m.add("h", size=Size(cpus=400), priority=255).added
    order = []
    m.end(block)
    while m.running():
        (now,) = m.running()
        order.append(now)
        m.end(now)
    assert order == [high, *low]


# ------------------------------------------------------------------ 3: retries and backoff


def test_failing_with_two_retries_takes_three_attempts(m: Machine) -> None:
    (id,) = m.add("a", retries=2).added
    for low, high in ((30, 60), (60, 90)):
        m.end(id, exit_code=3)
        job = m.world.jobs[id]
        assert job.state is S.DELAYED
        assert low <= job.due_at - m.wall <= high
        m.advance(low - 1)
        assert job.state is S.DELAYED
        m.advance(high - low + 1)
        m.pump()
        assert job.state is S.RUNNING
    m.end(id, exit_code=3)
    assert m.state(id) is S.FAILED
    assert [row.outcome for row in m.store.attempts(id)] == ["failed"] * 3
    assert m.store.jobs([id])[0].reason_message == "exit 3"
    m.do("retry", id)
    assert m.state(id) is S.RUNNING
    assert m.world.jobs[id].attempt == 4
    assert m.world.jobs[id].retries_left == 2


@pytest.mark.parametrize("random", [0.0, 0.5, 0.999])
def test_backoff_doubles_with_jitter_up_to_half_an_hour(random: float) -> None:
    waits = [delay_s(30.0, failures, lambda: random) for failures in range(1, 60)]
    for n, wait in enumerate(waits):
        assert min(30.0 * 2**n, MAX_DELAY_S) <= wait <= min(30.0 * 2**n + 30.0, MAX_DELAY_S)
    assert waits[-1] == MAX_DELAY_S == 1800.0


def test_an_attempt_longer_than_no_retry_over_is_the_last(m: Machine) -> None:
    short, long = m.add("short", "long", retries=3, no_retry_over_s=10.0).added
    m.advance(10.0)
    m.end(short, exit_code=1)
    m.advance(0.5)
    m.end(long, exit_code=1)
    assert m.states(short, long) == [S.DELAYED, S.FAILED]


def test_a_delay_is_due_at_the_same_time_after_a_restart(m: Machine) -> None:
    id = in_state(m, S.DELAYED)
    due = m.world.jobs[id].due_at
    m.crash()
    assert m.engine.next_due() == due
    m.heal()
    m.advance(61)
    m.pump()
    assert m.state(id) is S.RUNNING


# ------------------------------------------------------------------ 4: leases without execution, and lost ones


def test_a_lease_handed_back_costs_nothing(m: Machine) -> None:
    id = in_state(m, S.SCHEDULED)
    while m.commit():
        pass
    model = runner(m)
    work = m.world.jobs[id]
    ref = events.LeaseRef(id, work.attempt, work.lease.token)
    m.happened(events.RunnerReported(runner=model.id, seq=1, started=[], ended=[], returned=[ref], closed=[]))
    assert (work.tries, work.attempt) == (0, 2)
    assert [row.outcome for row in m.store.attempts(id)] == [None]
    m.commit()
    assert m.store.attempts(id)[0].outcome == "void"


def test_a_lease_that_never_arrived_is_voided_when_its_runner_joins(m: Machine) -> None:
    model = runner(m)
    request = m.send_chunk([Entry("a", spec())])
    m.disconnect(model)
    m.pump()
    assert m.replies[request].added == [1]
    assert m.state(1) is S.SCHEDULED
    m.join(model)
    m.pump()
    assert m.state(1) is S.RUNNING
    assert [row.outcome for row in m.store.attempts(1)] == ["void", None]
    assert m.witness.attempts[1] == [2]


def test_work_for_an_older_connection_never_reaches_the_new_one(m: Machine) -> None:
    model = runner(m)
    m.send_chunk([Entry("a", spec())])
    m.disconnect(model)
    m.join(model)
    # Only now is the first lease on disk and sent; the join has made it void.
    m.pump()
    assert m.witness.attempts[1] == [2]


def test_a_runner_killed_after_the_spawn_leaves_a_lost_job_that_never_runs_again(m: Machine) -> None:
    (id,) = m.add("a", retries=0).added
    model = runner(m)
    m.die(model)
    m.advance(61)
    assert m.state(id) is S.LOST
    m.settle(model)
    m.heal()
    assert m.state(id) is S.FAILED
    assert m.store.jobs([id])[0].reason_code == "lost"
    assert m.witness.attempts[id] == [1]


def test_a_lost_attempt_says_which_behaviours_never_ran(m: Machine) -> None:
    (id,) = m.add("a", retries=0, on_failure=("run: mail",), on_exit=("run: tidy", "remove")).added
    model = runner(m)
    m.die(model)
    m.settle(model)
    m.heal()
    assert m.state(id) is S.FAILED  # and it is not removed: a person should see it
    (attempt,) = m.store.attempts(id)
    told = [(each.behaviour, each.ok, each.message.partition(":")[0]) for each in attempt.behaviours]
    assert told == [("run: mail", False, "not run"), ("run: tidy", False, "not run")]


def test_a_settled_runner_tells_the_outcome_that_it_could_not_report(m: Machine) -> None:
    done, unsent = m.add("a", "b", size=Size(cpus=400)).added
    model = runner(m)
    model.end(next(iter(model.busy)), Outcome(exit_code=0, ended_at=m.wall), m.wall)
    m.die(model, noticed=False)
    m.settle(model)
    m.heal()
    assert m.state(done) is S.COMPLETE
    assert m.state(unsent) is S.RUNNING
    assert model.id not in m.world.runners


def test_a_lost_job_keeps_its_room_and_comes_back_with_a_touch(m: Machine) -> None:
    (lost,) = m.add("a", size=Size(cpus=400)).added
    model = runner(m)
    m.advance(61)
    (waits,) = m.add("b").added
    assert m.states(lost, waits) == [S.LOST, S.READY]
    model.report()
    m.pump()
    assert m.states(lost, waits) == [S.RUNNING, S.READY]


def test_a_silent_runner_gets_no_new_work_until_it_is_heard(m: Machine) -> None:
    m.add("a")
    m.advance(61)
    (id,) = m.add("b").added
    assert m.state(id) is S.READY
    runner(m).report()
    m.pump()
    assert m.state(id) is S.RUNNING


def test_a_lost_job_confirmed_dead_fails_and_frees_its_room(m: Machine) -> None:
    id = in_state(m, S.LOST)
    m.die(runner(m))
    m.witness.running.clear()
    assert m.do("confirm-dead", id).changed == [id]
    assert m.state(id) is S.FAILED
    assert not m.world.runners
    assert m.do("confirm-dead", id).unchanged == [id]


def test_leases_of_a_dead_runner_whose_journal_is_damaged_end_as_lost(m: Machine) -> None:
    (id,) = m.add("a", retries=0).added
    model = runner(m)
    m.die(model)
    m.settle(model, whole=False)
    m.heal()
    assert m.state(id) is S.FAILED
    assert m.store.jobs([id])[0].reason_code == "lost"


def test_a_lost_job_is_given_up_only_after_its_runner_must_have_ended_it(m: Machine) -> None:
    id = in_state(m, S.LOST)
    m.advance(7 * 86400.0)
    assert m.state(id) is S.LOST
    runner(m).busy.clear()
    m.witness.running.clear()
    m.advance(601.0)
    m.pump()
    assert m.state(id) is S.FAILED
    assert not m.world.runners


def test_only_lost_jobs_can_be_confirmed_dead(m: Machine) -> None:
    (id,) = m.add("a").added
    assert m.do("confirm-dead", id).unchanged == [id]
    assert m.state(id) is S.RUNNING


def test_what_another_runner_says_about_a_lease_changes_nothing(m: Machine) -> None:
    (id,) = m.add("a").added
    job = m.world.jobs[id]
    m.happened(events.RunnerJoined(runner="other", host="h1", boot_id="", pid=2, start_time=2, held=[], seats=[]))
    finished = events.Finished(id, job.attempt, job.lease.token, 1, Outcome(exit_code=0))
    seat = next(iter(runner(m).busy))
    m.happened(
        events.RunnerReported(runner="other", seq=0, started=[], ended=[finished], returned=[], closed=[seat])
    )
    assert m.state(id) is S.RUNNING
    assert seat in m.world.runners[runner(m).id].seats


# ------------------------------------------------------------------ 5: failures that no retry helps


def test_a_command_that_does_not_exist_fails_on_the_first_attempt(m: Machine) -> None:
    (id,) = m.add("nosuchcmd", retries=3).added
    m.end(id, Outcome(exit_code=127, reason="not_found", message="not found", permanent=True))
    assert m.state(id) is S.FAILED
    (attempt,) = m.store.attempts(id)
    assert (attempt.exit_code, attempt.reason_code) == (127, "not_found")


@pytest.mark.parametrize(
    ("outcome", "code", "message"),
    [
        (Outcome(exit_code=3), "exit", "exit 3"),
        (Outcome(signal=9), "signal", "signal KILL"),
        (Outcome(signal=250), "signal", "signal 250"),
        (Outcome(signal=9, reason="walltime"), "walltime", "its walltime was over"),
        (Outcome(exit_code=0, reason="disk", message="disk full"), "disk", "disk full"),
    ],
)
def test_reasons_come_from_evidence(m: Machine, outcome: Outcome, code: str, message: str) -> None:
    (id,) = m.add("a").added
    m.end(id, outcome)
    row = m.store.jobs([id])[0]
    assert (row.state, row.reason_code, row.reason_message) == (S.FAILED, code, message)


# ------------------------------------------------------------------ 9: dependencies


def test_the_last_of_a_diamond_waits_for_both(m: Machine) -> None:
    both = ((1, OK, True), (2, OK, True))
    entries = chain(("a", ()), ("b", ((0, OK, True),)), ("c", ((0, OK, True),)), ("d", both))
    a, b, c, d = m.answer(m.send_chunk(entries)).added
    assert m.states(a, b, c, d) == [S.RUNNING, S.DEPENDENT, S.DEPENDENT, S.DEPENDENT]
    m.end(a)
    m.end(b)
    assert m.states(c, d) == [S.RUNNING, S.DEPENDENT]
    m.end(c)
    assert m.state(d) is S.RUNNING


def test_a_parent_already_complete_lets_its_dependent_start_at_once(m: Machine) -> None:
    (parent,) = m.add("a").added
    m.end(parent)
    assert m.state(m.add("b", after=((parent, OK, False),)).added[0]) is S.RUNNING


@pytest.mark.parametrize("kill", [False, True])
def test_conditions_decide_what_an_unhappy_end_means(m: Machine, kill: bool) -> None:
    (parent,) = m.add("p").added
    ok, any_, not_ok = (
        m.add(name, after=((parent, condition, False),)).added[0]
        for name, condition in (("ok", OK), ("any", ANY), ("notok", NOT_OK))
    )
    if kill:
        m.do("kill", parent)
    else:
        m.end(parent, exit_code=1)
    assert m.states(ok, any_, not_ok) == [S.BLOCKED, S.RUNNING, S.RUNNING]
    reason = m.world.jobs[ok].reason
    assert reason.code == "dependency_never"
    assert f"job {parent}" in reason.message


def test_success_blocks_those_that_wait_for_a_failure(m: Machine) -> None:
    (parent,) = m.add("p").added
    (child,) = m.add("c", after=((parent, NOT_OK, False),)).added
    m.end(parent)
    assert m.state(child) is S.BLOCKED


def test_contradicting_conditions_on_one_parent_can_never_hold(m: Machine) -> None:
    (parent,) = m.add("p").added
    (child,) = m.add("c", after=((parent, OK, False), (parent, NOT_OK, False))).added
    m.end(parent, exit_code=1)
    assert m.state(child) is S.BLOCKED


def test_retrying_the_parent_releases_everything_behind_it(m: Machine) -> None:
    (a,) = m.add("a").added
    (b,) = m.add("b", after=((a, OK, False),)).added
    (c,) = m.add("c", after=((b, ANY, False),)).added
    m.end(a, exit_code=1)
    assert m.states(b, c) == [S.BLOCKED, S.BLOCKED]
    m.do("retry", a)
    assert m.states(a, b, c) == [S.RUNNING, S.DEPENDENT, S.DEPENDENT]
    m.end(a)
    m.end(b)
    assert m.state(c) is S.RUNNING


def test_a_retried_parent_is_waited_for_again(m: Machine) -> None:
    (parent,) = m.add("p").added
    (fills,) = m.add("f", size=Size(cpus=300)).added
    (child,) = m.add("c", size=Size(cpus=400), after=((parent, ANY, False),)).added
    m.end(parent, exit_code=1)
    assert m.state(child) is S.READY
    m.do("retry", parent)
    assert m.state(child) is S.DEPENDENT
    m.crash()
    assert m.state(child) is S.DEPENDENT
    m.heal()
    m.end(fills)
    m.end(parent)
    assert m.state(child) is S.RUNNING


def test_a_job_retried_behind_a_failed_parent_is_blocked_and_so_are_those_behind_it(m: Machine) -> None:
    (a,) = m.add("a").added
    (b,) = m.add("b", after=((a, OK, False),)).added
    (c,) = m.add("c", after=((b, OK, False),)).added
    m.end(a, exit_code=1)
    m.do("kill", b)
    assert m.states(b, c) == [S.CANCELLED, S.BLOCKED]
    m.do("retry", b)
    assert m.states(b, c) == [S.BLOCKED, S.BLOCKED]


def test_killing_and_retrying_a_dependent_does_not_release_it_twice(m: Machine) -> None:
    a, b = m.add("a", "b").added
    (c,) = m.add("c", after=((a, OK, False), (b, OK, False))).added
    for _time in range(3):
        m.do("kill", c)
        m.do("retry", c)
    m.end(a)
    assert m.state(c) is S.DEPENDENT
    m.end(b)
    assert m.state(c) is S.RUNNING


def test_holding_a_blocked_job_unblocks_those_behind_it_until_it_is_released(m: Machine) -> None:
    (a,) = m.add("a").added
    (b,) = m.add("b", after=((a, OK, False),)).added
    (c,) = m.add("c", after=((b, OK, False),)).added
    m.end(a, exit_code=1)
    m.do("hold", b)
    assert m.states(b, c) == [S.HELD, S.DEPENDENT]
    m.crash()
    assert m.states(b, c) == [S.HELD, S.DEPENDENT]
    m.do("release", b)
    assert m.states(b, c) == [S.BLOCKED, S.BLOCKED]
    m.do("hold", b)
    m.do("retry", a)
    m.do("release", b)
    assert m.states(b, c) == [S.DEPENDENT, S.DEPENDENT]


def test_a_chain_of_20000_is_blocked_and_released_without_recursion() -> None:
    n = 20_000
    m = Machine()
    one = spec()
    entries = [Entry(f"job {i}", one, ((i - 1, OK, True),) if i else ()) for i in range(n)]
    by = m.send_chunk(entries)
    while m.commit():
        pass
    assert len(m.replies[by].added) == n
    turn = Turn(wall=m.wall, mono=m.mono, random=m.random.random, batch=Batch())
    who = m.asker()
    m.engine.step([events.JobsKilled(by=who, jobs=[1])], turn)
    assert m.world.counts["default"][S.BLOCKED] == n - 1
    m.engine.step([events.JobsRetried(by=who, jobs=[1], loaded={})], turn)
    assert m.world.counts["default"][S.DEPENDENT] == n - 1
    m.check()
    m.engine.step([events.JobsKilled(by=who, jobs=[1])], turn)
    m.store.commit(turn.changes)
    m.crash()
    assert m.world.counts["default"][S.BLOCKED] == n - 1


def test_a_long_cycle_is_named_without_recursion(m: Machine) -> None:
    n = 20_000
    entries = [Entry(f"job {i}", spec(), (((i + 1) % n, OK, True),)) for i in range(n)]
    with pytest.raises(BadInput, match="cycle: line 1 → line 2 → line 3"):
        m.answer(m.send_chunk(entries))


def test_a_cycle_is_refused_by_its_lines_and_nothing_is_added(m: Machine) -> None:
    entries = chain(("free", ()), ("a", ((2, OK, True),)), ("b", ((1, OK, True),)))
    with pytest.raises(BadInput, match="line 20 → line 30 → line 20"):
        m.answer(m.send_chunk(entries, lines=[10, 20, 30]))
    assert m.world.live == 0
    assert m.store.load().jobs == []


def test_a_job_cannot_wait_for_itself(m: Machine) -> None:
    with pytest.raises(BadInput, match="line 1 → line 1"):
        m.answer(m.send_chunk(chain(("a", ((0, OK, True),)))))


@pytest.mark.parametrize(
    ("after", "said"),
    [
        ((7, OK, True), "line 1: field 'after': the input has no such line"),
        ((99, OK, False), "there is no job 99"),
    ],
)
def test_a_parent_that_does_not_exist_is_refused_with_the_line(m: Machine, after: tuple, said: str) -> None:
    with pytest.raises(NotFound, match=said):
        m.answer(m.send_chunk(chain(("a", (after,)))))


def test_a_line_may_refer_to_a_later_one(m: Machine) -> None:
    a, b = m.answer(m.send_chunk(chain(("a", ((1, OK, True),)), ("b", ())))).added
    assert m.states(a, b) == [S.DEPENDENT, S.RUNNING]
    m.end(b)
    assert m.state(a) is S.RUNNING


def test_a_line_may_refer_to_one_that_exists_already(m: Machine) -> None:
    (a,) = m.add("a").added
    answer = m.answer(m.send_chunk(chain(("a", ()), ("b", ((0, OK, True),)))))
    assert answer.existing == [a]
    assert m.state(answer.added[0]) is S.DEPENDENT


def test_a_new_job_behind_a_blocked_one_is_blocked_whatever_the_order_of_lines(m: Machine) -> None:
    (failed,) = m.add("f").added
    m.end(failed, exit_code=1)
    entries = chain(("c", ((1, OK, True),)), ("b", ((2, OK, True),)), ("a", ((failed, OK, False),)))
    ids = m.answer(m.send_chunk(entries)).added
    assert m.states(*ids) == [S.BLOCKED] * 3
    m.crash()
    assert m.states(*ids) == [S.BLOCKED] * 3


# ------------------------------------------------------------------ remove


def test_a_parent_is_not_removed_while_somebody_waits_for_it(m: Machine) -> None:
    (a,) = m.add("a", size=Size(cpus=400)).added
    (b,) = m.add("b").added
    (c,) = m.add("c", after=((b, OK, False),)).added
    (d,) = m.add("d", after=((c, OK, False),)).added
    with pytest.raises(BadInput, match=f"job {c} waits for job {b}"):
        m.do("remove", b, waiting=True)
    with pytest.raises(BadInput, match=f"kill it first: rota kill {a}"):
        m.do("remove", a)
    assert m.do("remove", b, cascade=True, waiting=True).changed == [b, c, d]
    assert [m.world.outcome(id) for id in (b, c, d)] == [NO_JOB] * 3
    assert m.store.jobs([b, c, d]) == []
    assert m.world.next_job == d + 1


def test_a_dependent_keeps_running_when_the_parent_it_was_content_with_is_removed(m: Machine) -> None:
    (parent,) = m.add("p").added
    m.add("fills", size=Size(cpus=300))
    m.end(parent)
    (child,) = m.add("c", size=Size(cpus=400), after=((parent, OK, False),)).added
    m.do("remove", parent)
    assert m.state(child) is S.READY
    m.crash()
    assert m.state(child) is S.READY


def test_jobs_of_others_are_not_removed_with_what_they_wait_for(m: Machine) -> None:
    (first,) = m.add("a", user="ann", size=Size(cpus=400)).added
    (second,) = m.add("b", user="ann", after=((first, OK, False),)).added
    (third,) = m.add("c", user="bob", after=((second, OK, False),)).added
    m.do("kill", first)
    with pytest.raises(Denied, match=f"job {third} belongs to bob"):
        m.do("remove", first, cascade=True, only="ann")
    assert [m.world.outcome(id) == NO_JOB for id in (first, second, third)] == [False] * 3
    m.do("remove", third, only="bob", waiting=True)
    assert m.do("remove", first, cascade=True, only="ann").changed == [first, second]


def test_removing_twice_counts_once(m: Machine) -> None:
    (id,) = m.add("a").added
    m.end(id)
    by, loaded = m.asker(), m.load([id])
    m.happened(events.JobsRemoved(by=by, jobs=[id, id], loaded=loaded))
    m.happened(events.JobsRemoved(by=by, jobs=[id], loaded=loaded))
    m.pump()
    m.check()
    assert m.store.load().tally == {("default", S.COMPLETE): 0}


# ------------------------------------------------------------------ hold, release, kill, retry


@pytest.mark.parametrize("state", REACHABLE)
def test_hold_takes_what_waits_and_nothing_else(m: Machine, state: State) -> None:
    id = in_state(m, state)
    assert m.state(id) is state
    answer = m.do("hold", id)
    assert answer.changed == ([id] if state in HOLDABLE else [])
    assert (m.state(id) is S.HELD) == (state in HOLDABLE or state is S.HELD)


@pytest.mark.parametrize("state", [S.DEPENDENT, S.BLOCKED, S.READY, S.DELAYED])
def test_release_looks_again_where_the_job_belongs(m: Machine, state: State) -> None:
    id = in_state(m, state)
    due = m.world.jobs[id].due_at
    m.do("hold", id)
    assert m.do("release", id).changed == [id]
    assert m.state(id) is state
    assert m.world.jobs[id].due_at == due
    assert m.do("release", id).unchanged == [id]


def test_a_delay_that_is_over_while_the_job_is_held_is_not_waited_for_again(m: Machine) -> None:
    id = in_state(m, S.DELAYED)
    m.do("hold", id)
    m.advance(120)
    m.pump()
    assert m.state(id) is S.HELD
    m.do("release", id)
    assert m.state(id) is S.RUNNING
    assert m.world.jobs[id].due_at is None


def test_a_released_delay_ends_even_if_the_clock_was_set_back(m: Machine) -> None:
    id = in_state(m, S.DELAYED)
    m.do("hold", id)
    m.advance(120)
    m.wall -= 119
    m.do("release", id)
    assert m.state(id) is S.DELAYED
    m.advance(60)
    m.pump()
    assert m.state(id) is S.RUNNING


@pytest.mark.parametrize("state", REACHABLE)
def test_kill_ends_a_job_from_every_live_state(m: Machine, state: State) -> None:
    id = in_state(m, state)
    m.do("kill", id)
    m.heal()
    assert m.state(id) is S.CANCELLED
    assert m.store.jobs([id])[0].reason_code == "kill_requested"
    assert m.do("kill", id).unchanged == [id]


def test_a_killed_job_says_by_whom(m: Machine) -> None:
    running = in_state(m, S.RUNNING)
    m.do("kill", running)
    m.heal()
    assert m.store.jobs([running])[0].reason_message == "killed by ann"


@pytest.mark.parametrize("verb", ["kill", "hold", "release", "retry"])
@pytest.mark.parametrize("state", [*REACHABLE, S.COMPLETE, S.FAILED, S.CANCELLED])
def test_what_an_action_would_change_is_what_it_changes(m: Machine, verb: str, state: State) -> None:
    id = in_state(m, state)
    told = would_change(m.world, verb, [id])
    assert told == m.do(verb, id)


def test_a_kill_survives_silence_and_a_crash(m: Machine) -> None:
    (id,) = m.add("a").added
    m.disconnect(runner(m))
    m.do("kill", id)
    m.advance(61)
    m.pump()
    assert m.state(id) is S.LOST
    m.crash()
    assert m.state(id) is S.FINISHING
    m.heal()
    assert m.state(id) is S.CANCELLED


def test_a_job_that_succeeds_before_its_kill_arrives_is_complete(m: Machine) -> None:
    (id,) = m.add("a").added
    m.act("kill", id)
    m.end(id)
    assert m.state(id) is S.COMPLETE


@pytest.mark.parametrize("state", REACHABLE)
def test_retry_leaves_live_jobs_alone(m: Machine, state: State) -> None:
    id = in_state(m, state)
    assert m.do("retry", id).unchanged == [id]


def test_retry_leaves_complete_and_unknown_jobs_alone(m: Machine) -> None:
    (id,) = m.add("a").added
    m.end(id)
    assert m.do("retry", id, 99).unchanged == [id, 99]


def test_retry_opens_a_failed_job_once(m: Machine) -> None:
    (id,) = m.add("a").added
    m.end(id, exit_code=1)
    answer = m.do("retry", id, id)
    assert (answer.changed, answer.unchanged) == ([id], [id])


def test_a_job_that_ended_again_in_a_later_batch_stays_in_memory_until_that_is_on_disk(m: Machine) -> None:
    (id,) = m.add("a", size=Size(cpus=400)).added
    (waits,) = m.add("b").added
    m.act("kill", waits)  # in the batch that is being committed
    m.act("retry", waits)
    m.act("kill", waits)  # in the next
    m.commit()
    assert waits in m.world.jobs
    m.commit()
    assert waits not in m.world.jobs
    assert m.state(id) is S.RUNNING


# ------------------------------------------------------------------ 11: crashes


def test_an_end_during_a_crash_is_recorded_once(m: Machine) -> None:
    (id,) = m.add("a").added
    model = runner(m)
    m.crash()
    assert m.state(id) is S.RUNNING
    model.end(next(iter(model.busy)), Outcome(exit_code=0, ended_at=m.wall), m.wall)
    model.report()
    m.heal()
    model.repeat()
    m.pump()
    assert m.state(id) is S.COMPLETE
    assert [row.outcome for row in m.store.attempts(id)] == ["complete"]


def test_a_report_that_was_decided_but_not_committed_is_taken_again(m: Machine) -> None:
    (id,) = m.add("a").added
    model = runner(m)
    model.end(next(iter(model.busy)), Outcome(exit_code=0, ended_at=m.wall), m.wall)
    model.report()
    m.hear(model)
    assert m.world.jobs[id].state is S.COMPLETE
    m.crash()
    assert m.state(id) is S.RUNNING
    m.heal()
    assert m.state(id) is S.COMPLETE


def test_a_restarted_manager_keeps_room_for_what_may_have_started(m: Machine) -> None:
    m.send_chunk([Entry("a", spec(size=Size(cpus=400)))])
    m.commit()
    runner(m).deliver()  # it starts, and nobody hears of it
    m.crash()
    m.join(m.start_runner("h1"))
    (id,) = m.add("b").added
    assert m.state(id) is S.READY


# ------------------------------------------------------------------ 13: packing


def test_a_small_job_fills_the_gap_beside_a_big_one_and_delays_nobody(m: Machine) -> None:
    big = [Entry(f"big{n}", spec(size=Size(cpus=300, time_s=60.0))) for n in (1, 2)]
    one, two = m.answer(m.send_chunk(big)).added
    (small,) = m.add("small", size=Size(cpus=100, time_s=30.0)).added
    (long,) = m.add("long", size=Size(cpus=200, time_s=3600.0)).added
    assert m.states(one, two, small, long) == [S.RUNNING, S.READY, S.RUNNING, S.READY]
    m.end(small)
    assert m.states(two, long) == [S.READY, S.READY]
    m.end(one)
    assert m.states(two, long) == [S.RUNNING, S.READY]


def test_leases_are_sent_ahead_and_all_run() -> None:
    m = Machine(cpus=100)
    model = m.with_runner()
    ids = m.add(*[f"j{n}" for n in range(30)]).added
    for _each in range(10):
        (now,) = m.running()
        m.end(now)
    assert model.waiting, "jobs end so quickly that leases are sent ahead"
    m.run_out()
    assert m.states(*ids) == [S.COMPLETE] * 30


def test_a_lease_sent_ahead_whose_seat_was_given_back_gets_another() -> None:
    m = Machine(cpus=100)
    model = m.with_runner()
    m.add(*[f"j{n}" for n in range(10)])
    while len(model.waiting) or len(m.world.jobs) > 1:
        m.end(next(iter(m.running())))
    # The last one ends and its seat is given back, but the manager has not heard of it.
    model.end(next(iter(model.busy)), Outcome(exit_code=0, ended_at=m.wall), m.wall)
    m.send_chunk([Entry("late", spec())])
    m.commit()
    model.deliver()
    assert model.waiting
    assert not model.seats
    m.pump()
    assert [m.state(id) for id in m.running()] == [S.RUNNING]


# ------------------------------------------------------------------ uploads


def test_two_uploads_of_the_same_commands_at_once_are_the_same_jobs(m: Machine) -> None:
    for name in ("u", "v"):
        m.answer(m.send_chunk([Entry("a", spec()), Entry("b", spec())], submission=name, last=False))
    first = m.answer(m.send_chunk([Entry("c", spec())], submission="u"))
    second = m.answer(m.send_chunk([Entry("c", spec()), Entry("d", spec(), ((0, OK, True),))], submission="v"))
    assert second.existing == first.added
    assert len(second.added) == 1
    (d,) = second.added
    assert m.state(d) is State.DEPENDENT
    assert [after.parent for after in m.world.jobs[d].after] == [first.added[0]]


def test_nothing_of_an_upload_is_visible_before_its_last_chunk(m: Machine) -> None:
    first = m.answer(m.send_chunk([Entry("a", spec())], submission="u", last=False))
    assert first is None
    assert m.world.live == 0
    assert m.store.jobs([1]) == []
    answer = m.answer(m.send_chunk([Entry("b", spec(), ((0, OK, True),))], submission="u"))
    assert answer.added == [1, 2]
    assert m.states(1, 2) == [S.RUNNING, S.DEPENDENT]


def test_an_unfinished_upload_is_gone_after_a_crash(m: Machine) -> None:
    m.answer(m.send_chunk([Entry("a", spec())], submission="u", last=False))
    m.crash()
    assert m.world.live == 0
    with pytest.raises(BadInput, match="expected 0"):
        m.answer(m.send_chunk([Entry("b", spec())], submission="u", first=1))


def test_a_dropped_upload_leaves_nothing(m: Machine) -> None:
    m.answer(m.send_chunk([Entry("a", spec())], submission="u", last=False))
    m.drop("u")
    m.pump()
    assert not m.world.uploads
    assert m.add("a").added == [1]


@pytest.mark.parametrize("together", [True, False])
def test_a_refused_chunk_takes_everything_back(m: Machine, together: bool) -> None:
    m.send_chunk([Entry("a", spec())], submission="u", last=False)
    if not together:
        m.pump()
    bad = [Entry("b", spec()), Entry("c", spec(), ((99, OK, False),))]
    with pytest.raises(NotFound):
        m.answer(m.send_chunk(bad, submission="u"))
    assert m.world.live == 0
    assert m.store.load().jobs == []
    assert m.answer(m.send_chunk([Entry("a", spec())], submission="u")).added == [1]


def test_a_chunk_out_of_order_is_refused_and_takes_everything_back(m: Machine) -> None:
    m.send_chunk([Entry("a", spec())], submission="u", last=False)
    with pytest.raises(BadInput, match="begins at entry 5, expected 1"):
        m.answer(m.send_chunk([Entry("b", spec())], submission="u", first=5, last=False))
    assert not m.world.uploads


def test_a_chunk_cannot_speak_of_entries_of_another(m: Machine) -> None:
    by = m.asker()
    m.happened(
        events.ChunkArrived(
            by=by,
            submission="u",
            first=0,
            cmds=["a"],
            keys=["k"],
            specs=[spec()],
            spec_ids=[1],
            spec_of=None,
            lines=None,
            after=[events.EntryAfter(3, 0, OK, True)],
            known={},
            loaded={},
            last=True,
        )
    )
    with pytest.raises(BadInput, match="does not fit"):
        m.answer(by.n)


def test_an_empty_submission_is_answered(m: Machine) -> None:
    assert m.answer(m.send_chunk([])) == Added([], [], [])


def test_a_dry_run_says_what_would_happen_and_takes_no_ids(m: Machine) -> None:
    m.add("a")
    answer = m.add("a", "b", "c", check=True)
    assert (answer.existing, answer.added) == ([1], [2, 3])
    assert m.world.next_job == 2
    assert m.store.jobs([2, 3]) == []
    assert not m.world.uploads
    assert m.add("z").added == [2]


def test_a_dropped_dry_run_takes_nothing_from_jobs_added_meanwhile(m: Machine) -> None:
    m.answer(m.send_chunk([Entry("q", spec())], submission="ask", last=False, check=True))
    (id,) = m.add("a").added
    m.drop("ask")
    m.pump()
    m.crash()
    assert m.state(id) is S.RUNNING


def test_what_never_fits_is_refused_by_its_line(m: Machine) -> None:
    entries = [Entry("a", spec()), Entry("b", spec(size=Size(cpus=6400)))]
    with pytest.raises(NeverFits, match="line 2: never fits: asked 64 cpus, largest host has 4"):
        m.answer(m.send_chunk(entries))
    kept = m.answer(m.send_chunk(entries, allow_unsatisfiable=True)).added
    assert m.states(*kept) == [S.RUNNING, S.READY]


def test_one_that_can_never_run_does_not_hold_up_the_others(m: Machine) -> None:
    m.add("never", size=Size(cpus=6400), priority=255, allow_unsatisfiable=True)
    ids = m.add(*"abcd").added
    assert m.states(*ids) == [S.RUNNING] * 4


def test_a_kept_answer_gives_back_its_ids() -> None:
    answer = Added([1, 2, 3, 9], [5], [7, 6])
    text = compact_answer(answer)
    assert text == '{"added":[[1,3],[9,9]],"existing":[[5,5]],"retried":[[7,7],[6,6]]}'
    assert expand_answer(text) == answer


# ------------------------------------------------------------------ effects


def test_work_names_the_lease_that_was_committed_whatever_the_job_became_since(m: Machine) -> None:
    model = runner(m)
    m.send_chunk([Entry("a", spec())])
    (work,) = [effect for effect in m.committing.effects if isinstance(effect, e.SendWork)]
    sent = list(work.leases)
    m.disconnect(model)
    m.join(model)
    assert m.world.jobs[1].attempt == 2
    assert work.leases == sent
    assert work.leases[0][1] == 1
