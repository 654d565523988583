"""Restores jobs, their leases, and the queue of ready jobs."""

from __future__ import annotations

from heapq import heapify

import msgspec
from msgspec import Struct

from rota.core.attempts.noop_jobs import is_noop_runner, restore_noop
from rota.core.attempts.part_index import PartIndex
from rota.core.attempts.parts import PARTS, first_holders, kept_leases, restore_parts
from rota.core.attempts.seats import adopt_seat, take_lease
from rota.core.attempts.suspension import restore_suspension
from rota.core.jobs.dependencies import (
    changed_parents,
    register_dependencies,
    update_dependents,
    waiting_state,
    with_companions,
)
from rota.core.jobs.job import AttemptEnd, Job, Lease, Parent
from rota.core.learning.estimate import offer
from rota.core.machines.runners import make_host
from rota.core.machines.ticket_binding import ticket_grants
from rota.core.restart import Restart
from rota.core.states import LEASED, State
from rota.core.stored import job_from_row
from rota.core.world import OPEN, Runner, World, move
from rota.plan.placement.given import Given
from rota.plan.size import Size

_WAITS = (State.READY, State.DEPENDENT, State.BLOCKED)


class OpenLease(Struct, frozen=True):
    """A lease without a recorded end, or with parts that are still open."""

    job: int
    number: int
    token: int
    runner: str
    host: str
    leased_at: float
    started_at: float | None
    pid: int
    seat: int
    size: Size | None = None  #: if it differs from the specification's
    given: Given | None = None  #: the planner's grant
    holders: dict[str, str] | None = None  #: host → runner of each part, if not the runners asked first
    ended: AttemptEnd | None = None  #: how it ended, if only its parts are left


def restore_jobs(world: World, restart: Restart) -> None:
    """Load the jobs in memory and the outcomes of all others. Waiting jobs count as dependent until
    `restore_leases_and_queue` knows more."""
    snapshot = restart.snapshot
    specs = world.specs = snapshot.specs
    world.next_job = snapshot.next_job
    world.outcomes = bytearray(snapshot.outcomes)
    for id in snapshot.replaced:
        world.mark_replaced(id)
    for (group, state), number in snapshot.tally.items():
        world.counts[group][state] += number
    for row in snapshot.jobs:
        if row.id in world.bugs.frozen:
            world.outcomes[row.id] = OPEN  # so that its dependents wait
            continue
        job = job_from_row(row, specs[row.spec_id])
        world.jobs[job.id] = job
        world.keys[job.key] = job.id
        world.outcomes[job.id] = OPEN
        if job.state in _WAITS:
            job.state = State.DEPENDENT


def restore_leases_and_queue(world: World, restart: Restart) -> None:
    """Restore leases, and offer ready jobs to the placement.

    The stored state of a job is that of its last unusual change, so an open lease counts more.
    """
    leases = _open_leases(world, restart)
    ready: dict[int, list[Job]] = {}
    for job in world.jobs.values():
        waiting = register_dependencies(world, job) if job.after else State.READY
        lease = leases.get(job.id)
        if lease is not None:
            _restore_lease(world, job, lease, restart.mono)
        elif job.state is State.DEPENDENT and waiting is State.READY:
            job.state = State.READY
            if job.ready_at is None:
                job.ready_at = job.submitted_at
        if job.due_at is not None:
            world.delayed_until.append((job.due_at, job.id))
        if job.state is State.READY:
            ready.setdefault(job.spec_id, []).append(job)
        world.counts[job.spec.group][job.state] += 1
    heapify(world.delayed_until)
    if world.points.waits_with:
        _wait_together(world, ready)
    _block(world)
    for equal in ready.values():
        offer(world, equal)


def restore_runners(world: World, restart: Restart) -> None:
    """Restore the processes of runners with open attempts."""
    for row in restart.snapshot.runners:
        world.runner_hosts[row.id] = row.host
        if (runner := world.runners.get(row.id)) is not None:
            runner.boot_id, runner.pid, runner.start_time = row.boot_id, row.pid, row.start_time


def _open_leases(world: World, restart: Restart) -> dict[int, OpenLease]:
    """The leases by job, including those of which only parts are left."""
    snapshot, hosts = restart.snapshot, restart.hosts
    known = hosts.keys() | {name for kind, name in snapshot.site if kind == "node"}
    # The only host of a planned pool may have been renamed. Hosts of a delegated pool come with their runners.
    local = next(iter(hosts), "")
    leases: dict[int, OpenLease] = {}
    grants = ticket_grants(world)
    for row in snapshot.open_attempts:
        made = grants is not None and grants.by_name(row.host) is not None
        host = row.host if made or row.host in known or not local else local
        leases[row.job] = OpenLease(
            row.job, row.number, row.token, _runner_of(row.runner, row.given), host, row.leased_at,
            row.started_at, row.pid or 0, row.seat or 0, row.size, row.given,
        )  # fmt: skip
    for id, kept in kept_leases(snapshot.meta.get(PARTS) or "").items():
        found = leases.get(id)
        if kept.ended is not None:
            leases[id] = OpenLease(
                id, kept.attempt, kept.token, kept.runner, kept.host, kept.leased_at, kept.started_at, 0, 0,
                kept.size, kept.given, kept.holders, kept.ended,
            )  # fmt: skip
        elif found is not None and found.token == kept.token:
            leases[id] = msgspec.structs.replace(found, holders=kept.holders)
    return leases


