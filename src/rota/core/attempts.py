"""Leases and attempts: grant them, and take what runners say about them.

Everything a runner says is fenced by (job, attempt, token); what does not fit is superseded: it is
acknowledged and changes nothing.
"""

from __future__ import annotations

from heapq import heappush
from signal import Signals

import msgspec

from rota.core.dependencies import end_job, enter, must_run_again, ripple, waiting_for, waiting_state
from rota.core.effects import (
    AcknowledgeReport,
    DismissRunner,
    KillAttempts,
    NotifyStarted,
    SendRules,
    SendWork,
)
from rota.core.estimate import learn
from rota.core.events import RunnerIdled, RunnerJoined, RunnerParted, RunnerReported, RunnerSettled
from rota.core.job import Job, Lease, Outcome, Reason
from rota.core.leases import Finished, Held, LeaseRef, Started
from rota.core.retry import delay_s, may_retry
from rota.core.states import LEASED, State
from rota.core.turn import Turn
from rota.core.world import Runner, World, dequeue, erase, move, write
from rota.plan.need import Need
from rota.plan.placement import Capacity, Opened, Reserved
from rota.plan.size import Size

#: An idempotent job is queued again when it ends with this, if it ran for so long.
_AGAIN = 99
_AGAIN_AFTER_S = 60.0
#: The key of `Changes.meta` under which granted reservations are kept.
RESERVED = "reserved"
#: What an acknowledgement of `RunnerSettled` carries instead of a sequence number.
SETTLED_ACK = -1


def grant_leases(world: World, turn: Turn) -> None:
    """Ask the placement what should begin now, and lease it."""
    if world.paused:
        return
    again = _seats_for_unseated(world, turn)
    opened, chosen = world.placement.place(turn.mono, turn.wall)
    if not again and not opened and not chosen:
        return
    work: dict[str, SendWork] = {}
    for seat in again + opened:
        runner = world.runners[world.runner_at[seat.host]]
        work.setdefault(runner.id, SendWork(runner.id, [], [], [])).seats.append(seat)
        _take_seat(runner, seat.seat, seat.size)
    for id, host, given in chosen:
        job = world.jobs[id]
        runner = world.runners[world.runner_at[host]]
        move(world, job, State.SCHEDULED)
        job.attempt += 1
        token = int(turn.random() * (1 << 53)) + 1
        job.lease = Lease(token=token, runner=runner.id, leased_at=turn.wall, given=given)
        if given is not None and given.size != job.size:
            job.learned = given.size
        take_lease(runner, job)
        size = msgspec.json.encode(job.learned).decode() if job.learned is not None else None
        what = msgspec.json.encode(given).decode() if given is not None else None
        turn.changes.attempts.append((id, job.attempt, token, runner.id, host, turn.wall, job.spec_id, size, what))
        send = work.setdefault(runner.id, SendWork(runner.id, [], [], []))
        send.jobs.append(job)
        send.leases.append((id, job.attempt, token))
    turn.effects.extend(work.values())


def act_on_plan(world: World, turn: Turn) -> bool:
    """What the planner decided besides who begins: besteffort jobs that end, reservations that it rejects,
    jobs whose time is over, and promises that it moved. True if that may let others begin."""
    news = world.placement.take_news()
    kills: dict[str, list[tuple[int, int, int]]] = {}
    for id, by, code in news.preempted:
        job = world.jobs.get(id)
        if job is None or job.lease is None or job.preempted or job.kill:
            continue
        job.preempted = by
        ended = f"its container {by} has ended" if code == "container" else f"being ended for job {by}"
        job.reason = Reason(code, ended)
        if job.state not in (State.LOST, State.FINISHING):
            move(world, job, State.FINISHING)
        write(turn, job)
        turn.note(id, job.attempt, code, ended if code == "container" else f"job {by} begins on its resources")
        kills.setdefault(job.lease.runner, []).append((id, job.attempt, job.lease.token))
    turn.effects.extend(KillAttempts(runner, leases) for runner, leases in kills.items())
    for id, code, message in news.ended:
        job = world.jobs.get(id)
        if job is not None and job.state is State.READY:
            dequeue(world, job)
            end_job(world, turn, job, State.FAILED, reason=Reason(code, message), outcome=None)
    if news.reserved:
        _remember_reservations(world, turn, news.reserved)
    for moved in news.moved:
        job = world.jobs.get(moved.job)
        if job is not None and job.state is State.READY:
            turn.note(moved.job, job.attempt, "promise_moved", moved.cause)
    return bool(news.ended) and not (world.paused or world.draining or world.stopping)


