"""An attempt from its reported start to its end, and what becomes of its job then."""

from __future__ import annotations

from heapq import heappush
from signal import Signals

import msgspec

from rota.core.accounts.accounting import account_attempt, count_start
from rota.core.attempts.leases import Finished, HeldLease, LeaseRef, Phase, Started
from rota.core.attempts.missed_behaviours import with_missed
from rota.core.attempts.parts import await_parts, close_parts, lease_hosts, silent_hosts
from rota.core.attempts.reported_times import in_lease, timed
from rota.core.attempts.seats import adopt_seat, close_seat, count_unseated
from rota.core.attempts.suspension_phases import QUEUED, THAWING, is_suspended, pause_of, suspended_s
from rota.core.effects import NotifyStarted
from rota.core.jobs.dependencies import (
    end_job,
    enter_waiting,
    must_run_again,
    propagate,
    unsatisfied_dependents,
    waiting_state,
)
from rota.core.jobs.fate import Fate, fate
from rota.core.jobs.job import AttemptEnd, Job, Lease, Reason
from rota.core.jobs.outcome import Outcome
from rota.core.jobs.reason_texts import sentence
from rota.core.jobs.retry import delay_s, longest_delay_s, may_retry, next_attempt_text, reservation_over
from rota.core.learning.estimate import learn
from rota.core.machines.machine_use import job_began, job_left
from rota.core.rows import EndRow, ReturnedRow, StartRow, VoidRow
from rota.core.states import State
from rota.core.turn import Turn
from rota.core.world import Runner, World, erase, move, write


def leased_job(
    world: World, runner: Runner, report: LeaseRef | HeldLease | Started | Phase | Finished
) -> Job | None:
    """Return the job that a report is about, if the report names its valid lease and this runner holds it."""
    if report.job not in runner.leases:
        return None
    job = world.jobs[report.job]
    if job.lease is None or job.attempt != report.attempt or job.lease.token != report.token:
        return None
    return job


def start_attempt(world: World, turn: Turn, job: Job, started: Started) -> None:
    """The runner reported the start of the job's attempt."""
    lease = job.lease
    if lease is None or lease.started_at is not None:
        return  # reported before
    lease.started_at = started_at = in_lease(lease, started.started_at, turn.wall)
    lease.seat = started.seat
    lease.pid = started.pid
    if job.state in (State.SCHEDULED, State.STARTING):
        job.reason = None  # a prologue, if any, is over
        move(world, job, State.RUNNING)
    turn.changes.starts.append(StartRow(job.id, job.attempt, started_at, started.pid, started.seat))
    count_start(turn, job, started_at)
    runner = world.runners[lease.runner]
    job_began(world, job, runner.host)
    for attempt_started in world.points.attempt_started:
        attempt_started(world, turn, job)
    adopt_seat(world, runner, started.seat, job)
    world.placement.started(started.seat, turn.mono)
    turn.effects.append(NotifyStarted(job.id, job.attempt, lease.runner))


def revive(world: World, turn: Turn, job: Job) -> None:
    """Bring a lost job back to its state, if all its hosts answer again."""
    lease = job.lease
    if job.state is not State.LOST or lease is None or silent_hosts(world, job):
        return
    if lease.ended is not None:
        await_parts(world, turn, job)
        turn.note(job.id, job.attempt, "revived", "all its hosts are back")
        return
    began = State.SCHEDULED if lease.started_at is None else State.RUNNING
    if is_suspended(lease):
        began = State.SUSPENDED
    if lease.withheld is not None:
        began = State.STARTING
    move(world, job, State.FINISHING if job.kill or job.preempted or lease.broken else began)
    if job.kill:
        job.reason = Reason("kill_requested", "being killed")
    elif lease.broken:
        job.reason = Reason(lease.broken_code, lease.broken)
    else:
        if job.preempted and (job.reason is None or job.reason.code != "container"):
            job.reason = Reason("preempted", f"being ended for {job_name_text(job.preempted)}")
        elif not job.preempted:
            resuming = pause_of(lease).phase in (QUEUED, THAWING)
            suspended = Reason("resuming", "it waits to go on") if resuming else Reason("suspended", "suspended")
            job.reason = suspended if began is State.SUSPENDED else None
    write(turn, job)
    back = "all its hosts answer again" if lease_hosts(lease.given) else f"runner {lease.runner} is back"
    turn.note(job.id, job.attempt, "revived", back)


