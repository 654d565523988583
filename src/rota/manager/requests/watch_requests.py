"""Opens watches: finds their jobs, and reports which have settled already."""

from __future__ import annotations

from typing import Final

from rota.core.jobs.outcome import Outcome
from rota.core.states import TERMINAL
from rota.core.world import NO_JOB, World
from rota.errors import BadInput
from rota.manager.loop.readers import Readers
from rota.manager.loop.turns import TurnLoop
from rota.manager.output.outputs import SegmentFiles
from rota.manager.peers.peer import Peer
from rota.manager.requests.selection import Selection
from rota.manager.views.queries import Queries
from rota.manager.views.rows import outcome_of
from rota.manager.watch.tails import OutputTails
from rota.manager.watch.watcher import Watcher
from rota.manager.watch.watches import Watches
from rota.store.base import Store
from rota.wire import messages as m

#: What one connection may have open at once.
_WATCHES_MAX: Final = 256
#: Jobs that are looked up at once.
_SLICE: Final = 10_000


class WatchRequests:
    """Opens watches."""

    def __init__(
        self,
        world: World,
        store: Store,
        *,
        selection: Selection,
        queries: Queries,
        outputs: SegmentFiles,
        watches: Watches,
        tails: OutputTails,
        turns: TurnLoop,
        readers: Readers,
    ) -> None:
        self._world = world
        self._store = store
        self._selection = selection
        self._queries = queries
        self._outputs = outputs
        self._watches = watches
        self._tails = tails
        self._turns = turns
        self._readers = readers

    async def open(self, peer: Peer, watch: m.Watch) -> None:
        """Open a watch. Raises `RotaError` to refuse it."""
        if self._watches.count(peer) >= _WATCHES_MAX:
            raise BadInput(f"more than {_WATCHES_MAX} watches are open", hint="close one first")
        ids, fresh = await self._find(peer, watch)
        watcher = Watcher(
            ids, fresh=fresh, outputs=watch.outputs, follow=watch.follow, read=self._read_output,
            window=max(0, watch.window), attach=watch.attach,
        )  # fmt: skip
        self._watches.open(peer, watch.n, watcher)
        if watch.attach and peer.attaching:
            peer.attaching.discard(watch.selectors[0].partition("=")[2])
            self._tails.expected()
        # What settled before the watch began is on disk, or will be with the next commit.
        await self._turns.committed()
        await self._report_settled((peer.id, watch.n), watcher)
        self._watches.flush_soon()

    async def _find(self, peer: Peer, watch: m.Watch) -> tuple[list[int], set[int] | None]:
        """The jobs to watch and, if a submission is watched, the subset that it added."""
        queries, read = self._queries, self._readers.read
        reads = watch.outputs or watch.follow
        if len(watch.selectors) == 1 and watch.selectors[0].startswith("submission="):
            submission = watch.selectors[0].partition("=")[2]
            ids, fresh = await read(lambda: queries.submitted(submission))
            if reads:
                await self._selection.refuse_others(peer, ids[:1])  # all are of one user
            return ids, fresh
        selectors = watch.selectors or ["all"]
        clauses = await (self._selection.own if reads else self._selection.any)(peer, selectors)
        live = await read(lambda: queries.live_ids(clauses))
        ended = await read(lambda: queries.ended_ids(clauses, TERMINAL))
        return sorted({*live, *ended}), None

    async def _report_settled(self, reader: tuple[int, int], watcher: Watcher) -> None:
        world, watches = self._world, self._watches
        for id in list(watcher.unsettled()):
            job = world.jobs.get(id)
            if job is not None and job.state.label == "blocked":
                watches.settled(job, job.state, None)
        stored = [id for id in watcher.unsettled() if id not in world.jobs or world.jobs[id].state in TERMINAL]
        for begin in range(0, len(stored), _SLICE):
            part = stored[begin : begin + _SLICE]
            for row in await self._readers.read(lambda part=part: self._store.jobs(part)):  # type: ignore[misc]
                if world.outcome(row.id) != row.state:
                    continue  # it was re-opened: its next end will be reported
                watches.report_end(
                    reader,
                    row.id,
                    state=row.state,
                    attempt=row.attempt,
                    cmd=row.cmd,
                    outcome=outcome_of(row.newest),
                    reason=(row.reason_code or "", row.reason_message or ""),
                    news=False,
                )
            for id in part:
                if world.outcome(id) == NO_JOB:
                    watches.report_removed(watcher, id)

    def _read_output(self, outcome: Outcome, stream: int, offset: int, length: int) -> bytes:
        """Verified output, or nothing if it is not all there: the end of a job is reported all the same. A client
        that asks for the output learns what is missing."""
        return self._outputs.all_of(outcome, stream, offset=offset, length=length)