def _remember_reservations(world: World, turn: Turn, changed: dict[int, Reserved | None]) -> None:
    """What was granted is granted after a restart as well."""
    kept = {id: what for id, what in (world.reserved | changed).items() if what is not None and id in world.jobs}
    for id, what in changed.items():
        job = world.jobs.get(id)
        if what is not None and job is not None:
            turn.note(id, job.attempt, "granted", f"its reservation has resources {what.resources}")
    world.reserved = kept
    turn.changes.meta[RESERVED] = msgspec.json.encode(kept).decode()


def restore_reservations(world: World, text: str) -> None:
    """The opposite, after a restart."""
    found = msgspec.json.decode(text, type=dict[int, Reserved])
    world.reserved = {id: what for id, what in found.items() if id in world.jobs}


def _seats_for_unseated(world: World, turn: Turn) -> list[Opened]:
    """Seats for leases that were sent ahead and whose seat was given back before they arrived.

    Leases that merely wait for a seat of theirs to become free get one as well, once there is room.
    """
    opened = []
    for host, id in world.runner_at.items():
        for size, number in world.runners[id].unseated.items():
            while number > 0 and (seat := world.placement.seat(host, size, turn.mono)):
                opened.append(seat)
                number -= 1
    return opened


def take_lease(runner: Runner, job: Job) -> None:
    """The runner holds this lease from now on."""
    runner.leases.add(job.id)
    _count_unseated(runner, job.size, 1)


def _take_seat(runner: Runner, seat: int, size: Size) -> None:
    runner.seats[seat] = size
    _count_unseated(runner, size, -1)


def _count_unseated(runner: Runner, size: Size, more: int) -> None:
    number = runner.unseated[size] = runner.unseated[size] + more
    if not number:
        del runner.unseated[size]


def current(world: World, runner: Runner, said: LeaseRef | Held | Started | Finished) -> Job | None:
    """The job, if the lease of which this was said is the valid one and this runner's."""
    if said.job not in runner.leases:
        return None
    job = world.jobs[said.job]
    if job.lease is None or job.attempt != said.attempt or job.lease.token != said.token:
        return None
    return job


# ------------------------------------------------------------------ what runners report


def on_runner_reported(world: World, turn: Turn, event: RunnerReported) -> None:
    """Take a report; it is acknowledged when everything it says is on disk."""
    runner = world.runners.get(event.runner)
    if runner is None:
        return
    hear(world, turn, runner)
    for started in event.started:
        job = current(world, runner, started)
        if job is not None:
            _start(world, turn, job, started)
    for finished in event.ended:
        job = current(world, runner, finished)
        if job is not None:
            end_attempt(world, turn, job, finished.outcome)
    for ref in event.returned:
        job = current(world, runner, ref)
        if job is not None:
            void_attempt(world, turn, job)
    for seat in event.closed:
        close_seat(world, runner, seat)
    if event.seq:
        turn.effects.append(AcknowledgeReport(event.runner, event.seq))


def hear(world: World, turn: Turn, runner: Runner) -> None:
    """A sign of life: the countdown begins anew, and lost jobs of this runner are lost no more."""
    runner.heard = turn.mono
    if not runner.silent:
        return
    runner.silent = False
    if world.runner_at.get(runner.host) == runner.id:
        world.placement.host_usable(runner.host, True)
    for id in runner.leases:
        job = world.jobs[id]
        if job.state is State.LOST and job.lease is not None:
            _revive(world, turn, job, job.lease)


