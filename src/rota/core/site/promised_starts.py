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
from rota.core.world import Moves, World
from rota.plan.reasons import Moved

MOVED: Final = "promise_moved"
#: The least time between two lines about one job.
APART_S: Final = 1.0

_GATHERED: Final = re.compile(r"(\d+) times, last: (.*)", re.DOTALL)


def tell_moved(world: World, turn: Turn, moved: list[Moved]) -> None:
    """These promises were moved just now."""
    told, untold = world.promises_told, world.promises_untold
    for each in moved:
        job = world.jobs.get(each.job)
        if job is None or job.state is not State.READY:
            continue
        if each.job not in told:
            told[each.job] = turn.wall
            turn.note(each.job, job.attempt, MOVED, each.cause)
            continue
        times = untold[each.job].times if each.job in untold else 0
        untold[each.job] = Moves(times + 1, turn.wall, job.attempt, each.cause)


def tell_gathered(world: World, turn: Turn) -> None:
    """Tell what was gathered of those whose second is over.

    Who does not wait any more needs no promise: of it nothing more is told.
    """
    told, untold = world.promises_told, world.promises_untold
    over = []
    for id, at in told.items():  # in the order in which they were told
        if at <= turn.wall < at + APART_S:
            break
        over.append(id)  # or the clock was set back
    for id in over:
        del told[id]
        moves = untold.pop(id, None)
        job = world.jobs.get(id)
        if moves is not None and job is not None and job.state is State.READY:
            told[id] = turn.wall
            text = gathered(moves.times, moves.cause)
            turn.changes.events.append((moves.at, id, moves.attempt, MOVED, text))


def gathered(times: int, cause: str) -> str:
    """The text of a line that stands for several."""
    return cause if times == 1 else f"{times} times, last: {cause}"


def parts_of(text: str) -> tuple[int, str]:
    """The opposite of `gathered`."""
    found = _GATHERED.fullmatch(text)
    return (int(found[1]), found[2]) if found is not None else (1, text)
