"""Snapshots: what the types promise, and that no history of the one side is ever seen on the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, NamedTuple

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from msgspec import Struct

from rota.errors import Bug
from rota.plan.ask import Ask
from rota.plan.explain.whatif import ask_snapshot
from rota.plan.planner.planner import Planner
from rota.plan.policy.policy import Policy, Queue
from rota.plan.policy.quotas import Quotas
from rota.plan.site.resources import Resource, Site
from rota.plan.snapshot import AT_REST, CACHE, Unchanging, snapshot, state
from tests.dose import histories
from tests.plan.fingerprint import everything
from tests.plan.planner.test_planner_machine import QUEUES, Plans

# ------------------------------------------------------------------ what types promise


class Point(Struct, eq=False, gc=False):
    at: int
    near: tuple[int, ...] = ()


class Pair(NamedTuple):
    name: str
    points: list[Point]


class Place(Unchanging):
    def __init__(self) -> None:
        self.memo: dict[str, int] = {}


@state
class Base:
    points: dict[int, Point]
    order: list[Point]
    pairs: list[Pair]
    twice: list[int]
    same: list[int]
    names: set[str]
    fixed: Mapping[str, int]
    place: Place
    head: Point | None
    mixed: list[float] | str | None
    known: Annotated[dict[int, int], CACHE]
    work: Annotated[object | None, AT_REST]

    def __init__(self) -> None:
        self.points = {at: Point(at) for at in range(3)}
        self.order = [self.points[2], self.points[0], self.points[2]]
        self.pairs = [Pair("a", [self.points[1], Point(9)])]
        self.twice = self.same = [1, 2]
        self.names, self.fixed, self.place = {"x"}, {"y": 1}, Place()
        self.head, self.mixed, self.known, self.work = self.points[0], [1.0], {1: 1}, None


@state
class Derived(Base):
    more: list[int]

    def __init__(self) -> None:
        Base.__init__(self)
        self.more = [1]


@pytest.mark.parametrize("kind", [Base, Derived])
def test_what_can_change_is_copied_and_what_cannot_is_shared(kind: type[Base]) -> None:
    live = kind()
    taken = snapshot(live)
    assert everything(taken, without=("known",)) == everything(live, without=("known",))
    assert taken.known == {}
    assert taken.place is live.place
    assert taken.fixed is live.fixed
    assert taken.twice is taken.same, "what was one object is one object"
    assert taken.order[0] is taken.order[2] is taken.points[2]
    assert taken.pairs[0].points[0] is taken.points[1]
    assert taken.head is taken.points[0]
    before = everything(taken)
    live.points[0].at, live.points[7] = 5, Point(7)
    for changed in (live.order, live.pairs, live.pairs[0].points, live.twice, live.names, live.mixed):
        changed.clear()
    assert everything(taken) == before
    if isinstance(taken, Derived):
        assert taken.more == [1], "a subclass may have more fields"
        assert taken.more is not live.more


def test_a_field_that_is_not_declared_cannot_be_set() -> None:
    with pytest.raises(AttributeError):
        Base().extra = 1  # type: ignore[attr-defined]


class Box:
    pass


class Frozen(Struct, frozen=True):
    values: list[int]


class Mutable(Struct, eq=False):
    values: list[int]


@state
class Chain:
    following: Chain | None


class Equal(Struct):
    """Two of these may be equal, so that a snapshot could take one for the other."""

    value: int


@pytest.mark.parametrize(
    "kind",
    [
        object,
        Any,
        Box,
        Callable[[], int],
        list[Box],
        Mapping[str, list[int]],
        Frozen,
        Mutable,
        Chain,
        Equal,
        dict[int, Any],
    ],
)
def test_a_type_that_can_be_neither_copied_nor_shared_is_refused_whatever_the_value(kind: Any) -> None:
    new = state(type("New", (Base,), {"__annotations__": {"extra": kind}, "__module__": __name__}))()
    new.extra = None
    with pytest.raises(Bug, match="declared with type"):
        snapshot(new)


def test_work_under_way_has_no_snapshot() -> None:
    live = Base()
    live.work = object()
    with pytest.raises(Bug, match="while there was"):
        snapshot(live)


def test_each_field_of_a_planner_can_be_judged_by_its_type_alone() -> None:
    """An empty planner is enough: types are judged, not values."""
    site = Site([Resource(1, {"host": "a"}), Resource(2, {"host": "b"})])
    planner = Planner(site, Policy(), quotas=Quotas({"*,*,*,/": [2, -1, -1]}, total=2))
    taken = planner.snapshot()
    assert everything(taken) == everything(planner)
    with pytest.raises(AttributeError):
        planner.plan.extra = object()  # type: ignore[attr-defined]


# ------------------------------------------------------------------ histories of both sides


#: What happened, to any planner.
Told = Callable[[Planner], Any]


class Recorder:
    """A planner that remembers what it was told, so that another can be told the same."""

    def __init__(self, make: Callable[[], Planner], planner: Planner, told: list[Told]) -> None:
        self._make = make
        self._planner = planner
        self._told = told

    def tell(self, what: Told) -> Any:
        self._told.append(what)
        return what(self._planner)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._planner, name)
        if not callable(found) or name == "snapshot":
            return found
        return lambda *args, **more: self.tell(lambda planner: getattr(planner, name)(*args, **more))

    def branch(self) -> Recorder:
        return Recorder(self._make, self._planner.snapshot(), self._told[:])

    def rebuilt(self) -> Planner:
        planner = self._make()
        for what in self._told:
            what(planner)
        return planner


class Branches(Plans):
    """Now and then a snapshot is taken. Either side goes on; the other must stay as it is."""

    compared = False

    def both_agree(self) -> None:
        """That plans are right is shown elsewhere."""

    promises_are_kept_or_spoken_of = the_plan_is_sound = both_agree
    nobody_waits_who_could_begin_now_and_harm_nobody = both_agree

    def _opened(self, make: Callable[[], Planner]) -> Planner:
        self.resting: list[tuple[dict[str, Any], Any]] = []  #: the other sides, and what each consists of
        return Recorder(make, make(), [])  # type: ignore[return-value]

    @rule(on_the_snapshot=st.booleans())
    def take_a_snapshot(self, on_the_snapshot: bool) -> None:
        live, taken = self.planner, self.planner.branch()
        assert everything(taken._planner, without=("bounds",)) == everything(live._planner, without=("bounds",))
        self.planner = live if on_the_snapshot else taken
        self._rest()
        self.planner = taken if on_the_snapshot else live

    @precondition(lambda self: self.resting)
    @rule(data=st.data())
    def go_on_with_another_side(self, data: st.DataObject) -> None:
        at = data.draw(st.integers(0, len(self.resting) - 1))
        self._rest()
        side, was = self.resting.pop(at)
        assert everything(side["planner"]._planner) == was, "a side that rested has changed"
        vars(self).update(side)

    def _rest(self) -> None:
        """Leave this side alone from now on."""
        side = {name: getattr(self, name) for name in ("planner", "now", "next", "limited")}
        side |= {name: getattr(self, name).copy() for name in ("real", "granted", "promised", "lost")}
        self.resting = [*self.resting, (side, everything(self.planner._planner))][-3:]

    @rule(data=st.data(), later=st.sampled_from((5.0, 30.0)), force=st.booleans())
    def extend_one(self, data: st.DataObject, later: float, force: bool) -> None:
        if self.planner.plan.running:
            entry = self.planner.plan.running[data.draw(st.sampled_from(sorted(self.planner.plan.running)))]
            self.planner.move_end(entry.id, (entry.end or self.now) + later, self.now, force=force)
            self.settle()

    @rule(priority=st.integers(0, 3), limit=st.sampled_from((2, 4)))
    def rules_change(self, priority: int, limit: int) -> None:
        queues = {name: Queue(priority=each.priority) for name, each in QUEUES.items()}
        policy = Policy(queues=queues | {"default": Queue(priority=priority)})
        site, now = self.site(), self.now

        def change(planner: Planner) -> None:
            quotas = Quotas({"*,*,*,/": [limit, -1, -1]}, total=site.count)  # they count: each planner has its own
            planner.change_rules(site, now, policy=policy, quotas=quotas, limits={})

        self.planner.tell(change)
        self.limited = True
        self.settle()

    def _submit(self, ask: Ask, *, real: float, after: tuple[int, ...] = ()) -> None:
        if not after:
            asked = ask_snapshot(self.planner.snapshot(), ask, self.now)
            assert asked == ask_snapshot(self.planner.rebuilt(), ask, self.now), "a rebuilt planner says otherwise"
        super()._submit(ask, real=real, after=after)

    def teardown(self) -> None:
        for side, was in getattr(self, "resting", ()):
            assert everything(side["planner"]._planner) == was, "a side that rested has changed"


class BranchesOfEasy(Branches):
    policy = Policy(queues={name: Queue(priority=each.priority, backfill="easy") for name, each in QUEUES.items()})


class BranchesOfFairShare(Branches):
    policy = Policy(
        queues={name: Queue(priority=each.priority, order="fairshare") for name, each in QUEUES.items()}
    )


DOSE = histories(20, steps=15)
TestBranches = Branches.TestCase
TestBranches.settings = DOSE
TestBranchesOfEasy = BranchesOfEasy.TestCase
TestBranchesOfEasy.settings = DOSE
TestBranchesOfFairShare = BranchesOfFairShare.TestCase
TestBranchesOfFairShare.settings = DOSE