def void_attempt(
    world: World,
    turn: Turn,
    job: Job,
    why: str = "the lease was handed back; nothing was executed",
    *,
    then: AttemptEnd = AttemptEnd(State.READY),  # noqa: B008, frozen
) -> None:
    """End a lease that was never executed: the job waits again and no retry is used."""
    for voided in world.points.lease_voided:
        voided(world, turn, job)
    host = _leave_runner(world, job)
    turn.changes.voids.append(VoidRow(job.id, job.attempt))
    turn.note(job.id, job.attempt, "voided", why)
    if not close_parts(world, turn, job, then, host=host):
        conclude(world, turn, job, then, host=host)


def end_attempt(world: World, turn: Turn, job: Job, outcome: Outcome) -> None:
    """Record how an attempt ended and decide what becomes of its job once its parts are closed."""
    lease = job.lease
    assert lease is not None
    outcome = timed(lease, outcome, turn.wall)
    host = _leave_runner(world, job)
    if outcome.by_wall_clock:
        turn.note(job.id, job.attempt, "clock", "its end was not observed; its time is by the wall clock")
    if lease.broken and outcome.reason == "kill_requested":
        outcome = msgspec.structs.replace(outcome, reason=lease.broken_code, message=lease.broken)
    if outcome.reason == "lost":
        outcome = with_missed(outcome, job.spec)
    become = _fate(job, lease, outcome)
    if become is Fate.FAILED:
        for judged in world.points.judged:
            become = judged(world, job, outcome) or become
    at_walltime = become is Fate.COMPLETE and outcome.reason == "walltime"
    if at_walltime:
        # Being stopped at its walltime is no failure of the command.
        outcome = msgspec.structs.replace(outcome, exit_code=None, signal=None, reason="", message="")
        turn.note(job.id, job.attempt, "walltime-over", "its walltime is over, which is its normal end")
        ended = AttemptEnd(State.COMPLETE, outcome=outcome)
    else:
        ended = _judge(world, turn, job, become, outcome)
    started_at = outcome.started_at if outcome.started_at is not None else lease.started_at
    away_s = suspended_s(lease, outcome.ended_at)
    _write_end(turn, job, ended, outcome, started_at)
    account_attempt(
        turn,
        world.usage_history,
        job,
        lease,
        failed=ended.state in (State.FAILED, State.DELAYED),
        started_at=started_at,
        ended_at=outcome.ended_at,
        cpu_s=outcome.cpu_s,
        suspended_s=away_s,
    )
    if not at_walltime and (lease.given is None or not lease.given.elsewhere):
        code = ended.reason.code if ended.reason is not None else None
        learn(
            world,
            turn,
            job,
            outcome,
            code=code,
            started_at=None if started_at is None else started_at + away_s,
            # A walltime that is not retried was the user's wish, so the job itself needs no more time.
            lacked=code != "walltime" or ended.state is State.DELAYED,
        )
    if lease.parts is None or not close_parts(world, turn, job, ended, host=host):
        conclude(world, turn, job, ended, host=host)


def _fate(job: Job, lease: Lease, outcome: Outcome) -> Fate:
    """What becomes of the job by the rules that the simulator shares."""
    code = _code(outcome)
    if not code and not job.preempted:
        return Fate.COMPLETE  # as the rules would say; nearly all attempts end so
    began = outcome.started_at if outcome.started_at is not None else lease.started_at
    return fate(
        code=code,
        exit_code=outcome.exit_code,
        ran_s=None if began is None else outcome.ended_at - began,
        idempotent="idempotent" in job.spec.types,
        done_at_walltime=code == "walltime" and job.spec.done_at_walltime,
        vacated=bool(job.preempted),
        checkpoints=job.spec.checkpoint_s is not None,
        killed=job.kill,
    )


