"""Which cores of a host each attempt has: what the planner gives, and what the runner picks."""

from __future__ import annotations

import os

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from rota.errors import BadInput
from rota.launcher import procfs
from rota.plan.site.bitset import spans_of
from rota.plan.size import CORE, Size
from rota.runner.start.cores import ANY, Cores
from rota.wire import messages as m
from tests.runner.manager import FakeManager, ref

EIGHT = range(8)
HERE = sorted(os.sched_getaffinity(0))
ALLOWED = "grep Cpus_allowed_list /proc/self/status | cut -f2"
ONE = Size()
several = pytest.mark.skipif(len(HERE) < 2, reason="there is one core only")


def of_eight() -> Cores:
    return Cores(EIGHT, of_host=8)


def test_the_lowest_free_cores_are_picked() -> None:
    cores = of_eight()
    assert cores.pick("a", 2 * CORE).cores == {0, 1}
    assert cores.pick("b", CORE).cores == {2}
    cores.release("a")
    assert cores.pick("c", CORE).cores == {0}
    assert cores.pick("d", 3 * CORE).cores == {1, 3, 4}
    assert cores.pick("d", 3 * CORE).cores == {1, 3, 4}, "who has some keeps them"


def test_who_finds_none_free_or_asks_for_none_runs_anywhere() -> None:
    cores = of_eight()
    assert cores.pick("nothing", 0) is ANY
    cores.pick("most", 7 * CORE)
    assert cores.pick("too much", 2 * CORE) is ANY
    assert cores.pick("last", CORE).cores == {7}
    assert ANY.entry is None
    assert not ANY.binds


def test_who_shares_a_host_with_others_begins_elsewhere() -> None:
    cores = Cores({2, 4, 6}, of_host=8, first=4)
    assert cores.pick("a", CORE).cores == {4}
    assert cores.pick("b", 2 * CORE).cores == {6, 2}


def test_parts_of_a_core_share_one_until_it_is_full() -> None:
    cores = of_eight()
    assert cores.pick("half", 50).cores == {0}
    assert cores.pick("third", 33).cores == {0}
    assert cores.pick("quarter", 25).cores == {1}, "no room on the first"
    assert cores.pick("whole", CORE).cores == {2}, "not on one that parts share"
    assert cores.pick("and a half", 150).cores == {3, 1}, "the fullest with room"
    cores.release("half")
    assert cores.pick("again", 60).cores == {0}


def test_what_the_planner_gives_moves_what_was_picked() -> None:
    cores = of_eight()
    cores.pick("a", 2 * CORE)
    cores.pick("b", CORE)
    assert cores.give("planned", {1, 2}) == ["a", "b"]
    assert cores.of("planned").cores == {1, 2}
    assert cores.of("a").cores == {0, 3}
    assert cores.of("b").cores == {4}
    assert cores.give("other", {7}) == []
    assert cores.pick("c", CORE).cores == {5}


def test_with_nothing_free_it_moves_to_what_is_left_and_shares() -> None:
    cores = Cores({0, 1, 2}, of_host=3)
    cores.pick("a", 2 * CORE)
    assert cores.give("planned", {0, 1}) == ["a"]
    assert cores.of("a").cores == {2}
    assert cores.give("more", {2}) == ["a"]
    assert cores.of("a").cores == {0, 1, 2}, "nothing is left: it must run somewhere"
    assert cores.release("more") == ["a"]
    assert cores.of("a").cores == {2}
    assert cores.release("planned") == ["a"]
    assert cores.of("a").cores == {0, 1}, "as much as it asked for"


def test_the_planner_may_give_a_core_twice() -> None:
    cores = of_eight()
    cores.give("one", {3})
    cores.give("two", {3})
    cores.release("one")
    cores.pick("a", 7 * CORE)
    assert cores.of("a").cores == {0, 1, 2, 4, 5, 6, 7}
    assert cores.of("two").cores == {3}


def test_a_share_says_what_must_be_done_for_it() -> None:
    cores = Cores({2, 3}, of_host=4)
    both = cores.pick("all", 2 * CORE)
    assert (both.binds, both.fences, both.entry) == (False, True, b"ROTA_CPU_LIST=2-3")
    cores.release("all")
    one = cores.pick("one", CORE)
    assert (one.binds, one.fences, one.entry) == (True, True, b"ROTA_CPU_LIST=2")
    alone = Cores({0}, of_host=1).pick("one", CORE)
    assert (alone.binds, alone.fences, alone.entry) == (False, False, b"ROTA_CPU_LIST=0")


@given(st.sets(st.integers(0, 200), min_size=1), st.data())
def test_the_planner_counts_the_usable_cores_from_0(usable: set[int], data: st.DataObject) -> None:
    places = data.draw(st.sets(st.integers(0, len(usable) - 1), min_size=1))
    cores = Cores(usable, of_host=201)
    assert cores.named(spans_of(sorted(places))) == {sorted(usable)[place] for place in places}
    with pytest.raises(BadInput):
        cores.named(f"0-{len(usable)}")


