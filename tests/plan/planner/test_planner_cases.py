"""Histories in which the planner once went wrong, as short as they can be told."""

from __future__ import annotations

from typing import Any

import pytest

from rota.plan.ask import Ask
from rota.plan.language.request import BEST, Alternative, Level, ResourceGroup
from rota.plan.language.types import Types
from rota.plan.planner.planner import Planner
from rota.plan.policy.policy import Policy, Queue
from rota.plan.policy.quotas import Quotas
from rota.plan.schedule.plan_entry import BLOCKED, RUNNING, WAITING
from rota.plan.site.resources import HostFigures, Resource, Site
from rota.plan.timeline.step_function import StepFunction


def site(cores: int, *, hosts: int = 1, usable: set[int] | None = None, mem: int | None = None) -> Site:
    resources = [Resource(id, {"host": f"n{(id - 1) * hosts // cores}", "x": id}) for id in range(1, cores + 1)]
    figures = {f"n{number}": HostFigures(mem=mem) for number in range(hosts)} if mem is not None else {}
    return Site(resources, usable=usable, hosts=figures)


def ask(number: int | str, length: float | None, where: str = "", level: str = "core", **terms: Any) -> Ask:
    group = ResourceGroup((Level(level, number),), where)
    names = {name: terms.pop(name) for name in list(terms) if name in Types.__struct_fields__}
    return Ask(alternatives=(Alternative((group,), length),), types=Types(**names), **terms)


def policy(backfill: str) -> Policy:
    return Policy(queues={"default": Queue(backfill=backfill), "besteffort": Queue(priority=0)})


def starts(planner: Planner) -> dict[int, float | None]:
    return {entry.id: entry.start for entry in planner.plan.entries.values()}


def test_who_waits_for_another_does_not_pass_those_of_better_rank_when_plans_are_made_again() -> None:
    planner = Planner(site(1), Policy())
    planner.submit(1, ask(1, 10), 0)
    planner.begin(0)
    planner.submit(2, ask(1, 10), 0)
    planner.submit(3, ask(1, 10), 0)
    planner.submit(4, ask(1, 10), 0, after=[2])
    planner.submit(5, ask(1, 10, priority=5), 0)
    assert starts(planner) == {1: 0, 5: 10, 2: 20, 3: 30, 4: 40}


def test_children_of_a_job_that_outlives_its_time_are_moved_aloud() -> None:
    planner = Planner(site(2), Policy())
    planner.submit(1, ask(1, 10), 0)
    planner.begin(0)
    planner.submit(2, ask(1, 10, "x = 2"), 0, after=[1])
    planner.tick(10)
    assert starts(planner)[2] == 70
    assert [(moved.job, moved.before, moved.now) for moved in planner.plan.moved] == [(2, 10, 70)]
    assert "job 1 runs longer" in planner.plan.moved[0].cause


def test_a_job_that_ran_into_a_reservation_leaves_it_what_it_was_granted() -> None:
    planner = Planner(site(1), Policy())
    planner.submit(1, ask(1, 50), 0)
    planner.begin(0)
    planner.submit(2, ask(1, 50, at=50.0), 0)
    planner.tick(50)
    assert planner.begin(50) == []
    planner.ended(1, 60)
    planner.submit(3, ask(1, 10), 60)
    assert starts(planner) == {2: 50, 3: 100}
    assert [begin.entry.id for begin in planner.begin(60)] == [2]
    assert planner.plan.entries[2].end == 100


@pytest.mark.parametrize(
    "terms",
    [{}, {"allowed": "p"}, {"placeholder": "p"}, {"timesharing": ("*", "*")}, {"share": 50}],
    ids=lambda terms: next(iter(terms), "plain"),
)
def test_a_reservation_kept_on_a_core_in_use_has_it_when_that_job_ends(terms: dict[str, Any]) -> None:
    planner = Planner(site(1), Policy())
    planner.adopt(1, ask(1, 1000), start=0, resources=1, now=60)
    planner.keep(2, ask(1, 50, at=50.0, **terms), 60, resources=1, alternative=0, submitted=0, serial=2)
    assert planner.begin(60) == []
    planner.ended(1, 70)
    planner.submit(3, ask(1, 10), 70)
    assert starts(planner) == {2: 50, 3: 100}
    assert [begin.entry.id for begin in planner.begin(70)] == [2]


