"""Which jobs the selectors of a client mean, and whether that client may touch them."""

from __future__ import annotations

from rota.core.jobs.report_groups import has_prefix, is_in
from rota.core.world import NO_JOB, World
from rota.errors import NotFound
from rota.manager.loop.readers import Readers
from rota.manager.peers.ownership import JobOwners, restricted
from rota.manager.peers.peer import Peer
from rota.manager.views.queries import Queries
from rota.store.base import Clause, Store


class Selection:
    """Resolves selectors. Refuses what does not exist, and what belongs to another user."""

    def __init__(self, world: World, store: Store, queries: Queries, readers: Readers) -> None:
        self._world = world
        self._queries = queries
        self._readers = readers
        self._owners = JobOwners(world, store)

    async def any(self, peer: Peer, selectors: list[str]) -> list[Clause]:
        """What these selectors mean, of all jobs. Raises `NotFound`: a mistyped group must not pass for one that
        has nothing to do."""
        clauses = await self._readers.read(lambda: self._queries.clauses(selectors, peer.user))
        self.refuse_missing(clauses)
        for clause in clauses:
            if clause.group and not _is_known(self._world, clause.group):
                hint = "list them with 'rota status'"
                if self._world.groups.get(clause.group) is not None:
                    hint = "that is a dependency group, which only --after can name; " + hint
                raise NotFound(f"there is no group '{clause.group}'", hint=hint)
            if clause.group_prefix and not any(has_prefix(clause.group_prefix, key) for key in self._world.counts):
                raise NotFound(
                    f"no group begins with '{clause.group_prefix}'", hint="list them with 'rota status'"
                )
        return clauses

    async def own(self, peer: Peer, selectors: list[str]) -> list[Clause]:
        """The same, of the jobs that this peer may touch. Raises `NotFound` and `Denied`."""
        clauses = await self.any(peer, selectors)
        if not restricted(peer):
            return clauses
        return await self._readers.read(lambda: self._owners.narrowed(clauses, peer.user))

    def refuse_missing(self, clauses: list[Clause]) -> None:
        """Raise `NotFound` if a job that is named does not exist. May be called from a worker thread."""
        if missing := self._queries.missing(clauses):
            raise no_job(missing[0])

    async def refuse_others(self, peer: Peer, jobs: list[int]) -> None:
        """Raise `Denied` if this peer may not touch one of these jobs."""
        if restricted(peer):
            await self._readers.read(lambda: self._owners.check(jobs, peer.user))

    async def check(self, peer: Peer, job: int) -> None:
        """Raise `NotFound` if there is no such job, `Denied` if this peer may not touch it."""
        if self._world.outcome(job) == NO_JOB:
            raise no_job(job)
        await self.refuse_others(peer, [job])


def no_job(id: int) -> NotFound:
    return NotFound(f"there is no job {id}", hint="list them with 'rota jobs'")


def _is_known(world: World, group: str) -> bool:
    """Is there, or was there, a job in this group?"""
    counts = world.counts
    return any(counts.get(group, ())) or any(is_in(group, key) and any(counts[key]) for key in list(counts))
