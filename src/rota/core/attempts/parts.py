"""Jobs over several hosts: a lease has a part on every host except its first.

The lease is sent to its first host when all other hosts have opened their part. When the attempt ends there, its
end is recorded and the job is `finishing` until every host reports that nothing is left of it; only then are its
resources free. That a part is gone is never guessed: its runner reports it, or the runner is proven dead with all
its processes.

What becomes of the job then is decided in `core.attempts.attempt`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from typing import Final

import msgspec
from msgspec import Struct

from rota.core.attempts.lease_refs import ref_of
from rota.core.attempts.leases import LeaseRef, PartOpened
from rota.core.attempts.part_index import PartIndex
from rota.core.attempts.preparation import go_on, is_before
from rota.core.effects import CloseParts, SendParts
from rota.core.jobs.job import AttemptEnd, Job, Lease, LeasePart, Reason
from rota.core.states import State
from rota.core.turn import Turn
from rota.core.world import Preparation, Runner, World, move, write
from rota.plan.placement.given import Given
from rota.plan.size import Size

#: Key of `Changes.meta` for the state of parts that the rows of attempts lack.
PARTS: Final = "parts"
#: The name of the preparation in which they are opened.
PARTS_PREPARATION: Final = "parts"
#: Hosts named in a message.
_NAMED = 3


class KeptLease(Struct, frozen=True, array_like=True, gc=False):
    """A lease with open parts after its attempt ended, or with a part that moved to another runner."""

    job: int
    attempt: int
    token: int
    runner: str
    host: str
    leased_at: float
    started_at: float | None
    size: Size | None
    given: Given
    holders: dict[str, str]  #: host → runner of each part
    ended: AttemptEnd | None = None


# ------------------------------------------------------------------ holders


def lease_hosts(given: Given | None) -> tuple[str, ...]:
    """The hosts, except the first, on which an attempt with this grant has parts."""
    if given is None or given.elsewhere:
        return ()  # a job that executes elsewhere has nothing on the hosts it holds
    return tuple(host for host, _cores in given.nodes[1:])


def with_runners(world: World, given: Given | None, runner: Runner) -> Given | None:
    """Add the runners of all parts to a grant that has parts."""
    others = lease_hosts(given)
    if given is None or not others:
        return given
    names = (runner.id, *(world.runner_at.get(host, "") for host in others))
    return msgspec.structs.replace(given, runners=names)


def add_parts(world: World, job: Job, holders: dict[str, str]) -> None:
    """Record a part on each of these hosts, with its runner (empty: none yet)."""
    lease_of(job).parts = {host: LeasePart(runner) for host, runner in holders.items()}
    at = world.use(PartIndex).at
    for host in holders:
        at.setdefault(host, set()).add(job.id)


def drop_part(world: World, job: Job, host: str) -> None:
    """Forget a part of which nothing is left and which is not needed again."""
    lease, parts = lease_of(job), parts_by_host(job)
    del parts[host]
    at = world.use(PartIndex).at
    at[host].discard(job.id)
    if not at[host]:
        del at[host]
    if not parts:
        lease.parts = None


def forget_part(world: World, turn: Turn, job: Job, host: str) -> None:
    """Drop a part of a job that goes on, and remember that over a restart."""
    drop_part(world, job, host)
    world.use(PartIndex).moved.add(job.id)
    store_parts(world, turn)


def release_part(world: World, turn: Turn, job: Job, host: str) -> None:
    """Take a part from its runner. The next runner on that host is asked to open it."""
    part = parts_by_host(job)[host]
    part.runner, part.open = "", False
    world.use(PartIndex).moved.add(job.id)
    store_parts(world, turn)


def parts_of(world: World, runner: Runner) -> list[Job]:
    """The jobs of which this runner holds a part."""
    return [
        job
        for id in sorted(jobs_with_part(world, runner.host))
        if (part := part_at(job := world.jobs[id], runner.host)) is not None and part.runner == runner.id
    ]


def part_at(job: Job, host: str) -> LeasePart | None:
    """The job's part on this host, if it has one."""
    return parts_by_host(job).get(host)


