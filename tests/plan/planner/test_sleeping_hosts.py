"""Sleeping hosts in a plan: usable from the moment at which they can be awake, and taken last."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rota.plan.ask import Ask
from rota.plan.explain.why_waiting import why
from rota.plan.language.request import Alternative, Level, ResourceGroup
from rota.plan.language.types import Types
from rota.plan.planner.planner import Planner
from rota.plan.planner.sleeping_hosts import next_starts, ready_times
from rota.plan.policy.policy import Policy, Queue
from rota.plan.schedule.expected_end import new_end
from rota.plan.site.resources import Resource, Site

WAKE_S = 100.0


def site_of(asleep: dict[str, float | None], *, hosts: str = "abcd", cores: int = 1) -> Site:
    each = [host for host in hosts for _ in range(cores)]
    resources = [Resource(number, {"host": host}) for number, host in enumerate(each, 1)]
    return Site(resources, asleep=asleep, wake_s=WAKE_S)


def ask(number: int = 1, walltime_s: float = 50.0, level: str = "core", **fields: object) -> Ask:
    return Ask(alternatives=(Alternative((ResourceGroup((Level(level, number),)),), walltime_s),), **fields)  # type: ignore[arg-type]


def place(planner: Planner, id: int, what: Ask, now: float = 0.0) -> tuple[float | None, list[int]]:
    entry = planner.submit(id, what, now)
    return entry.start, planner.plan.site.ids(entry.resources)


def test_a_job_that_needs_a_sleeper_begins_when_that_can_be_awake() -> None:
    planner = Planner(site_of({"b": None}, hosts="ab"), Policy())
    assert place(planner, 1, ask(2)) == (WAKE_S, [1, 2])
    assert place(planner, 2, ask(1)) == (0.0, [1]), "and a short one goes on what is awake meanwhile"


def test_the_moment_moves_with_the_time_until_somebody_is_woken() -> None:
    planner = Planner(site_of({"a": None}, hosts="a"), Policy())
    assert place(planner, 1, ask(), now=30.0) == (30.0 + WAKE_S, [1])


def test_who_is_being_woken_is_expected_when_it_was_said() -> None:
    planner = Planner(site_of({"a": 20.0}, hosts="a"), Policy(), now=30.0)
    assert place(planner, 1, ask(), now=30.0) == (120.0, [1])


def test_who_is_late_is_expected_later_and_later() -> None:
    assert ready_times(site_of({"a": 20.0}, hosts="a"), 500.0) == [(new_end(20.0, 500.0), 1)]


def test_what_is_awake_is_taken_first_also_beside_sleepers() -> None:
    planner = Planner(site_of({"a": None, "c": None}), Policy())
    assert place(planner, 1, ask(3)) == (WAKE_S, [1, 2, 4])


def test_a_whole_host_that_is_awake_is_better_than_one_that_sleeps_at_the_same_start() -> None:
    planner = Planner(site_of({"a": None}, hosts="ab", cores=2), Policy())
    planner.submit(1, ask(1, 100.0, "host"), 0.0)
    assert planner.plan.site.ids(planner.plan.entries[1].resources) == [3, 4]
    assert place(planner, 2, ask(1, 100.0, "host")) == (100.0, [3, 4])


def test_a_block_in_which_everybody_is_awake_goes_before_one_in_which_only_the_first_is() -> None:
    resources = [
        Resource(number, {"host": host, "switch": switch})
        for number, (host, switch) in enumerate((("a", "s"), ("b", "s"), ("c", "t"), ("d", "t")), 1)
    ]
    site = Site(resources, levels=("switch", "host", "core"), asleep={"b": -50.0}, wake_s=WAKE_S)
    planner = Planner(site, Policy())
    planner.submit(1, ask(3, 60.0), 0.0)
    groups = (ResourceGroup((Level("switch", 1), Level("host", 2))),)
    entry = planner.submit(2, Ask(alternatives=(Alternative(groups, 50.0),)), 0.0)
    assert entry.start == 60.0, "when b is long awake"
    assert site.ids(entry.resources) == [3, 4]


def test_nothing_begins_on_a_host_that_is_still_on_its_way_and_it_does_once_it_is_there() -> None:
    planner = Planner(site_of({"a": None}, hosts="a"), Policy())
    planner.submit(1, ask(), 0.0)
    planner.change_site(site_of({"a": 0.0}, hosts="a"), 0.0)
    assert planner.plan.entries[1].start == WAKE_S
    planner.tick(WAKE_S)
    assert planner.begin(WAKE_S) == []
    planner.tick(WAKE_S + 50)
    assert planner.begin(WAKE_S + 50) == []
    planner.change_site(site_of({}, hosts="a"), WAKE_S + 60)
    assert [begin.entry.id for begin in planner.begin(WAKE_S + 60)] == [1]


def test_a_job_whose_sleeper_is_late_takes_what_becomes_free() -> None:
    planner = Planner(site_of({"b": 0.0}, hosts="ab"), Policy())
    planner.submit(1, ask(1, 1000.0), 0.0)
    planner.begin(0.0)
    planner.submit(2, ask(), 0.0)
    assert planner.plan.entries[2].start == WAKE_S
    assert planner.begin(WAKE_S) == []
    planner.ended(1, WAKE_S + 10)
    assert [begin.entry.id for begin in planner.begin(WAKE_S + 10)] == [2]
    assert planner.plan.site.ids(planner.plan.entries[2].resources) == [1]


def test_besteffort_jobs_do_not_begin_on_a_sleeper_either() -> None:
    planner = Planner(site_of({"a": 0.0}, hosts="a"), Policy())
    planner.submit(1, ask(types=Types(besteffort=True)), 0.0)
    for now in (0.0, WAKE_S, WAKE_S + 30, 500.0):
        planner.tick(now)
        assert planner.begin(now) == []


def test_why_names_the_sleepers() -> None:
    planner = Planner(site_of({"a": None, "b": None}, hosts="abc"), Policy())
    (reason,) = why(planner.plan, planner.submit(1, ask(3), 0.0))
    assert reason.code == "waking"
    assert reason.message.startswith("waking a, b; expected in 1m40s")


def test_who_waits_for_an_end_first_is_not_said_to_wait_for_a_sleeper() -> None:
    planner = Planner(site_of({"b": None}, hosts="ab"), Policy())
    planner.submit(1, ask(1, 5000.0), 0.0)
    planner.begin(0.0)
    (reason,) = why(planner.plan, planner.submit(2, ask(2), 0.0))
    assert reason.code == "resources"
    assert reason.blockers == (1,)


def test_it_is_known_when_something_begins_on_which_host() -> None:
    planner = Planner(site_of({"b": None}, hosts="abc"), Policy())
    planner.submit(1, ask(3), 0.0)
    planner.submit(2, ask(1, 30.0), 0.0)
    assert next_starts(planner.plan, ["a", "b"]) == {"a": 0.0, "b": WAKE_S}


def test_where_nobody_has_a_planned_start_the_first_is_known_all_the_same() -> None:
    planner = Planner(site_of({"a": None}, hosts="a"), Policy(queues={"default": Queue(backfill="none")}))
    planner.submit(1, ask(), 0.0)
    assert planner.plan.entries[1].start is None
    assert next_starts(planner.plan, ["a"]) == {"a": WAKE_S}


# ------------------------------------------------------------------ against trying everything

asked = st.lists(st.tuples(st.integers(1, 6), st.sampled_from((10.0, 40.0, 100.0, 300.0))), min_size=1, max_size=8)
sleepers = st.dictionaries(st.sampled_from("abcd"), st.sampled_from((None, None, -30.0, -500.0)), max_size=4)


@given(sleepers, asked)
def test_every_job_begins_at_the_first_moment_at_which_enough_is_awake_and_free(
    asleep: dict[str, float | None], jobs: list[tuple[int, float]]
) -> None:
    site = site_of(asleep, cores=2)
    planner = Planner(site, Policy())
    ready = dict.fromkeys("abcd", -1.0)
    for moment, mask in ready_times(site, 0.0):
        ready |= dict.fromkeys(site.hosts_of(mask), moment)
    assert all(moment > 0.0 for host, moment in ready.items() if host in asleep)
    held: list[tuple[float, float, set[int]]] = []
    for id, (number, length) in enumerate(jobs, 1):
        moments = sorted(
            {0.0, *(end for _start, end, _ids in held), *(each for each in ready.values() if each > 0)}
        )
        for start in moments:
            free = [
                each.id
                for each in sorted(site.resources, key=lambda each: (each.values["host"] in asleep, each.id))
                if ready[str(each.values["host"])] <= start
                and not any(a < start + length and b > start and each.id in ids for a, b, ids in held)
            ]
            if len(free) >= number:
                break
        expected = sorted(free[:number])
        held.append((start, start + length, set(expected)))
        assert place(planner, id, ask(number, length)) == (start, expected)
