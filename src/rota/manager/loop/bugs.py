"""Notes the bugs that the manager meets, durably, and says what follows from them (`core.bugs.ledger`)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeVar

from rota import __version__
from rota.core.bugs.ledger import BUGS, BugRecord, internal_error, is_quarantined, with_bug, with_effect_bug
from rota.core.bugs.undecided import Undecided
from rota.core.changes import Changes
from rota.core.events import Asker, EntrySetAside
from rota.core.rows import EventRow
from rota.core.world import World
from rota.errors import Bug, RotaError
from rota.manager.loop import clock
from rota.manager.peers.peer import Peer
from rota.store.base import Store

T = TypeVar("T")

log = logging.getLogger("rota.manager")

#: Lines of a job's story in the ledger.
_STORY: Final = 50
#: How often bugs at one place that change nothing are stored, in seconds.
_KEEP_EVERY_S: Final = 60.0


class BugKeeper:
    """Writes the ledger of one manager. Belongs to the loop's thread."""

    def __init__(self, world: World, store: Store, *, keep: Callable[[str, str], None]) -> None:
        self._world = world
        self._store = store
        self._keep = keep  #: stores a fact with the next batch
        self._kept_at: dict[str, float] = {}  #: place → when a bug there was last stored
        self._ready_at = time.monotonic()

    def ready(self) -> None:
        """The manager listens from now on."""
        self._ready_at = time.monotonic()

    async def note(self, bug: Undecided, peers: Mapping[int, Peer]) -> None:
        """Store a bug that kept the engine from deciding; nothing else is being committed. Then answer the request
        that met it, if that is not decided again. Raises what the store raises."""
        event, world = bug.event, self._world
        story = await asyncio.to_thread(self._story, bug) if bug.job else ()
        for line in story:
            log.error("job %d: %s", bug.job, line)
        world.bugs = with_bug(
            world.bugs,
            bug,
            at=clock.now(),
            ready_s=time.monotonic() - self._ready_at,
            version=__version__,
            trace="".join(traceback.format_exception(bug.__cause__)),
            story=story,
        )
        changes = Changes()
        changes.meta[BUGS] = world.bugs.text()
        if isinstance(event, EntrySetAside) and event.job:
            why = f"left out of all decisions because of a bug; its runner said: {event.said}"
            changes.events.append(EventRow(clock.now(), event.job, event.lease.attempt, "frozen", why))
        await asyncio.to_thread(self._store.commit, changes)
        if event is None or not isinstance(by := getattr(event, "by", None), Asker):
            return
        asker = peers.get(by.connection)
        if asker is not None and is_quarantined(world.bugs, event):
            asker.fail(by.n, internal_error(event))

    def _story(self, bug: Undecided) -> tuple[str, ...]:
        """The story of the job concerned: what is stored, and what was dropped with the batch."""
        lines = [(each.at, each.attempt, each.kind, each.text) for each in self._store.events(bug.job)]
        lines += [
            (each.at, each.attempt, each.kind, f"{each.text} (dropped)")
            for each in bug.dropped
            if each.job == bug.job
        ]
        return tuple(
            f"{datetime.fromtimestamp(at, UTC).isoformat()} attempt {attempt} {kind}: {text}"
            for at, attempt, kind, text in lines[-_STORY:]
        )

    def met(self, place: str, error: BaseException) -> None:
        """Count a bug that has changed nothing of what was decided: the manager goes on. It is stored with the
        next batch; more of them at the same place only now and then, for they may come by the thousand."""
        trace = "".join(traceback.format_exception(error))[-2000:]
        record = BugRecord(
            clock.now(), place, f"{type(error).__name__}: {error}", trace, version=__version__, effect=True
        )
        self._world.bugs = with_effect_bug(self._world.bugs, record)
        now = time.monotonic()
        if now - self._kept_at.get(place, -_KEEP_EVERY_S) >= _KEEP_EVERY_S:
            self._kept_at[place] = now
            self._keep(BUGS, self._world.bugs.text())

    @contextlib.contextmanager
    def counted(self, place: str) -> Iterator[None]:
        """Log and count the bugs of this block; what comes after it goes on."""
        try:
            yield
        except Exception as error:
            log.exception("%s failed", place)
            if _is_bug(error):
                self.met(place, error)

    def met_in_callback(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log and count an error in a task or a callback that nobody else takes notice of."""
        error = context.get("exception")
        what = str(context.get("message") or "an error in the loop").partition("\n")[0]
        log.error("%s", what, exc_info=error)
        if error is not None and _is_bug(error):
            self.met(f"callback {_function(error)}", error)


def _is_bug(error: BaseException) -> bool:
    """Nobody foresaw it, and it is no trouble of the machine."""
    return isinstance(error, Bug) or not isinstance(error, RotaError | OSError)


def _function(error: BaseException) -> str:
    """Where an error was raised: the file and the function."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{Path(frames[-1].filename).name} {frames[-1].name}" if frames else "unknown"


def tried_twice(recovery: Callable[[], T]) -> T:
    """Recover; after a bug once more, from the same store. Raises the second one."""
    try:
        return recovery()
    except Exception as error:
        if isinstance(error, RotaError) and not isinstance(error, Bug):
            raise
        log.exception("the recovery failed; it is tried once more")
    return recovery()
