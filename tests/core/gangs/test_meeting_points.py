"""Members wait for each other at points: `rota gang wait`, in the engine."""

from __future__ import annotations

from typing import Any

from rota.core.effects import EndMeeting
from rota.core.events import Asker, MemberArrived, MemberLeft
from tests.core.gangs.lab import add, lab
from tests.core.machine import Machine


class Meeting:
    """Arrivals of members, and who was answered."""

    def __init__(self, m: Machine) -> None:
        self.m = m
        self.answers: dict[int, int] = {}  #: number of the caller → exit code
        perform = m._perform

        def hear(effect: Any) -> None:
            if isinstance(effect, EndMeeting):
                self.answers[effect.to.n] = effect.exit_code
            perform(effect)

        m._perform = hear  # type: ignore[method-assign]

    def arrive(self, n: int, job: int, *, point: str = "p", wait: str = "") -> None:
        by = Asker(7, n, "ann")
        self.m.happened(MemberArrived(by=by, job=job, point=point, wait=wait or f"w{n}"))
        self.m.pump()

    def leave(self, n: int, job: int, *, lost: bool = False) -> None:
        self.m.happened(MemberLeft(by=Asker(7, n, "ann"), job=job, point="p", wait=f"w{n}", lost=lost))
        self.m.pump()


def test_all_go_on_when_the_last_one_comes() -> None:
    m = lab(2)
    web, db = add(m, "web", "db")
    here = Meeting(m)
    here.arrive(1, web)
    assert here.answers == {}
    here.arrive(2, db)
    assert here.answers == {1: 0, 2: 0}


def test_a_point_can_be_used_again() -> None:
    m = lab(2)
    web, db = add(m, "web", "db")
    here = Meeting(m)
    here.arrive(1, web)
    here.arrive(2, db)
    here.arrive(3, web)
    assert 3 not in here.answers
    here.arrive(4, db)
    assert here.answers[3] == here.answers[4] == 0


def test_asking_again_is_not_another_arrival() -> None:
    m = lab(2)
    web, db = add(m, "web", "db")
    here = Meeting(m)
    here.arrive(1, web, wait="same")
    here.leave(1, web, lost=True)
    here.arrive(2, web, wait="same")
    here.arrive(3, db)
    assert (here.answers[2], here.answers[3]) == (0, 0)


def test_one_whose_time_is_over_does_not_let_the_others_through() -> None:
    m = lab(2)
    web, db = add(m, "web", "db")
    here = Meeting(m)
    here.arrive(1, web)
    here.leave(1, web)
    here.arrive(2, db)
    assert here.answers == {}


def test_who_waits_for_a_member_that_ended_is_told() -> None:
    m = lab(2)
    web, db = add(m, "web", "db", on_member_failure="keep")
    here = Meeting(m)
    here.arrive(1, web)
    m.end(db)
    assert here.answers == {1: 1}
    here.arrive(2, web)
    assert here.answers[2] == 1


def test_a_job_that_is_in_no_gang_is_refused() -> None:
    m = lab(2)
    (job,) = m.add("job").added
    here = Meeting(m)
    here.arrive(1, job)
    assert here.answers == {1: 2}


def test_who_passed_before_a_crash_lets_the_others_pass_after_it() -> None:
    m = lab(2)
    web, db = add(m, "web", "db")
    here = Meeting(m)
    here.arrive(1, web, wait="a")
    m.happened(MemberArrived(by=Asker(7, 2, "ann"), job=db, point="p", wait="b"))
    m.commit(perform=False)
    m.crash()
    m.heal()
    here.arrive(3, db, wait="b")  # only this one had not heard of it
    assert here.answers == {3: 0}
