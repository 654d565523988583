"""The directories of launchers, with what those of a dead agent left there."""

from __future__ import annotations

import os
import re
import signal

from rota.launcher import procfs
from rota.launcher.base import Key

#: In the directory of a runner whose processes all are started by launchers with directories of their own.
EPOCH = "epoch"
_LAUNCHER = re.compile(r"launcher-(\d+)\.(\d+)")


def directories(directory: str) -> list[str]:
    """The directories of launchers that still exist, oldest first."""
    found = [
        (int(match[1]), int(match[2]), name)
        for name in os.listdir(directory)
        if (match := _LAUNCHER.fullmatch(name))
    ]
    return [f"{directory}/{name}" for _, _, name in sorted(found)]


def directory_of(directory: str, epoch: int, number: int) -> str:
    """Of a launcher that an agent of this epoch starts. No other ever gets it: one whose agent was killed at
    once may come late, and must not find the files of another."""
    return f"{directory}/launcher-{epoch}.{number}"


def leases(directory: str) -> set[Key] | None:
    """Leases for which launchers have started something, or were about to, and that were not released. None: this
    runner has none, or their journals do not tell.

    A launcher that left because it held nothing has removed its directory, the journal before the rest.
    """
    if not os.path.exists(f"{directory}/{EPOCH}"):
        return None
    # Loaded only where it is used: a runner of the local pool must start quickly.
    from rota.launcher import journal

    found: set[Key] = set()
    for path in directories(directory):
        try:
            story = journal.read(path)
        except FileNotFoundError:
            continue
        except OSError:
            return None
        if not story.whole:
            return None
        found |= story.tasks.keys()
    return found


def left_alone(directory: str) -> str:
    """Why this runner is neither succeeded nor settled: a launcher of it lives that only another release can talk
    to. Empty: nothing of the kind."""
    for path in directories(directory):
        from rota.launcher.client.processes import other_version

        why = other_version(path)
        if why:
            runner, launcher = os.path.basename(directory), os.path.basename(path)
            what_next = "its jobs are left running; an agent of its release can go on with them"
            return f"{launcher} of runner {runner}: {why}: {what_next}"
    return ""


def end(path: str) -> None:
    """KILL a launcher that lives in this directory and that no agent can have."""
    from rota.launcher import journal

    try:
        began = journal.read(path).began
        if began is not None and procfs.lives(began.pid, began.start_time):
            os.kill(began.pid, signal.SIGKILL)
    except OSError:
        pass
