"""The past of the Gantt chart: nothing is drawn on anything else, and nothing is left out or counted twice."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from itertools import pairwise
from math import inf
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.core.accounts.sums import AccountKey, AccountSums
from rota.core.changes import Changes
from rota.core.jobs.job import Spec
from rota.core.rows import AttemptRow, EndRow, JobRow, MachineRow, SpecRow, SubmissionRow
from rota.core.states import State
from rota.manager.metrics.rates import Rates
from rota.manager.requests.questions import Questions
from rota.manager.views.forecast import Forecasts
from rota.manager.views.gantt import encoded
from rota.manager.views.gantt_past import Past, PastRows, PastWindow
from rota.manager.views.gantt_rows import ChartBar, lines_needed, placed
from rota.manager.views.queries import Queries
from rota.plan.placement.given import Given, Pause
from rota.plan.site.bitset import parse_spans
from rota.plan.size import Size
from rota.store.memory.store import MemoryStore
from rota.store.past import PastSum
from rota.wire import codec
from rota.wire import messages as m
from rota.wire.gantt import GanttPast, GanttView
from tests.core.machine import Machine
from tests.core.machines.rows import machine_row

S = 1_000_000
HOSTS = {"a": 4, "b": 2}
LINES = PastRows(HOSTS, {1: ("a", 0), 2: ("a", 1), 3: ("a", 2), 4: ("a", 3), 5: ("b", 0), 6: ("b", 1)})
SPECS = {1: Spec(user="ann", cwd="/", env=1, name="one"), 2: Spec(user="bob", cwd="/", env=1, size=Size(200))}


def stored(
    *attempts: tuple[str, float, float, int, Given | None],
    outcome: str = "complete",
    kind: type[MemoryStore] = MemoryStore,
) -> MemoryStore:
    """(host, start, end, spec, given) of jobs from 1 on."""
    store = kind()
    changes = Changes()
    changes.specs = [SpecRow(n, msgspec.json.encode(spec).decode()) for n, spec in SPECS.items()]
    changes.submissions = [SubmissionRow("s", "ann", 1.0, len(attempts), "{}")]
    for job, (host, start, end, spec, gives) in enumerate(attempts, 1):
        changes.jobs.append(
            JobRow(job, f"{job}", "s", spec, "g", "ann", "true", int(State.READY), 1.0, 1.0, None, None, None)
        )
        text = None if gives is None else msgspec.json.encode(gives).decode()
        changes.attempts.append(AttemptRow(job, 1, job, "r", host, start, spec, None, text))
        changes.ends.append(
            EndRow(job, 1, outcome, 0, None, None, None, start, end, 0.0, 0, 0, None, None, None, None, None, None)
        )
    store.commit(changes)
    return store


def past_of(store: MemoryStore, since: float, until: float, limit: int = 1000) -> GanttPast:
    return Past(store, SPECS).view(PastWindow(since, until, limit), LINES, [])[0]


# ------------------------------------------------------------------ lines


@st.composite
def histories(draw: st.DrawFn) -> list[ChartBar]:
    """Bars that really had room: each begins on cores that were free; some tell which."""
    bars: list[ChartBar] = []
    free = {(host, line): 0 for host, count in HOSTS.items() for line in range(count)}
    moment = 0
    for _ in range(draw(st.integers(0, 25))):
        moment += draw(st.integers(0, 5))
        host = draw(st.sampled_from(sorted(HOSTS)))
        open_ = [line for (name, line), until in free.items() if name == host and until <= moment]
        if not open_:
            continue
        mine = open_[: draw(st.integers(1, len(open_)))]
        end = moment + draw(st.integers(1, 20))
        for line in mine:
            free[host, line] = end
        bars.append(ChartBar(host, float(moment), float(end), len(mine)))
    return bars


def assert_apart(bars: list[ChartBar], places: list[dict[str, list[int]]]) -> None:
    taken = defaultdict(list)
    for bar, place in zip(bars, places, strict=True):
        for host, lines in place.items():
            for line in lines:
                taken[host, line].append((bar.start, bar.end))
    for spans in taken.values():
        spans.sort()
        for (_start, end), (start, _end) in pairwise(spans):
            assert end <= start


@given(histories())
def test_whatever_ran_has_a_place_and_no_two_bars_lie_on_each_other(bars: list[ChartBar]) -> None:
    places = placed(bars, HOSTS)
    assert [len(place.get(bar.host, ())) for bar, place in zip(bars, places, strict=True)] == [
        bar.wanted for bar in bars
    ]
    assert_apart(bars, places)
    for host, needed in lines_needed(bars).items():
        assert needed <= HOSTS[host]


@given(histories(), st.data())
def test_what_is_known_stays_where_it_was_and_the_rest_keeps_off_it(
    bars: list[ChartBar], data: st.DataObject
) -> None:
    real = placed(bars, HOSTS)
    some = [
        bar._replace(known=place) if data.draw(st.booleans()) else bar
        for bar, place in zip(bars, real, strict=True)
    ]
    places = placed(some, HOSTS)
    assert_apart(some, places)
    for bar, place in zip(some, places, strict=True):
        if bar.known:
            assert place == bar.known


def test_what_finds_no_room_is_drawn_nowhere_and_hides_nothing() -> None:
    bars = [
        ChartBar("b", 0.0, 10.0, 2),
        ChartBar("b", 5.0, 7.0, 1),
        ChartBar("b", 10.0, inf, 1),
        ChartBar("x", 0.0, 1.0, 1),
    ]
    assert placed(bars, HOSTS) == [{"b": [0, 1]}, {}, {"b": [0]}, {}]


# ------------------------------------------------------------------ attempts

_attempts = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "gone"]),
        st.integers(1, 5000),
        st.integers(0, 3000),
        st.sampled_from([1, 2]),
        st.sampled_from(
            [
                None,
                Given(Size(100), "1,5", "0", (("a", 1), ("b", 1)), 60.0, ("0", "0")),
                Given(Size(50), "1", "0", (("a", 1),), 60.0, ("0",), pause=Pause(before_s=20.0)),
            ]
        ),
    ),
    max_size=12,
)


def core_seconds(view: GanttPast, since: float, until: float) -> float:
    """Of what is listed one by one: what was suspended is left out at the beginning."""
    total = 0.0
    for each in view.attempts:
        start, end = each.start.timestamp() + each.suspended_s, each.end.timestamp()
        total += each.cores * max(0.0, min(end, until) - max(start, since))
    return total


@given(_attempts, st.integers(0, 5000), st.integers(1, 5000))
def test_a_bar_is_from_start_to_end_and_merged_bars_have_the_same_sums(
    rows: list[tuple[str, int, int, int, Given | None]], since: int, length: int
) -> None:
    store = stored(*((host, float(at), float(at + took), spec, gives) for host, at, took, spec, gives in rows))
    first, last = float(since), float(since + length)
    view = past_of(store, first, last)
    assert [(each.id, each.start.timestamp(), each.end.timestamp()) for each in view.attempts] == sorted(
        (
            (job, float(at), float(at + took))
            for job, (_host, at, took, _spec, _given) in enumerate(rows, 1)
            if at < last and at + took > first
        ),
        key=lambda each: (each[1], each[0]),
    )
    assert view.slice_s is None
    assert view.total == len(view.attempts)
    merged = past_of(store, first, last, limit=0)
    assert merged.attempts == []
    assert merged.total == view.total == sum(each.attempts for each in merged.merged)
    if view.total:
        assert merged.slice_s
        used = sum(each.cores * merged.slice_s for each in merged.merged)
        assert used == pytest.approx(core_seconds(view, first, last), abs=1e-3)


def test_an_attempt_is_drawn_on_the_cores_it_had_and_one_of_a_host_that_is_gone_has_a_row() -> None:
    gives = Given(Size(100), "3-4,6", "2-3", (("a", 2), ("b", 1)), 60.0, ("2-3", "1"))
    view = past_of(stored(("a", 10.0, 20.0, 1, gives), ("old", 10.0, 30.0, 2, None)), 0.0, 100.0)
    one, two = view.attempts
    assert (one.lines, one.exact, one.resources, one.cores) == ([("a", "2-3"), ("b", "1")], True, "3-4,6", 3.0)
    assert (two.lines, two.exact, two.resources, two.cores) == ([("old", "0-1")], False, None, 2.0)
    assert view.lines == {"old": 2}
    assert (one.name, one.user, two.user) == ("one", "ann", "bob")


def test_a_running_job_is_drawn_beside_what_ended_before() -> None:
    store = stored(("b", 10.0, 50.0, 1, None))
    _view, places = Past(store, SPECS).view(PastWindow(0.0, 60.0, 10), LINES, [ChartBar("b", 20.0, inf, 1)])
    assert places == [{"b": [1]}]


def test_attempts_of_removed_jobs_are_missing_and_that_is_said() -> None:
    store = stored(("a", 10.0, 20.0, 1, None), ("a", 30.0, 40.0, 1, None))
    accounted = Changes()
    accounted.accounts = {AccountKey(0, "ann", "", "default"): AccountSums(attempts=2, jobs=2)}
    store.commit(accounted)
    assert past_of(store, 0.0, 100.0).removed == 0
    gone = Changes()
    gone.removed = [1]
    store.commit(gone)
    view = past_of(store, 0.0, 100.0)
    assert ([each.id for each in view.attempts], view.removed) == ([2], 1)
    assert past_of(store, 0.0, 100.0, limit=0).removed == 1


@given(_attempts, st.integers(0, 5000), st.integers(1, 5000), st.sets(st.integers(1, 12)))
def test_merged_or_not_the_same_number_is_said_to_be_removed(
    rows: list[tuple[str, int, int, int, Given | None]], since: int, length: int, removed: set[int]
) -> None:
    store = stored(*((host, float(at), float(at + took), spec, gives) for host, at, took, spec, gives in rows))
    changes = Changes()
    hours = [(at + took) // 3600 for _host, at, took, _spec, _given in rows]
    changes.accounts = {
        AccountKey(hour, "ann", "", "default"): AccountSums(attempts=hours.count(hour)) for hour in hours
    }
    gone = [job for job in removed if job <= len(rows)]
    changes.removed = gone
    store.commit(changes)
    first, last = since // 3600, (since + length) // 3600
    expected = sum(first <= hours[job - 1] <= last for job in gone)
    for limit in (0, 1000):
        assert past_of(store, float(since), float(since + length), limit).removed == expected


def test_what_is_sent_piece_by_piece_is_the_same_message() -> None:
    over = past_of(stored(("a", 10.0, 20.0, 1, None), ("old", 10.0, 30.0, 2, None)), 0.0, 100.0)
    drawn = GanttView(
        now=over.until, plan=False, hosts=[], jobs=[], left_out=0, waiting=[], waiting_total=0, past=over
    )
    whole = codec.body(drawn)
    assert bytes(encoded(drawn)) == bytes(whole)


# ------------------------------------------------------------------ hosts


def test_what_hosts_did_is_told_from_when_they_are_known_on() -> None:
    store = MemoryStore()
    changes = Changes()
    states = [(10, "idle"), (20, "drained"), (30, "busy"), (40, "away"), (50, "unseen"), (55, "asleep")]
    changes.machines = [machine_row("a", at * S, state) for at, state in states]
    store.commit(changes)
    view = past_of(store, 5.0, 60.0)
    assert [
        (each.host, each.start.timestamp(), each.end.timestamp(), each.state) for each in view.states
    ] == [
        ("a", 5.0, 10.0, "unknown"), ("b", 5.0, 60.0, "unknown"), ("a", 20.0, 30.0, "drained"),
        ("a", 40.0, 50.0, "away"), ("a", 50.0, 55.0, "unseen"), ("a", 55.0, 60.0, "asleep"),
    ]  # fmt: skip


def test_a_condition_counts_for_more_than_what_ran_on() -> None:
    store = MemoryStore()
    changes = Changes()
    told = [
        (10, "manual", "running"),
        (20, "manual", "idle"),
        (30, "broken", "idle"),
        (40, "automated", "running"),
    ]
    changes.machines = [MachineRow("a", at * S, condition, usage, "alive") for at, condition, usage in told]
    store.commit(changes)
    view = past_of(store, 10.0, 60.0)
    mine = [each for each in view.states if each.host == "a"]
    assert [(each.start.timestamp(), each.end.timestamp(), each.state) for each in mine] == [
        (10.0, 30.0, "manual"),
        (30.0, 40.0, "broken"),
    ]


@given(
    st.lists(st.tuples(st.integers(1, 100), st.sampled_from(["idle", "drained", "away", "busy"])), max_size=10),
    st.integers(0, 99),
)
def test_states_of_a_host_never_overlap(rows: list[tuple[int, str]], since: int) -> None:
    store = MemoryStore()
    changes = Changes()
    changes.machines = [machine_row("a", at * S, state) for at, state in dict(rows).items()]
    store.commit(changes)
    spans = [each for each in past_of(store, float(since), 100.0).states if each.host == "a"]
    assert all(since <= each.start.timestamp() < each.end.timestamp() <= 100 for each in spans)
    for one, two in pairwise(spans):
        assert one.end <= two.start


def test_lines_of_attempts_lie_within_their_hosts() -> None:
    rows = [("b", float(n), float(n + 30), 2, None) for n in range(20)]
    for each in past_of(stored(*rows), 0.0, 100.0).attempts:
        for host, text in each.lines:
            assert max(parse_spans(text)) < HOSTS[host]


class CountingStore(MemoryStore):
    """One that knows how often the past was summed up."""

    asked = 0

    def past_sums(self, *, since: float, until: float, slices: int) -> list[PastSum]:
        self.asked += 1
        return super().past_sums(since=since, until=until, slices=slices)


def test_pages_that_look_back_from_now_share_what_took_long_to_find(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rota.manager.views.gantt_past._LONG_S", -1.0)
    monkeypatch.setattr("rota.manager.views.gantt_past._GOOD_FOR", 1e9)
    store = stored(*[("a", n * 1000.0, n * 1000.0 + 900.0, 1, None) for n in range(1, 40)], kind=CountingStore)
    assert isinstance(store, CountingStore)
    past = Past(store, SPECS)
    views = [past.view(PastWindow(at, 40_000.0 + at, 5), LINES, [])[0] for at in (100.0, 101.0, 103.0)]
    assert store.asked == 1
    assert [each.total for each in views] == [39, 39, 39]
    assert past.view(PastWindow(20_000.0, 40_000.0, 5), LINES, [])[0].total < 39
    assert store.asked == 2


def test_only_one_looks_back_at_a_time_so_that_others_get_to_read() -> None:
    machine, now, most = Machine(), 0, 0

    async def read(_question: object) -> None:
        nonlocal now, most
        now, most = now + 1, max(most, now + 1)
        await asyncio.sleep(0)
        now -= 1

    readers: Any = SimpleNamespace(read=read)
    unused: Any = None

    async def ask(since: float | None) -> int:
        nonlocal most
        most = 0
        # New each time: a forecast that is cached for some of the five would let these begin before the others.
        questions = Questions(
            machine.world,
            machine.store,
            {},
            admission=unused,
            selection=unused,
            queries=Queries(machine.world, machine.store, {}),
            listings=unused,
            forecasts=Forecasts(machine.world, Rates(), readers),
            rates=unused,
            outputs=unused,
            status=unused,
            readers=readers,
            settings=unused,
        )
        await asyncio.gather(*(questions.answer(unused, m.Gantt(n, since)) for n in range(1, 6)))
        return most

    assert asyncio.run(ask(1.0)) == 1
    assert asyncio.run(ask(None)) == 5
