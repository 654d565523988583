"""A bug is stored before anything follows from it, with the story of the job concerned."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from rota.client.endpoint import find
from rota.core.bugs.ledger import BUGS, ledger_from
from rota.core.bugs.undecided import undecided
from rota.core.changes import Changes
from rota.core.rows import EventRow
from rota.core.world import World
from rota.errors import IllegalTransition, NoManager
from rota.home import Home, ManagerFile
from rota.manager.loop import clock
from rota.manager.loop.bugs import BugKeeper
from rota.manager.loop.reexecution import write_manager_file
from rota.plan.dispatch.planning import Planning
from rota.store.memory.store import MemoryStore
from tests.deployment import wait_until


def test_the_story_of_the_job_is_stored_with_the_bug() -> None:
    clock.begin(1000.0)
    store, world = MemoryStore(), World(Planning())
    changes = Changes()
    changes.events += [
        EventRow(1.0, 7, 1, "lost", "its runner is silent"),
        EventRow(2.0, 8, 1, "held", "another job"),
    ]
    store.commit(changes)
    error = IllegalTransition("lost → held is not allowed")
    error.job = 7
    bug = undecided("granting", error)
    bug.dropped = [EventRow(3.0, 7, 1, "revived", "its runner is back")]
    asyncio.run(BugKeeper(world, store, keep=lambda _key, _value: None).note(bug, {}))
    (record,) = ledger_from(store.load().meta[BUGS], version=world.bugs.version).records
    assert [line.partition(" ")[2] for line in record.story] == [
        "attempt 1 lost: its runner is silent",
        "attempt 1 revived: its runner is back (dropped)",
    ]
    assert "IllegalTransition" in record.trace


def test_a_manager_that_makes_its_socket_anew_is_waited_for(tmp_path: Path) -> None:
    home = Home(tmp_path)
    sleeper = [sys.executable, "-c", "input()", "rota.manager", str(home)]  # named like a manager of this home
    with subprocess.Popen(sleeper, stdin=subprocess.PIPE) as process:
        write_manager_file(home, ManagerFile(pid=process.pid, starts_anew=True))
        wait_until(home.being_reexecuted, "it has its name")
        found = find(home, environ={})
        assert found.socket == str(home.socket)
        assert found.comes_back
        process.kill()
    with pytest.raises(NoManager):
        find(home, environ={})
