"""Runners join, report, fall silent and leave.

Every message of a runner is fenced by (job, attempt, token). One about a lease that is no longer valid is
acknowledged and changes nothing.
"""

from __future__ import annotations

from rota.core.attempts.attempt import (
    end_as_lost,
    end_attempt,
    leased_job,
    revive,
    start_attempt,
    void_attempt,
    void_or_lose,
)
from rota.core.attempts.leases import HeldLease, Started
from rota.core.attempts.part_events import (
    ask_for_unheld,
    part_gone,
    take_part_reports,
    unwanted_parts,
)
from rota.core.attempts.parts import parts_of, withheld_seats
from rota.core.attempts.seats import adopt_seat, close_seat
from rota.core.attempts.signals import signal_before_end
from rota.core.attempts.suspension import repeat_orders, take_suspension_reports
from rota.core.effects import AcknowledgeReport, CloseParts, DismissRunner, KillAttempts, SendRules
from rota.core.events import RunnerIdled, RunnerJoined, RunnerParted, RunnerReported, RunnerSettled
from rota.core.jobs.job import Job, Reason
from rota.core.machines.allocations import take_allocation
from rota.core.machines.machine_use import mark
from rota.core.machines.nodes import register_node, update_usable
from rota.core.machines.suspected_hosts import clear_fenced, take_hook_reports
from rota.core.machines.ticket_binding import bind, ticket_grants
from rota.core.machines.unfit_hosts import take_fitness
from rota.core.rows import RunnerRow
from rota.core.states import LEASED, State
from rota.core.turn import Turn
from rota.core.world import Runner, World, move, write
from rota.plan.need import Need
from rota.plan.placement.hosts import AWAY
from rota.plan.size import Capacity

#: A runner without a manager ends its jobs after `orphan_after`. This much later they are certainly gone.
ORPHAN_MARGIN_S = 600.0
#: Sequence number in the acknowledgement of `RunnerSettled`.
SETTLED_ACK = -1


def on_runner_reported(world: World, turn: Turn, event: RunnerReported) -> None:
    """Handle a report. It is acknowledged once everything it says is on disk."""
    runner = world.runners.get(event.runner)
    if runner is None:
        return
    record_heartbeat(world, turn, runner)
    if event.leaving and not runner.leaving:
        runner.leaving = True
        update_usable(world, runner.host)
    for started in event.started:
        job = leased_job(world, runner, started)
        if job is not None:
            start_attempt(world, turn, job, started)
    if event.phases or event.faults:
        take_hook_reports(world, turn, runner, event)
    if event.unfit is not None:
        take_fitness(world, turn, runner.host, event.unfit)
    if event.paused:
        take_suspension_reports(world, turn, runner, event.paused)
    for finished in event.ended:
        job = leased_job(world, runner, finished)
        if job is not None:
            end_attempt(world, turn, job, finished.outcome)
    for ref in event.returned:
        job = leased_job(world, runner, ref)
        if job is not None:
            void_attempt(world, turn, job)
    for reported in world.points.runner_reported:
        reported(world, turn, runner, event.started, event.ended, event.returned)
    for seat in event.closed:
        close_seat(world, runner, seat)
    if event.opened or event.shut:
        take_part_reports(world, turn, runner, event)
        if event.opened:
            repeat_orders(world, turn, runner)
    if event.seq:
        turn.effects.append(AcknowledgeReport(event.runner, event.seq))


