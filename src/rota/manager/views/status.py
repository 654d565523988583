"""`rota manager status`: the manager and its runners as people see them."""

from __future__ import annotations

import os
import resource
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rota import __version__
from rota.core.attempts.noop_jobs import is_noop_runner
from rota.core.attempts.parts import parts_of
from rota.core.states import State
from rota.core.world import World
from rota.manager.loop import clock
from rota.manager.metrics.figures import resident_bytes
from rota.manager.views.attention import attention
from rota.store.home.files import mount_of
from rota.wire.views import ManagerView, RunnerView

if TYPE_CHECKING:
    from rota.manager.loop.service import Manager


def manager_view(manager: Manager) -> ManagerView:
    """`rota manager status`."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    status = manager.queries.status([])
    times = list(manager.writer.times)
    disk = os.statvfs(manager.home.path)
    return ManagerView(
        pid=os.getpid(),
        version=__version__,
        generation=manager.generation,
        deployment=manager.deployment,
        home=str(manager.home),
        store="sqlite",
        started_at=datetime.fromtimestamp(manager.started_at, UTC),
        address=manager.address,
        http=manager.gateway.url,
        counts=status.counts,
        runners=[runner_view(manager.world, id) for id in manager.world.runners if not is_noop_runner(id)],
        live_jobs=manager.world.live,
        resident_bytes=resident_bytes(),
        cpu_s=usage.ru_utime + usage.ru_stime,
        commits=manager.writer.commits,
        commit_ms=1000 * sum(times) / len(times) if times else 0.0,
        paused=manager.world.paused,
        draining=manager.world.draining,
        idle_stop_s=manager.idle_stop_s,
        disk_free_bytes=disk.f_bavail * disk.f_frsize,
        clock_off_s=None if (step := clock.steady().step) is None else round(step.by, 3),
        disk_full=disk_full(manager),
        attention=attention(manager.world),
    )


def disk_full(manager: Manager) -> str | None:
    """The disk, by where it is mounted, if it has no room for what happens, or for more jobs."""
    if not manager.writer.full and manager.store.can_accept(manager.world.live):
        return None
    return mount_of(manager.home.path)


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
