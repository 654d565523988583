"""Moved promises in the stories of jobs: at most one line per job and second.

A long queue moves as a whole, and again with the next event. The first move of a job is noted at once. Moves in
the following second are counted, and the last one is noted with their number when the second is over. Counts are
only in memory: after a crash a story lacks at most one second of moves.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from rota.core.feature import Feature
from rota.core.rows import EventRow
from rota.core.states import State
from rota.core.turn import Turn
from rota.core.world import World
from rota.plan.reasons import Moved

MOVED: Final = "promise_moved"
#: Least time between two such lines of one job.
APART_S: Final = 1.0

_GATHERED: Final = re.compile(r"(\d+) times, last: (.*)", re.DOTALL)


class PendingMoves(NamedTuple):
    """Moves of one promised start that the job's story does not have yet."""

    times: int
    at: float
    attempt: int
    cause: str


class PromisedStarts:
    """State of the feature `promised starts`. Both are dropped after a second."""

    __slots__ = ("noted", "pending")

    def __init__(self) -> None:
        self.noted: dict[int, float] = {}  #: job → when its story last mentioned a moved promise
        self.pending: dict[int, PendingMoves] = {}  #: moves since then


def note_moves(world: World, turn: Turn, moved: list[Moved]) -> None:
    """Note moves that just happened, or count them as pending."""
    state = world.use(PromisedStarts)
    noted, pending = state.noted, state.pending
    for each in moved:
        job = world.jobs.get(each.job)
        if job is None or job.state is not State.READY:
            continue
        if each.job not in noted:
            noted[each.job] = turn.wall
            turn.note(each.job, job.attempt, MOVED, each.cause)
            continue
        times = pending[each.job].times if each.job in pending else 0
        pending[each.job] = PendingMoves(times + 1, turn.wall, job.attempt, each.cause)


def note_pending_moves(world: World, turn: Turn) -> None:
    """Note pending moves whose second is over.

    Dropped for jobs that no longer wait: they need no promise.
    """
    state = world.use(PromisedStarts)
    noted, pending = state.noted, state.pending
    over = []
    for id, at in noted.items():  # oldest first
        if at <= turn.wall < at + APART_S:
            break
        over.append(id)  # also if the clock was set back
    for id in over:
        del noted[id]
        moves = pending.pop(id, None)
        job = world.jobs.get(id)
        if moves is not None and job is not None and job.state is State.READY:
            noted[id] = turn.wall
            text = moves_text(moves.times, moves.cause)
            turn.changes.events.append(EventRow(moves.at, id, moves.attempt, MOVED, text))


def moves_text(times: int, cause: str) -> str:
    """The text for a number of moves."""
    return cause if times == 1 else f"{times} times, last: {cause}"


def parse_moves(text: str) -> tuple[int, str]:
    """Parse what `moves_text` returned."""
    found = _GATHERED.fullmatch(text)
    return (int(found[1]), found[2]) if found is not None else (1, text)


def _forget(world: World, _turn: Turn, _by: float) -> None:
    world.use(PromisedStarts).noted.clear()
    world.use(PromisedStarts).pending.clear()


FEATURE = Feature(name="promised starts", state=PromisedStarts, after_step=note_pending_moves, clock_moved=_forget)