def on_runner_joined(world: World, turn: Turn, event: RunnerJoined) -> None:
    """Reconcile the world with the leases that a runner holds, then give it work. Raises `Denied` if its ticket
    belongs to another one."""
    grant = None if event.claim is None else bind(world, turn, event.claim)
    made_for = event.made_for if grant is None else grant.need
    if event.node is not None:
        register_node(world, turn, event.host, event.node)
        _end_leases_before_boot(world, turn, event)
    runner = world.runners.get(event.runner)
    if runner is None:
        runner = Runner(event.runner, event.host)
        world.runners[event.runner] = runner
        if made_for is not None:
            make_host(world, runner, made_for, event.pool if grant is None else grant.pool)
        turn.changes.runners.append(
            RunnerRow(event.runner, event.host, event.boot_id, event.pid, event.start_time, turn.wall)
        )
    runner.boot_id, runner.pid, runner.start_time = event.boot_id, event.pid, event.start_time
    runner.connected = True
    runner.leaving = event.leaving
    world.runner_hosts[event.runner] = event.host
    for seat in runner.seats.keys() - set(event.seats) - withheld_seats(world, runner):
        close_seat(world, runner, seat)
    record_heartbeat(world, turn, runner)
    if grant is not None:
        take_allocation(world, turn, runner, event, grant)

    held = {}
    forget = []
    for lease in event.held:
        if leased_job(world, runner, lease) is None:
            if any(keeps(world, runner, lease) for keeps in world.points.keeps_lease):
                continue
            forget.append((lease.job, lease.attempt, lease.token))
        else:
            held[lease.job] = lease
    kills: dict[str, list[tuple[int, int, int]]] = {}  #: by the signal to send first
    for id in list(runner.leases):
        job = world.jobs[id]
        seen = held.get(id)
        if job.lease is not None and job.lease.withheld is not None:
            continue  # not sent yet
        if seen is None:
            # A living runner knows and reports every lease that it executed: this one was not.
            void_or_lose(world, turn, job)
            continue
        _take_held(world, turn, job, seen)
        if job.kill or job.preempted or (job.lease is not None and job.lease.broken):
            kills.setdefault(signal_before_end(job), []).append((id, seen.attempt, seen.token))
    world.runner_at[event.host] = event.runner
    clear_fenced(world, turn, event.host)
    take_fitness(world, turn, event.host, event.unfit)
    update_usable(world, event.host)
    forget += unwanted_parts(world, runner, event.parts)
    turn.effects.append(SendRules(event.runner, forget))
    turn.effects.extend(KillAttempts(event.runner, leases, first) for first, leases in kills.items())
    for joined in world.points.runner_joined:
        joined(world, turn, runner, event)


def _end_leases_before_boot(world: World, turn: Turn, event: RunnerJoined) -> None:
    """The host was rebooted since its earlier runners started: nothing of them is left."""
    gone = [
        runner
        for runner in world.runners.values()
        if runner.host == event.host and runner.id != event.runner and runner.boot_id not in ("", event.boot_id)
    ]
    for runner in gone:
        _take_from_host(world, runner)
    for runner in gone:
        for id in _leases_to_end(world, runner):
            end_as_lost(world, turn, world.jobs[id], f"{event.host} was restarted")
        for job in parts_of(world, runner):
            part_gone(world, turn, job, runner.host, f"{event.host} was restarted")
        retire_idle(world, runner)


def _leases_to_end(world: World, runner: Runner) -> list[int]:
    """The leases that end with a runner: not those whose preparation goes on without it."""
    jobs = (world.jobs[id] for id in runner.leases)
    return [job.id for job in jobs if job.lease is None or not job.lease.stays]


def _take_held(world: World, turn: Turn, job: Job, held: HeldLease) -> None:
    lease = job.lease
    assert lease is not None
    if held.over:
        lease.seat = 0  # its end will be reported; the seat may have another job by now
    elif held.seat:
        lease.seat = held.seat
        adopt_seat(world, world.runners[lease.runner], held.seat, job)
        if held.started_at is not None:
            started = Started(job.id, held.attempt, held.token, held.seat, held.started_at, held.pid)
            start_attempt(world, turn, job, started)


def on_runner_parted(world: World, turn: Turn, event: RunnerParted) -> None:
    """A connection ended: send no new work. Its heartbeat timeout decides about its jobs."""
    runner = world.runners.get(event.runner)
    if runner is None:
        return
    _take_from_host(world, runner)
    retire_idle(world, runner)
    for parted in world.points.runner_parted:
        parted(world, turn, runner.host)


def _take_from_host(world: World, runner: Runner) -> None:
    """Stop using a runner for new work.

    A dead runner goes before its parts are given away: its connection may still look open, and its death is proven
    only once.
    """
    runner.connected = False
    if world.runner_at.get(runner.host) == runner.id:
        del world.runner_at[runner.host]
        others = [each for each in world.runners.values() if each.host == runner.host and each.connected]
        if others:
            world.runner_at[runner.host] = others[0].id
        update_usable(world, runner.host)


def on_runner_settled(world: World, turn: Turn, event: RunnerSettled) -> None:
    """A runner is proven dead and nothing of it is left: its leases end, or were never executed."""
    runner = world.runners.get(event.runner)
    if runner is not None:
        _take_from_host(world, runner)
        for finished in event.ended:
            job = leased_job(world, runner, finished)
            if job is not None:
                end_attempt(world, turn, job, finished.outcome)
        for reported in world.points.runner_reported:
            reported(world, turn, runner, [], event.ended, [])
        for id in _leases_to_end(world, runner):
            if event.whole:
                void_or_lose(world, turn, world.jobs[id])
            else:
                end_as_lost(world, turn, world.jobs[id], "its runner is dead and left no word about it")
        if event.whole or event.rebooted:
            for job in parts_of(world, runner):
                part_gone(world, turn, job, runner.host, f"runner {runner.id} died")
        retire_idle(world, runner)
    if event.ticket and (grants := ticket_grants(world)) is not None:
        grants.left(turn, event.ticket)
    turn.effects.append(AcknowledgeReport(event.by_runner, SETTLED_ACK))