def test_a_reservation_that_lacks_resources_waits_begins_with_fewer_or_is_over() -> None:
    planner = Planner(site(2), Policy())
    planner.submit(1, ask(2, 1000, at=10.0), 0)
    planner.submit(2, ask(2, 100, at=2000.0), 0)
    planner.change_site(site(2, usable={1}), 5)
    for now in (10, 100, 309):
        planner.tick(now)
        assert planner.begin(now) == []
        assert planner.plan.entries[1].start == 10
    assert planner.next_event() == 310
    planner.tick(310)
    assert [begin.entry.id for begin in planner.begin(310)] == [1]
    assert planner.plan.site.ids(planner.plan.entries[1].resources) == [1]
    planner.ended(1, 1010)
    planner.change_site(site(2, usable=set()), 1500)
    planner.tick(2000)
    assert planner.begin(2000) == []
    planner.tick(2100)
    assert planner.begin(2100) == []
    assert set(planner.plan.expired) == {2}


def test_who_waits_for_a_job_that_is_changed_goes_on_waiting_and_the_job_keeps_its_turn() -> None:
    planner = Planner(site(1), Policy())
    planner.submit(1, ask(1, 10), 0)
    planner.begin(0)
    for id, after in ((2, []), (3, [2]), (4, [])):
        planner.submit(id, ask(1, 10), 0, after=after)
    planner.modify(2, ask(1, 20), 0)
    assert planner.plan.entries[3].state == WAITING
    assert starts(planner) == {1: 0, 2: 10, 3: 30, 4: 40}


def test_nobody_begins_before_the_job_it_waits_for_has_really_ended() -> None:
    planner = Planner(site(2), Policy())
    planner.submit(1, ask(1, 10), 0)
    planner.begin(0)
    planner.submit(2, ask(1, 10), 0, after=[1])
    assert planner.begin(10) == []
    planner.ended(1, 10)
    assert [begin.entry.id for begin in planner.begin(10)] == [2]


def test_who_waits_for_a_besteffort_job_is_planned_when_that_has_begun() -> None:
    planner = Planner(site(2), Policy())
    planner.submit(1, ask(2, 10), 0)
    planner.begin(0)
    planner.submit(2, ask(1, 10, queue="besteffort", besteffort=True), 0)
    planner.submit(3, ask(1, 10), 0, after=[2])
    assert starts(planner) == {1: 0, 2: 10, 3: None}
    planner.ended(1, 5)
    planner.begin(5)
    assert starts(planner) == {2: 5, 3: 15}


def test_who_waits_for_a_besteffort_job_begins_when_that_is_complete_early() -> None:
    for backfill in ("none", "easy", "easy-sjbf", "conservative"):
        planner = Planner(site(2), policy(backfill))
        planner.submit(1, ask(1, 40, queue="besteffort", besteffort=True), 0)
        planner.begin(0)
        planner.submit(2, ask(2, 50), 0, after=[1])
        planner.ended(1, 10)
        assert [begin.entry.id for begin in planner.begin(10)] == [2], backfill


def test_nobody_waits_behind_a_job_that_never_begins_because_a_besteffort_job_failed() -> None:
    for backfill in ("none", "easy", "easy-sjbf", "conservative"):
        planner = Planner(site(2), policy(backfill))
        planner.submit(1, ask(1, 40, queue="besteffort", besteffort=True), 0)
        planner.begin(0)
        planner.submit(2, ask(2, 50), 0, after=[1])
        planner.submit(3, ask(2, 50), 0)
        planner.ended(1, 10, complete=False)
        assert planner.plan.entries[2].state == BLOCKED
        assert [begin.entry.id for begin in planner.begin(10)] == [3], backfill


