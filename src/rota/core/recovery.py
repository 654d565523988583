"""Rebuild the world from the store. Recovering twice equals recovering once."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify
from typing import Any

import msgspec
from msgspec import Struct

from rota.core.attempts.noop_jobs import is_noop_runner, restore_noop
from rota.core.attempts.parts import first_holders, kept_leases, restore_parts
from rota.core.attempts.seats import adopt_seat, take_lease
from rota.core.attempts.suspension import restore_suspension
from rota.core.jobs.dependencies import changed_parents, register_dependencies, update_dependents, waiting_state
from rota.core.jobs.job import AttemptEnd, Job, Lease, Parent, Spec
from rota.core.learning.estimate import MOST_MODELS, offer
from rota.core.learning.model import Model
from rota.core.machines.host_usage import AWAY
from rota.core.machines.hosts import restore_site
from rota.core.machines.nodes import restore_nodes
from rota.core.machines.runners import make_host
from rota.core.site.planning_terms import WorldTerms
from rota.core.states import LEASED, State
from rota.core.world import OPEN, Runner, World, move
from rota.plan.need import Need
from rota.plan.placement import Given
from rota.plan.policy.limits import Limit
from rota.plan.size import Size

_WAITS = (State.READY, State.DEPENDENT, State.BLOCKED)


class OpenAttempt(Struct, frozen=True):
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


class Remembered(Struct, frozen=True, kw_only=True):
    """What a deployment knows besides its jobs; see `store.base.Snapshot`."""

    limits: dict[str, str] = {}
    dep_groups: dict[str, int] = {}
    bad_members: list[tuple[int, int]] = []
    edges: list[tuple[Parent, int]] = []
    edge_specs: dict[int, int] = {}
    observations: list[tuple[Any, ...]] = []
    site: dict[tuple[str, str], str] = {}
    host_states: dict[str, tuple[str, int]] = {}
    parts: str = ""  #: see `core.attempts.parts.store_parts`
    replaced: list[int] = []


def recover(
    world: World,
    *,
    jobs: list[Job],
    open_attempts: list[OpenAttempt],
    specs: dict[int, Spec],
    outcomes: bytes,
    tally: dict[tuple[str, int], int],
    next_job: int,
    mono: float,
    remembered: Remembered,
) -> None:
    """Fill an empty world. The placement must know the hosts already.

    Leased jobs keep their lease, with a fresh heartbeat timeout: a runner that lives will join and report what it
    holds. The stored state of a job is that of its last unusual change, so an open lease counts more.
    """
    world.placement.terms = WorldTerms(world)
    world.specs = specs
    world.next_job = next_job
    world.outcomes = bytearray(outcomes)
    for id in remembered.replaced:
        world.mark_replaced(id)
    for (group, state), number in tally.items():
        world.counts[group][state] += number
    leases = _with_parts(open_attempts, remembered.parts)
    for job in jobs:
        world.jobs[job.id] = job
        world.keys[job.key] = job.id
        world.outcomes[job.id] = OPEN
        if job.state in _WAITS:
            job.state = State.DEPENDENT  # blocked jobs are found below, once all outcomes are known
    for text in remembered.limits.values():
        world.placement.limits.declare(msgspec.json.decode(text, type=Limit))
    restore_site(world, remembered.site)
    restore_nodes(world)
    world.host_states = dict(remembered.host_states)
    world.awaited_hosts = {host for host, (state, _at) in world.host_states.items() if state != AWAY}
    _restore_models(world, remembered)
    _restore_groups(world, jobs, remembered)
    ready: dict[int, list[Job]] = {}
    for job in jobs:
        waiting = register_dependencies(world, job) if job.after else State.READY
        lease = leases.get(job.id)
        if lease is not None:
            _restore_lease(world, job, lease, mono)
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
    _block(world, jobs)
    for equal in ready.values():
        offer(world, equal)


def _with_parts(open_attempts: list[OpenAttempt], parts: str) -> dict[int, OpenAttempt]:
    """Return the leases by job, including those of which only parts are left."""
    leases = {attempt.job: attempt for attempt in open_attempts}
    for id, kept in kept_leases(parts).items():
        found = leases.get(id)
        if kept.ended is not None:
            leases[id] = OpenAttempt(
                id, kept.attempt, kept.token, kept.runner, kept.host, kept.leased_at, kept.started_at, 0, 0,
                kept.size, kept.given, kept.holders, kept.ended,
            )  # fmt: skip
        elif found is not None and found.token == kept.token:
            leases[id] = msgspec.structs.replace(found, holders=kept.holders)
    return leases


def _restore_lease(world: World, job: Job, found: OpenAttempt, mono: float) -> None:
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
        world.moved_parts.add(job.id)
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
            make_host(world, runner, Need(found.size or job.spec.size, job.spec.limits))
    job.learned = found.size
    take_lease(runner, job)
    # A kill requested before the crash is still wanted.
    code = job.reason.code if job.reason is not None else ""
    job.preempted = -1 if code in ("preempted", "container") else 0
    if code == "lost" and job.state is State.FINISHING and job.reason is not None:
        job.lease.broken = job.reason.message
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


def _restore_closing(world: World, job: Job, lease: Lease, found: OpenAttempt) -> None:
    """The attempt has ended and its parts perhaps not, so what it held is still taken."""
    lease.ended, lease.host = found.ended, found.host
    world.closing.add(job.id)
    job.learned = found.size
    job.kill = job.reason is not None and job.reason.code == "kill_requested"
    job.state = State.FINISHING
    world.placement.adopt_lease(found.host, job.need)


def _restore_models(world: World, remembered: Remembered) -> None:
    rows: dict[str, list[Any]] = {}
    for name, *row in remembered.observations:
        rows.setdefault(name, []).append(tuple(row))
    newest = sorted(rows, key=lambda name: max(row[1] for row in rows[name]))
    world.models = {name: Model.from_rows(rows[name]) for name in newest[-MOST_MODELS:]}


def _restore_groups(world: World, jobs: Iterable[Job], remembered: Remembered) -> None:
    """Restore dependency groups: members, and the groups that members wait for."""
    groups, specs = world.groups, world.specs
    for name, complete in remembered.dep_groups.items():
        groups[name].known = True
        groups[name].complete = complete
    for id, spec_id in remembered.bad_members:
        for name in specs[spec_id].dep_groups:
            groups[name].join(id, State(world.outcome(id)))
    for job in jobs:
        for name in job.spec.dep_groups:
            groups[name].join(job.id, State.DEPENDENT)
    _restore_ancestry(world, remembered.edges)
    for id, spec_id in remembered.edge_specs.items():
        for name in specs[spec_id].dep_groups:
            groups[name].wait_for(world.ancestry.get(id))
    for group in groups.values():
        group.announced = group.verdicts()


def _restore_ancestry(world: World, edges: list[tuple[Parent, int]]) -> None:
    parents: dict[int, list[Parent]] = {}
    for parent, child in edges:
        parents.setdefault(child, []).append(parent)
    for child in parents:
        world.ancestry.find(child, lambda id: parents.get(id, ()))


def _block(world: World, jobs: Iterable[Job]) -> None:
    """Block jobs whose parents can never satisfy them, then their dependents, and so on."""
    pending: list[Parent] = []
    for job in jobs:
        if job.state is State.DEPENDENT and job.id in world.blocked_by:
            move(world, job, State.BLOCKED)
            pending += changed_parents(world, job)
    while pending:
        for child in update_dependents(world, pending.pop()):
            job = world.jobs[child]
            if job.state is State.DEPENDENT and waiting_state(world, job) is State.BLOCKED:
                move(world, job, State.BLOCKED)
                pending += changed_parents(world, job)
