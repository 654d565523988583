"""Questions of clients: each is answered from memory, or from the store off the loop. Changes nothing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any, Final

from msgspec import structs

from rota.core.admission.admission import Admission
from rota.core.forecast.expected_times import Expectations
from rota.core.jobs.job import Spec
from rota.core.world import World
from rota.errors import BadInput, Bug, NotFound
from rota.manager.accounts import accounts, usage
from rota.manager.accounts.machine_usage import machine_usage
from rota.manager.loop import clock
from rota.manager.loop.readers import Readers
from rota.manager.metrics.rates import Rates
from rota.manager.output.outputs import SegmentFiles, read_part
from rota.manager.peers.ownership import restricted, without_output
from rota.manager.peers.peer import Peer
from rota.manager.requests.selection import Selection
from rota.manager.views import (
    gangs,
    gantt,
    gantt_past,
    learning,
    limits,
    nodes,
    pools,
    quotas,
    results,
    shares,
    site_records,
    whatif,
)
from rota.manager.views.forecast import Forecasts, foresee, measure
from rota.manager.views.group_graphs import group_graph
from rota.manager.views.listing import Listings
from rota.manager.views.queries import Queries
from rota.manager.views.status import ManagerStatus
from rota.settings import Settings
from rota.store.base import Store
from rota.wire import messages as m
from rota.wire.graph_views import LayersView
from rota.wire.sums import NodeDetailView, NodeView
from rota.wire.usage_views import MachineUsageView
from rota.wire.views import JobPage, JobView, LearnedGroupView, StatusView

_PAGE_MAX: Final = 100_000
#: Attempts of one learning group in an answer.
_POINTS: Final = 1000


class Questions:
    """Answers questions about jobs, machines and the site."""

    def __init__(
        self,
        world: World,
        store: Store,
        specs: Mapping[int, Spec],
        *,
        admission: Admission,
        selection: Selection,
        queries: Queries,
        listings: Listings,
        forecasts: Forecasts,
        rates: Rates,
        outputs: SegmentFiles,
        status: ManagerStatus,
        readers: Readers,
        settings: Settings,
    ) -> None:
        self._settings = settings
        self._world = world
        self._store = store
        self._specs = specs
        self._admission = admission
        self._selection = selection
        self._queries = queries
        self._listings = listings
        self._forecasts = forecasts
        self._rates = rates
        self._outputs = outputs
        self._status = status
        self._readers = readers
        self._past = gantt_past.Past(store, specs)
        #: The past may take long to look through: one question at a time, or no other would get a reader.
        self._looks_back = asyncio.Lock()

    async def answer(self, peer: Peer, ask: Any) -> Any:
        """The answer to one question. Raises `RotaError` to refuse it."""
        world, read = self._world, self._readers.read
        match ask:
            case m.ListJobs():
                return await self._list(peer, ask)
            case m.ListPage():
                return await self._page(peer, ask)
            case m.GetGraph(_, job):
                return await read(lambda: self._queries.graph(job))
            case m.GetLayers(_, selectors):
                return await self._layers(peer, selectors)
            case m.Status(_, selectors):
                return await self._count(peer, selectors)
            case m.Show(_, job):
                return await self._show(peer, job)
            case m.Why(_, job):
                await self._foresee()
                return self._queries.why(job, wall=clock.now())
            case m.PlanFor():
                return await self._what_if(peer, ask)
            case m.Gantt():
                return await self._gantt(ask)
            case m.ListLimits():
                return limits.view(world)
            case m.GetSite(_, kinds):
                return site_records.view(world, kinds)
            case m.ListQuotas():
                return quotas.view(world, clock.now())
            case m.GetPools(_, name):
                return pools.view(world, self._settings.pools, local=self._settings.local != "off", name=name)
            case m.GetGang(_, name):
                members = await read(lambda: gangs.find_members(self._store, name, peer.user))
                return gangs.view(world, self._specs, name, members)
            case m.GetShares(_, queue):
                return shares.view(world, clock.now(), queue=queue)
            case m.Learned(_, name):
                return await self._learned(name, apart=ask.apart)
            case m.GetAccounts():
                return await read(lambda: accounts.accounting(self._store, self._specs, ask))
            case m.GetUsage():
                return await read(lambda: usage.usage(self._store, ask))
            case m.GetMachineUsage():
                return await self._machine_usage(ask)
            case m.GetHistory():
                return await read(lambda: accounts.history(self._store, ask))
            case m.ListNodes():
                return await self._nodes()
            case m.GetNode(_, host):
                return await self._node(host)
            case m.GetResults(_, jobs):
                await self._selection.refuse_others(peer, jobs)
                return await read(lambda: results.results(self._store, world, jobs))
            case m.ReadOutput():
                return await self._output(peer, ask)
        raise Bug(f"{type(ask).__name__} may be sent, but nothing answers it")

    # -- jobs

    async def _list(self, peer: Peer, ask: m.ListJobs) -> JobPage:
        if not 0 < ask.limit <= _PAGE_MAX:
            raise BadInput(f"--limit must be between 1 and {_PAGE_MAX}")
        queries = self._queries
        await self._foresee()

        def find() -> JobPage:
            clauses = queries.clauses(ask.selectors, peer.user)
            self._selection.refuse_missing(clauses)
            return queries.page(clauses, limit=ask.limit, cursor=ask.cursor)

        return await self._readers.read(find)

    async def _page(self, peer: Peer, ask: m.ListPage) -> JobPage:
        if not 0 < ask.limit <= _PAGE_MAX:
            raise BadInput(f"'limit' must be between 1 and {_PAGE_MAX}")
        await self._foresee()

        def find() -> JobPage:
            clauses = self._queries.clauses(ask.selectors, peer.user)
            self._selection.refuse_missing(clauses)
            return self._listings.page(clauses, ask)

        return await self._readers.read(find)

    async def _count(self, peer: Peer, selectors: list[str]) -> StatusView:
        queries = self._queries
        expected = await self._foresee()

        def find() -> StatusView:
            clauses = queries.clauses(selectors, peer.user)
            self._selection.refuse_missing(clauses)
            found = queries.status(clauses)
            foresee(found, expected, queries.some_of(clauses))
            return found

        if selectors:
            status = await self._readers.read(find)
        else:
            status = queries.status([])
            foresee(status, expected)
        measure(status, self._world, self._rates, now=time.monotonic())
        status.disk_full = await self._status.disk_full()
        return status

    async def _layers(self, peer: Peer, selectors: list[str]) -> LayersView:
        expected, queries = await self._foresee(), self._queries

        def find() -> LayersView:
            clauses = queries.clauses(selectors, peer.user)
            self._selection.refuse_missing(clauses)
            return group_graph(
                clauses, queries, world=self._world, store=self._store, specs=self._specs, expected=expected
            )

        return await self._readers.read(find)

    async def _show(self, peer: Peer, job: int) -> JobView:
        await self._foresee()
        view, shown = await self._readers.read(lambda: self._queries.show(job))
        self._queries.explain(view, shown)
        if restricted(peer) and view.user != peer.user:
            without_output(view)
        return view

    async def _output(self, peer: Peer, ask: m.ReadOutput) -> m.OutputPart:
        if ask.stream not in (1, 2) or ask.offset < 0 or not ask.limit > 0:
            raise BadInput("there is no such part of an output")
        await self._selection.check(peer, ask.job)
        return await read_part(ask, store=self._store, outputs=self._outputs, readers=self._readers)

    # -- the plan

    async def _foresee(self) -> Expectations:
        """What is expected of jobs now, for all answers alike."""
        found = self._queries.expectations = await self._forecasts.current()
        return found

    async def _what_if(self, peer: Peer, ask: m.PlanFor) -> Any:
        for look_up in self._admission.to_look_up(ask.user or peer.user):
            await self._readers.read(look_up)
        question = whatif.question(
            self._world,
            self._admission,
            ask,
            user=peer.user,
            taken=self._forecasts.snapshot(),
            admin=not restricted(peer),
        )
        return await self._readers.read(question)

    async def _gantt(self, ask: m.Gantt) -> Any:
        expected = await self._foresee()
        taken = gantt.snapshot(self._world, ask, clock.now(), expected)
        async with self._looks_back if gantt.looks_back(taken) else nullcontext():
            return await self._readers.read(lambda: gantt.encoded(gantt.view(taken, ask.limit, self._past)))

    # -- machines, learning

    async def _nodes(self) -> list[NodeView]:
        found = nodes.snapshot(self._world)
        return await self._readers.read(lambda: nodes.view(found))

    async def _node(self, host: str) -> NodeDetailView:
        node = next((each for each in await self._nodes() if each.host == host), None)
        if node is None:
            raise NotFound(f"there is no host '{host[:255]}'", hint="list them with 'rota node list'")
        spans = await self._readers.read(lambda: usage.history(self._store, host))
        return NodeDetailView(**structs.asdict(node), history=spans)

    async def _machine_usage(self, ask: m.GetMachineUsage) -> MachineUsageView:
        found, records = nodes.snapshot(self._world), self._world.site
        async with self._looks_back:
            return await self._readers.read(lambda: machine_usage(self._store, ask, nodes.view(found), records))

    async def _learned(self, name: str, *, apart: bool) -> list[LearnedGroupView]:
        """All learning groups, or the one that is named, with its attempts."""
        groups = learning.view(self._world, name)
        if name:
            found = await self._readers.read(lambda: self._store.points(name, limit=_POINTS))
            groups[0].points = learning.points(found, apart=apart)
        return groups
