"""The site's expiry hook in the engine: when it is asked whether a job gets more time, and what follows."""

from __future__ import annotations

from typing import Any

import pytest

from rota.core import effects as e
from rota.core.attempts.suspension_phases import walltime_of
from rota.core.hooks.expiry import AskExpiryHook, ExpiryHookAnswered, ask_before_expiry
from rota.core.states import State
from tests.core.machine import LOST_AFTER_S, Entry, Machine, spec
from tests.core.test_planned import add


class Asked(Machine):
    """Remembers what the hook was asked, instead of running it."""

    def _boot(self) -> None:
        super()._boot()
        self.asked: list[AskExpiryHook] = []
        self.orders: list[e.ChangeWalltime] = []
        ask_before_expiry(self.world, 60.0)

    def _perform(self, effect: e.Effect) -> None:
        if isinstance(effect, e.ChangeWalltime):
            self.orders.append(effect)
        if isinstance(effect, AskExpiryHook):
            self.asked.append(effect)
        else:
            super()._perform(effect)

    def answers(self, more_s: float = 0.0, wrong: str = "", *, asked: AskExpiryHook | None = None) -> None:
        asked = asked or self.asked.pop()
        self.happened(
            ExpiryHookAnswered(job=asked.job, attempt=asked.attempt, token=asked.token, more_s=more_s, wrong=wrong)
        )
        self.pump()

    def pass_time(self, seconds: float) -> None:
        """Time passes, and all runners are heard meanwhile."""
        while seconds > 0:
            self.advance(min(seconds, 20.0))
            seconds -= 20.0
            for model in self.runners.values():
                model.report()
            self.pump()

    def jobs_asked(self) -> list[int]:
        return [each.job for each in self.asked]


@pytest.fixture
def m() -> Asked:
    """Two hosts of two cores, with runners."""
    return machine()


def machine(hosts: int = 2) -> Asked:
    made = Asked(cpus=200, hosts=hosts)
    for host in made.capacity:
        made.join(made.start_runner(host))
    made.pump()
    return made


def walltime(m: Machine, job: int) -> float | None:
    lease = m.world.jobs[job].lease
    assert lease is not None
    return walltime_of(m.world.jobs[job], lease)


def told(m: Machine, job: int) -> list[str]:
    return [event.text for event in m.store.events(job) if event.kind in ("expiry_hook", "walltime")]


def test_the_hook_is_asked_once_before_the_walltime_is_over(m: Asked) -> None:
    job = add(m, walltime_s=600.0, project="p")
    m.pass_time(520)
    assert m.asked == []
    m.pass_time(40)
    (asked,) = m.asked
    assert asked.job == job
    assert asked.about["ROTA_PROJECT"] == "p"
    about = {name: asked.about[name] for name in ("ROTA_WALLTIME_S", "ROTA_ASKED_WALLTIME_S", "ROTA_LEFT_S")}
    assert about == {"ROTA_WALLTIME_S": "600", "ROTA_ASKED_WALLTIME_S": "600", "ROTA_LEFT_S": "60"}
    m.answers()
    m.pass_time(20)
    assert m.asked == []
    assert walltime(m, job) == 600
    assert told(m, job) == ["gives it no more time"]


def test_more_time_is_given_and_asked_for_again_before_that_is_over(m: Asked) -> None:
    job = add(m, walltime_s=600.0)
    m.pass_time(560)
    m.answers(300.0)
    assert walltime(m, job) == 900
    assert [order.walltime_s for order in m.orders] == [900]
    assert told(m, job) == ["5m more from the site's expiry hook", "its walltime is 15m now"]
    m.pass_time(240)
    assert m.asked == []
    m.pass_time(60)
    assert m.jobs_asked() == [job]
    assert m.asked[0].about["ROTA_WALLTIME_S"] == "900"
    assert m.asked[0].about["ROTA_ASKED_WALLTIME_S"] == "600"


def test_a_short_job_is_asked_about_after_half_of_its_time(m: Asked) -> None:
    add(m, walltime_s=40.0)
    m.pass_time(19)
    assert m.asked == []
    m.pass_time(2)
    assert len(m.asked) == 1


def test_nobody_is_asked_about_jobs_without_a_walltime_or_that_have_ended(m: Asked) -> None:
    add(m)
    ended = add(m, walltime_s=100.0)
    m.pass_time(20)
    m.end(ended)
    m.pass_time(200)
    assert m.asked == []


