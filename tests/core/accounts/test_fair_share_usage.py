"""What fair share counts is what the accounts say, also after a restart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.core import events
from rota.core.accounts.accounting import HOUR_S
from rota.core.accounts.fair_share_usage import usage_now
from rota.core.world import World
from rota.plan.placement.queue import rank_of
from rota.plan.policy.policy import FairShare
from tests.core.machine import Machine

FOREVER = FairShare(half_life_s=1e12)


def restarted(machine: Machine) -> World:
    """A world that knows only what the store does."""
    return machine.recovered()


@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.sampled_from("pq"), st.floats(0.5, 9 * HOUR_S)),
        min_size=1,
        max_size=5,
    )
)
def test_after_a_restart_everybody_has_used_what_they_had_used(ran: list[tuple[str, str, float]]) -> None:
    machine = Machine()
    machine.with_runner()
    for number, (user, project, seconds) in enumerate(ran):
        (job,) = machine.add(f"{number}", user=user, project=project).added
        machine.advance(seconds)
        machine.end(job)
        machine.pump()
    before = usage_now(machine.world, FOREVER, machine.wall)
    after = usage_now(restarted(machine), FOREVER, machine.wall)
    for user in "ab":
        expected = sum(seconds for own, _project, seconds in ran if own == user)
        assert before.used(user, machine.wall) == pytest.approx(expected, abs=0.01)
        assert after.used(user, machine.wall) == pytest.approx(expected, abs=0.01)
        assert after.asked(user, machine.wall) == pytest.approx(before.asked(user, machine.wall), abs=0.01)
    for project in "pq":
        expected = sum(seconds for _user, own, seconds in ran if own == project)
        assert after.used_by_project(project, machine.wall) == pytest.approx(expected, abs=0.01)


def test_what_runs_counts_before_it_has_ended() -> None:
    machine = Machine()
    machine.with_runner()
    machine.add("a", user="ann", project="p")
    machine.advance(500.0)
    machine.pump()
    usage = usage_now(machine.world, FOREVER, machine.wall)
    assert usage.used("ann", machine.wall) == pytest.approx(500.0)


def by_share(machine: Machine, **shares: float) -> None:
    queue = {"order": "fairshare", "shares": {f"project:{name}": share for name, share in shares.items()}}
    machine.happened(events.SiteChanged(by=None, changes=[("queue", "default", queue)], about="", base=None))
    machine.pump()


def codes(machine: Machine, job: int) -> list[str]:
    need = machine.world.jobs[job].need
    return [each.code for each in machine.world.placement.why(need, rank_of(0), job)]


def test_use_from_before_there_was_a_plan_counts_in_it() -> None:
    machine = Machine(cpus=100)
    machine.with_runner()
    for project, seconds in (("p", 900.0), ("q", 100.0)):
        (job,) = machine.add(project, user="ann", project=project).added
        machine.advance(seconds)
        machine.end(job)
        machine.pump()
    by_share(machine, p=0.5, q=0.5)
    (first,) = machine.add("first", user="ann", project="p").added
    machine.pump()
    (p,) = machine.add("p again", user="ann", project="p").added
    (q,) = machine.add("q again", user="ann", project="q").added
    machine.pump()
    assert "share" in codes(machine, p)
    machine.end(first)
    machine.pump()
    assert q in machine.running(), "its project has used less of its share"
    assert p not in machine.running()
    assert "share" not in codes(machine, p), "who went first has begun"


def test_the_half_life_can_be_changed_while_jobs_wait() -> None:
    machine = Machine(cpus=100)
    machine.with_runner()
    (job,) = machine.add("long ago", user="ann", project="p").added
    machine.advance(900.0)
    machine.end(job)
    machine.pump()
    machine.advance(36_000.0)
    (job,) = machine.add("just now", user="ann", project="q").added
    machine.advance(100.0)
    machine.end(job)
    machine.pump()
    by_share(machine, p=0.5, q=0.5)
    (first,) = machine.add("first", user="bob", project="r").added
    machine.pump()
    (p,) = machine.add("p again", user="ann", project="p").added
    (q,) = machine.add("q again", user="ann", project="q").added
    machine.pump()
    changes = [("setting", "fair_share", {"half_life_s": 3600.0})]
    machine.happened(events.SiteChanged(by=None, changes=changes, about="", base=None))
    machine.pump()
    machine.end(first)
    machine.pump()
    assert p in machine.running(), "ten half-lives later nine times as much is less"
    assert q not in machine.running()