def low(number: int, length: float, **terms: Any) -> Ask:
    return ask(number, length, queue="besteffort", besteffort=True, **terms)


def test_besteffort_jobs_that_share_hold_the_same_at_the_same_time_and_others_do_not() -> None:
    planner = Planner(site(2), Policy())
    planner.submit(1, low(2, 40, timesharing=("*", "*")), 0)
    planner.submit(2, low(2, 40, timesharing=("*", "*")), 0)
    planner.submit(3, low(2, 40), 0)
    planner.submit(4, low(2, 40, timesharing=("*", "*")), 0)
    assert starts(planner) == {1: 0, 2: 0, 3: 40, 4: 0}


def test_who_begins_ends_no_besteffort_job_with_which_it_may_share() -> None:
    planner = Planner(site(3), Policy())
    planner.submit(1, low(2, 40, timesharing=("*", "*")), 0)
    planner.submit(2, low(1, 40), 0)
    planner.begin(0)
    planner.submit(3, ask(2, 20, timesharing=("*", "*")), 0)
    assert [(begin.entry.id, begin.victims) for begin in planner.begin(0)] == [(3, [])]
    assert planner.plan.entries[3].resources == planner.plan.entries[1].resources
    planner.submit(4, ask(1, 20), 0)
    assert [(begin.entry.id, begin.victims) for begin in planner.begin(0)] == [(4, [2])]


def test_a_besteffort_job_that_is_allowed_on_a_placeholder_stays_when_that_begins() -> None:
    planner = Planner(site(1), Policy())
    planner.submit(1, low(1, 40, allowed="p"), 0)
    planner.begin(0)
    planner.submit(2, ask(1, 20, placeholder="p"), 0)
    assert [(begin.entry.id, begin.victims) for begin in planner.begin(0)] == [(2, [])]


def test_a_besteffort_job_is_not_ended_for_a_resource_that_another_holds_as_well() -> None:
    planner = Planner(site(3), Policy())
    planner.submit(1, low(2, 40, timesharing=("*", "*")), 0)
    planner.submit(2, low(1, 40, timesharing=("*", "*")), 0)
    planner.submit(3, low(1, 40), 0)
    planner.begin(0)
    planner.submit(4, ask(1, 20), 0)
    assert [(begin.entry.id, begin.victims) for begin in planner.begin(0)] == [(4, [3])]


def test_memory_of_besteffort_jobs_is_not_in_anybodys_way() -> None:
    planner = Planner(site(2, mem=4), Policy())
    planner.submit(1, ask(1, 100, mem=4, queue="besteffort", besteffort=True), 0)
    planner.begin(0)
    planner.submit(2, ask(1, 10, mem=3), 0)
    begun = planner.begin(0)
    assert [(begin.entry.id, begin.victims) for begin in begun] == [(2, [1])]


def test_who_begins_spares_besteffort_jobs_that_came_after_it_was_planned() -> None:
    planner = Planner(site(3), Policy())
    planner.submit(1, ask(3, 10), 0)
    planner.begin(0)
    planner.submit(2, ask(1, 20), 0)
    planner.submit(3, ask(1, 100, "x = 1", queue="besteffort", besteffort=True), 0)
    planner.ended(1, 5)
    assert [(begin.entry.id, begin.victims) for begin in planner.begin(5)] == [(2, [])]
    planner.begin(5)
    planner.submit(4, ask(1, 50), 5)
    assert [(begin.entry.id, begin.victims) for begin in planner.begin(5)] == [(4, [])]


def test_who_moves_aside_for_a_besteffort_job_leaves_its_place_to_the_next() -> None:
    for backfill in ("conservative", "easy", "none"):
        planner = Planner(site(2), policy(backfill))
        planner.submit(1, low(1, 1000, where="x = 1"), 0)
        planner.begin(0)
        planner.submit(2, ask(1, 50), 0)
        planner.submit(3, ask(1, 20, "x = 1"), 0)
        assert [(begin.entry.id, begin.victims) for begin in planner.begin(0)] == [(2, [])]
        assert [(begin.entry.id, begin.victims) for begin in planner.begin(0)] == [(3, [1])], backfill