def _revive(world: World, turn: Turn, job: Job, lease: Lease) -> None:
    began = State.SCHEDULED if lease.started_at is None else State.RUNNING
    move(world, job, State.FINISHING if job.kill or job.preempted else began)
    if job.kill:
        job.reason = Reason("kill_requested", "being killed")
    else:
        if job.preempted and (job.reason is None or job.reason.code != "container"):
            job.reason = Reason("preempted", f"being ended for {_named(job.preempted)}")
        elif not job.preempted:
            job.reason = None
    write(turn, job)
    turn.note(job.id, job.attempt, "revived", f"runner {lease.runner} is back")


def _start(world: World, turn: Turn, job: Job, started: Started) -> None:
    lease = job.lease
    if lease is None or lease.started_at is not None:
        return  # told twice
    lease.started_at = started.started_at
    lease.seat = started.seat
    lease.pid = started.pid
    if job.state in (State.SCHEDULED, State.STARTING):
        move(world, job, State.RUNNING)
    turn.changes.starts.append((job.id, job.attempt, started.started_at, started.pid, started.seat))
    adopt_seat(world, world.runners[lease.runner], started.seat, job)
    world.placement.started(started.seat, turn.mono)
    turn.effects.append(NotifyStarted(job.id, job.attempt, lease.runner))


def _drop_lease(world: World, turn: Turn, job: Job, *, ended: bool) -> None:
    lease = job.lease
    assert lease is not None
    runner = world.runners[lease.runner]
    runner.leases.discard(job.id)
    _count_unseated(runner, job.size, -1)
    world.placement.released(runner.host, job.need, job=job.id, ended_at=turn.mono if ended else None)
    job.lease = None
    job.kill = False
    job.preempted = 0


def void_attempt(world: World, turn: Turn, job: Job) -> None:
    """The lease was never executed: the job waits again, and no retry is used."""
    killed = job.kill
    _drop_lease(world, turn, job, ended=False)
    turn.changes.voids.append((job.id, job.attempt))
    turn.note(job.id, job.attempt, "voided", "the lease was handed back; nothing was executed")
    if killed:
        reason = Reason("kill_requested", "killed before it started")
        end_job(world, turn, job, State.CANCELLED, reason=reason, outcome=None)
    else:
        enter(world, turn, job, waiting_state(world, job))