class AnyHistory(RuleBasedStateMachine):
    """Whatever is picked, given and released."""

    def __init__(self) -> None:
        super().__init__()
        self.cores = of_eight()
        self.asked: dict[int, int] = {}
        self.given: dict[int, frozenset[int]] = {}

    @rule(owner=st.integers(0, 9), cpus=st.integers(0, 400))
    def pick(self, owner: int, cpus: int) -> None:
        known = owner in self.asked or owner in self.given
        share = self.cores.pick(owner, cpus)
        if not known and share is not ANY:
            self.asked[owner] = cpus
            assert len(share.cores) == -(-cpus // CORE)

    @rule(owner=st.integers(10, 15), some=st.frozensets(st.sampled_from(EIGHT), min_size=1))
    def give(self, owner: int, some: frozenset[int]) -> None:
        before = {other: self.cores.of(other) for other in self.asked}
        moved = self.cores.give(owner, some)
        self.given[owner] = some
        for other, share in before.items():
            assert (self.cores.of(other) is not share) == (other in moved)

    @rule(owner=st.integers(0, 15))
    def release(self, owner: int) -> None:
        self.cores.release(owner)
        self.asked.pop(owner, None)
        self.given.pop(owner, None)
        assert self.cores.of(owner) is ANY

    @invariant()
    def what_was_given_is_held_and_nobody_else_picked_it(self) -> None:
        taken: set[int] = set()
        for owner, some in self.given.items():
            assert self.cores.of(owner).cores == some
            taken |= some
        if taken != set(EIGHT):
            for owner in self.asked:
                assert self.cores.of(owner).cores.isdisjoint(taken)

    @invariant()
    def no_core_is_picked_beyond_its_hundredths(self) -> None:
        assert all(0 <= hundredths <= CORE for hundredths in self.cores._taken.values())


TestAnyHistory = AnyHistory.TestCase


# ------------------------------------------------------------------ real jobs


@pytest.fixture(params=["auto", "cgroup", "session"])
def runner(manager: FakeManager, request: pytest.FixtureRequest) -> FakeManager:
    manager.rules |= {"containment": request.param, "grace_s": 0.2}
    manager.begin()
    return manager


def waiting(name: str) -> str:
    """Says which cores it was told, as soon as it is kept to those."""
    know = f'while ! test "$({ALLOWED})" = "${{ROTA_CPU_LIST:-{spans_of(HERE)}}}"; do sleep 0.01; done'
    return f"{know}; echo $ROTA_CPU_LIST > {name}.new; mv {name}.new {name}; sleep 600 & wait"


def start(manager: FakeManager, job: int, command: str, *, size: Size = ONE, cpu_list: str = "") -> m.Grant:
    spec = manager.spec(size=size)
    grant = manager.grant(job, command, spec)
    if cpu_list:
        grant = msgspec.structs.replace(grant, allocation=m.Allocation(cpu_list=cpu_list))
    manager.work([grant], spec, seats=manager.seats(1, size))
    return grant


def words(manager: FakeManager, name: str) -> list[str]:
    path = manager.home / name
    manager.until(path.exists)
    return path.read_text().split()


def allowed(pid: int) -> set[int]:
    return os.sched_getaffinity(pid)


@several
def test_jobs_get_cores_of_their_own_and_know_them(runner: FakeManager) -> None:
    first, second = start(runner, 1, waiting("a")), start(runner, 2, waiting("b"))
    one, other = map(str, runner.picks()[:2])
    assert words(runner, "a") == [one]
    assert words(runner, "b") == [other]
    runner.send(m.Kill([ref(first)]))
    runner.wait_for([1])
    start(runner, 3, waiting("c"))
    assert words(runner, "c") == [one], "which the first has left"
    runner.send(m.Kill([ref(second)]))


def test_a_job_of_the_whole_host_has_all_its_cores(runner: FakeManager) -> None:
    everything = spans_of(HERE)
    start(runner, 1, waiting("a"), size=Size(cpus=CORE * len(HERE)))
    assert words(runner, "a") == [everything]


def test_a_job_without_cores_runs_anywhere(runner: FakeManager) -> None:
    start(runner, 1, waiting("a"), size=Size(cpus=0))
    assert words(runner, "a") == []


@several
def test_a_job_whose_core_is_given_to_another_moves_there_and_then(runner: FakeManager) -> None:
    core = runner.picks()[0]
    start(runner, 1, waiting("a"))
    assert words(runner, "a") == [str(core)]
    runner.until(lambda: runner.started)
    (pid,) = (one.pid for one in runner.started if one.job == 1)
    assert allowed(pid) == {core}
    start(runner, 2, waiting("b"), cpu_list=str(HERE.index(core)))
    assert words(runner, "b") == [str(core)]
    tree = [seen.pid for seen in procfs.table().values() if seen.session == pid and seen.alive]
    assert len(tree) >= 2
    runner.until(lambda: all(core not in allowed(one) for one in tree))