def test_no_besteffort_job_begins_where_another_is_about_to_because_somebody_moved_aside() -> None:
    planner = Planner(site(2), Policy())
    planner.submit(1, low(1, 1000, where="x = 1", timesharing=("*", "*")), 0)
    planner.begin(0)
    planner.submit(2, ask(1, 50), 0)
    planner.submit(3, ask(1, 20, "x = 1"), 0)
    planner.submit(4, low(1, 1000, where="x = 1", timesharing=("*", "*")), 0)
    assert [begin.entry.id for begin in planner.begin(0)] == [2]
    assert [(begin.entry.id, begin.victims) for begin in planner.begin(0)] == [(3, [1])]


def test_who_had_its_turn_in_a_paused_pass_gets_the_place_of_one_that_then_moves_aside() -> None:
    planner = Planner(site(3), Policy())
    planner.submit(1, low(1, 1000, where="x = 1"), 0)
    planner.submit(2, ask(1, 100, "x = 3"), 0)
    planner.begin(0)
    planner.submit(3, ask(1, 50), 0)
    planner.submit(4, ask(1, 20, "x = 1"), 0)
    for id in range(5, 10):
        planner.submit(id, ask(3, 10), 0)
    planner.plan.pause_after = 1
    planner.ended(2, 0)
    assert planner.working
    assert [(begin.entry.id, begin.victims) for begin in planner.begin(0)] == [(3, [])]
    while planner.work(1):
        pass
    assert [(begin.entry.id, begin.victims) for begin in planner.begin(0)] == [(4, [1])]


def test_a_job_that_never_fits_stops_nobody_where_jobs_go_strictly_in_order() -> None:
    for backfill in ("none", "easy", "easy-sjbf"):
        planner = Planner(site(2), policy(backfill))
        planner.submit(1, ask(9, 10), 0)
        planner.submit(2, ask(1, 10), 0)
        assert [begin.entry.id for begin in planner.begin(0)] == [2]
        planner.submit(3, ask(2, 10), 0)
        planner.submit(4, ask(1, 100), 0)
        assert planner.begin(0) == [], "it would delay job 3"


def test_who_was_about_to_begin_is_not_forgotten_when_the_site_changes() -> None:
    planner = Planner(site(2), policy("easy"))
    planner.submit(1, ask(1, 10), 0)
    planner.change_site(site(2, usable={2}), 0)
    (begin,) = planner.begin(0)
    assert planner.plan.site.ids(begin.entry.resources) == [2]


def test_a_running_container_and_what_runs_in_it_outlast_a_change_of_the_site() -> None:
    planner = Planner(site(3), Policy())
    planner.submit(1, ask(2, 100, container=True), 0)
    planner.begin(0)
    planner.submit(2, ask(1, 50, inner="1"), 0)
    planner.begin(0)
    planner.change_site(site(3, usable={1, 2}), 10)
    planner.submit(3, ask(1, 20, inner="1"), 10)
    planner.submit(4, ask(2, 20, inner="1"), 10)
    assert starts(planner) == {1: 0, 2: 0, 3: 10, 4: 50}
    planner.ended(1, 20)
    assert planner.plan.entries[2].state == RUNNING
    planner.submit(5, ask(2, 10), 20)
    assert starts(planner)[5] == 50


def test_jobs_in_containers_in_containers_move_with_the_outermost() -> None:
    planner = Planner(site(2), Policy())
    planner.submit(1, ask(2, 10), 0)
    planner.begin(0)
    planner.submit(2, ask(2, 100, container=True), 0)
    planner.submit(3, ask(2, 50, container=True, inner="2"), 0)
    planner.submit(4, ask(1, 20, inner="3"), 0)
    planner.submit(5, ask(2, 30, priority=1), 0)
    assert starts(planner) == {1: 0, 2: 40, 3: 40, 4: 40, 5: 10}
    assert {moved.job for moved in planner.plan.moved} == {2, 3, 4}


