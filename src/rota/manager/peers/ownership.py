"""Whose jobs somebody may touch: all users see all jobs, but act on, change and read the output of their own.

Who somebody is, the connection says (`manager.peers.connections`); what a role may ask at all, one table
(`wire.tokens`). Here is only the line between one user and another, so that there is one place to look for it.
"""

from __future__ import annotations

import msgspec

from rota.core.world import World
from rota.errors import Denied, NotFound
from rota.manager.peers.peer import Peer
from rota.store.base import Clause, Store
from rota.wire.tokens import ADMIN
from rota.wire.views import JobView


def restricted(peer: Peer) -> bool:
    """Does this peer keep to the jobs of its own user? Administrators do not, nor does the deployment's owner,
    in whatever role: nothing is kept from whoever can read the database."""
    return peer.role != ADMIN and not peer.trusted


def without_output(view: JobView) -> None:
    """Take out of a view what the job's behaviours printed, which is output like any other."""
    if isinstance(view.attempts, list):
        for attempt in view.attempts:
            for behaved in attempt.behaviours:
                behaved.message = ""


class JobOwners:
    """Looks up who owns jobs. May be called from a worker thread: a job never changes hands."""

    def __init__(self, world: World, store: Store) -> None:
        self._world = world
        self._store = store

    def check(self, jobs: list[int], user: str) -> None:
        """Raise `Denied` unless all of these jobs are this user's."""
        away = []
        for id in jobs:
            job = self._world.jobs.get(id)
            if job is None:
                away.append(id)
            elif job.spec.user != user:
                raise _not_yours(f"job {id}", job.spec.user, user)
        stored = {row.id: row.user for row in self._store.jobs(away)} if away else {}
        for id in away:
            if id not in stored:  # it is being added, or was removed while we looked
                raise NotFound(f"there is no job {id}", hint="list them with 'rota jobs'")
            if stored[id] != user:
                raise _not_yours(f"job {id}", stored[id], user)

    def narrowed(self, clauses: list[Clause], user: str) -> list[Clause]:
        """The same clauses, of this user's jobs alone. Raises `Denied` if one names what is somebody else's: a
        job, an array, a submission or a user. What only describes jobs, like a group or a state, is taken to mean
        the user's own."""
        self.check([clause.low for clause in clauses if clause.low and clause.low == clause.high], user)
        narrow = []
        for clause in clauses:
            if clause.user and clause.user != user:
                raise _not_yours("what you name", clause.user, user)
            if clause.array:
                self._check_first(Clause(array=clause.array), f"array {clause.array}", user)
            if clause.submission:
                self._check_first(Clause(submission=clause.submission), "this submission", user)
            # A job that is named alone stays so, for it is meant whatever its state.
            narrow.append(clause if clause.one else msgspec.structs.replace(clause, user=user))
        return narrow

    def _check_first(self, clause: Clause, what: str, user: str) -> None:
        """The jobs of a clause have one owner. Those that are not stored yet are left out by narrowing."""
        for row in self._store.jobs(self._store.find([clause], above=0, limit=1)):
            if row.user != user:
                raise _not_yours(what, row.user, user)


def _not_yours(what: str, owner: str, user: str) -> Denied:
    return Denied(f"{what} belongs to {owner}", hint=f"list yours with 'rota jobs user={user}'")