def end_attempt(world: World, turn: Turn, job: Job, outcome: Outcome) -> None:
    """Record how an attempt ended and decide what becomes of its job."""
    killed, preempted = job.kill, job.preempted
    lease = job.lease
    assert lease is not None
    _drop_lease(world, turn, job, ended=True)
    reason = _reason(outcome)
    again = ""  #: why it is queued again, at no cost
    if reason is None or (reason.code == "walltime" and "noop" in job.spec.types and not killed):
        state, reason = State.COMPLETE, None  # one that only holds resources does so to the end of its time
    elif preempted and not killed:
        state = State.FAILED
        if job.reason is not None and job.reason.code == "container":
            reason = Reason("container", f"ended with its container {preempted}")
        else:
            reason = Reason("preempted", f"ended for {_named(preempted)}, which began on its resources")
        again = reason.message if "idempotent" in job.spec.types else ""
    elif _asks_again(job, outcome, lease) and not killed:
        state, again = State.FAILED, "exit 99 of an idempotent job"
    elif killed or outcome.reason == "kill_requested":
        state = State.CANCELLED
        reason = Reason("kill_requested", "killed on request")
    else:
        job.tries += 1
        state = State.DELAYED if may_retry(job, outcome) else State.FAILED
    verdict = "failed" if state is State.DELAYED else state.label
    started_at = outcome.started_at if outcome.started_at is not None else lease.started_at
    code, message = (reason.code, reason.message) if reason else (None, None)
    behaved = msgspec.json.encode(outcome.behaviours).decode() if outcome.behaviours else None
    turn.changes.ends.append(
        (
            job.id, job.attempt, verdict, outcome.exit_code, outcome.signal, code, message, started_at,
            outcome.ended_at, outcome.cpu_s, outcome.peak_mem, outcome.peak_disk, outcome.segment or None,
            outcome.offset, outcome.out_len, outcome.err_len, outcome.out_total, outcome.err_total, behaved,
        )
    )  # fmt: skip
    learn(world, turn, job, outcome, code=code, started_at=started_at)
    if again:
        turn.note(job.id, job.attempt, "again", f"{again}: it is queued again")
        job.reason = None
        enter(world, turn, job, waiting_state(world, job))
    elif state is State.DELAYED:
        _delay(world, turn, job, reason)
    elif state is State.COMPLETE and must_run_again(job) and not killed:
        turn.note(job.id, job.attempt, "again", "what it waits for came while it ran: it waits and runs again")
        enter(world, turn, job, waiting_state(world, job))
    else:
        if state is State.COMPLETE and must_run_again(job):
            state, reason = State.CANCELLED, Reason("kill_requested", "killed before it ran again")
        end_job(world, turn, job, state, reason=reason, outcome=outcome)
        spec = job.spec
        wished = {*spec.on_success, *spec.on_failure, *spec.on_exit}
        if "remove" in wished and any(done.behaviour == "remove" for done in outcome.behaviours):
            _remove_as_wished(world, turn, job)


def _named(job: int) -> str:
    """For whom a job is ended; a restart may have forgotten that."""
    return f"job {job}" if job > 0 else "another job"


def _asks_again(job: Job, outcome: Outcome, lease: Lease) -> bool:
    """An idempotent job that ran for a minute and ends with 99 wants to run again."""
    began = outcome.started_at if outcome.started_at is not None else lease.started_at
    return (
        outcome.exit_code == _AGAIN
        and not outcome.reason
        and "idempotent" in job.spec.types
        and began is not None
        and outcome.ended_at - began >= _AGAIN_AFTER_S
    )


def _remove_as_wished(world: World, turn: Turn, job: Job) -> None:
    """The job's own behaviour was to be removed; not while others still wait for it."""
    if job.id in world.children or waiting_for(world, job):
        turn.note(job.id, job.attempt, "kept", "others wait for it, so it was not removed")
        return
    erase(world, turn, job)
    ripple(world, turn, [job])  # a group without it may say something else


def _delay(world: World, turn: Turn, job: Job, reason: Reason | None) -> None:
    wait = delay_s(job.spec.backoff_s, job.tries, turn.random)
    job.due_at = turn.wall + wait
    why = reason.message if reason else "failed"
    job.reason = Reason("delayed", f"{why}; tried again in {wait:.0f} s ({job.retries_left + 1} attempts left)")
    move(world, job, State.DELAYED)
    heappush(world.due, (job.due_at, job.id))
    write(turn, job)


def _reason(outcome: Outcome) -> Reason | None:
    """Why an attempt failed, from evidence; None if it succeeded."""
    if outcome.reason:
        return Reason(outcome.reason, outcome.message or outcome.reason.replace("_", " "))
    if outcome.signal is not None:
        try:
            name = Signals(outcome.signal).name.removeprefix("SIG")
        except ValueError:
            name = str(outcome.signal)
        return Reason("signal", f"signal {name}")
    if outcome.exit_code:
        return Reason("exit", f"exit {outcome.exit_code}")
    return None


# ------------------------------------------------------------------ runners come and go