def _runner_of(leased_to: str, given: Given | None) -> str:
    """The runner of an attempt: it may have gone to another one before it began."""
    return given.runner or leased_to if given is not None else leased_to


def _restore_lease(world: World, job: Job, found: OpenLease, mono: float) -> None:
    job.attempt = max(job.attempt, found.number)
    if job.ready_at is None and job.state not in LEASED:
        job.ready_at = found.leased_at  # no sign that it was outdated: see `dependencies.mark_outdated`
    job.lease = Lease(
        token=found.token,
        runner=found.runner,
        leased_at=found.leased_at,
        started_at=found.started_at,
        seat=found.seat,
        pid=found.pid,
        given=found.given,
    )
    holders = found.holders if found.holders is not None else first_holders(found.given)
    if holders:
        restore_parts(world, job, holders, mono=mono)
    if found.ended is not None:
        _restore_closing(world, job, job.lease, found)
        return
    if found.holders is not None:
        world.use(PartIndex).moved.add(job.id)
    if is_noop_runner(found.runner):
        job.learned = found.size
        restore_noop(world, job, found.host)
        restore_suspension(world, job, job.lease)
        return
    runner = world.runners.get(found.runner)
    if runner is None:
        runner = world.runners[found.runner] = Runner(found.runner, found.host)
        runner.heard_at = mono
        if found.host not in world.capacity:
            grants = ticket_grants(world)
            grant = grants.by_name(found.host) if grants is not None else None
            need = job.spec.need(found.size or job.spec.size, job.spec_id).group if grant is None else grant.need
            make_host(world, runner, need, job.spec.pool if grant is None else grant.pool)
    job.learned = found.size
    take_lease(runner, job)
    # A kill requested before the crash is still wanted.
    code = job.reason.code if job.reason is not None else ""
    job.preempted = -1 if code in ("preempted", "container") else 0
    if code in ("lost", "gang") and job.state is State.FINISHING and job.reason is not None:
        job.lease.broken, job.lease.broken_code = job.reason.message, code
    job.kill = code == "kill_requested" or (
        job.state is State.FINISHING and not job.preempted and not job.lease.broken
    )
    if job.kill or job.preempted or job.lease.broken:
        job.state = State.FINISHING
    elif job.state not in LEASED or job.state in (State.LOST, State.SCHEDULED, State.STARTING):
        job.reason = None
        job.state = State.RUNNING if found.started_at is not None else State.SCHEDULED
    restore_suspension(world, job, job.lease)
    world.placement.adopt_lease(found.host, job.need)
    if found.seat in runner.seats:
        # Two jobs in one seat: one of them has ended, and its runner will report that.
        job.lease.seat = 0
        return
    # It may have started in an unknown seat: keep room for it until its runner reports.
    seat = found.seat or -job.id
    adopt_seat(world, runner, seat, job)
    world.placement.started(seat, mono)


def _restore_closing(world: World, job: Job, lease: Lease, found: OpenLease) -> None:
    """The attempt has ended and its parts perhaps not, so what it held is still taken."""
    lease.ended, lease.host = found.ended, found.host
    world.use(PartIndex).closing.add(job.id)
    job.learned = found.size
    job.kill = job.reason is not None and job.reason.code == "kill_requested"
    job.state = State.FINISHING
    world.placement.adopt_lease(found.host, job.need)


def _wait_together(world: World, ready: dict[int, list[Job]]) -> None:
    """Take jobs that are not ready without others out of those that are: now the parents of all are known."""
    for spec_id in list(ready):
        held = [job for job in ready[spec_id] if waiting_state(world, job) is not State.READY]
        for job in held:
            move(world, job, State.DEPENDENT)
            job.ready_at = None
            ready[spec_id].remove(job)
        if not ready[spec_id]:
            del ready[spec_id]


def _block(world: World) -> None:
    """Block jobs whose parents can never satisfy them, then their dependents, and so on."""
    pending: list[Parent] = []
    for job in world.jobs.values():
        if job.state is State.DEPENDENT and waiting_state(world, job) is State.BLOCKED:
            move(world, job, State.BLOCKED)
            pending += changed_parents(world, job)
    while pending:
        for child in with_companions(world, update_dependents(world, pending.pop())):
            job = world.jobs[child]
            if job.state is State.DEPENDENT and waiting_state(world, job) is State.BLOCKED:
                move(world, job, State.BLOCKED)
                pending += changed_parents(world, job)