def parts_by_host(job: Job) -> dict[str, LeasePart]:
    """Host → part of the job's lease; empty: it has none."""
    return job.lease.parts if job.lease is not None and job.lease.parts is not None else {}


def lease_of(job: Job) -> Lease:
    """The lease of a job that must have one."""
    assert job.lease is not None
    return job.lease


def withheld_seats(world: World, runner: Runner) -> set[int]:
    """The seats that a runner does not know of yet."""
    seats = (lease_of(world.jobs[id]).withheld for id in runner.leases)
    return {seat.seat for seat in seats if seat is not None}


def job_of_part(world: World, runner: Runner, ref: LeaseRef | PartOpened) -> Job | None:
    """Return the job that a report about a part is about, if it names the valid lease and a part on this host."""
    job = world.jobs.get(ref.job)
    if job is None or job.lease is None or job.attempt != ref.attempt or job.lease.token != ref.token:
        return None
    return job if part_at(job, runner.host) is not None else None


def all_leased(world: World) -> Iterator[tuple[Job, str]]:
    """Every job that holds resources, with its first host, including jobs that only wait for their parts."""
    for runner in world.runners.values():
        for id in runner.leases:
            yield world.jobs[id], runner.host
    for id in closing_jobs(world):
        yield world.jobs[id], lease_of(world.jobs[id]).host


def jobs_with_part(world: World, host: str) -> Set[int]:
    """The jobs with a part on this host."""
    index = world.find(PartIndex)
    return index.at.get(host, frozenset()) if index is not None else frozenset()


def closing_jobs(world: World) -> Set[int]:
    """The jobs whose attempt has ended and whose parts have not."""
    index = world.find(PartIndex)
    return index.closing if index is not None else frozenset()


# ------------------------------------------------------------------ opening


def open_parts(world: World, turn: Turn, job: Job) -> None:
    """Ask for the parts of a new lease before it is sent."""
    parts = parts_by_host(job)
    if job.state is not State.STARTING:
        move(world, job, State.STARTING)
    job.reason = Reason("parts", f"waiting for {_named(parts)} to be ready")
    for host in parts:
        ask_for_part(world, turn, job, host)


def ask_for_part(world: World, turn: Turn, job: Job, host: str) -> None:
    """Ask the runner of this host, if one answers, to open the job's part. While an earlier preparation, such as a
    prologue, is under way, none is asked yet."""
    if is_before(world, job, PARTS_PREPARATION):
        return
    part, lease = parts_by_host(job)[host], lease_of(job)
    runner = world.runner_at.get(host)
    if runner is None or world.runners[runner].silent:
        return  # the next runner to join there is asked
    part.runner, part.open = runner, False
    turn.effects.append(SendParts(runner, [job], [ref_of(job, lease)]))
    if runner not in (lease.given.runners if lease.given is not None else ()):
        world.use(PartIndex).moved.add(job.id)
        store_parts(world, turn)


def mark_part_open(world: World, turn: Turn, job: Job, host: str) -> None:
    """Mark a part as open. When all are, the lease can be sent to its first host."""
    parts = parts_by_host(job)
    parts[host].open = True
    waiting = [host for host, part in parts.items() if not part.open]
    if lease_of(job).withheld is None or lease_of(job).preparing != PARTS_PREPARATION:
        return  # it is sent, or more must be prepared: a runner may say twice that it has opened its part
    if waiting:
        job.reason = Reason("parts", f"waiting for {_named(waiting)} to be ready")
        return
    go_on(world, turn, job)


# ------------------------------------------------------------------ closing


def close_parts(world: World, turn: Turn, job: Job, ended: AttemptEnd, *, host: str) -> bool:
    """The attempt ended on its first host: have its parts closed. False: it has none."""
    lease = lease_of(job)
    for each, part in list(parts_by_host(job).items()):
        if not part.runner:
            drop_part(world, job, each)
            if (runner := world.runner_at.get(each)) is not None:
                # in case the runner opened it after all
                turn.effects.append(CloseParts(runner, [ref_of(job, lease)]))
    if lease.parts is None:
        return False
    lease.ended, lease.host = ended, host
    world.use(PartIndex).closing.add(job.id)
    for part in lease.parts.values():
        turn.effects.append(CloseParts(part.runner, [ref_of(job, lease)]))
    await_parts(world, turn, job)
    store_parts(world, turn)
    return True


