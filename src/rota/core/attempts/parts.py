"""Jobs over several hosts: a lease has a part on every host beside its first.

The lease is sent to the runner of its first host only when every other host has opened its part. When the
attempt is over there, its end is recorded, and the job is `finishing` until every host has said that nothing
of it is left: only then is anything that it held free. Whether something is left of a part is never guessed: its
runner says so, or there is proof that the runner and everything it started are gone.

Who decides what becomes of the job then is `core.attempts.attempt`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec
from msgspec import Struct

from rota.core.attempts.leases import LeaseRef, PartOpened
from rota.core.effects import CloseParts, SendParts, SendWork
from rota.core.jobs.job import Ended, Job, Lease, Part, Reason
from rota.core.states import State
from rota.core.turn import Turn
from rota.core.world import Runner, World, move, write
from rota.plan.placement import Given
from rota.plan.size import Size

#: The key of `Changes.meta` under which is kept what the rows of attempts do not say about parts.
PARTS: Final = "parts"
#: So many hosts are named in a sentence.
_NAMED = 3


class KeptLease(Struct, frozen=True, array_like=True, gc=False):
    """A lease whose attempt has ended and whose parts have not, or of which a part went to another runner."""

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
    ended: Ended | None = None


# ------------------------------------------------------------------ who has a part


def lease_hosts(given: Given | None) -> tuple[str, ...]:
    """The hosts beside the first on which an attempt with this has a part."""
    if given is None or given.elsewhere:
        return ()  # nothing happens on the hosts of one that runs elsewhere
    return tuple(host for host, _cores in given.nodes[1:])


def with_runners(world: World, given: Given | None, runner: Runner) -> Given | None:
    """What was given, with the runners that hold a part of it, where it has parts."""
    others = lease_hosts(given)
    if given is None or not others:
        return given
    names = (runner.id, *(world.runner_at.get(host, "") for host in others))
    return msgspec.structs.replace(given, runners=names)


def take_parts(world: World, job: Job, holders: dict[str, str]) -> None:
    """The job has a part on each of these hosts, held by this runner (empty: by nobody yet)."""
    lease_of(job).parts = {host: Part(runner) for host, runner in holders.items()}
    for host in holders:
        world.parts_at.setdefault(host, set()).add(job.id)


def drop_part(world: World, job: Job, host: str) -> None:
    """Nothing of the job is on this host, nor will be."""
    lease, parts = lease_of(job), parts_by_host(job)
    del parts[host]
    there = world.parts_at[host]
    there.discard(job.id)
    if not there:
        del world.parts_at[host]
    if not parts:
        lease.parts = None


def forget_part(world: World, turn: Turn, job: Job, host: str) -> None:
    """The same for a job that goes on; a restart must know it as well."""
    drop_part(world, job, host)
    world.moved_parts.add(job.id)
    remember(world, turn)


def release_part(world: World, turn: Turn, job: Job, host: str) -> None:
    """Nobody has this part any more, but somebody should."""
    part = parts_by_host(job)[host]
    part.runner, part.open = "", False
    world.moved_parts.add(job.id)
    remember(world, turn)


def parts_of(world: World, runner: Runner) -> list[Job]:
    """The jobs of which this runner holds a part."""
    return [
        job
        for id in sorted(world.parts_at.get(runner.host, ()))
        if (part := part_at(job := world.jobs[id], runner.host)) is not None and part.runner == runner.id
    ]


def part_at(job: Job, host: str) -> Part | None:
    return parts_by_host(job).get(host)


def parts_by_host(job: Job) -> dict[str, Part]:
    return job.lease.parts if job.lease is not None and job.lease.parts is not None else {}


def lease_of(job: Job) -> Lease:
    """The lease of a job that has one."""
    assert job.lease is not None
    return job.lease


def withheld_seats(world: World, runner: Runner) -> set[int]:
    """The seats of which a runner does not know yet."""
    seats = (lease_of(world.jobs[id]).withheld for id in runner.leases)
    return {seat.seat for seat in seats if seat is not None}


def part_named(world: World, runner: Runner, ref: LeaseRef | PartOpened) -> Job | None:
    """The job, if this is said of a part of its valid lease on this runner's host."""
    job = world.jobs.get(ref.job)
    if job is None or job.lease is None or job.attempt != ref.attempt or job.lease.token != ref.token:
        return None
    return job if part_at(job, runner.host) is not None else None


def ref_of(job: Job, lease: Lease) -> tuple[int, int, int]:
    return job.id, job.attempt, lease.token


