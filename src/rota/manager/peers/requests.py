"""What clients ask for: each request becomes an event, a question, or a watch.

Answers are effects like any other: they leave after the commit of everything they may have seen.
"""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from rota.core import events
from rota.core.attempts.signal_names import signal_name
from rota.core.events import Asker
from rota.core.forecast.expected_times import Expectations
from rota.core.jobs.allowed_actions import would_change
from rota.core.jobs.removal import would_remove
from rota.core.jobs.report_groups import is_in
from rota.core.states import RETRYABLE, TERMINAL
from rota.core.world import NO_JOB, World
from rota.errors import BadInput, Denied, NotFound
from rota.manager.accounts import sums
from rota.manager.loop import clock
from rota.manager.loop.control import control
from rota.manager.output.output_parts import read_part
from rota.manager.peers.ownership import Belongings, restricted, without_output
from rota.manager.submit import modify
from rota.manager.submit.admission import Admission
from rota.manager.submit.lookups import load_jobs
from rota.manager.submit.uploads import Uploads
from rota.manager.views import gantt, gantt_past, limits, quotas, shares, site, whatif
from rota.manager.views.forecast import foresee, measure
from rota.manager.views.rows import outcome_of
from rota.manager.views.status import disk_full
from rota.manager.watch.watcher import Watcher
from rota.plan.policy.limits import Limit
from rota.store.base import Clause
from rota.wire import messages as m
from rota.wire.tokens import ADMIN
from rota.wire.views import JobPage, StatusView

if TYPE_CHECKING:
    from rota.manager.loop.service import Manager
    from rota.manager.peers.peer import Peer

log = logging.getLogger("rota.manager")

_PAGE_MAX = 100_000
_MOST = 1 << 62
#: No walltime is longer.
_LONGEST_S = 2.0**53
#: What one connection may have open at once.
_WATCHES_MAX = 256

_VERBS = {
    "kill": events.JobsKilled,
    "hold": events.JobsHeld,
    "release": events.JobsReleased,
    "confirm-dead": events.DeathConfirmed,
    "resume": events.JobsResumed,
    "checkpoint": events.JobsSignalled,
}


