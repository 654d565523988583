"""The manager tells what changed, gathered, once for all who listen, and gathers nothing while nobody does."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from rota.core.jobs.job import Condition
from rota.core.states import State
from rota.core.world import MOST_TOUCHED
from rota.errors import BadInput
from rota.manager.watch import feed as module
from rota.manager.watch.feed import Feeds
from rota.wire import messages as m
from rota.wire.views import FeedView
from tests.core.jobs.test_modification import modify
from tests.core.machine import Machine


class _Peer:
    def __init__(self, id: int) -> None:
        self.id = id
        self.told: list[FeedView] = []

    def send(self, message: m.Item) -> None:
        self.told.append(msgspec.msgpack.decode(message.body, type=FeedView))


class _World:
    def __init__(self) -> None:
        self.counts: Any = defaultdict(lambda: [0] * (max(State) + 1))
        self.jobs: dict[int, Any] = {}
        self.runners: dict[str, Any] = {}
        self.outcomes: dict[int, int] = {}
        self.touched: dict[int, tuple[State, int]] | None = None
        self.site_version = 0
        self.paused = self.draining = False
        self.placement = SimpleNamespace(limits=[])

    def outcome(self, id: int) -> int:
        return self.outcomes.get(id, 0)


class _Manager:
    def __init__(self) -> None:
        self.world = _World()
        self.commits = 0

    async def committed(self) -> None:
        self.commits += 1
        await asyncio.sleep(0)

    def job(self, id: int, state: State, group: str = "g") -> None:
        """A job moves."""
        self.world.counts[group][state] += 1
        self.world.jobs[id] = SimpleNamespace(state=state)
        if self.world.touched is not None:
            self.world.touched[id] = (state, 1)


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_GATHER_S", 0.001)


async def _told(peer: _Peer, number: int) -> list[FeedView]:
    async with asyncio.timeout(30):
        while len(peer.told) < number:
            await asyncio.sleep(0.001)
    return peer.told


def _run(test: Any) -> None:
    async def run() -> None:
        manager = _Manager()
        await test(manager, Feeds(manager.world, committed=lambda: manager.committed()))  # type: ignore[arg-type]

    asyncio.run(run())


def test_the_first_thing_is_how_everything_stands():
    async def test(manager, feeds):
        manager.job(1, State.READY)
        peer = _Peer(1)
        await feeds.open(peer, 7)
        (first,) = peer.told
        assert (first.counts, first.jobs, first.groups) == ({"ready": 1}, [], {})

    _run(test)


def test_what_happens_close_together_is_told_together():
    async def test(manager, feeds):
        peer = _Peer(1)
        await feeds.open(peer, 7)
        for id in (1, 2, 3):
            manager.job(id, State.RUNNING)
            feeds.changed()
        news = (await _told(peer, 2))[1]
        assert [job[0] for job in news.jobs] == [1, 2, 3]
        assert news.groups == {"g": {"running": 3}}
        assert news.counts == {"running": 3}

    _run(test)


def test_nothing_is_said_when_nothing_changed():
    async def test(manager, feeds):
        peer = _Peer(1)
        await feeds.open(peer, 7)
        feeds.changed()
        await asyncio.sleep(0.05)
        assert len(peer.told) == 1

    _run(test)


def test_news_leave_only_when_they_are_on_disk():
    async def test(manager, feeds):
        peer = _Peer(1)
        await feeds.open(peer, 7)
        on_disk = asyncio.Event()

        async def committed() -> None:
            await on_disk.wait()

        manager.committed = committed
        manager.job(1, State.RUNNING)
        feeds.changed()
        await asyncio.sleep(0.05)
        assert len(peer.told) == 1
        on_disk.set()
        assert len(await _told(peer, 2)) == 2

    _run(test)


def test_what_happens_while_something_is_told_is_told_next():
    async def test(manager, feeds):
        peer = _Peer(1)
        await feeds.open(peer, 7)
        for id in range(1, 51):
            manager.job(id, State.RUNNING)
            feeds.changed()
            await asyncio.sleep(0.0005)
        await _told(peer, 2)
        async with asyncio.timeout(30):
            while {job[0] for news in peer.told for job in news.jobs} != set(range(1, 51)):
                await asyncio.sleep(0.001)

    _run(test)


def test_many_jobs_are_not_named():
    async def test(manager, feeds):
        peer = _Peer(1)
        await feeds.open(peer, 7)
        for id in range(1, 502):
            manager.job(id, State.READY)
        feeds.changed()
        news = (await _told(peer, 2))[1]
        assert (news.many, news.jobs, news.groups, news.counts) == (True, [], {}, {"ready": 501})

    _run(test)


def test_all_hear_the_same_and_it_is_gathered_once():
    async def test(manager, feeds):
        peers = [_Peer(id) for id in range(5)]
        for peer in peers:
            await feeds.open(peer, 1)
        before = manager.commits
        manager.job(1, State.READY)
        feeds.changed()
        for peer in peers:
            assert (await _told(peer, 2))[1] == peers[0].told[1]
        assert manager.commits == before + 1

    _run(test)


def test_while_nobody_listens_nothing_is_gathered():
    async def test(manager, feeds):
        assert manager.world.touched is None
        feeds.changed()
        assert feeds._telling is None
        peer = _Peer(1)
        await feeds.open(peer, 7)
        assert manager.world.touched == {}
        feeds.close(peer, 8)
        assert manager.world.touched == {}
        feeds.close(peer)
        assert manager.world.touched is None

    _run(test)


def test_groups_and_jobs_that_are_gone_are_told_as_gone():
    async def test(manager, feeds):
        manager.job(1, State.READY)
        peer = _Peer(1)
        await feeds.open(peer, 7)
        manager.world.counts["g"][State.READY] = 0
        del manager.world.jobs[1]
        manager.world.outcomes[1] = 255
        manager.world.touched[1] = (State.READY, 0)
        feeds.changed()
        news = (await _told(peer, 2))[1]
        assert (news.groups, news.jobs) == ({"g": {}}, [(1, "removed", 0)])

    _run(test)


def test_other_subjects_are_named():
    async def test(manager, feeds):
        peer = _Peer(1)
        await feeds.open(peer, 7)
        manager.world.paused = True
        manager.world.site_version = 1
        feeds.changed()
        assert sorted((await _told(peer, 2))[1].what) == ["manager", "site"]
        manager.world.placement.limits.append("blast")
        manager.world.runners["r"] = SimpleNamespace(id="r", connected=True)
        feeds.changed()
        assert sorted((await _told(peer, 3))[2].what) == ["limits", "runners"]

    _run(test)


def test_one_connection_may_not_listen_without_end():
    async def test(manager, feeds):
        peer = _Peer(1)
        for n in range(8):
            await feeds.open(peer, n)
        with pytest.raises(BadInput, match="feeds are open"):
            await feeds.open(peer, 9)
        await feeds.open(_Peer(2), 1)

    _run(test)


# ------------------------------------------------------------------ what counts as a change


@pytest.fixture
def watched() -> Machine:
    """An engine whose changes somebody wants to know."""
    machine = Machine()
    machine.with_runner()
    machine.world.touched = {}
    return machine


def _touched(machine: Machine) -> set[int]:
    found, machine.world.touched = machine.world.touched, {}
    assert found is not None
    return set(found)


def test_new_jobs_are_named_also_those_that_only_wait(watched: Machine):
    jobs = watched.add("a", "b").added
    assert _touched(watched) == set(jobs)
    waiting = watched.add("c", after=((jobs[0], Condition.OK, False),)).added
    assert _touched(watched) == set(waiting)


def test_jobs_that_are_modified_held_released_or_removed_are_named(watched: Machine):
    (first,) = watched.add("a", fresh=True).added
    (job,) = watched.add("b", after=((first, Condition.OK, False),)).added
    _touched(watched)
    modify(watched, job, priority=77)
    assert _touched(watched) == {job}
    for verb in ("hold", "release", "remove"):
        watched.do(verb, job, **({"waiting": True} if verb == "remove" else {}))
        assert _touched(watched) == {job}, verb


def test_an_ended_job_that_left_memory_is_named_when_it_is_modified_or_removed(watched: Machine):
    (job,) = watched.add("a").added
    watched.end(job, exit_code=1)
    watched.pump()
    assert job not in watched.world.jobs
    _touched(watched)
    modify(watched, job, priority=77)
    assert _touched(watched) == {job}
    watched.do("remove", job)
    assert _touched(watched) == {job}


def test_of_very_many_new_jobs_no_more_are_remembered_than_it_takes_to_know(watched: Machine):
    watched.add(*(f"c{n}" for n in range(3 * MOST_TOUCHED)))
    assert len(_touched(watched)) == MOST_TOUCHED + 1


@pytest.mark.parametrize(("waiting", "named"), [(3, True), (30, False)])
def test_a_few_jobs_whose_promise_is_moved_are_named_but_not_a_whole_queue(
    watched: Machine, waiting: int, named: bool
):
    _first, *rest = (
        watched.add("a", request=("core=4,walltime=1",), name=f"c{n}", fresh=True).added[0]
        for n in range(waiting + 1)
    )
    _touched(watched)
    (urgent,) = watched.add("urgent", request=("core=4,walltime=1",), priority=200).added
    assert _touched(watched) == {urgent, *(rest if named else ())}