def test_a_start_is_found_that_needs_what_became_free_beside_the_jobs_own_place() -> None:
    planner = Planner(site(3), Policy())
    planner.submit(1, ask(1, 10, "x = 3"), 0)
    planner.begin(0)
    planner.submit(2, ask(1, 100, "x = 1", postpone=15.0), 0)
    planner.submit(3, ask(2, 20), 0)
    assert starts(planner) == {1: 0, 2: 15, 3: 10}
    planner.ended(2, 0, complete=False)
    assert starts(planner) == {1: 0, 3: 0}
    assert planner.plan.site.ids(planner.plan.entries[3].resources) == [1, 2]


def test_who_takes_all_that_is_free_gets_more_when_more_is_free_and_never_less() -> None:
    planner = Planner(site(3), Policy())
    planner.submit(1, ask(3, 10), 0)
    planner.begin(0)
    planner.submit(2, ask(1, 50, "x = 3"), 0)
    planner.submit(3, ask(BEST, 20), 0)
    assert planner.plan.site.ids(planner.plan.entries[3].resources) == [1, 2]
    planner.ended(2, 0, complete=False)
    assert planner.plan.site.ids(planner.plan.entries[3].resources) == [1, 2, 3]


def test_a_job_for_fewer_resources_later_is_not_given_up_because_now_it_would_get_too_many() -> None:
    hosts = [Resource(id, {"host": "aabbc"[id - 1]}) for id in range(1, 6)]
    planner = Planner(Site(hosts), Policy(), quotas=Quotas({"*,*,*,/": [3, -1, -1]}, total=5))
    planner.submit(1, ask(1, 30, user="other", at=20.0), 0)
    planner.submit(2, ask(2, 10, level="host", user="me"), 0)
    assert starts(planner) == {1: 20, 2: 20}
    assert planner.plan.site.ids(planner.plan.entries[2].resources) == [3, 4, 5]


def test_somebody_whose_parent_failed_gives_back_what_it_was_promised() -> None:
    planner = Planner(site(1), Policy())
    planner.submit(1, ask(1, 10), 0)
    planner.begin(0)
    planner.submit(2, ask(1, 10), 0, after=[1])
    planner.submit(3, ask(1, 10), 0)
    planner.ended(1, 5, complete=False)
    assert planner.plan.entries[2].state == BLOCKED
    assert starts(planner) == {2: None, 3: 5}


def test_what_was_freed_between_two_questions_is_not_forgotten_by_the_second() -> None:
    steps = StepFunction()
    for start, end in ((0, 10), (10, 20), (20, 30)):
        steps.add(start, end, 1)
    assert steps.over(0, 5, 0).until == 30
    steps.add(10, 20, -1)
    assert steps.over(22, 27, 0).until == 30
    assert steps.over(5, 10, 0).until == 10


def test_who_waits_for_a_job_that_lost_its_place_with_its_container_loses_his_at_once() -> None:
    resources = [Resource(id, {"host": "a" if id <= 3 else "b"}) for id in range(1, 6)]
    planner = Planner(Site(resources), Policy())
    planner.submit(1, ask(3, 10, "host = 'a'"), 0)
    planner.submit(2, ask(2, 20, "host = 'b'"), 0)
    planner.begin(0)
    planner.submit(3, ask(1, 70, level="nodes", container=True), 0)
    planner.submit(4, ask(3, 20, inner="3", priority=1), 0)
    planner.submit(5, ask(3, 60, "host = 'a'", priority=1), 0, after=[4])
    planner.submit(6, ask(2, 50, "host = 'a'"), 0)
    assert starts(planner) == {1: 0, 2: 0, 3: 10, 4: 10, 5: 80, 6: 140}
    planner.tick(10)  # the first runs on: now the container is to be on the other host, which is too small
    assert starts(planner) == {1: 0, 2: 0, 3: 20, 4: None, 5: None, 6: 70}
    assert planner.plan.entries[5].reason is not None
    assert planner.plan.entries[5].reason.code == "dependency"