def await_parts(world: World, turn: Turn, job: Job) -> None:
    """Set the state of a job that waits for its parts to close: LOST while one of their hosts is silent."""
    parts = parts_by_host(job)
    silent = [host for host, part in parts.items() if is_silent(world, part)]
    state = State.LOST if silent else State.FINISHING
    if job.state is not state:
        move(world, job, state)
    code = "kill_requested" if job.kill else "lost" if silent else "closing"
    if silent:
        why = f"it has ended, but perhaps not on {_named(silent)}, from which nothing is heard"
    else:
        why = f"it has ended; {_named(parts)} is being cleaned"
    job.reason = Reason(code, why)
    write(turn, job)


def is_silent(world: World, part: LeasePart) -> bool:
    """Is the runner of this part silent?"""
    holder = world.runners.get(part.runner)
    return holder is not None and holder.silent


def silent_hosts(world: World, job: Job) -> list[str]:
    """The hosts with processes of the job, perhaps, whose runner is silent."""
    lease = job.lease
    if lease is None:
        return []
    found = []
    if lease.ended is None and (first := world.runners.get(lease.runner)) is not None and first.silent:
        found.append(first.host)
    return found + [host for host, part in parts_by_host(job).items() if is_silent(world, part)]


def _named(hosts: Iterable[str]) -> str:
    names = sorted(hosts)
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")


# ------------------------------------------------------------------ across a restart


def store_parts(world: World, turn: Turn) -> None:
    """Write what the rows of attempts do not record about parts."""
    kept = []
    index = world.use(PartIndex)
    for id in sorted(index.closing | index.moved):
        job = world.jobs[id]
        lease = lease_of(job)
        assert lease.given is not None
        host = lease.host or world.runners[lease.runner].host
        holders = {each: part.runner for each, part in parts_by_host(job).items()}
        kept.append(
            KeptLease(
                id, job.attempt, lease.token, lease.runner, host, lease.leased_at, lease.started_at,
                job.learned, lease.given, holders, lease.ended,
            )
        )  # fmt: skip
    turn.changes.meta[PARTS] = msgspec.json.encode(kept).decode()


def kept_leases(text: str) -> dict[int, KeptLease]:
    """Decode what `store_parts` wrote, by job."""
    return {kept.job: kept for kept in msgspec.json.decode(text or "[]", type=list[KeptLease])}


def restore_parts(world: World, job: Job, holders: dict[str, str], *, mono: float) -> None:
    """Restore the parts of a lease. All may still be there until a runner reports otherwise."""
    add_parts(world, job, holders)
    for host, name in holders.items():
        if name and name not in world.runners:
            runner = world.runners[name] = Runner(name, host)
            runner.heard_at = mono


def first_holders(given: Given | None) -> dict[str, str]:
    """Host → runner that was asked first for the part there."""
    if given is None or len(given.runners) < 2:
        return {}  # written by a version without parts
    return dict(zip(lease_hosts(given), given.runners[1:], strict=True))


def after_clock_moved(world: World, turn: Turn, _by: float) -> None:
    """Store the new times of leases that only the stored parts have."""
    index = world.use(PartIndex)
    if index.closing or index.moved:
        store_parts(world, turn)


def _has_parts(_world: World, _job: Job, given: Given | None) -> bool:
    return bool(lease_hosts(given))


def drop_parts(world: World, turn: Turn, job: Job) -> None:
    """The job's lease is gone: its parts need not be remembered."""
    index = world.use(PartIndex)
    if job.id in index.closing or job.id in index.moved:
        index.closing.discard(job.id)
        index.moved.discard(job.id)
        store_parts(world, turn)


PREPARATION: Final = Preparation(name=PARTS_PREPARATION, wanted=_has_parts, begin=open_parts)
