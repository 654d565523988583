"""The feed: everything that changes, batched for a moment.

Without a listener nothing is gathered. The usual listener is the gateway, which forwards the feed to all pages.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Final

from rota.core.jobs.report_groups import by_name, names_of
from rota.core.states import State
from rota.core.world import MOST_TOUCHED, NO_JOB, OPEN, World
from rota.errors import BadInput
from rota.manager.loop import clock
from rota.manager.peers.peer import Peer
from rota.wire import codec
from rota.wire import messages as m
from rota.wire.views import FeedView

_GATHER_S: Final = 0.1
#: Looking for changes takes at most this fraction of the time, with any number of groups.
_SHARE: Final = 20
#: Groups that are listed one by one; beyond this the feed only says that they are many.
_MOST_GROUPS: Final = 500
#: What one connection may have open at once.
_MOST_FEEDS: Final = 8

_Counts = dict[str, int]


class Feeds:
    """The listeners, and the state that they were sent last."""

    def __init__(
        self,
        world: World,
        *,
        committed: Callable[[], Awaitable[None]],
        subjects: Callable[[], Mapping[str, object]] = dict,
    ) -> None:
        """`subjects`: what pages show of features (`FeatureService.subjects`)."""
        self._world = world
        self._of_features = subjects
        self._committed = committed
        self._open: dict[tuple[int, int], Peer] = {}
        self._changed = False
        self._telling: asyncio.Task[None] | None = None
        self._groups: dict[str, tuple[int, ...]] = {}
        self._subjects: dict[str, object] = {}

    async def open(self, peer: Peer, n: int) -> None:
        """Begin to send: the present state first, then what changes."""
        if sum(1 for id, _n in self._open if id == peer.id) >= _MOST_FEEDS:
            raise BadInput(f"more than {_MOST_FEEDS} feeds are open", hint="close one first")
        if not self._open:
            self._world.touched = {}
            self._groups = self._counted()
            self._subjects = self._looked()
        self._open[peer.id, n] = peer
        first = codec.body(self._view(self._counted()))
        await self._committed()
        peer.send(m.Item(n, first))

    def close(self, peer: Peer, n: int | None = None) -> None:
        """Close one feed of a peer, or all of a peer that was disconnected."""
        for key in [key for key in self._open if key[0] == peer.id and n in (None, key[1])]:
            del self._open[key]
        if not self._open:
            self._world.touched = None

    def changed(self) -> None:
        """A batch was committed: send changes soon."""
        if not self._open:
            return
        self._changed = True
        if self._telling is None:
            self._telling = asyncio.get_running_loop().create_task(self._flush())

    async def _flush(self) -> None:
        try:
            pause = _GATHER_S
            while self._changed and self._open:
                await asyncio.sleep(pause)
                self._changed = False
                begun = time.perf_counter()
                news = self._news()
                pause = max(_GATHER_S, (time.perf_counter() - begun) * _SHARE)
                if news is not None:
                    await self._committed()  # the news may contain what is decided but not yet on disk
                    body = codec.body(news)
                    for (_id, n), peer in list(self._open.items()):
                        peer.send(m.Item(n, body))
        finally:
            self._telling = None

    def _news(self) -> FeedView | None:
        world = self._world
        touched, world.touched = world.touched or {}, {}
        groups, before = self._counted(), self._groups
        changed = {name: counts for name, counts in groups.items() if before.get(name) != counts}
        changed |= dict.fromkeys(before.keys() - groups.keys(), ())
        subjects, former = self._looked(), self._subjects
        what = [name for name, value in subjects.items() if former.get(name) != value]
        self._groups, self._subjects = groups, subjects
        if not touched and not changed and not what:
            return None
        view = self._view(groups)
        view.what = what
        view.many = len(touched) > MOST_TOUCHED or len(changed) > _MOST_GROUPS
        if not view.many:
            view.groups = {name: _by_state(counts) for name, counts in _of_names(changed, groups).items()}
            view.jobs = [(id, self._label(id, *seen), seen[1]) for id, seen in touched.items()]
        return view

    def _view(self, groups: dict[str, tuple[int, ...]]) -> FeedView:
        """How many jobs there are, and nothing that changed."""
        return FeedView(
            at=datetime.fromtimestamp(clock.now(), UTC),
            counts=_by_state([sum(column) for column in zip(*groups.values(), strict=True)]),
            groups={},
            jobs=[],
            many=False,
            what=[],
        )

    def _label(self, id: int, state: State, _attempt: int) -> str:
        outcome = self._world.outcome(id)
        if outcome == NO_JOB:
            return "removed"
        job = self._world.jobs.get(id)
        if job is not None:
            return job.state.label
        return state.label if outcome == OPEN else State(outcome).label

    def _counted(self) -> dict[str, tuple[int, ...]]:
        return {name: tuple(counts) for name, counts in self._world.counts.items() if any(counts)}

    def _looked(self) -> dict[str, object]:
        world = self._world
        return {
            "runners": {(runner.id, runner.connected) for runner in world.runners.values()},
            "site": world.site_version,
            "manager": (world.paused, world.draining),
            "limits": tuple(world.placement.limits),
            **self._of_features(),
        }


def _of_names(changed: Iterable[str], groups: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """Counts by group name. A job may be in several groups, and counts in each."""
    names = {name for group in changed for name in names_of(group)}
    if all(name in changed for name in names) and not any(len(names_of(group)) > 1 for group in groups):
        return {name: groups.get(name, ()) for name in names}
    texts = by_name(groups)
    return {
        name: tuple(map(sum, zip(*(groups[text] for text in texts.get(name, ())), strict=True))) for name in names
    }


def _by_state(counts: list[int] | tuple[int, ...]) -> _Counts:
    return {state.label: counts[state] for state in State if counts and counts[state]}