def _judge(world: World, turn: Turn, job: Job, become: Fate, outcome: Outcome) -> AttemptEnd:
    """Give the reason of what becomes of a job, and count the attempt if it uses a retry."""
    if become is Fate.COMPLETE:
        return AttemptEnd(State.COMPLETE, None, "", outcome)
    if become is Fate.CANCELLED:
        return AttemptEnd(State.CANCELLED, _killed(job, outcome), "", outcome)
    if job.preempted:
        if job.reason is not None and job.reason.code == "container":
            reason = Reason("container", f"ended with its container {job.preempted}")
        else:
            reason = Reason("preempted", f"ended to make room for {job_name_text(job.preempted)}")
        return AttemptEnd(State.FAILED, reason, reason.message if become is Fate.AGAIN else "", outcome)
    failed = _reason(outcome)
    assert failed is not None
    if become is Fate.AGAIN:
        over = reservation_over(world, job, turn.wall)
        return AttemptEnd(State.FAILED, failed, "" if over else "exit 99 of an idempotent job", outcome)
    job.tries += 1
    if failed.code == "provision":  # another machine is tried at once
        again = _is_retried(world, turn, job, outcome, failed.code)
        return AttemptEnd(State.FAILED, failed, failed.message if again else "", outcome)
    state = State.DELAYED if _is_retried(world, turn, job, outcome, failed.code) else State.FAILED
    return AttemptEnd(state, failed, "", outcome)


def _write_end(turn: Turn, job: Job, ended: AttemptEnd, outcome: Outcome, started_at: float | None) -> None:
    """Write the end of an attempt. An attempt that is retried has failed."""
    verdict = State.FAILED if ended.state is State.DELAYED else ended.state
    reason = ended.reason
    code, message = (reason.code, reason.message) if reason else (None, None)
    if outcome.returned is not None:
        turn.changes.returned.append(
            ReturnedRow(job.id, job.attempt, msgspec.json.encode(outcome.returned).decode())
        )
    behaved = msgspec.json.encode(outcome.behaviours).decode() if outcome.behaviours else None
    report = msgspec.json.encode(outcome.kept).decode() if outcome.kept is not None else None
    turn.changes.ends.append(
        EndRow(
            job.id, job.attempt, verdict.label, outcome.exit_code, outcome.signal, code, message, started_at,
            outcome.ended_at, outcome.cpu_s, outcome.peak_mem or None, outcome.peak_disk, outcome.segment or None,
            outcome.offset, outcome.out_len, outcome.err_len, outcome.out_total, outcome.err_total, behaved,
            report,
        )
    )  # fmt: skip


def conclude(world: World, turn: Turn, job: Job, ended: AttemptEnd, *, host: str) -> None:
    """Nothing of the attempt is left on any host: free what it held and move its job on."""
    killed = job.kill
    outcome, state, reason = ended.outcome, ended.state, ended.reason
    wait, over = 0.0, False
    if state is State.DELAYED:
        tries = job.tries if outcome is not None else ended.tries
        wait = delay_s(job.spec.backoff_s, tries, turn.random)
    if job.spec.at is not None:
        over = reservation_over(world, job, turn.wall + wait)
        state = State.FAILED if over and state is State.DELAYED else state
    for attempt_over in world.points.attempt_over:
        attempt_over(world, turn, job, ended, host)
    _drop_lease(world, turn, job, host=host, ended=outcome is not None)
    if outcome is None:
        if killed:
            reason = Reason("kill_requested", "killed before it started")
            end_job(world, turn, job, State.CANCELLED, reason=reason, outcome=None)
        elif state is State.FAILED:
            end_job(world, turn, job, state, reason=reason, outcome=None)
        elif state is State.DELAYED and reason is not None:
            _delay(world, turn, job, wait, reason.message)
        else:
            job.reason = None
            enter_waiting(world, turn, job, waiting_state(world, job))
    elif killed and (ended.again or ended.state is State.DELAYED):
        # The kill came when only parts were left.
        reason = _killed(job, outcome)
        end_job(world, turn, job, State.CANCELLED, reason=reason, outcome=outcome)
    elif ended.again and not over:
        turn.note(job.id, job.attempt, "again", f"{ended.again}: it is queued again")
        job.reason = None
        enter_waiting(world, turn, job, waiting_state(world, job))
    elif state is State.DELAYED:
        why = reason.message if reason else "failed"
        left = job.retries_left + 1
        _delay(world, turn, job, wait, why, f" ({left} {'attempt' if left == 1 else 'attempts'} left)")
    elif state is State.COMPLETE and must_run_again(job) and not killed and not over:
        turn.note(job.id, job.attempt, "again", "what it waits for came while it ran: it waits and runs again")
        enter_waiting(world, turn, job, waiting_state(world, job))
    else:
        if state is State.COMPLETE and must_run_again(job) and not over:
            state, reason = State.CANCELLED, Reason("kill_requested", "killed before it ran again")
        end_job(world, turn, job, state, reason=reason, outcome=outcome)
        spec = job.spec
        behaviours = {*spec.on_success, *spec.on_failure, *spec.on_exit}
        if "remove" in behaviours and any(done.behaviour == "remove" for done in outcome.behaviours):
            _remove_on_end(world, turn, job)


