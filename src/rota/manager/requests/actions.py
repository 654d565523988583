"""Actions on jobs and limits: each becomes an event that names the jobs it is about. The engine decides."""

from __future__ import annotations

from functools import partial
from typing import Final

from msgspec.structs import replace

from rota.core import events
from rota.core.admission.admission import Admission
from rota.core.admission.modification import new_specs
from rota.core.attempts.signal_names import signal_name
from rota.core.events import Asker
from rota.core.jobs.allowed_actions import would_change
from rota.core.jobs.job import After
from rota.core.jobs.removal import would_remove
from rota.core.states import RETRYABLE, TERMINAL
from rota.core.submit.spec_library import Library
from rota.core.world import World
from rota.errors import BadInput, Denied, NotFound
from rota.manager.loop.readers import Readers
from rota.manager.loop.turns import TurnLoop
from rota.manager.peers.ownership import restricted
from rota.manager.peers.peer import Peer
from rota.manager.requests.selection import Selection
from rota.manager.submit.intake import check_command
from rota.manager.submit.lookups import load_jobs, successors_of
from rota.manager.submit.redefinition import REDEFINING, find_parents, look_up_redefinition, with_variables
from rota.manager.views import limits
from rota.manager.views.queries import Queries
from rota.plan.policy.limits import Limit
from rota.store.base import Store
from rota.wire import messages as m
from rota.wire.permissions import ADMIN
from rota.wire.specs import changed_fields

#: No walltime is longer.
_LONGEST_S: Final = 2.0**53

_VERBS: Final = {
    "kill": events.JobsKilled,
    "hold": events.JobsHeld,
    "release": events.JobsReleased,
    "confirm-dead": events.DeathConfirmed,
    "resume": events.JobsResumed,
    "checkpoint": events.JobsSignalled,
}


