"""Promises that were moved, told in the stories of jobs: at most one line a second for each job.

A long queue under a plan moves as a whole, and again with the next event. The first move of a job is told at once;
those of the second after it are gathered, and the last of them is told, with their number, when it is over. What
is gathered is only in memory: after a crash a story lacks at most the moves of its last second.
"""

from __future__ import annotations

import re
from typing import Final

from rota.core.states import State
from rota.core.turn import Turn
from rota.core.world import PendingMoves, World
from rota.plan.reasons import Moved

MOVED: Final = "promise_moved"
#: The least time between two lines about one job.
APART_S: Final = 1.0

_GATHERED: Final = re.compile(r"(\d+) times, last: (.*)", re.DOTALL)


def note_moves(world: World, turn: Turn, moved: list[Moved]) -> None:
    """These promises were moved just now."""
    noted, pending = world.moves_noted, world.moves_pending
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
    """Tell what was gathered of those whose second is over.

    Who does not wait any more needs no promise: of it nothing more is noted.
    """
    noted, pending = world.moves_noted, world.moves_pending
    over = []
    for id, at in noted.items():  # in the order in which they were noted
        if at <= turn.wall < at + APART_S:
            break
        over.append(id)  # or the clock was set back
    for id in over:
        del noted[id]
        moves = pending.pop(id, None)
        job = world.jobs.get(id)
        if moves is not None and job is not None and job.state is State.READY:
            noted[id] = turn.wall
            text = moves_text(moves.times, moves.cause)
            turn.changes.events.append((moves.at, id, moves.attempt, MOVED, text))


def moves_text(times: int, cause: str) -> str:
    """The text of a line that stands for several."""
    return cause if times == 1 else f"{times} times, last: {cause}"


def parse_moves(text: str) -> tuple[int, str]:
    """The opposite of `moves_text`."""
    found = _GATHERED.fullmatch(text)
    return (int(found[1]), found[2]) if found is not None else (1, text)