def void_or_lose(world: World, turn: Turn, job: Job) -> None:
    """End a lease that no runner holds. An attempt known to have started is never treated as unexecuted."""
    if job.lease is not None and job.lease.started_at is None and not job.lease.restored:
        void_attempt(world, turn, job)
    else:
        end_as_lost(world, turn, job, "it may have run, and its runner knows nothing of it")


def end_as_lost(world: World, turn: Turn, job: Job, why: str) -> None:
    """End an attempt of which nothing is left and whose progress is unknown."""
    end_attempt(world, turn, job, Outcome(reason="lost", message=why, ended_at=turn.wall))


def _leave_runner(world: World, job: Job) -> str:
    """Detach the job from the runner of its first host; returns that host."""
    lease = job.lease
    assert lease is not None
    runner = world.runners[lease.runner]
    runner.leases.discard(job.id)
    count_unseated(runner, job.size, -1)
    if lease.withheld is not None:
        close_seat(world, runner, lease.withheld.seat)  # the seat was never sent
        lease.withheld = None
    return runner.host


def _drop_lease(world: World, turn: Turn, job: Job, *, host: str, ended: bool) -> None:
    for keeps in world.points.keeps_room:
        if keeps(world, job):
            break
    else:
        world.placement.released(host, job.need, job=job.id, ended_at=turn.mono if ended else None)
    job_left(world, job, host)
    job.lease = None
    for dropped in world.points.lease_dropped:
        dropped(world, turn, job)
    job.kill = False
    job.preempted = 0


def job_name_text(job: int) -> str:
    """Name the job for which another is ended; 0 after a restart: unknown."""
    return f"job {job}" if job > 0 else "another job"


def _is_retried(world: World, turn: Turn, job: Job, outcome: Outcome, code: str) -> bool:
    retries = may_retry(job, outcome, code)
    for retried in world.points.retried:
        if (verdict := retried(world, job, code, outcome)) is not None:
            retries = verdict and job.tries <= job.spec.retries
    if not retries:
        return False
    return not reservation_over(world, job, turn.wall + longest_delay_s(job.spec.backoff_s, job.tries))


def _remove_on_end(world: World, turn: Turn, job: Job) -> None:
    """Carry out the behaviour `remove`, unless other jobs still wait for the job."""
    if job.id in world.children or unsatisfied_dependents(world, job):
        turn.note(job.id, job.attempt, "kept", "others wait for it, so it was not removed")
        return
    erase(world, turn, job)
    propagate(world, turn, [job])  # the group's verdicts may change without it


def _delay(world: World, turn: Turn, job: Job, wait: float, why: str, left: str = "") -> None:
    job.due_at = turn.wall + wait
    job.reason = Reason("delayed", f"{why}; {next_attempt_text(world, job.due_at, turn.wall)}{left}")
    move(world, job, State.DELAYED)
    heappush(world.delayed_until, (job.due_at, job.id))
    write(turn, job)


def _killed(job: Job, outcome: Outcome) -> Reason:
    """The reason of a killed job, naming the user or cause recorded with the kill."""
    asked = job.reason.message if job.reason is not None and job.reason.code == "kill_requested" else ""
    for text in (asked, outcome.message):
        if text.startswith("being killed "):
            return Reason("kill_requested", text.removeprefix("being "))
    return Reason("kill_requested", outcome.message or "killed on request")


def _code(outcome: Outcome) -> str:
    """Why an attempt failed, from evidence; empty: it succeeded."""
    if outcome.reason:
        return outcome.reason
    if outcome.signal is not None:
        return "signal"
    return "exit" if outcome.exit_code else ""


def _reason(outcome: Outcome) -> Reason | None:
    """The reason of a failed attempt, from evidence; None: it succeeded."""
    if outcome.reason:
        return Reason(outcome.reason, sentence(outcome.reason, outcome.message))
    if outcome.signal is not None:
        try:
            name = Signals(outcome.signal).name.removeprefix("SIG")
        except ValueError:
            name = str(outcome.signal)
        return Reason("signal", f"signal {name}")
    if outcome.exit_code:
        return Reason("exit", f"exit {outcome.exit_code}")
    return None