def on_runner_joined(world: World, turn: Turn, event: RunnerJoined) -> None:
    """Make the world agree with what a runner says it holds, and give it work."""
    runner = world.runners.get(event.runner)
    if runner is None:
        runner = Runner(event.runner, event.host)
        world.runners[event.runner] = runner
        if event.made_for is not None:
            make_host(world, runner, event.made_for)
        turn.changes.runners.append(
            (event.runner, event.host, event.boot_id, event.pid, event.start_time, turn.wall)
        )
    runner.boot_id, runner.pid, runner.start_time = event.boot_id, event.pid, event.start_time
    runner.connected = True
    for seat in runner.seats.keys() - set(event.seats):
        close_seat(world, runner, seat)
    hear(world, turn, runner)

    held = {}
    forget = []
    for lease in event.held:
        if current(world, runner, lease) is None:
            forget.append((lease.job, lease.attempt, lease.token))
        else:
            held[lease.job] = lease
    kills = []
    for id in list(runner.leases):
        job = world.jobs[id]
        seen = held.get(id)
        if seen is None:
            # A living runner does not know it and reports every lease it has executed: never executed.
            _void_or_lose(world, turn, job)
            continue
        _take_held(world, turn, job, seen)
        if job.kill or job.preempted:
            kills.append((id, seen.attempt, seen.token))
    world.runner_at[event.host] = event.runner
    world.placement.host_usable(event.host, True)
    turn.effects.append(SendRules(event.runner, forget))
    if kills:
        turn.effects.append(KillAttempts(event.runner, kills))


def _take_held(world: World, turn: Turn, job: Job, held: Held) -> None:
    lease = job.lease
    assert lease is not None
    if held.over:
        lease.seat = 0  # its end will be reported; another job may be in that seat by now
    elif held.seat:
        lease.seat = held.seat
        adopt_seat(world, world.runners[lease.runner], held.seat, job)
        if held.started_at is not None:
            started = Started(job.id, held.attempt, held.token, held.seat, held.started_at, held.pid)
            _start(world, turn, job, started)


def on_runner_parted(world: World, turn: Turn, event: RunnerParted) -> None:
    """A connection ended: no new work there; the countdown decides about the old."""
    runner = world.runners.get(event.runner)
    if runner is None:
        return
    runner.connected = False
    if world.runner_at.get(runner.host) == event.runner:
        del world.runner_at[runner.host]
        others = [each for each in world.runners.values() if each.host == runner.host and each.connected]
        if others:
            world.runner_at[runner.host] = others[0].id
        world.placement.host_usable(runner.host, bool(others) and not others[0].silent)
    if not runner.leases:
        retire(world, runner)


def on_runner_settled(world: World, turn: Turn, event: RunnerSettled) -> None:
    """A runner is proven dead and nothing of it is left: its leases end, or never were."""
    runner = world.runners.get(event.runner)
    if runner is not None:
        for finished in event.ended:
            job = current(world, runner, finished)
            if job is not None:
                end_attempt(world, turn, job, finished.outcome)
        for id in list(runner.leases):
            if event.whole:
                _void_or_lose(world, turn, world.jobs[id])
            else:
                _end_as_lost(world, turn, world.jobs[id], "its runner is dead and left no word about it")
        # Its connection may not have been missed yet.
        on_runner_parted(world, turn, RunnerParted(runner=runner.id))
    turn.effects.append(AcknowledgeReport(event.by_runner, SETTLED_ACK))


def retire(world: World, runner: Runner) -> None:
    """A runner without leases and without connection: its seats are free."""
    for seat in list(runner.seats):
        close_seat(world, runner, seat)
    del world.runners[runner.id]
    if runner.made_for is not None:
        world.placement.host_gone(runner.host)
        del world.capacity[runner.host]


def make_host(world: World, runner: Runner, need: Need) -> None:
    """The runner is an allocation of its own: a host with room for one job of this need."""
    size = need.size
    runner.made_for = need
    capacity = Capacity(cpus=size.cpus, mem=size.mem, disk=size.disk, gpus=size.gpus)
    world.capacity[runner.host] = capacity
    world.placement.host_known(runner.host, capacity, only=need)