class Requests:
    """Handles the requests of clients, one peer's in order."""

    def __init__(self, manager: Manager) -> None:
        self._manager = manager
        self._past = gantt_past.Past(manager.store, manager.library.specs)
        #: The past may take long to look through: one at a time, or nobody else would get to read anything.
        self._looks_back = asyncio.Lock()
        self._admission = Admission(manager.world)
        self._belongings = Belongings(manager.world, manager.store)
        self.uploads = Uploads(manager, self._admission)

    async def handle(self, peer: Peer, message: Any) -> None:
        """Take one request. Raises `RotaError` to refuse it."""
        match message:
            case m.Add():
                await self.uploads.add(peer, message)
            case m.Drop(n, submission):
                self.uploads.drop(peer, submission)
                self._manager.answer(_by(peer, n), None)
            case m.ListJobs(n, selectors, limit, cursor):
                await self._list(peer, n, selectors, limit, cursor)
            case m.ListPage():
                await self._page(peer, message)
            case m.GetGraph(n, job):
                graph = await self._manager.read(lambda: self._manager.queries.graph(job))
                self._manager.tell(_by(peer, n), graph)
            case m.Feed(n):
                await self._manager.feeds.open(peer, n)
            case m.Status(n, selectors):
                await self._status(peer, n, selectors)
            case m.Show(n, job):
                await self._foresee()
                view, shown = await self._manager.read(lambda: self._manager.queries.show(job))
                self._manager.queries.explain(view, shown)
                if restricted(peer) and view.user != peer.user:
                    without_output(view)
                self._manager.tell(_by(peer, n), view)
            case m.Why(n, job):
                await self._foresee()
                self._manager.tell(_by(peer, n), self._manager.queries.why(job, wall=clock.now()))
            case m.PlanFor(n):
                await self._know_groups(message.user or peer.user)
                ask = whatif.question(
                    self._manager.world,
                    self._admission,
                    message,
                    user=peer.user,
                    taken=self._manager.forecasts.snapshot(),
                    admin=not restricted(peer),
                )
                self._manager.tell(_by(peer, n), await self._manager.read(ask))
            case m.Gantt(n, _since, _until, limit):
                expected = await self._foresee()
                taken = gantt.snapshot(self._manager.world, message, clock.now(), expected)
                async with self._looks_back if gantt.looks_back(taken) else nullcontext():
                    drawn = await self._manager.read(lambda: gantt.encoded(gantt.view(taken, limit, self._past)))
                self._manager.tell(_by(peer, n), drawn)
            case m.ListLimits(n):
                self._manager.tell(_by(peer, n), limits.view(self._manager.world))
            case m.SetLimit(n, text, host):
                self._set_limit(_by(peer, n), text, host)
            case m.GetSite(n, kinds):
                self._manager.tell(_by(peer, n), site.view(self._manager.world, kinds))
            case m.ListQuotas(n):
                self._manager.tell(_by(peer, n), quotas.view(self._manager.world, clock.now()))
            case m.GetShares(n, queue):
                self._manager.tell(_by(peer, n), shares.view(self._manager.world, clock.now(), queue=queue))
            case m.SetSite(n):
                self._manager.happened(site.changed(_by(peer, n), message))
            case m.Learned(n, name, forget):
                if forget:
                    names = [name] if name else list(self._manager.world.models)
                    self._manager.happened(events.LearningForgotten(by=_by(peer, n), names=names))
                else:
                    self._manager.tell(_by(peer, n), await sums.learned(self._manager, name, apart=message.apart))
            case m.GetAccounts(n) | m.GetUsage(n) | m.GetHistory(n) | m.ListNodes(n) | m.GetNode(n):
                self._manager.tell(_by(peer, n), await sums.answer(self._manager, message))
            case m.Act():
                await self._act(peer, message)
            case m.ChangeWalltime():
                await self._change_walltime(peer, message)
            case m.Modify():
                await self._modify(peer, message)
            case m.Watch():
                await self._watch(peer, message)
            case m.ReadOutput():
                await self._output(peer, message)
            case m.Stop(n, stream):
                self._manager.watches.close(peer, stream)
                self._manager.feeds.close(peer, stream)
                self._manager.answer(_by(peer, n), None)
            case m.Control():
                await control(self._manager, peer, message)

    # -- questions

    async def _list(self, peer: Peer, n: int, selectors: list[str], limit: int, cursor: int) -> None:
        if not 0 < limit <= _PAGE_MAX:
            raise BadInput(f"--limit must be between 1 and {_PAGE_MAX}")
        queries = self._manager.queries
        await self._foresee()

        def ask() -> Any:
            clauses = queries.clauses(selectors, peer.user)
            self._refuse_missing(clauses)
            return queries.page(clauses, limit=limit, cursor=cursor)

        self._manager.tell(_by(peer, n), await self._manager.read(ask))

    async def _page(self, peer: Peer, ask: m.ListPage) -> None:
        if not 0 < ask.limit <= _PAGE_MAX:
            raise BadInput(f"'limit' must be between 1 and {_PAGE_MAX}")
        manager, queries = self._manager, self._manager.queries
        await self._foresee()

        def find() -> JobPage:
            clauses = queries.clauses(ask.selectors, peer.user)
            self._refuse_missing(clauses)
            return manager.listings.page(clauses, ask)

        manager.tell(_by(peer, ask.n), await manager.read(find))

    async def _status(self, peer: Peer, n: int, selectors: list[str]) -> None:
        manager, queries = self._manager, self._manager.queries
        expected = await self._foresee()

        def ask() -> StatusView:
            clauses = queries.clauses(selectors, peer.user)
            self._refuse_missing(clauses)
            found = queries.status(clauses)
            foresee(found, expected, queries.some_of(clauses))
            return found

        if selectors:
            status = await manager.read(ask)
        else:
            status = queries.status([])
            foresee(status, expected)
        measure(status, manager.world, manager.rates, now=time.monotonic())
        status.disk_full = disk_full(manager)
        self._manager.tell(_by(peer, n), status)

    async def _foresee(self) -> Expectations:
        """What is expected of jobs now, for all answers alike."""
        found = self._manager.queries.expectations = await self._manager.forecasts.current()
        return found

    def _refuse_missing(self, clauses: list[Clause]) -> None:
        if missing := self._manager.queries.missing(clauses):
            raise NotFound(f"there is no job {missing[0]}", hint="list them with 'rota jobs'")

    def _refuse_unknown(self, clauses: list[Clause]) -> None:
        """For what acts or waits: a mistyped group must not pass for one that has nothing to do."""
        self._refuse_missing(clauses)
        for clause in clauses:
            if clause.group and not _is_known(self._manager.world, clause.group):
                hint = "list them with 'rota status'"
                if self._manager.world.groups.get(clause.group) is not None:
                    hint = "that is a dependency group, which only --after can name; " + hint
                raise NotFound(f"there is no group '{clause.group}'", hint=hint)

    # -- whose they are

    async def _own(self, peer: Peer, selectors: list[str]) -> list[Clause]:
        """What these selectors mean to somebody who may touch perhaps no jobs but their own."""
        manager = self._manager
        clauses = await manager.read(lambda: manager.queries.clauses(selectors, peer.user))
        self._refuse_unknown(clauses)
        if not restricted(peer):
            return clauses
        return await manager.read(lambda: self._belongings.narrowed(clauses, peer.user))

    async def _refuse_others(self, peer: Peer, jobs: list[int]) -> None:
        if restricted(peer):
            await self._manager.read(lambda: self._belongings.check(jobs, peer.user))

    async def _know_groups(self, *users: str) -> None:
        """Before jobs of these users are judged: only rules that match Unix groups make anybody wait for them."""
        for ask in self._admission.to_look_up(*users):
            await self._manager.read(ask)

    # -- actions

    async def _act(self, peer: Peer, act: m.Act) -> None:
        if not act.selectors:
            raise BadInput("say which jobs", hint="use ids, @group, state=failed, last or all")
        if act.verb not in {*_VERBS, "retry", "remove", "suspend", "signal"}:
            raise BadInput(f"there is no action '{act.verb}'")
        if act.verb == "confirm-dead" and restricted(peer):
            raise Denied("only an administrator may declare jobs dead", hint="ask one, or wait for its runner")
        manager, queries = self._manager, self._manager.queries
        by = _by(peer, act.n)
        clauses = await self._own(peer, act.selectors)
        # Jobs named one by one are always meant; of groups only those that the action can concern.
        named = {clause.one for clause in clauses if clause.one}
        elements = [clause for clause in clauses if clause.one_element]
        ended: list[int] = []
        if act.verb in ("retry", "remove"):
            states = RETRYABLE if act.verb == "retry" else TERMINAL
            ended = await self._manager.read(lambda: queries.ended_ids(clauses, states))
        live = await self._manager.read(lambda: queries.live_ids(clauses))
        jobs = sorted({*named, *ended, *live})
        if act.check and act.verb != "remove":
            manager.tell(by, would_change(manager.world, act.verb, jobs))
            return
        if act.verb in _VERBS:
            manager.happened(_VERBS[act.verb](by=by, jobs=jobs))
            return
        if act.verb == "suspend":
            manager.happened(events.JobsSuspended(by=by, jobs=jobs, keep=act.keep))
            return
        if act.verb == "signal":
            manager.happened(events.JobsSignalled(by=by, jobs=jobs, signal=signal_name(act.signal)))
            return
        away = [job for job in jobs if job not in manager.world.jobs]
        with manager.loading():
            loaded = await self._manager.read(lambda: load_jobs(manager.store, manager.library, away))
            if act.verb == "retry":
                manager.happened(events.JobsRetried(by=by, jobs=jobs, loaded=loaded))
            else:
                only = peer.user if restricted(peer) else ""
                if elements:
                    named |= set(await self._manager.read(lambda: queries.live_ids(elements)))
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
                    manager.tell(by, would_remove(manager.world, removed))
                else:
                    manager.happened(removed)

    async def _change_walltime(self, peer: Peer, ask: m.ChangeWalltime) -> None:
        if not 0 < abs(ask.seconds) < _LONGEST_S:
            raise BadInput("that walltime is out of range", hint="write it like +1h, -30m or 2h")
        if ask.force and peer.role != ADMIN:
            raise Denied("only an administrator may force a walltime", hint="leave out --force")
        if self._manager.world.outcome(ask.job) == NO_JOB:
            raise NotFound(f"there is no job {ask.job}", hint="list them with 'rota jobs'")
        await self._refuse_others(peer, [ask.job])
        self._manager.happened(
            events.WalltimeAsked(
                by=_by(peer, ask.n), job=ask.job, seconds=ask.seconds, relative=ask.relative, force=ask.force
            )
        )

    async def _modify(self, peer: Peer, ask: m.Modify) -> None:
        if not ask.selectors:
            raise BadInput("say which jobs", hint="use ids, @group, state=failed, last or all")
        fields = modify.changes(ask.spec)
        if not fields:
            raise BadInput("say what to change", hint="give an option such as --priority 5")
        manager, queries = self._manager, self._manager.queries
        clauses = await self._own(peer, ask.selectors)
        named = {clause.one for clause in clauses if clause.one}
        ended = await self._manager.read(lambda: queries.ended_ids(clauses, RETRYABLE))
        live = await self._manager.read(lambda: queries.live_ids(clauses))
        jobs = sorted({*named, *ended, *live})
        with manager.loading():
            away = [job for job in jobs if job not in manager.world.jobs]
            loaded = await self._manager.read(lambda: load_jobs(manager.store, manager.library, away))
            known = manager.world.jobs
            meant = [job for id in jobs if (job := known.get(id) or loaded.get(id)) is not None]
            declared: dict[str, Limit] = {}
            await self._know_groups(*{job.spec.user for job in meant})
            made = modify.new_specs(
                {job.spec_id for job in meant},
                fields,
                manager.library,
                manager.world.placement.limits,
                declared,
                self._admission,
                admin=not restricted(peer),
            )
            if made.rows:
                manager.happened(events.LibraryGrew(specs=made.rows, envs=[]))
            if declared:
                manager.happened(events.LimitsDeclared(limits=list(declared.values())))
            manager.happened(
                events.JobsModified(
                    by=_by(peer, ask.n),
                    jobs=jobs,
                    loaded=loaded,
                    specs=made.specs,
                    fields=list(fields),
                    input_bytes=fields.get("input_bytes"),
                    notices=made.notices,
                )
            )

    def _set_limit(self, by: Asker, text: str, host: str) -> None:
        world = self._manager.world
        if host and host not in world.capacity:
            raise NotFound(f"there is no host '{host}'", hint="see 'rota manager status'")
        declared, withdrawn = limits.changed(world.placement.limits, text, host)
        self._manager.happened(events.LimitsDeclared(by=by, limits=declared, withdrawn=withdrawn))

    # -- waiting

    async def _watch(self, peer: Peer, watch: m.Watch) -> None:
        manager, queries = self._manager, self._manager.queries
        if manager.watches.count(peer) >= _WATCHES_MAX:
            raise BadInput(f"more than {_WATCHES_MAX} watches are open", hint="close one first")
        reads = watch.outputs or watch.follow
        fresh: set[int] | None = None
        if len(watch.selectors) == 1 and watch.selectors[0].startswith("submission="):
            submission = watch.selectors[0].partition("=")[2]
            ids, fresh = await self._manager.read(lambda: queries.submitted(submission))
            if reads:
                await self._refuse_others(peer, ids[:1])  # all are of one user
        else:
            selectors = watch.selectors or ["all"]
            if reads:
                clauses = await self._own(peer, selectors)
            else:
                clauses = await self._manager.read(lambda: queries.clauses(selectors, peer.user))
                self._refuse_unknown(clauses)
            live = await self._manager.read(lambda: queries.live_ids(clauses))
            ended = await self._manager.read(lambda: queries.ended_ids(clauses, TERMINAL))
            ids = sorted({*live, *ended})
        watcher = Watcher(
            ids, fresh=fresh, outputs=watch.outputs, follow=watch.follow, read=manager.read_output,
            window=max(0, watch.window), attach=watch.attach,
        )  # fmt: skip
        manager.watches.open(peer, watch.n, watcher)
        if watch.attach and peer.attaching:
            peer.attaching.discard(watch.selectors[0].partition("=")[2])
            manager.tails.expected()
        # What settled before the watch began is on disk, or will be with the next commit.
        await manager.committed()
        world = manager.world
        for id in list(watcher.unsettled()):
            job = world.jobs.get(id)
            if job is not None and job.state.label == "blocked":
                manager.watches.settled(job, job.state, None)
        away = [id for id in watcher.unsettled() if id not in world.jobs or world.jobs[id].state in TERMINAL]
        for begin in range(0, len(away), 10_000):
            part = away[begin : begin + 10_000]
            for row in await self._manager.read(lambda part=part: manager.store.jobs(part)):  # type: ignore[misc]
                if world.outcome(row.id) != row.state:
                    continue  # it was re-opened: its next end will be told
                manager.watches.tell_end(
                    (peer.id, watch.n),
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
                    manager.watches.tell_of_removed(watcher, id)
        manager.watches.tell_soon()

    # -- output

    async def _output(self, peer: Peer, ask: m.ReadOutput) -> None:
        manager = self._manager
        if ask.stream not in (1, 2) or ask.offset < 0 or not ask.limit > 0:
            raise BadInput("there is no such part of an output")
        if manager.world.outcome(ask.job) == NO_JOB:
            raise NotFound(f"there is no job {ask.job}", hint="list them with 'rota jobs'")
        await self._refuse_others(peer, [ask.job])
        manager.tell(_by(peer, ask.n), await read_part(manager, ask))


def _by(peer: Peer, n: int) -> Asker:
    return Asker(peer.id, n, peer.user)


def _is_known(world: World, group: str) -> bool:
    """Is there, or was there, a job in this group?"""
    counts = world.counts
    return any(counts.get(group, ())) or any(is_in(group, key) and any(counts[key]) for key in list(counts))
