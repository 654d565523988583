"""`rota manager status`: the manager and its runners as people see them."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from heapq import nsmallest
from typing import Final

from rota import __version__
from rota.core.attempts.noop_jobs import is_noop_runner
from rota.core.attempts.parts import parts_of
from rota.core.bugs.ledger import Ledger
from rota.core.pools.registry import could_delegate
from rota.core.states import State
from rota.core.world import World
from rota.manager.host.gateway import GatewayProcess
from rota.manager.loop import clock
from rota.manager.loop.deployment import Deployment
from rota.manager.loop.readers import Readers
from rota.manager.loop.writer import Writer
from rota.manager.metrics.counters import resident_bytes
from rota.manager.views.queries import Queries
from rota.plan.planner.endangered import endangered
from rota.store.base import Store
from rota.store.home.files import mount_of
from rota.wire.views import AttentionView, BugsView, BugView, ManagerView, RunnerView

#: Of each kind only so many are listed one by one.
_MOST: Final = 20
_IDS: Final = 10


class ManagerStatus:
    """Describes the manager. Belongs to the loop's thread."""

    def __init__(
        self,
        deployment: Deployment,
        world: World,
        store: Store,
        *,
        writer: Writer,
        queries: Queries,
        readers: Readers,
        gateway: GatewayProcess,
        more_attention: Callable[[], list[AttentionView]],
    ) -> None:
        self._more_attention = more_attention  #: of features
        self._deployment = deployment
        self._world = world
        self._store = store
        self._writer = writer
        self._queries = queries
        self._readers = readers
        self._gateway = gateway

    async def view(self) -> ManagerView:
        """`rota manager status`."""
        disk_full = await self.disk_full()
        usage = resource.getrusage(resource.RUSAGE_SELF)
        deployment, world, writer = self._deployment, self._world, self._writer
        times = list(writer.times)
        disk = os.statvfs(deployment.home.path)
        return ManagerView(
            pid=os.getpid(),
            version=__version__,
            generation=deployment.generation,
            deployment=deployment.id,
            home=str(deployment.home),
            store="sqlite",
            started_at=datetime.fromtimestamp(deployment.started_at, UTC),
            address=deployment.address,
            http=self._gateway.url,
            counts=self._queries.status([]).counts,
            runners=[runner_view(world, id) for id in world.runners if not is_noop_runner(id)],
            live_jobs=world.live,
            resident_bytes=resident_bytes(),
            cpu_s=usage.ru_utime + usage.ru_stime,
            commits=writer.commits,
            commit_ms=1000 * sum(times) / len(times) if times else 0.0,
            paused=world.paused,
            draining=world.draining,
            idle_stop_s=deployment.idle_stop_s,
            disk_free_bytes=disk.f_bavail * disk.f_frsize,
            clock_off_s=None if (step := clock.steady().step) is None else round(step.by, 3),
            disk_full=disk_full,
            attention=attention(world) + self._more_attention(),
            safe_mode=world.bugs.safe_mode or None,
            bugs=bugs_view(world.bugs),
        )

    async def disk_full(self) -> str | None:
        """Where the disk is mounted, if it has no room for the next commit or for more jobs."""
        if not self._writer.full and await self._readers.read(partial(self._store.can_accept, self._world.live)):
            return None
        return mount_of(self._deployment.home.path)


def bugs_view(ledger: Ledger) -> BugsView | None:
    """The bugs that were met; None: none since the manager was resumed."""
    recent = [each for each in ledger.records if each.at >= ledger.since]
    if not recent:
        return None
    return BugsView(
        total=ledger.total,
        left_out=sorted(ledger.places),
        quarantined=len(ledger.events) + len(ledger.entries),
        frozen=sorted(ledger.frozen),
        recent=[
            BugView(
                at=datetime.fromtimestamp(each.at, UTC),
                place=each.place,
                error=each.error,
                times=each.times,
                effect=each.effect,
            )
            for each in reversed(recent[-_IDS:])
        ],
    )


def runner_view(world: World, id: str) -> RunnerView:
    """One runner; what runs on it are also the parts of jobs whose first host is another."""
    runner = world.runners[id]
    capacity = world.capacity.get(runner.host)
    here = [*(world.jobs[job] for job in runner.leases), *parts_of(world, runner)]
    running = sum(job.state is State.RUNNING for job in here)
    return RunnerView(
        id=id,
        host=runner.host,
        pid=runner.pid,
        connected=runner.connected,
        seats=len(runner.seats),
        running=running,
        cores=capacity.cpus // 100 if capacity else 0,
        mem_bytes=capacity.mem if capacity else 0,
        disk_bytes=capacity.disk if capacity else 0,
    )


def attention(world: World) -> list[AttentionView]:
    """What needs a person though no state shows it: jobs that never fit, and reservations in danger.

    Belongs to the loop's thread. Looks at job classes and reservations, never at all jobs.
    """
    alike: dict[str, AttentionView] = {}
    for job_class, message in world.placement.never_fit():
        if world.settings.pools and could_delegate(world, world.jobs[job_class.heap[0]].spec):
            continue  # another engine may have hosts that are large enough
        view = alike.setdefault(message, AttentionView("never_fits", [], 0, message))
        view.total += len(job_class)
        view.jobs = sorted({*view.jobs, *nsmallest(_IDS, job_class.jobs())})[:_IDS]
    found = sorted(alike.values(), key=lambda each: each.jobs)[:_MOST]
    planner = world.placement.planner
    if planner is not None:
        risks = sorted(endangered(planner.plan))[:_MOST]
        found += [AttentionView("reservation", [each.job], 1, each.message) for each in risks]
    return found