def on_runner_idled(world: World, turn: Turn, event: RunnerIdled) -> None:
    """A runner may leave unless work is on its way to it."""
    runner = world.runners.get(event.runner)
    if runner is not None and runner.made_for is not None and not runner.leases:
        world.placement.host_usable(runner.host, False)
        turn.effects.append(DismissRunner(runner.id))


def adopt_seat(world: World, runner: Runner, seat: int, job: Job) -> None:
    """The runner has this seat, of the size of this job, whether we knew it or not."""
    if seat not in runner.seats:
        _take_seat(runner, seat, job.size)
        world.placement.adopt(seat, runner.host, job.size)


def close_seat(world: World, runner: Runner, seat: int) -> None:
    """The runner has this seat no more. Seats that are not its own are left alone."""
    size = runner.seats.pop(seat, None)
    if size is not None:
        _count_unseated(runner, size, 1)
        world.placement.close(seat)


def vacate_seat(world: World, runner: Runner, *, job: int, seat: int, size: Size) -> None:
    """Nothing is left of a job in its seat. If nobody knows which that was, a seat of its size that no
    other lease is known to have is as good."""
    if seat not in runner.seats:
        known = {lease.seat for id in runner.leases if (lease := world.jobs[id].lease) is not None}
        spare = [each for each, its in runner.seats.items() if its == size and each not in known]
        if not spare or runner.unseated.get(size, 0) >= 0:
            return
        seat = -job if -job in spare else spare[-1]
    close_seat(world, runner, seat)


def _void_or_lose(world: World, turn: Turn, job: Job) -> None:
    """Nobody holds this lease any more. What is known to have started is never taken for unexecuted."""
    if job.lease is not None and job.lease.started_at is None and not job.lease.restored:
        void_attempt(world, turn, job)
    else:
        _end_as_lost(world, turn, job, "it may have run, and its runner knows nothing of it")


def _end_as_lost(world: World, turn: Turn, job: Job, why: str) -> None:
    """Nothing of the attempt is left, and nobody knows how far it came."""
    end_attempt(world, turn, job, Outcome(reason="lost", message=why, ended_at=turn.wall))


def _give_up(world: World, turn: Turn, runner: Runner, why: str) -> None:
    """By now this runner must have ended its jobs itself."""
    given_up = [world.jobs[id] for id in runner.leases]
    if runner.connected and given_up:
        # Only its own process stood still, perhaps: should it go on, its jobs must not.
        leases = [(job.id, job.attempt, job.lease.token) for job in given_up if job.lease is not None]
        turn.effects.append(KillAttempts(runner.id, leases))
    for job in given_up:
        _end_as_lost(world, turn, job, why)
    if not runner.connected:
        retire(world, runner)


def check_silence(world: World, turn: Turn, *, lost_after_s: float, given_up_after_s: float) -> None:
    """Jobs of runners that have been silent for too long are lost: unknown, not dead. Only after a time
    in which their runner must have ended them itself are they given up."""
    for runner in list(world.runners.values()):
        if runner.silent and turn.mono - runner.heard > given_up_after_s:
            _give_up(world, turn, runner, f"no word for {given_up_after_s:g} s")
            continue
        if runner.silent or turn.mono - runner.heard <= lost_after_s:
            continue
        runner.silent = True
        if world.runner_at.get(runner.host) == runner.id:
            world.placement.host_usable(runner.host, False)
        for id in runner.leases:
            job = world.jobs[id]
            if job.state in LEASED and job.state is not State.LOST and job.lease is not None:
                move(world, job, State.LOST)
                why = f"runner {runner.id} on {runner.host} has been silent for {lost_after_s:g} s"
                # That it is to be killed must survive a restart.
                code = "kill_requested" if job.kill else "preempted" if job.preempted else "lost"
                job.reason = Reason(code, why)
                write(turn, job)
                turn.note(id, job.attempt, "lost", why)
