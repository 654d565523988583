"""Which jobs the selectors of a client mean, and whether that client may touch them."""

from __future__ import annotations

from collections.abc import Iterator

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
        self._store = store
        self._owners = JobOwners(world, store)

    async def any(self, peer: Peer, selectors: list[str]) -> list[Clause]:
        """What these selectors mean, of all jobs. Raises `NotFound` for a group, a name or an element of an array
        that no job has: a mistyped one must not pass for one that has nothing to do. Conditions such as
        `state=failed` may match nothing."""
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
        await self._readers.read(lambda: self._refuse_unknown(clauses))
        return clauses

    def _refuse_unknown(self, clauses: list[Clause]) -> None:
        """Raise `NotFound` for a name, or an element of an array, that no job has or had."""
        for clause in dict.fromkeys(asked for each in clauses for asked in _names(each)):
            if not self._queries.live_ids([clause]) and not self._store.find([clause], above=0, limit=1):
                raise NotFound(_unknown(clause), hint="list them with 'rota jobs'")

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


def _names(clause: Clause) -> Iterator[Clause]:
    """The parts of a clause that name jobs, apart from groups and ids."""
    if clause.name:
        yield Clause(name=clause.name)
    if clause.name_prefix:
        yield Clause(name_prefix=clause.name_prefix)
    if clause.gang:
        yield Clause(gang=clause.gang)
    if clause.array:
        yield Clause(array=clause.array, indexes=clause.indexes)


def _unknown(clause: Clause) -> str:
    if clause.name:
        return f"there is no job with the name '{clause.name}'"
    if clause.name_prefix:
        return f"no name of a job begins with '{clause.name_prefix}'"
    if clause.gang:
        return f"there is no job of a gang '{clause.gang}'"
    if not clause.indexes:
        return f"there is no array {clause.array}"
    (low, high) = clause.indexes[0]
    return f"there is no job {clause.array}_{low}" + (f"-{high}" if high != low else "")


def _is_known(world: World, group: str) -> bool:
    """Is there, or was there, a job in this group?"""
    counts = world.counts
    return any(counts.get(group, ())) or any(is_in(group, key) and any(counts[key]) for key in list(counts))