def all_leased(world: World) -> Iterator[tuple[Job, str]]:
    """Every job that holds something, with its first host: those that only wait for their parts as well."""
    for runner in world.runners.values():
        for id in runner.leases:
            yield world.jobs[id], runner.host
    for id in world.closing:
        yield world.jobs[id], lease_of(world.jobs[id]).host


# ------------------------------------------------------------------ opening


def withhold(world: World, turn: Turn, job: Job) -> None:
    """Have the parts of a new lease opened before it is sent."""
    parts = parts_by_host(job)
    if job.state is not State.STARTING:
        move(world, job, State.STARTING)
    job.reason = Reason("parts", f"waiting for {_named(parts)} to be ready")
    for host in parts:
        ask(world, turn, job, host)


def ask(world: World, turn: Turn, job: Job, host: str) -> None:
    """Have the runner of this host, if there is one, open the job's part."""
    part, lease = parts_by_host(job)[host], lease_of(job)
    runner = world.runner_at.get(host)
    if runner is None or world.runners[runner].silent:
        return  # whoever comes there is asked
    part.runner, part.open = runner, False
    turn.effects.append(SendParts(runner, [job], [ref_of(job, lease)]))
    if runner not in (lease.given.runners if lease.given is not None else ()):
        world.moved_parts.add(job.id)
        remember(world, turn)


def opened(turn: Turn, job: Job, host: str) -> None:
    """A host is ready. When all are, the lease goes to the first."""
    parts, lease = parts_by_host(job), lease_of(job)
    parts[host].open = True
    seat = lease.withheld
    waiting = [host for host, part in parts.items() if not part.open]
    if seat is None:
        return
    if waiting:
        job.reason = Reason("parts", f"waiting for {_named(waiting)} to be ready")
        return
    lease.withheld = None
    if job.state is State.STARTING:
        job.reason = None
    turn.effects.append(SendWork(lease.runner, [seat], [job], [ref_of(job, lease)]))


# ------------------------------------------------------------------ closing


def close_parts(world: World, turn: Turn, job: Job, ended: Ended, *, host: str) -> bool:
    """The attempt is over on its first host: have its parts closed. False: there are none."""
    lease = lease_of(job)
    for each, part in list(parts_by_host(job).items()):
        if not part.runner:
            drop_part(world, job, each)
            if (runner := world.runner_at.get(each)) is not None:
                turn.effects.append(CloseParts(runner, [ref_of(job, lease)]))  # should it have it after all
    if lease.parts is None:
        return False
    lease.ended, lease.host = ended, host
    world.closing.add(job.id)
    for part in lease.parts.values():
        turn.effects.append(CloseParts(part.runner, [ref_of(job, lease)]))
    await_parts(world, turn, job)
    remember(world, turn)
    return True


def await_parts(world: World, turn: Turn, job: Job) -> None:
    """Say for which hosts a job waits whose attempt is over; it is lost while one of them is silent."""
    parts = parts_by_host(job)
    silent = [host for host, part in parts.items() if is_silent(world, part)]
    state = State.LOST if silent else State.FINISHING
    if job.state is not state:
        move(world, job, state)
    code = "kill_requested" if job.kill else "lost" if silent else "closing"
    if silent:
        why = f"it has ended, but perhaps not on {_named(silent)}, of which nothing is heard"
    else:
        why = f"it has ended; {_named(parts)} is being cleaned"
    job.reason = Reason(code, why)
    write(turn, job)


def is_silent(world: World, part: Part) -> bool:
    holder = world.runners.get(part.runner)
    return holder is not None and holder.silent


def silent_hosts(world: World, job: Job) -> list[str]:
    """Of the hosts on which something of the job may be, those whose runner does not answer."""
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


def remember(world: World, turn: Turn) -> None:
    """Write down what the rows of attempts do not say."""
    kept = []
    for id in sorted(world.closing | world.moved_parts):
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
    """The opposite, after a restart, by job."""
    return {kept.job: kept for kept in msgspec.json.decode(text or "[]", type=list[KeptLease])}


def restore_parts(world: World, job: Job, holders: dict[str, str], *, mono: float) -> None:
    """The parts of a lease that was out before a restart: all may be there until somebody says otherwise."""
    take_parts(world, job, holders)
    for host, name in holders.items():
        if name and name not in world.runners:
            runner = world.runners[name] = Runner(name, host)
            runner.heard_at = mono


def first_holders(given: Given | None) -> dict[str, str]:
    """Host → the runner that was first asked for the part there."""
    if given is None or len(given.runners) < 2:
        return {}  # leases of older versions have no parts
    return dict(zip(lease_hosts(given), given.runners[1:], strict=True))
