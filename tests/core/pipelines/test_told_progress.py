"""What jobs say about their progress is told to watchers, and never stored."""

from __future__ import annotations

from msgspec.structs import replace

from rota.core.attempts.leases import JobProgress
from rota.core.events import JobsProgressed
from rota.manager.views.pipelines import view
from tests.core.pipelines.lab import machine, pipeline, stage


def test_progress_is_told_and_shown_only_of_the_lease_that_is_valid() -> None:
    m = machine()
    m.start(pipeline([stage("build", retries=1)], {"app": ()}))
    job = m.work()["app", "build"]
    lease = m.world.jobs[job].lease
    assert lease is not None
    told = JobProgress(job, 1, lease.token, 2.0, 5.0, "linking")
    wrong = [replace(told, job=99), replace(told, attempt=2), replace(told, token=lease.token + 1)]
    m.happened(JobsProgressed(runner="another", told=[told]), JobsProgressed(runner=lease.runner, told=wrong))
    m.pump()
    assert [each for each in m.told if each.event == "progress"] == []
    m.happened(JobsProgressed(runner=lease.runner, told=[told]))
    m.pump()
    news = m.told[-1]
    assert (news.event, news.element, news.stage, news.progress) == ("progress", "app", "build", told)
    (running,) = view(m.world, m.session(), m.wall).running
    assert running.progress is not None
    assert (running.progress.done, running.progress.of, running.progress.text) == (2.0, 5.0, "linking")
    m.finish("app", "build", 75)
    m.advance(1.0)
    m.pump()
    (running,) = view(m.world, m.session(), m.wall).running
    assert (running.attempt, running.progress) == (2, None)
