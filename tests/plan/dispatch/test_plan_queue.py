"""The queue of a plan: job classes, of which the first job is planned; and due jobs that cannot begin yet."""

from __future__ import annotations

from rota.plan.dispatch.asks import Asks
from rota.plan.dispatch.due_jobs import DueJobs
from rota.plan.dispatch.plan_leases import ids_of, still_there
from rota.plan.dispatch.plan_queue import PlanQueue
from rota.plan.need import Need
from rota.plan.placement.queue import rank_of
from rota.plan.planner.planner import Planner
from rota.plan.policy.policy import Policy
from rota.plan.schedule.plan_entry import Begin, PlanEntry
from rota.plan.site.resources import Resource, Site
from rota.plan.size import Size
from tests.plan.entrants import Asked, Job

SITE = Site([Resource(id, {"host": f"h{(id + 1) // 2}"}) for id in range(1, 7)])
PLAIN = Need(Size(cpus=200))
ON_TERMS = Need(Size(cpus=200), terms=7)


class Everyone(dict[int, Job]):
    """Every job asks for two cores; a hundred in a row are of one specification."""

    def __init__(self, *types: str) -> None:
        self._asked = Asked(request=("core=2,walltime=0:1:0",), size=Size(cpus=200), types=types)

    def __missing__(self, job: int) -> Job:
        return Job(self._asked, 1 + job // 100, float(job))


def asks(*types: str) -> Asks:
    made = Asks()
    made.entrants = Everyone(*types)
    return made


def lined_up(need: Need, jobs: list[int], *types: str, plan: bool = True) -> PlanQueue:
    made = PlanQueue(asks(*types))
    planner = Planner(SITE, Policy()) if plan else None
    made.add(need, rank_of(0), jobs, planner=planner)
    assert made.broken() == []
    return made


def jobs_of(made: PlanQueue) -> list[list[int]]:
    return sorted(sorted(each.jobs()) for each in made.classes.values())


def test_there_are_as_many_job_classes_as_jobs_could_run_at_once() -> None:
    assert jobs_of(lined_up(PLAIN, [1, 2, 3, 4, 5, 6, 7])) == [[1, 4, 7], [2, 5], [3, 6]]


def test_jobs_of_other_groups_stand_in_other_job_classes() -> None:
    assert jobs_of(lined_up(PLAIN, [3, 6, 102, 105])) == [[3, 6], [102, 105]]


def test_without_a_plan_jobs_on_terms_wait_in_one_job_class_and_leave_it_together() -> None:
    made = lined_up(ON_TERMS, [1, 2, 3], plan=False)
    assert jobs_of(made) == [[1, 2, 3]]
    assert made.hand_over() == [(ON_TERMS, rank_of(0), [1, 2, 3])]
    assert not made.where
    assert made.broken() == []


def test_jobs_with_a_moment_of_their_own_stand_alone() -> None:
    assert jobs_of(lined_up(ON_TERMS, [1, 4, 7], "deadline=1000")) == [[1], [4], [7]]


def test_job_classes_are_planned_by_rank() -> None:
    made = lined_up(PLAIN, [4, 5, 6])
    made.add(PLAIN, rank_of(9), [8], planner=Planner(SITE, Policy()))
    assert [made.classes[key].head() for key in made.to_plan()] == [8, 4, 5, 6]


def test_when_the_first_leaves_its_job_class_should_have_another_in_the_plan() -> None:
    made = lined_up(PLAIN, [1, 4])
    (key,) = made.to_plan()
    made.fresh.clear()
    made.put_in(key, 1)
    assert (made.before(4), made.behind()) == (1, 1)
    assert made.leave(1)
    assert made.to_plan() == [key]
    assert not made.leave(4), "it was not in the plan"
    assert not made.classes
    assert made.broken() == []


def test_a_queue_that_does_not_agree_with_itself_says_so() -> None:
    made = lined_up(PLAIN, [1, 4])
    (key,) = made.classes
    made.put_in(key, 2)
    assert made.broken() == [f"plan: job 2 is first in job class {key}, where it does not wait"]
    del made.firsts[key]
    made.parked.add(key._replace(number=9))
    assert made.broken() == [f"plan: there is no job class {key._replace(number=9)}, but it is parked"]
    made.parked.clear()
    made.classes[key].gone.update((1, 4))
    assert made.broken() == [
        "plan: 0 jobs stand in job classes, 2 are known where",
        f"plan: job class {key} is empty",
    ]


# ------------------------------------------------------------------ called, and not begun


def begin(job: int) -> Begin:
    return Begin(PlanEntry(job, asks().waiting(job, ON_TERMS), 0.0), [])


def test_who_is_blocked_is_tried_when_the_last_victim_has_ended() -> None:
    due, waits = DueJobs(), begin(1)
    due.block(waits, {7, 8})
    due.ended(7)
    assert due.take() == []
    assert {begin.entry.id for begin in due.begins()} == {1}
    due.ended(8)
    assert due.take() == [waits]
    assert {begin.entry.id for begin in due.begins()} == set()


def test_who_does_not_begin_is_forgotten() -> None:
    due = DueJobs()
    due.block(begin(1), {7})
    due.stick(begin(2))
    due.stick(begin(3))
    due.forget(1)
    due.forget(2)
    due.ended(7)
    assert [each.entry.id for each in due.take()] == [3]


# ------------------------------------------------------------------ what a lease was given


def test_a_lease_keeps_what_the_site_still_has() -> None:
    assert ids_of("") == []
    assert ids_of("1-3,9") == [1, 2, 3, 9]
    assert SITE.ids(still_there(SITE, "2-3,6-9")) == [2, 3, 6]
    assert still_there(SITE, "") == 0
