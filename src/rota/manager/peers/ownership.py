"""Access between users: all users see all jobs, but may act on, change and read the output of their own only.

Authentication happens in `manager.peers.connections`, and a table in `wire.tokens` lists what each role may ask.
The separation of users is here and nowhere else.
"""

from __future__ import annotations

import msgspec

from rota.core.world import World
from rota.errors import Denied, NotFound
from rota.manager.peers.peer import Peer
from rota.store.base import Clause, Store
from rota.wire.permissions import ADMIN
from rota.wire.views import JobView


def restricted(peer: Peer) -> bool:
    """Is this peer limited to the jobs of its own user? Administrators are not. Nor is the owner of the deployment
    in any role, since the owner can read the database anyway."""
    return peer.role != ADMIN and not peer.trusted


def without_output(view: JobView) -> None:
    """Remove from a view what the job's behaviours printed: that is output, too."""
    if isinstance(view.attempts, list):
        for attempt in view.attempts:
            for behaved in attempt.behaviours:
                behaved.message = ""


class JobOwners:
    """Looks up the owners of jobs. May be called from a worker thread: a job never changes its owner."""

    def __init__(self, world: World, store: Store) -> None:
        self._world = world
        self._store = store

    def check(self, jobs: list[int], user: str) -> None:
        """Raise `Denied` unless all of these jobs belong to this user."""
        stored_ids = []
        for id in jobs:
            job = self._world.jobs.get(id)
            if job is None:
                stored_ids.append(id)
            elif job.spec.user != user:
                raise _not_yours(f"job {id}", job.spec.user, user)
        stored = {row.id: row.user for row in self._store.jobs(stored_ids)} if stored_ids else {}
        for id in stored_ids:
            if id not in stored:  # it is being added, or has just been removed
                raise NotFound(f"there is no job {id}", hint="list them with 'rota jobs'")
            if stored[id] != user:
                raise _not_yours(f"job {id}", stored[id], user)

    def narrowed(self, clauses: list[Clause], user: str) -> list[Clause]:
        """The same clauses, limited to this user's jobs. Raises `Denied` if one names another user, or a job, an
        array or a submission of another user. A clause that only describes jobs, such as a group or a state, is
        taken to mean the user's own."""
        self.check([clause.low for clause in clauses if clause.low and clause.low == clause.high], user)
        narrow = []
        for clause in clauses:
            if clause.user and clause.user != user:
                raise _not_yours("what you name", clause.user, user)
            if clause.array:
                self._check_first(Clause(array=clause.array), f"array {clause.array}", user)
            if clause.submission:
                self._check_first(Clause(submission=clause.submission), "this submission", user)
            # A job that is named by its id is meant in any state.
            narrow.append(clause if clause.one else msgspec.structs.replace(clause, user=user))
        return narrow

    def _check_first(self, clause: Clause, what: str, user: str) -> None:
        """All jobs of such a clause have one owner. Jobs that are not stored yet are filtered by user later."""
        for row in self._store.jobs(self._store.find([clause], above=0, limit=1)):
            if row.user != user:
                raise _not_yours(what, row.user, user)


def _not_yours(what: str, owner: str, user: str) -> Denied:
    return Denied(f"{what} belongs to {owner}", hint=f"list yours with 'rota jobs user={user}'")
