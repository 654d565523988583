"""Checks the invariants I1 to I5 (`docs/rules.md`) on the world itself, and the invariants of features in use.

Used by tests and the simulator after every step, and by `rota doctor` on a live manager.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from rota.core.attempts.parts import all_leased
from rota.core.attempts.suspension_phases import has_given_up
from rota.core.jobs.dependencies import verdict
from rota.core.jobs.job import Job, Parent
from rota.core.site.plan_facts import leases_out
from rota.core.states import LEASED, TERMINAL, State
from rota.core.world import OPEN, World
from rota.plan.site.bitset import parse_spans
from rota.plan.size import CORE


def broken(world: World) -> list[str]:
    """Describe each violated invariant in a sentence; empty: all hold."""
    return [sentence for found in check_each(world) for sentence in found]


def check_each(world: World) -> Iterator[list[str]]:
    """Check one invariant at a time. The world may change between two of them."""
    yield _each_job_in_one_state(world)
    yield _one_terminal_record(world)
    yield _one_valid_lease(world)
    yield _parents_before_dependents(world)
    yield _groups_as_members(world)
    yield _nothing_exceeded(world)
    yield _limits_as_leased(world)
    yield world.placement.broken(leases_out(world))
    for invariant in world.points.invariant:
        yield invariant(world)


def _each_job_in_one_state(world: World) -> list[str]:
    """I1: the counts by state match the jobs; finished jobs are counted by their outcome."""
    wrong = []
    counted: Counter[tuple[str, State]] = Counter((job.spec.group, job.state) for job in world.jobs.values())
    for group, counts in world.counts.items():
        for state in State:
            if state in TERMINAL:
                if counts[state] < counted[group, state]:
                    wrong.append(f"I1: {group}: {counts[state]} {state.label} counted, more are there")
            elif counts[state] != counted[group, state]:
                wrong.append(
                    f"I1: {group}: {counts[state]} {state.label} counted, {counted[group, state]} are there"
                )
    finished = {state: world.outcomes.count(state) for state in TERMINAL}
    for state in TERMINAL:
        total = sum(counts[state] for counts in world.counts.values())
        if total != finished[state]:
            wrong.append(f"I1: {total} {state.label} counted, {finished[state]} outcomes recorded")
    return wrong


def _one_terminal_record(world: World) -> list[str]:
    """I2: a job has a terminal record exactly while it is in a terminal state."""
    wrong = []
    for job in world.jobs.values():
        recorded = world.outcome(job.id)
        expected = int(job.state) if job.state in TERMINAL else OPEN
        if recorded != expected:
            wrong.append(f"I2: job {job.id} is {job.state.label} but its recorded outcome is {recorded}")
    return wrong


def _one_valid_lease(world: World) -> list[str]:
    """I3: a job has a lease exactly in the leased states, held by one runner that the world knows."""
    wrong = []
    held: Counter[int] = Counter(id for runner in world.runners.values() for id in runner.leases)
    for job in world.jobs.values():
        leased = job.state in LEASED
        if leased != (job.lease is not None):
            wrong.append(f"I3: job {job.id} is {job.state.label} {'without' if leased else 'with'} a lease")
        over = job.lease is not None and job.lease.ended is not None  # only its parts are left
        if held[job.id] != (1 if leased and not over else 0):
            wrong.append(f"I3: job {job.id} is {job.state.label} and {held[job.id]} runners hold it")
        if job.lease is not None and job.attempt < 1:
            wrong.append(f"I3: job {job.id} is leased without an attempt number")
    for runner in world.runners.values():
        unseated = Counter(world.jobs[id].size for id in runner.leases if id in world.jobs)
        unseated.subtract(runner.seats.values())
        if {size: n for size, n in unseated.items() if n} != runner.unseated:
            wrong.append(f"I3: {runner.id} has {runner.unseated} more leases than seats, not {unseated}")
    wrong += [f"I3: a runner holds job {id}, which is gone" for id in held if id not in world.jobs]
    return wrong


def _parents_before_dependents(world: World) -> list[str]:
    """I4: no job is ready while a parent does not satisfy it, and the indexes match the outcomes.

    An executing or delayed job may wait too: for a parent that was re-opened meanwhile.
    """
    wrong = []
    for job in world.jobs.values():
        if job.state in TERMINAL:
            continue
        missing, blockers = _parents_missing(world, job)
        if missing != world.unmet_parents.get(job.id, 0):
            wrong.append(f"I4: job {job.id} waits for {world.unmet_parents.get(job.id, 0)}, {missing} are missing")
        if blockers != (world.blocked_by.get(job.id) or set()):
            wrong.append(f"I4: job {job.id} is blocked by {world.blocked_by.get(job.id)}, not by {blockers}")
        if job.state in (State.DEPENDENT, State.BLOCKED, State.READY):
            others = [each for companions in world.points.waits_with for each in companions(world, job)]
            for each in (world.jobs[id] for id in others if id in world.jobs and id != job.id):
                if each.state not in TERMINAL:
                    more, more_blockers = _parents_missing(world, each)
                    missing, blockers = missing + more, blockers | more_blockers
            expected = State.BLOCKED if blockers else State.DEPENDENT if missing else State.READY
            if job.state is not expected:
                wrong.append(f"I4: job {job.id} is {job.state.label} and should be {expected.label}")
    for parent, entries in world.children.items():
        for child, _condition in entries:
            if child not in world.jobs or world.jobs[child].state in TERMINAL:
                wrong.append(f"I4: job {parent} knows of job {child}, which does not wait any more")
    return wrong


def _parents_missing(world: World, job: Job) -> tuple[int, set[Parent]]:
    """Count the unsatisfied parents of the job, and collect the ones that can never satisfy it."""
    missing = 0
    blockers: set[Parent] = set()
    for after in job.after:
        ok, never = verdict(world, after.parent, after.condition)
        known = world.children.get(after.parent, {}).get((job.id, after.condition))
        if not ok:
            missing += 1
            if known is not False:
                blockers.add(f"{after.parent} without its knowing")  # no change would reach the job
        elif known is False:
            blockers.add(f"{after.parent}, which is content")
        if never:
            blockers.add(after.parent)
    return missing, blockers


def _groups_as_members(world: World) -> list[str]:
    """I4: a dependency group counts exactly its members, and its dependents know its verdicts."""
    wrong = []
    for name, group in world.groups.items():
        members = {id: job for id, job in world.jobs.items() if name in job.spec.dep_groups}
        live = {id for id, job in members.items() if job.state not in TERMINAL}
        if live != set(group.open):
            wrong.append(f"I4: group {name} has {set(group.open)} open, not {live}")
        blocked = sum(1 for id in live if world.jobs[id].state is State.BLOCKED)
        if blocked != group.blocked:
            wrong.append(f"I4: group {name} counts {group.blocked} blocked, not {blocked}")
        if any(world.outcome(id) not in (State.FAILED, State.CANCELLED) for id in group.bad):
            wrong.append(f"I4: group {name} has {set(group.bad)} as failed, some are not")
        if group.announced != group.verdicts() and name in world.children:
            wrong.append(f"I4: group {name} has not told its dependents what changed")
    return wrong


def _nothing_exceeded(world: World) -> list[str]:
    """I5: executing jobs, lost ones included, never exceed the capacity of their host."""
    wrong = []
    used: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0, 0])
    seats: Counter[tuple[str, int]] = Counter()
    #: host → cores given by the planner, perhaps to several jobs
    shared: defaultdict[str, set[int]] = defaultdict(set)
    for runner in world.runners.values():
        for id in runner.leases:
            job = world.jobs[id]
            if job.lease is None or not job.lease.seat:
                continue
            size = job.size
            seats[runner.id, job.lease.seat] += 1
            cpus = 0 if has_given_up(job.lease) else size.cpus
            a_part = 0 < cpus < CORE  # others may share the rest of that core
            if cpus and job.lease.given is not None and job.lease.given.cpu_list and not a_part:
                cores = set(parse_spans(job.lease.given.cpu_list))
                cpus = CORE * len(cores - shared[runner.host])
                shared[runner.host] |= cores
            taken = (cpus, size.mem, size.disk, size.gpus, 0 if size.cpus else 1)
            used[runner.host] = [u + t for u, t in zip(used[runner.host], taken, strict=True)]
    wrong += [f"I5: {n} jobs run in seat {seat} of {runner}" for (runner, seat), n in seats.items() if n > 1]
    for host, totals in used.items():
        cap = world.capacity.get(host)
        if cap is None:
            continue
        limits = (cap.cpus, cap.mem, cap.disk, cap.gpus, cap.zero_cpu_jobs)
        for name, total, limit in zip(("cpus", "mem", "disk", "gpus", "0-cpu jobs"), totals, limits, strict=True):
            if total > limit:
                wrong.append(f"I5: {host}: {total} {name} in use, {limit} exist")
    return wrong


def _limits_as_leased(world: World) -> list[str]:
    """I5: units of a limit are taken exactly by leased jobs, lost ones included.

    They exceed its capacity only if that was lowered meanwhile.
    """
    wrong = []
    limits = world.placement.limits
    used: Counter[tuple[str, str]] = Counter()
    alone: set[tuple[str, str]] = set()
    holders: Counter[tuple[str, str]] = Counter()
    for job, host in all_leased(world):
        for use in job.spec.limits:
            limit = limits.get(use.name)
            where = (use.name, host if limit is not None and limit.hosts else "")
            used[where] += use.units
            holders[where] += 1
            if use.exclusive and limit is not None:
                alone.add(where)
    for job in world.jobs.values():
        for use in limits.held(job.id) if job.lease is None else ():  # between two attempts
            used[use.name, ""] += use.units
            holders[use.name, ""] += 1
    for (name, host), units in used.items():
        if limits.use(name, host)[0] != units:
            wrong.append(f"I5: limit {name} {host}: {limits.use(name, host)[0]} counted, {units} in use")
    for limit in limits:
        for host, units in limits.over(limit.name):
            if units != used[limit.name, host]:
                wrong.append(f"I5: limit {limit.name} {host}: {units} counted, {used[limit.name, host]} in use")
    wrong += [f"I5: limit {name} is used alone and by others" for name, host in alone if holders[name, host] > 1]
    return wrong
