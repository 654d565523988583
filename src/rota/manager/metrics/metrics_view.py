"""The answer to `metrics`: all figures at one moment."""

from __future__ import annotations

import os
import resource
from collections.abc import Mapping

from rota.core.bugs.kinds import KINDS
from rota.core.world import World
from rota.manager.loop import clock
from rota.manager.loop.deployment import Deployment
from rota.manager.loop.readers import Readers
from rota.manager.loop.writer import Writer
from rota.manager.metrics.counters import Counters, quantiles, resident_bytes
from rota.manager.metrics.gauges import labelled
from rota.manager.peers.peer import Peer
from rota.manager.views.queries import Queries
from rota.plan.planner.endangered import endangered
from rota.wire.views import MetricsView


class ManagerMetrics:
    """Gathers figures from the components that keep them."""

    def __init__(
        self,
        deployment: Deployment,
        world: World,
        *,
        figures: Counters,
        writer: Writer,
        queries: Queries,
        peers: Mapping[int, Peer],
        readers: Readers,
    ) -> None:
        self._deployment = deployment
        self._world = world
        self._figures = figures
        self._writer = writer
        self._queries = queries
        self._peers = peers
        self._readers = readers

    async def view(self) -> MetricsView:
        """Everything at this moment. What takes time to count is counted off the loop."""
        count = labelled(self._world, clock.now())
        found = self._unlabelled()
        found.labelled = await self._readers.read(count)
        return found

    def _unlabelled(self) -> MetricsView:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        world, figures = self._world, self._figures
        planner, disk = world.placement.planner, os.statvfs(self._deployment.home.path)
        totals = {
            "commits": float(self._writer.commits),
            "cpu_seconds": usage.ru_utime + usage.ru_stime,
            "started": float(figures.started),
        }
        totals |= {f"ended_{state}": float(number) for state, number in figures.settled.items()}
        totals |= {f"bugs_{kind}": float(world.bugs.by_kind.get(kind, 0)) for kind in KINDS}
        return MetricsView(
            counts=self._queries.status([]).counts,
            totals=totals,
            gauges={
                "runners": float(sum(1 for runner in world.runners.values() if runner.connected)),
                "live_jobs": float(world.live),
                "connections": float(len(self._peers)),
                "resident_bytes": float(resident_bytes()),
                "disk_full": float(self._writer.full),
                "paused": float(world.paused),
                "draining": float(world.draining),
                "safe_mode": float(bool(world.bugs.safe_mode)),
                "start_time_seconds": self._deployment.started_at,
                "last_commit_time_seconds": self._writer.last_at,
                "disk_free_bytes": float(disk.f_bavail * disk.f_frsize),
                "reservations": float(len(planner.plan.reserved) if planner is not None else 0),
                "reservations_in_danger": float(
                    sum(1 for _ in endangered(planner.plan)) if planner is not None else 0
                ),
            },
            quantiles={
                "commit": quantiles(self._writer.times),
                "decision": quantiles(figures.decisions),
                "plan": quantiles(figures.plans),
                "wait": quantiles(figures.waits),
            },
            histograms={
                "commit": self._writer.histogram.view(),
                "decision": figures.decision_histogram.view(),
                "plan": figures.plan_histogram.view(),
                "wait": figures.wait_histogram.view(),
            },
        )
