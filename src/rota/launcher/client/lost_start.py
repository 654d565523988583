"""Finds the process that a launcher was starting when it died, or shows that there is none.

The launcher's children are this process's children by then, and none was reaped since.
"""

from __future__ import annotations

import time
from collections.abc import Container

from rota.launcher import procfs
from rota.launcher.base import Begun, CannotRun, Key
from rota.launcher.journal import Story
from rota.launcher.messages import MARK

#: A process that has not executed its program yet does not show its environment.
_PATIENCE_S = 5.0
#: Two clocks, rounded differently.
_SLACK = 1


def find_started(
    key: Key, mark: bytes, story: Story, *, launcher: int, serial: int, known: Container[int], asked_at: int
) -> Begun | None:
    """The process; None: it was not started. Raises `CannotRun` if neither can be shown.

    `mark`: the value of the variable by which its processes are known. `serial`: of the order.
    `known`: pids of other processes. `asked_at`: when the order was sent, in clock ticks
    since boot.
    """
    task = story.tasks.get(key)
    if task is None:
        return None
    for process in task.processes:
        if process.serial == serial:
            return Begun(process.pid, process.start_time)
    if task.intended is None or task.intended.serial != serial:
        return None
    give_up = time.monotonic() + _PATIENCE_S
    while True:
        young = _young_leaders(launcher, known, asked_at)
        unclear = False
        for seen in young:
            if seen.session == launcher:
                unclear = True  # it is about to become a leader and execute its program
            elif seen.alive:
                value = procfs.environ_value(seen.pid, MARK)
                if mark and value == mark:
                    return Begun(seen.pid, seen.start_time)
                unclear = unclear or value is None
        if not unclear or time.monotonic() > give_up:
            break
        time.sleep(0.01)
    # One that has ended already shows no environment.
    ended = [seen for seen in young if not seen.alive]
    if len(ended) == 1:
        return Begun(ended[0].pid, ended[0].start_time)
    if ended or unclear:
        raise CannotRun(None, "the launcher died while it started this", reason="lost", permanent=False)
    return None


def _young_leaders(launcher: int, known: Container[int], asked_at: int) -> list[procfs.Process]:
    """Children that are not known and as young as the order, and have a session of their own or still the dead
    launcher's."""
    found = (procfs.process(pid) for pid in procfs.OwnChildren().pids() if pid not in known)
    return [
        seen
        for seen in found
        if seen is not None and seen.session in (seen.pid, launcher) and seen.start_time >= asked_at - _SLACK
    ]