def test_an_answer_that_comes_too_late_changes_nothing(m: Asked) -> None:
    job = add(m, walltime_s=100.0)
    m.pass_time(60)
    asked = m.asked.pop()
    m.end(job)
    m.answers(300.0, asked=asked)
    assert m.orders == []


def test_a_failure_of_the_hook_is_told_and_the_job_ends_as_ever(m: Asked) -> None:
    job = add(m, walltime_s=100.0)
    m.pass_time(60)
    m.answers(wrong="hook failed: exit 1")
    assert walltime(m, job) == 100
    assert told(m, job) == ["hook failed: exit 1"]
    m.pass_time(20)
    assert m.asked == []


def test_time_that_was_promised_to_others_is_not_given(m: Asked) -> None:
    job = add(m, request="nodes=2,walltime=0:10:0")
    other = add(m, request="nodes=2,walltime=0:10:0", at=m.wall + 700.0)
    m.pass_time(560)
    m.answers(3600.0)
    lease = m.world.jobs[job].lease
    assert lease is not None
    assert lease.given is not None
    assert 600 <= (lease.given.walltime_s or 0) <= 700
    assert lease.given.more_s > 3000
    assert m.world.jobs[other].state is State.READY


def test_a_user_who_has_given_more_time_already_is_not_overruled(m: Asked) -> None:
    job = add(m, walltime_s=600.0)
    m.pass_time(500)
    m.do("walltime", job, seconds=3000.0)
    m.pass_time(100)
    assert m.asked == []


def test_a_walltime_that_was_lowered_is_asked_about_in_time(m: Asked) -> None:
    job = add(m, walltime_s=6000.0)
    m.pass_time(100)
    m.do("walltime", job, seconds=200.0)
    m.pass_time(60)
    assert m.jobs_asked() == [job]


def test_suspended_time_does_not_count(m: Asked) -> None:
    job = add(m, walltime_s=600.0)
    m.pass_time(500)
    m.do("suspend", job)
    m.pass_time(500)
    assert m.asked == []
    m.do("resume", job)
    m.pass_time(20)
    assert m.asked == []
    m.pass_time(40)
    assert m.jobs_asked() == [job]


def test_a_job_that_was_suspended_meanwhile_is_asked_about_again(m: Asked) -> None:
    job = add(m, walltime_s=600.0)
    m.pass_time(560)
    asked = m.asked.pop()
    m.do("suspend", job)
    m.answers(300.0, asked=asked)
    assert m.orders == []
    m.do("resume", job)
    m.pass_time(20)
    assert m.jobs_asked() == [job]


def test_a_lost_job_is_asked_about_when_it_is_heard_again(m: Asked) -> None:
    job = add(m, walltime_s=600.0)
    m.pass_time(460)
    m.advance(LOST_AFTER_S + 1)
    m.pump()
    assert m.state(job) is State.LOST
    m.advance(20)
    assert m.asked == []
    m.pass_time(20)
    assert m.state(job) is State.RUNNING
    m.pass_time(15)
    assert m.jobs_asked() == [job]


def test_a_restart_asks_again(m: Asked) -> None:
    job = add(m, walltime_s=600.0)
    m.pass_time(560)
    assert m.jobs_asked() == [job]
    m.crash()
    for model in m.runners.values():
        m.join(model)
    m.pass_time(20)
    assert m.jobs_asked() == [job]
    m.answers(300.0)
    assert walltime(m, job) == 900


def gang(m: Asked, *walltimes: float, **fields: Any) -> list[int]:
    entries = [
        Entry(f"run {i}", spec(gang="g", name=f"m{i}", walltime_s=each, request=("nodes=1",), **fields))
        for i, each in enumerate(walltimes)
    ]
    added: list[int] = m.answer(m.send_chunk(entries, fresh=True)).added
    return added


def test_a_gang_is_asked_about_once_and_all_its_members_get_the_time() -> None:
    m = machine()
    first, second = gang(m, 600.0, 600.0)
    m.pass_time(560)
    assert m.jobs_asked() == [first]
    assert m.asked[0].about["ROTA_GANG"] == "g"
    m.answers(300.0)
    assert (walltime(m, first), walltime(m, second)) == (900, 900)
    m.pass_time(60)
    assert m.asked == []


def test_a_member_that_lasts_longer_is_asked_about_in_its_turn() -> None:
    m = machine()
    first, second = gang(m, 600.0, 1200.0, on_member_failure="keep")
    m.pass_time(560)
    assert m.jobs_asked() == [first]
    m.answers()
    m.pass_time(20)
    m.end(first)
    m.pass_time(580)
    assert m.jobs_asked() == [second]
