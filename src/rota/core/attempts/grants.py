"""Grant leases: send the jobs that the placement chose to their runners, with the seats opened for them.

A lease is withheld until everything that must precede it is done (`core.attempts.preparation`).
"""

from __future__ import annotations

import msgspec

from rota.core.attempts.noop_jobs import begin_noop
from rota.core.attempts.part_index import PartIndex
from rota.core.attempts.parts import add_parts, lease_hosts, with_runners
from rota.core.attempts.preparation import go_on, must_prepare
from rota.core.attempts.seats import take_lease, take_seat
from rota.core.effects import SendWork
from rota.core.gangs.gang_state import chosen
from rota.core.jobs.job import Lease
from rota.core.learning.estimate import resize
from rota.core.machines.hold_records import Holds
from rota.core.machines.machine_use import job_took
from rota.core.machines.provision_records import Provisions
from rota.core.rows import AttemptRow
from rota.core.site.plan_facts import inform
from rota.core.states import State
from rota.core.turn import Turn
from rota.core.world import World, move
from rota.plan.placement.decisions import Opened, Placed


def grant_leases(world: World, turn: Turn) -> None:
    """Ask the placement which jobs begin now, and lease them. All that begin now are sent in one batch."""
    if world.paused:
        return
    again = _seats_for_unseated(world, turn)
    inform(world, turn.wall)
    decided = world.placement.place(turn.mono, turn.wall)
    if world.placement.resized:
        resize(world, world.placement.take_resized())
    if not again and not decided:
        return
    work: dict[str, SendWork] = {}
    for seat in again:
        runner = world.runners[world.runner_at[seat.host]]
        take_seat(runner, seat.seat, seat.size)
        _work_for(work, runner.id).seats.append(seat)
    for decision in decided:
        for placed in decision:
            _lease(world, turn, placed, work)
    turn.effects.extend(work.values())


def _work_for(work: dict[str, SendWork], runner: str) -> SendWork:
    found = work.get(runner)
    if found is None:
        found = work[runner] = SendWork(runner, [], [], [])
    return found


def _lease(world: World, turn: Turn, placed: Placed, work: dict[str, SendWork]) -> None:
    """Lease one job to the runner of its host; what is to be sent is added to `work`."""
    id, given, seat = placed.job, placed.given, placed.seat
    job = world.jobs[id]
    noop = given is not None and given.elsewhere and "noop" in job.spec.types
    others = lease_hosts(given) if given is not None else ()
    if others:
        world.use(PartIndex)
    if job.spec.gang:
        chosen(world, job)
    if job.spec.provision:
        world.use(Provisions)
    if job.spec.reserve:
        world.use(Holds)
    # The seat of a withheld lease is withheld with it: a runner gives back a seat without work.
    preparations = world.points.preparation
    withheld = seat if preparations and not noop and must_prepare(world, job, given) else None
    if seat is not None:
        holder = world.runners[world.runner_at[seat.host]]
        take_seat(holder, seat.seat, seat.size)
        if withheld is None:
            _work_for(work, holder.id).seats.append(seat)
    if given is not None and given.promised is not None:
        turn.note(id, job.attempt + 1, "fewer", given.fewer)
    if given is not None and noop:
        begin_noop(world, turn, job, placed.host, given)
        return
    runner = world.runners[world.runner_at[placed.host]]
    move(world, job, State.SCHEDULED)
    job.attempt += 1
    token = int(turn.random() * (1 << 53)) + 1
    given = with_runners(world, given, runner)
    job.lease = Lease(token=token, runner=runner.id, leased_at=turn.wall, given=given, withheld=withheld)
    if given is not None and given.size != job.size:
        job.learned = given.size
    take_lease(runner, job)
    job_took(world, job, placed.host)
    size = msgspec.json.encode(job.learned).decode() if job.learned is not None else None
    what = msgspec.json.encode(given).decode() if given is not None else None
    turn.changes.attempts.append(
        AttemptRow(id, job.attempt, token, runner.id, placed.host, turn.wall, job.spec_id, size, what)
    )
    if withheld is not None:
        if others:
            add_parts(world, job, dict.fromkeys(others, ""))
        go_on(world, turn, job)
        return
    send = _work_for(work, runner.id)
    send.jobs.append(job)
    send.leases.append((id, job.attempt, token))


def _seats_for_unseated(world: World, turn: Turn) -> list[Opened]:
    """Open seats for leases that have none, as far as there is room.

    A lease sent ahead of need may find that its seat was given back. One that merely waits for a seat gets its own
    too.
    """
    opened = []
    for host, id in world.runner_at.items():
        for size, number in world.runners[id].unseated.items():
            while number > 0 and (seat := world.placement.seat(host, size, turn.mono)):
                opened.append(seat)
                number -= 1
    return opened
