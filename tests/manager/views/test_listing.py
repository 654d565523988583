"""Lists of jobs that pages are cut from: they fit together although jobs go on, and do not pile up."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.core.changes import Changes
from rota.core.jobs.job import Spec
from rota.core.states import State
from rota.errors import BadInput
from rota.manager.views import listing
from rota.manager.views.listing import Listings, PagePosition, order_of, place_of
from rota.manager.views.queries import Queries
from rota.manager.views.selectors import parse
from rota.store.base import Clause, Order
from rota.store.memory.store import MemoryStore
from rota.store.sqlite.store import SqliteStore
from rota.wire.messages import ListPage
from rota.wire.views import JobPage
from tests.core import machine as machines
from tests.core.machine import Machine

ALL = [Clause()]
NEWEST = Order("id", descending=True)
TOP = PagePosition(0)


class Counted(Queries):
    """How often were lists found? Each takes as long as it is told."""

    found = 0
    takes = 0.0
    now = 100.0

    def ordered(self, *args: Any, **more: Any) -> Any:
        self.found += 1
        self.now += self.takes
        return super().ordered(*args, **more)


class Desk:
    """A manager with jobs, of whom pages are asked."""

    def __init__(self) -> None:
        self.machine = Machine(cpus=200)
        self.machine.with_runner()
        self.specs: dict[int, Spec] = {}
        self.queries = Counted(self.machine.world, self.machine.store, self.specs)
        self.commits = 0
        commit = self.machine.store.commit

        def counted(changes: Changes) -> None:
            commit(changes)
            self.commits += 1
            self.specs.update((row.id, msgspec.json.decode(row.spec, type=Spec)) for row in changes.specs)

        self.machine.store.commit = counted  # type: ignore[method-assign]
        self.listings = Listings(self.queries, version=lambda: self.commits, clock=lambda: self.queries.now)

    def add(self, *cmds: str, **fields: Any) -> list[int]:
        return self.machine.add(*cmds, fresh=True, **fields).added

    def page(self, *select: str, **asked: Any) -> JobPage:
        return self.listings.page(parse(list(select), last=[], now=0.0), ListPage(1, list(select), **asked))

    def ids(self, *select: str, **asked: Any) -> list[int]:
        return [job.id for job in self.page(*select, **asked).jobs]

    def whole(self, *select: str, **asked: Any) -> list[int]:
        """All pages, one after the other."""
        page = self.page(*select, **asked)
        found = [job.id for job in page.jobs]
        while page.next is not None:
            page = self.page(*select, **{**asked, "cursor": page.next})
            found += [job.id for job in page.jobs]
        return found

    def later(self, seconds: float) -> None:
        self.queries.now += seconds


@pytest.fixture(params=["memory", "sqlite"])
def desk(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    store = MemoryStore() if request.param == "memory" else SqliteStore(tmp_path, reserve=0)
    monkeypatch.setattr(machines, "MemoryStore", lambda: store)
    yield Desk()
    if isinstance(store, SqliteStore):
        store.close()


# ------------------------------------------------------------------ what is asked for


def test_orders_are_written_with_a_minus_for_the_largest_first() -> None:
    assert order_of("ended") == Order("ended")
    assert order_of("-ended") == Order("ended", descending=True)
    for wrong in ("", "-", "--id", "name", "ID", "id ", "id-"):
        with pytest.raises(BadInput):
            order_of(wrong)


def test_places() -> None:
    assert place_of(ListPage(1, [])) == PagePosition(0)
    assert place_of(ListPage(1, [], offset=30)) == PagePosition(30)
    assert place_of(ListPage(1, [], offset=-5)) == PagePosition(0)
    assert place_of(ListPage(1, [], cursor="7-200")) == PagePosition(200, 7)
    assert place_of(ListPage(1, [], offset=30, cursor="7-200")) == PagePosition(200, 7), "a cursor says it itself"


@pytest.mark.parametrize(
    "wrong", ["-1", "1 - 2", "1-2-3", "1-9999999999999999999", "1-", "1", "\u0663-\u0664", "x"]
)
def test_a_cursor_that_nobody_gave_is_refused(wrong: str) -> None:
    with pytest.raises(BadInput):
        place_of(ListPage(1, [], cursor=wrong))


def test_a_text_that_is_too_long_is_not_searched_for(desk: Desk) -> None:
    desk.add("x")
    assert desk.ids(search="y" * 1000) == []
    with pytest.raises(BadInput):
        desk.page(search="y" * 1001)


# ------------------------------------------------------------------ pages


@pytest.mark.parametrize("sort", ["id", "-id", "submitted", "-priority", "-started", "ended"])
@pytest.mark.parametrize("select", [(), ("@a",), ("state=ready",), ("state=ready,@a", "state=complete")])
def test_pages_one_after_the_other_are_the_whole_list(desk: Desk, sort: str, select: tuple[str, ...]) -> None:
    for n in range(12):
        desk.add(f"echo {n}", group="ab"[n % 2], priority=n % 3)
    desk.machine.end(1)
    desk.machine.pump()
    whole = desk.page(*select, sort=sort, limit=100)
    assert whole.next is None
    assert whole.total == len(whole.jobs) > 1
    for limit in (1, 3, len(whole.jobs)):
        assert desk.whole(*select, sort=sort, limit=limit) == [job.id for job in whole.jobs]


def test_lists_are_of_what_matches_now(desk: Desk) -> None:
    ended, running, also, waits = desk.add("a", "b", "c", "d")
    desk.machine.end(ended)
    desk.machine.pump()
    assert desk.ids("state=complete") == [ended]
    assert desk.ids("state=running", sort="id") == [running, also, waits][:2]
    assert desk.ids("state=running", "state=complete", sort="id") == [ended, running, also]
    assert desk.ids("state=ready") == [waits]
    assert desk.ids("state=failed") == []
    desk.machine.do("remove", ended)
    desk.later(1)
    assert desk.ids("state=running", "state=complete", sort="id") == [running, also]
    assert desk.ids(sort="id") == [running, also, waits]


def test_jobs_that_are_still_being_added_are_not_listed(desk: Desk) -> None:
    (there,) = desk.add("there")
    entries = [machines.Entry("more", machines.spec())]
    desk.machine.send_chunk(entries, submission="long", last=False)
    desk.machine.pump()
    desk.machine.send_chunk(entries, submission="asked", last=False, check=True)
    assert desk.ids() == [there]
    (fresh,) = desk.add("fresh")
    desk.later(1)
    assert desk.ids() == [fresh, there]


def test_beyond_the_end_there_is_nothing(desk: Desk) -> None:
    desk.add("a", "b", "c")
    for far in (3, 4, 1 << 62):
        page = desk.page(offset=far)
        assert (page.jobs, page.next, page.total) == ([], None, 3)
    page = desk.page(cursor="1-999999999999999999")
    assert (page.jobs, page.next, page.total) == ([], None, 3)


def test_another_order_lists_the_first_ten_thousand_and_says_how_many_there_are(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert listing.SORTED == 10_000
    monkeypatch.setattr(listing, "SORTED", 5)
    ids = desk.add(*(f"echo {n}" for n in range(8)))
    for select in ((), (f"{ids[0]}-{ids[-1]}",)):
        for search in ("", "echo"):
            page = desk.page(*select, sort="-submitted", limit=5, search=search)
            assert ([job.id for job in page.jobs], page.next, page.total) == (ids[:2:-1], None, 8)
            assert desk.whole(*select, sort="id", limit=3, search=search) == ids


# ------------------------------------------------------------------ while jobs go on


def test_jobs_that_come_while_somebody_turns_pages_neither_repeat_nor_hide_others(desk: Desk) -> None:
    ids = desk.add(*(f"echo {n}" for n in range(6)))
    page = desk.page(limit=2)
    desk.later(10)
    desk.add("new", "newer")
    desk.page(limit=2)
    page = desk.page(limit=2, cursor=page.next or "")
    desk.machine.end(ids[0])
    desk.machine.do("remove", ids[0])
    rest = desk.page(limit=2, cursor=page.next or "")
    assert [job.id for job in page.jobs] == [ids[3], ids[2]]
    assert [job.id for job in rest.jobs] == [ids[1]], "what has gone is not shown"


@given(
    st.lists(st.sampled_from(["add", "end", "hold", "remove", "look", "search", "wait"]), max_size=12),
    st.sampled_from(["-id", "id", "-submitted", "ended", "-priority", "-started"]),
    st.sampled_from([(), ("@a",), ("state=ready",), ("state=ready,@a", "state=complete")]),
    st.integers(1, 4),
)
def test_whatever_happens_between_pages_a_job_that_did_not_change_is_listed_once(
    happens: list[str], sort: str, select: tuple[str, ...], limit: int
) -> None:
    desk = Desk()
    for n in range(9):
        desk.add(f"echo {n}", group="ab"[n % 2], priority=n % 3)
    matched = set(desk.ids(*select, sort=sort, limit=100))
    desk.later(1)
    changed: set[int] = set()
    page = desk.page(*select, sort=sort, limit=limit)
    found = [job.id for job in page.jobs]
    waiting = [job.id for job in desk.machine.world.jobs.values() if job.state is State.READY]
    for event in [*happens, *[""] * 12]:
        if event == "add":
            changed |= set(desk.add("more", group="a"))
        elif event == "end" and desk.machine.running():
            job = min(desk.machine.running())
            desk.machine.end(job)
            changed |= {job}
        elif event in ("hold", "remove") and waiting:
            job = waiting.pop()
            desk.machine.do("kill" if event == "remove" else event, job)
            if event == "remove":
                desk.machine.do("remove", job)
            changed |= {job}
        elif event == "look":
            desk.page(*select, sort=sort, limit=limit)
        elif event == "search":
            desk.page(search=f"text {desk.queries.found}")
        elif event == "wait":
            desk.later(20)
        desk.machine.pump()
        desk.later(0.2)
        if page.next is not None:
            page = desk.page(*select, sort=sort, limit=limit, cursor=page.next)
            found += [job.id for job in page.jobs]
    assert page.next is None
    assert len(found) == len(set(found)), "a job came twice"
    assert matched - changed <= set(found) <= matched, "a job was hidden, or came from elsewhere"


def test_who_begins_at_the_top_sees_new_jobs(desk: Desk) -> None:
    desk.add("old")
    desk.page()
    (new,) = desk.add("new")
    desk.later(1)
    assert desk.ids(limit=1) == [new]


def test_who_begins_at_the_top_sees_new_jobs_after_a_moment(desk: Desk) -> None:
    (old,) = desk.add("old")
    desk.page()
    (new,) = desk.add("new")
    desk.later(0.05)
    assert desk.ids() == [old]
    desk.later(0.06)
    assert desk.ids() == [new, old]


def test_while_nothing_changes_a_list_is_found_once(desk: Desk) -> None:
    desk.add("a", "b", "c")
    for _ in range(3):
        desk.whole(limit=1)
        desk.later(90)
    assert desk.queries.found == 1
    desk.page("state=ready")
    desk.page(search="a")
    desk.page(sort="id")
    assert desk.queries.found == 4


def test_a_list_that_takes_long_is_not_found_again_and_again(desk: Desk) -> None:
    desk.queries.takes = 3.0
    desk.add("a")
    desk.page()
    for seconds, found in ((2.9, 1), (0.2, 2)):
        desk.later(seconds)
        desk.add("more")
        desk.page()
        assert desk.queries.found == found


def test_an_offset_goes_on_in_the_newest_list(desk: Desk) -> None:
    ids = desk.add("a", "b", "c", "d")
    desk.page(limit=2)
    desk.add("e")
    desk.later(60)
    assert desk.ids(offset=2) == [ids[1], ids[0]]
    desk.page(limit=2)
    assert desk.ids(offset=2) == [ids[2], ids[1], ids[0]]


def test_a_cursor_of_another_list_counts_in_the_list_that_is_asked_for(desk: Desk) -> None:
    ids = desk.add("a", "b", "c")
    cursor = desk.page(limit=1).next
    assert cursor is not None
    assert desk.ids(sort="id", cursor=cursor) == ids[1:]
    assert desk.ids(search="nothing", cursor=cursor) == []


# ------------------------------------------------------------------ what is kept


def test_a_list_is_made_anew_after_five_minutes_or_when_nobody_knows_it(desk: Desk) -> None:
    ids = desk.add("a", "b", "c")
    cursor = desk.page(limit=1).next or ""
    (new,) = desk.add("new")
    desk.later(299)
    assert desk.ids(cursor=cursor) == [ids[1], ids[0]]
    desk.later(1)
    assert desk.ids(cursor=cursor) == [ids[2], ids[1], ids[0]], "it counts from the new one"
    assert desk.ids(cursor="999-1") == [ids[2], ids[1], ids[0]]
    assert desk.ids(cursor="999-0")[0] == new


def test_few_lists_are_kept(desk: Desk) -> None:
    desk.add("a")
    for n in range(17):
        desk.page(search=f"text {n}")
        desk.later(1)
    desk.page(search="text 16")
    desk.page(search="text 1")
    assert desk.queries.found == 17
    desk.page(search="text 0")
    assert desk.queries.found == 18


def test_lists_that_nobody_reads_on_in_go_before_those_that_somebody_does(desk: Desk) -> None:
    ids = desk.add("a", "b", "c")
    page = desk.page(limit=1)
    page = desk.page(limit=1, cursor=page.next or "")
    for n in range(40):
        desk.add(f"new {n}")
        desk.later(1)
        desk.page(limit=1)
    assert desk.ids(limit=1, cursor=page.next or "") == ids[:1]


def test_a_list_that_is_found_again_and_is_the_same_is_one(desk: Desk) -> None:
    desk.add("a", "b", "c")
    first = desk.page(limit=1).next
    desk.machine.end(1)
    desk.machine.pump()
    desk.later(1)
    assert desk.page(limit=1).next == first
    assert desk.queries.found == 2


def test_long_lists_push_each_other_out_but_the_newest_stays(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "_IDS", 6)
    desk.add("a", "b", "c")
    for sort in ("id", "-id", "ended"):
        desk.page(sort=sort)
        desk.later(1)
    desk.page(sort="ended")
    desk.page(sort="-id")
    assert desk.queries.found == 3
    desk.page(sort="id")
    assert desk.queries.found == 4, "the oldest had to go"
    desk.add("d", "e", "f", "g")
    desk.later(1)
    assert len(desk.ids(sort="id")) == 7
    found = desk.queries.found
    desk.page(sort="id")
    assert desk.queries.found == found, "the newest is kept, whatever it has"
    desk.page(sort="-id")
    assert desk.queries.found == found + 1