class Actions:
    """Finds the jobs that an action is about, also those on disk, and has it decided."""

    def __init__(
        self,
        world: World,
        store: Store,
        library: Library,
        *,
        admission: Admission,
        selection: Selection,
        queries: Queries,
        turns: TurnLoop,
        readers: Readers,
    ) -> None:
        self._world = world
        self._store = store
        self._library = library
        self._admission = admission
        self._selection = selection
        self._queries = queries
        self._turns = turns
        self._readers = readers

    async def act(self, peer: Peer, act: m.Act) -> None:
        """Kill, hold, release, suspend, resume, signal, retry or remove jobs."""
        if not act.selectors:
            raise BadInput("say which jobs", hint="use ids, @group, state=failed, last or all")
        if act.verb not in {*_VERBS, "retry", "remove", "suspend", "signal"}:
            raise BadInput(f"there is no action '{act.verb}'")
        if act.verb == "confirm-dead" and restricted(peer):
            raise Denied("only an administrator may declare jobs dead", hint="ask one, or wait for its runner")
        world, queries, read, happened = self._world, self._queries, self._readers.read, self._turns.happened
        by = peer.asker(act.n)
        clauses = await self._selection.own(peer, act.selectors)
        # A job that is named by id is always included; of groups, only jobs that the action can apply to.
        named = {clause.one for clause in clauses if clause.one}
        elements = [clause for clause in clauses if clause.one_element]
        ended: list[int] = []
        if act.verb in ("retry", "remove"):
            states = RETRYABLE if act.verb == "retry" else TERMINAL
            ended = await read(lambda: queries.ended_ids(clauses, states))
        live = await read(lambda: queries.live_ids(clauses))
        jobs = sorted({*named, *ended, *live})
        if act.check and act.verb != "remove":
            self._turns.answer(by, would_change(world, act.verb, jobs))
            return
        if act.verb in _VERBS:
            happened(_VERBS[act.verb](by=by, jobs=jobs))
            return
        if act.verb == "suspend":
            happened(events.JobsSuspended(by=by, jobs=jobs, keep=act.keep))
            return
        if act.verb == "signal":
            happened(events.JobsSignalled(by=by, jobs=jobs, signal=signal_name(act.signal)))
            return
        stored = [job for job in jobs if job not in world.jobs]
        with self._turns.loading():
            loaded = await read(lambda: load_jobs(self._store, self._library, stored))
            if act.verb == "retry":
                happened(events.JobsRetried(by=by, jobs=jobs, loaded=loaded))
            else:
                only = peer.user if restricted(peer) else ""
                if elements:
                    named |= set(await read(lambda: queries.live_ids(elements)))
                removed = events.JobsRemoved(
                    by=by,
                    jobs=jobs,
                    loaded=loaded,
                    cascade=act.cascade,
                    only=only,
                    named=frozenset() if act.lenient else frozenset(named),
                    waiting=act.waiting,
                )
                if act.check:
                    self._turns.answer(by, would_remove(world, removed))
                else:
                    happened(removed)

    async def change_walltime(self, peer: Peer, ask: m.ChangeWalltime) -> None:
        """Lengthen or shorten the walltime of a job."""
        if not 0 < abs(ask.seconds) < _LONGEST_S:
            raise BadInput("that walltime is out of range", hint="write it like +1h, -30m or 2h")
        if ask.force and peer.role != ADMIN:
            raise Denied("only an administrator may force a walltime", hint="leave out --force")
        await self._selection.check(peer, ask.job)
        self._turns.happened(
            events.WalltimeAsked(
                by=peer.asker(ask.n), job=ask.job, seconds=ask.seconds, relative=ask.relative, force=ask.force
            )
        )

    async def modify(self, peer: Peer, ask: m.Modify) -> None:
        """Change fields of the specifications of jobs that wait, or may be retried."""
        if not ask.selectors:
            raise BadInput("say which jobs", hint="use ids, @group, state=failed, last or all")
        fields = changed_fields(ask.spec)
        if not fields:
            raise BadInput("say what to change", hint="give an option such as --priority 5")
        names = list(fields)
        redefines = not REDEFINING.isdisjoint(names)
        world, library, queries = self._world, self._library, self._queries
        read, happened = self._readers.read, self._turns.happened
        cmd, env, after = (fields.pop(name, None) for name in ("cmd", "env", "after"))
        if cmd is not None:
            check_command(cmd)
        clauses = await self._selection.own(peer, ask.selectors)
        named = {clause.one for clause in clauses if clause.one}
        ended = await read(lambda: queries.ended_ids(clauses, RETRYABLE))
        live = await read(lambda: queries.live_ids(clauses))
        jobs = sorted({*named, *ended, *live})
        if redefines:
            await self._turns.committed()  # so that attempts, and jobs that have just ended, are found
        with self._turns.loading():
            stored = [job for job in jobs if job not in world.jobs]
            loaded = await read(lambda: load_jobs(self._store, library, stored))
            meant = [job for id in jobs if (job := world.jobs.get(id) or loaded.get(id)) is not None]
            declared: dict[str, Limit] = {}
            for look_up in self._admission.to_look_up(*{job.spec.user for job in meant}):
                await read(look_up)
            envs = {}
            if env is not None:
                envs = await self._environments({job.spec.env for job in meant}, env)
            made = new_specs(
                {job.spec_id for job in meant},
                fields,
                library,
                world.placement.limits,
                declared,
                self._admission,
                admin=not restricted(peer),
                envs=envs,
            )
            redefinition = None
            if redefines:
                copies = [replace(job) for job in meant]
                parents = None if after is None else await self._parents(peer, after)
                redefinition = await read(
                    lambda: look_up_redefinition(
                        self._store,
                        copies,
                        made.specs,
                        cmd=cmd,
                        after=parents,
                        load=partial(load_jobs, self._store, library),
                    )
                )
            for grew in library.grown():
                happened(grew)
            if declared:
                happened(events.LimitsDeclared(limits=list(declared.values())))
            happened(
                events.JobsModified(
                    by=peer.asker(ask.n),
                    jobs=jobs,
                    loaded=loaded,
                    specs=made.specs,
                    fields=names,
                    input_bytes=fields.get("input_bytes"),
                    notices=made.notices,
                    redefinition=redefinition,
                )
            )

    async def _environments(self, numbers: set[int], added: bytes) -> dict[int, int]:
        """Environment → the one with these variables. Raises `BadInput`."""
        blobs = {number: await self._readers.read(partial(self._store.env, number)) for number in numbers}
        return {number: self._library.env(with_variables(blob, added)) for number, blob in blobs.items()}

    async def _parents(self, peer: Peer, after: tuple[m.NewAfter, ...]) -> tuple[After, ...]:
        """The jobs and groups that are to be waited for. Raises `BadInput` or `NotFound`."""
        found = await self._readers.read(lambda: find_parents(self._store, after, user=peer.user))
        gone = [
            each.parent for each in found if isinstance(each.parent, int) and self._world.is_replaced(each.parent)
        ]
        if not gone:
            return found
        by = await self._readers.read(lambda: successors_of(self._store, gone))
        return tuple(After(by.get(each.parent, each.parent), each.condition) for each in found)

    def set_limit(self, by: Asker, ask: m.SetLimit) -> None:
        """Declare, change or withdraw a limit."""
        world = self._world
        if ask.host and ask.host not in world.capacity:
            raise NotFound(f"there is no host '{ask.host}'", hint="see 'rota manager status'")
        declared, withdrawn = limits.changed(world.placement.limits, ask.text, ask.host)
        self._turns.happened(events.LimitsDeclared(by=by, limits=declared, withdrawn=withdrawn))

    def forget_learned(self, by: Asker, name: str) -> None:
        """Forget what was learned about a group, or about all of them."""
        names = [name] if name else list(self._world.models)
        self._turns.happened(events.LearningForgotten(by=by, names=names))
