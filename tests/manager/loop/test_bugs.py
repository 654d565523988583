"""A bug is stored before anything follows from it, with the story of the job concerned."""

from __future__ import annotations

import asyncio

from rota.core.bugs.ledger import BUGS, ledger_from
from rota.core.bugs.undecided import undecided
from rota.core.changes import Changes
from rota.core.rows import EventRow
from rota.core.world import World
from rota.errors import IllegalTransition
from rota.manager.loop import clock
from rota.manager.loop.bugs import BugKeeper
from rota.plan.dispatch.planning import Planning
from rota.store.memory.store import MemoryStore


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
