"""Grant leases: what the placement chose goes to the runners, with the seats it opened for that."""

from __future__ import annotations

import msgspec

from rota.core.effects import SendWork
from rota.core.job import Lease
from rota.core.seating import take_lease, take_seat
from rota.core.states import State
from rota.core.turn import Turn
from rota.core.world import World, move
from rota.plan.placement import Opened


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
        take_seat(runner, seat.seat, seat.size)
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
