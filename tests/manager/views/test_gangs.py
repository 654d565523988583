"""Gangs as they are shown."""

from __future__ import annotations

from rota.manager.views.gangs import view
from tests.core.gangs.lab import add, lab


def test_members_that_end_while_the_gang_is_looked_up_are_shown_as_ended() -> None:
    m = lab(2)
    jobs = add(m, "a", "b")
    m.pump()
    while m.commit():
        pass
    members = m.store.jobs(jobs)
    specs = {job.spec_id: job.spec for job in m.world.jobs.values()}
    for job in jobs:
        m.end(job)
    m.pump()
    assert not m.world.jobs.keys() & set(jobs), "they have left memory"
    shown = view(m.world, specs, "g", members)
    assert (shown.state, [each.state for each in shown.members]) == ("complete", ["complete"] * 2)