def on_runner_idled(world: World, turn: Turn, event: RunnerIdled) -> None:
    """Let an idle runner leave, unless it has a lease."""
    runner = world.runners.get(event.runner)
    if runner is not None and runner.made_for is not None and not runner.leases:
        world.placement.host_condition(runner.host, AWAY)
        turn.effects.append(DismissRunner(runner.id))


def make_host(world: World, runner: Runner, need: Need, pool: str = "") -> None:
    """Make the runner's allocation a host of this pool with room for one job of this need."""
    size = need.size
    runner.made_for, runner.pool = need, pool
    capacity = Capacity(cpus=size.cpus, mem=size.mem, disk=size.disk, gpus=size.gpus, pool=pool)
    world.capacity[runner.host] = capacity
    mark(world, runner.host)
    world.placement.host_known(runner.host, capacity, only=need)


def retire_idle(world: World, runner: Runner) -> None:
    """Forget a disconnected runner that holds nothing."""
    if not runner.connected and not runner.leases and not parts_of(world, runner):
        retire(world, runner)


def retire(world: World, runner: Runner) -> None:
    """Forget a runner and free its seats."""
    for seat in list(runner.seats):
        close_seat(world, runner, seat)
    del world.runners[runner.id]
    world.runner_at = {host: id for host, id in world.runner_at.items() if id != runner.id}
    if runner.made_for is not None:
        world.placement.host_gone(runner.host)
        del world.capacity[runner.host]
        mark(world, runner.host)


# ------------------------------------------------------------------ silence


def record_heartbeat(world: World, turn: Turn, runner: Runner) -> None:
    """A sign of life: restart the heartbeat timeout and revive the runner's lost jobs."""
    runner.heard_at = turn.mono
    if not runner.silent:
        return
    runner.silent = runner.dead = False
    if world.runner_at.get(runner.host) == runner.id:
        update_usable(world, runner.host)
    for job in [*(world.jobs[id] for id in runner.leases), *parts_of(world, runner)]:
        revive(world, turn, job)
    ask_for_unheld(world, turn, runner)


def check_silence(world: World, turn: Turn) -> None:
    """Declare jobs of silent runners lost, and give them up when their runner must have ended them itself.

    Lost means unknown, not dead: such jobs keep their resources.
    """
    lost_after_s, dead_after_s = world.settings.lost_after_s, world.settings.dead_after_s
    given_up_after_s = world.settings.orphan_after_s + ORPHAN_MARGIN_S
    for runner in list(world.runners.values()):
        if runner.silent and turn.mono - runner.heard_at > given_up_after_s:
            _give_up(world, turn, runner, f"no word for {given_up_after_s:g} s")
            continue
        if runner.silent and not runner.dead and turn.mono - runner.heard_at > dead_after_s:
            runner.dead = True
            if world.runner_at.get(runner.host) == runner.id:
                update_usable(world, runner.host)  # so that waiting jobs show the new reason
        if runner.silent or turn.mono - runner.heard_at <= lost_after_s:
            continue
        if any(awaits(world, runner.host) for awaits in world.points.awaits_host):
            continue
        runner.silent = True
        if world.runner_at.get(runner.host) == runner.id:
            update_usable(world, runner.host)
        for job in [*(world.jobs[id] for id in runner.leases), *parts_of(world, runner)]:
            if job.state in LEASED and job.state is not State.LOST and job.lease is not None:
                move(world, job, State.LOST)
                why = f"runner {runner.id} on {runner.host} has been silent for {lost_after_s:g} s"
                # A wanted kill must survive a restart.
                code = "kill_requested" if job.kill else "preempted" if job.preempted else "lost"
                job.reason = Reason(code, why)
                write(turn, job)
                turn.note(job.id, job.attempt, "lost", why)


def _give_up(world: World, turn: Turn, runner: Runner, why: str) -> None:
    """Give up the jobs of a runner: by now it must have ended them itself."""
    given_up = [world.jobs[id] for id in runner.leases]
    if runner.connected and given_up:
        # The runner may merely have been stopped. If it continues, its jobs must not.
        leases = [(job.id, job.attempt, job.lease.token) for job in given_up if job.lease is not None]
        turn.effects.append(KillAttempts(runner.id, leases))
    for job in given_up:
        end_as_lost(world, turn, job, why)
    parts = parts_of(world, runner)
    if runner.connected and parts:
        leases = [(job.id, job.attempt, job.lease.token) for job in parts if job.lease is not None]
        turn.effects.append(CloseParts(runner.id, leases))
    for job in parts:
        part_gone(world, turn, job, runner.host, why)
    retire_idle(world, runner)
