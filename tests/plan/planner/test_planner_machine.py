"""The planner against a naive one over random histories, and what must hold of any plan at any time.

A job's real length is drawn with it: it may end early, on time or late. The driver is the world: it ends jobs,
lets time pass from event to event, and lets begin what is planned for now.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC
from math import inf, nextafter

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from rota.plan.ask import Ask
from rota.plan.language.request import ALL, BEST, HALF_BEST, Alternative, Level, ResourceGroup
from rota.plan.language.types import Types
from rota.plan.planner import search
from rota.plan.planner.planner import Planner
from rota.plan.policy.policy import Policy, Queue
from rota.plan.policy.quotas import Quotas
from rota.plan.schedule.plan_entry import RUNNING, WAITING, PlanEntry
from rota.plan.schedule.priority_class import PriorityClass
from rota.plan.site.availability import closed_spans
from rota.plan.site.clock import Clock
from rota.plan.site.resources import HostFigures, Resource, Site
from rota.plan.timeline.slots import Slots
from tests.dose import half, histories
from tests.plan.brute import Brute, may_share

QUEUES = {"admin": Queue(priority=10), "default": Queue(priority=2), "besteffort": Queue(priority=0)}

LAYOUTS = (
    ("a", "a", "b", "b", "c"),
    ("a", "a", "a", "b", "b", "b"),
    ("a", "b", "a", "b", "c", "c", "c", "b"),
    ("a", "a", "b", "b", "b", "b", "b", "b"),
)

GROUPS = (
    ResourceGroup((Level("core", 1),)),
    ResourceGroup((Level("core", 1),)),
    ResourceGroup((Level("core", 2),)),
    ResourceGroup((Level("core", 3),)),
    ResourceGroup((Level("core", 5),)),
    ResourceGroup((Level("nodes", 1),)),
    ResourceGroup((Level("nodes", 2),)),
    ResourceGroup((Level("host", 1), Level("core", 2))),
    ResourceGroup((Level("host", 2), Level("core", 1))),
    ResourceGroup((Level("core", 1),), "gpu = true"),
    ResourceGroup((Level("core", 2),), "speed >= 2"),
    ResourceGroup((Level("nodes", ALL),)),
    ResourceGroup((Level("core", BEST),)),
    ResourceGroup((Level("core", HALF_BEST),), "not gpu = true"),
)

#: Of besteffort jobs that may hold what others hold as well.
LOW_TERMS = (
    Types(besteffort=True, timesharing=("*", "*")),
    Types(besteffort=True, timesharing=("user", "*")),
    Types(besteffort=True, allowed="p"),
)

WALLTIMES = (10.0, 20.0, 30.0, 50.0)

#: Minutes after the planner's beginning in which a host may be used.
HOURS = {"b": "00:00-00:01, 00:02-00:03, 00:04-24:00"}
CLOCK = Clock(UTC)
DAY_S = 86400.0

RULES: tuple[dict[str, tuple[int, int]], ...] = (
    {},
    {"*,*,*,/": (3, -1)},
    {"*,*,*,/": (-1, 1), "admin,*,*,*": (4, -1)},
    {"*,*,*,*": (5, 3), "besteffort,*,*,*": (-1, 1)},
)

alternatives = st.lists(
    st.builds(
        lambda groups, walltime: Alternative(tuple(groups), walltime),
        st.one_of(
            st.lists(st.sampled_from(GROUPS), min_size=1, max_size=1),
            st.tuples(st.sampled_from(GROUPS[:6]), st.sampled_from(GROUPS[:10])),
        ),
        st.sampled_from(WALLTIMES),
    ),
    min_size=1,
    max_size=2,
)


def sites(layout: tuple[str, ...]) -> list[Resource]:
    found = []
    for id, host in enumerate(layout, 1):
        values: dict[str, object] = {"host": host, "gpu": id % 3 == 0}
        if id % 2:
            values["speed"] = id % 4
        found.append(Resource(id, values))
    return found


def uneven(ask: Ask) -> bool:
    """May it be given more or fewer resources, according to what is free?"""
    groups = [group for alternative in ask.alternatives for group in alternative.groups]
    return any(group.levels[-1].name != "core" or isinstance(group.levels[0].number, str) for group in groups)


class Plans(RuleBasedStateMachine):
    """Both planners and the world."""

    policy = Policy(queues=QUEUES)
    compared = True

    @initialize(
        layout=st.sampled_from(LAYOUTS),
        rules=st.sampled_from(RULES),
        mem=st.sampled_from(({}, {}, {"a": 4, "b": 3})),
        until=st.sampled_from(({}, {}, {2: 120.0})),
        hours=st.sampled_from(({}, {}, HOURS)),
    )
    def open(self, layout: tuple[str, ...], rules: dict, mem: dict, until: dict, hours: dict) -> None:
        self.resources = sites(layout)
        self.mem, self.until, self.rules_, self.hours = mem, until, rules, hours
        self.lost: set[str] = set()
        self.now = 0.0
        self.next = 1
        self.real: dict[int, float] = {}  #: how long a job really runs, as a part of what was planned
        self.granted: dict[int, tuple[float, float]] = {}
        written = {key: list(values) for key, values in rules.items()}
        site = self.site()

        def make() -> Planner:
            quotas = Quotas(written, total=len(layout)) if rules else None
            return Planner(site, self.policy, quotas=quotas)

        self.planner = self._opened(make)
        closed = [
            (start, end, frozenset(each.id for each in self.resources if each.values["host"] == host))
            for host, text in hours.items()
            for start, end in (*closed_spans(text, CLOCK, 0.0, DAY_S), (DAY_S, inf))
        ]
        self.brute = Brute(
            self.resources, self.policy, usable=self.usable(), until=until, closed=closed, mem=mem, rules=rules
        )
        self.promised: dict[int, float | None] = {}
        self.limited = any(resources >= 0 for resources, _jobs in rules.values())

    def _opened(self, make: Callable[[], Planner]) -> Planner:
        return make()

    def usable(self) -> list[int]:
        return [each.id for each in self.resources if each.values["host"] not in self.lost]

    def site(self) -> Site:
        figures = {host: HostFigures(mem=most) for host, most in self.mem.items()}
        return Site(
            self.resources, hosts=figures, usable=self.usable(), until=self.until, hours=self.hours, clock=CLOCK
        )

    # -- what happens

    def _submit(self, ask: Ask, *, real: float, after: tuple[int, ...] = ()) -> None:
        if self.limited and uneven(ask):
            return  # where a quota counts resources, who may be given more or fewer has no one earliest start
        id, self.next = self.next, self.next + 1
        self.real[id] = real
        entry = self.planner.submit(id, ask, self.now, after=after)
        granted = self.brute.submit(id, ask, self.now, after=after) if self.compared else None
        if ask.at is not None:
            kept = id in self.planner.plan.entries
            if granted is not None:
                assert kept == granted, "granted or rejected"
            if kept:
                assert entry.start == ask.at
                assert entry.end is not None
                self.granted[id] = (entry.start, entry.end)
        self.settle()

    users = st.sampled_from(("ann", "bob"))
    reals = st.sampled_from((0.5, 1.0, 1.0, 1.5, 0.0))

    @rule(some=alternatives, user=users, real=reals)
    def submit_plain(self, some: list[Alternative], user: str, real: float) -> None:
        self._submit(Ask(alternatives=tuple(some), user=user), real=real)

    @rule(some=alternatives, user=users, real=reals, priority=st.integers(0, 2), admin=st.booleans())
    def submit_ranked(self, some: list[Alternative], user: str, real: float, priority: int, admin: bool) -> None:
        queue = "admin" if admin else "default"
        self._submit(Ask(alternatives=tuple(some), user=user, priority=priority, queue=queue), real=real)

    @rule(some=alternatives, user=users, real=reals, mem=st.integers(1, 4))
    def submit_memory(self, some: list[Alternative], user: str, real: float, mem: int) -> None:
        self._submit(Ask(alternatives=tuple(some), user=user, mem=mem), real=real)

    @rule(some=alternatives, user=users, real=reals, gap=st.sampled_from((0, 10, 30, 70)))
    def submit_reservation(self, some: list[Alternative], user: str, real: float, gap: int) -> None:
        self._submit(Ask(alternatives=tuple(some), user=user, at=self.now + gap), real=real)

    @rule(group=st.sampled_from(GROUPS[:8]), user=users, real=reals)
    def submit_without_walltime(self, group: ResourceGroup, user: str, real: float) -> None:
        self._submit(Ask(alternatives=(Alternative((group,)),), user=user, time_s=25.0), real=real)

    @rule(
        group=st.sampled_from(GROUPS[2:8]),
        real=reals,
        length=st.sampled_from((50.0, 80.0)),
        name=st.sampled_from(("", "box")),
    )
    def submit_container(self, group: ResourceGroup, real: float, length: float, name: str) -> None:
        types = Types(container=True)
        ask = Ask(alternatives=(Alternative((group,), length),), user="ann", name=name, types=types)
        self._submit(ask, real=real)

    @rule(data=st.data(), group=st.sampled_from(GROUPS[:8]), real=reals, nested=st.booleans())
    def submit_inner(self, data: st.DataObject, group: ResourceGroup, real: float, nested: bool) -> None:
        homes = [entry.id for entry in self.planner.plan.entries.values() if entry.ask.types.container]
        home = data.draw(st.sampled_from([*homes, "box", 999]))
        types = Types(inner=str(home), container=nested)
        walltime = data.draw(st.sampled_from((10.0, 20.0, 40.0)))
        self._submit(Ask(alternatives=(Alternative((group,), walltime),), user="bob", types=types), real=real)

    @rule(group=st.sampled_from(GROUPS[:8]), user=users, real=reals, data=st.data())
    def submit_sharing(self, group: ResourceGroup, user: str, real: float, data: st.DataObject) -> None:
        types = data.draw(
            st.sampled_from(
                (
                    Types(timesharing=("*", "*")),
                    Types(timesharing=("user", "*")),
                    Types(timesharing=("*", "name")),
                    Types(placeholder="p"),
                    Types(allowed="p"),
                    Types(allowed="q"),
                )
            )
        )
        name = data.draw(st.sampled_from(("", "x")))
        walltime = data.draw(st.sampled_from(WALLTIMES))
        ask = Ask(alternatives=(Alternative((group,), walltime),), user=user, name=name, types=types)
        self._submit(ask, real=real)

    @rule(group=st.sampled_from(GROUPS[:8]), user=users, real=reals, terms=st.sampled_from(LOW_TERMS))
    def submit_besteffort_that_shares(self, group: ResourceGroup, user: str, real: float, terms: Types) -> None:
        self._submit(
            Ask(alternatives=(Alternative((group,), 40.0),), user=user, queue="besteffort", types=terms), real=real
        )

    @rule(group=st.sampled_from(GROUPS[:8]), user=users, real=reals, mem=st.integers(0, 2))
    def submit_besteffort(self, group: ResourceGroup, user: str, real: float, mem: int) -> None:
        ask = Ask(
            alternatives=(Alternative((group,), 40.0),),
            user=user,
            queue="besteffort",
            mem=mem,
            types=Types(besteffort=True),
        )
        self._submit(ask, real=real)

    @rule(some=alternatives, real=reals, data=st.data())
    def submit_dependent(self, some: list[Alternative], real: float, data: st.DataObject) -> None:
        there = [entry.id for entry in self.planner.plan.entries.values() if entry.state in (WAITING, RUNNING)]
        parents = data.draw(st.lists(st.sampled_from(there), max_size=2, unique=True)) if there else []
        priority = data.draw(st.integers(0, 1))
        self._submit(Ask(alternatives=tuple(some), priority=priority), real=real, after=tuple(parents))

    @rule(some=alternatives, real=reals, first=st.sampled_from((None, 15)), last=st.sampled_from((None, 45)))
    def submit_in_time(self, some: list[Alternative], real: float, first: int | None, last: int | None) -> None:
        types = Types(
            postpone=None if first is None else self.now + first,
            deadline=None if last is None else self.now + last,
        )
        self._submit(Ask(alternatives=tuple(some), types=types), real=real)

    def _ended(self, id: int, *, complete: bool = True) -> None:
        self.planner.ended(id, self.now, complete=complete)
        if self.compared:
            self.brute.ended(id, self.now, complete=complete)
            self.same()
        self.granted.pop(id, None)
        self.promised.pop(id, None)

    @precondition(lambda self: self.planner.plan.running)
    @rule(data=st.data(), complete=st.booleans())
    def end_one_early(self, data: st.DataObject, complete: bool) -> None:
        self._ended(data.draw(st.sampled_from(sorted(self.planner.plan.running))), complete=complete)
        self.settle()

    @precondition(lambda self: any(entry.state != RUNNING for entry in self.planner.plan.entries.values()))
    @rule(data=st.data())
    def remove_one_that_waits(self, data: st.DataObject) -> None:
        there = sorted(entry.id for entry in self.planner.plan.entries.values() if entry.state != RUNNING)
        self._ended(data.draw(st.sampled_from(there)), complete=False)
        self.settle()

    @precondition(lambda self: any(self._modifiable(entry) for entry in self.planner.plan.entries.values()))
    @rule(data=st.data(), priority=st.integers(0, 2), group=st.sampled_from(GROUPS[:8]))
    def modify_one(self, data: st.DataObject, priority: int, group: ResourceGroup) -> None:
        there = sorted(entry.id for entry in self.planner.plan.entries.values() if self._modifiable(entry))
        id = data.draw(st.sampled_from(there))
        old = self.planner.plan.entries[id].ask
        ask = Ask(alternatives=(Alternative((group,), 20.0),), user=old.user, priority=priority, types=old.types)
        if self.limited and uneven(ask):
            return
        self.planner.modify(id, ask, self.now)
        if self.compared:
            self.brute.modify(id, ask, self.now)
        self.promised.pop(id, None)
        self.settle()

    @staticmethod
    def _modifiable(entry: PlanEntry) -> bool:
        return entry.state == WAITING and not entry.fixed and not entry.ask.types.besteffort

    @rule(host=st.sampled_from(("a", "b", "c")))
    def a_host_comes_or_goes(self, host: str) -> None:
        self.lost ^= {host}
        self.planner.change_site(self.site(), self.now)
        if self.compared:
            self.brute.change_usable(self.usable(), self.now)
        self.settle()

    @rule(length=st.sampled_from((5, 10, 20, 60, 400)))
    def time_passes(self, length: int) -> None:
        until = self.now + length
        for _ in range(200):
            moments = [self._real_end(entry) for entry in self.planner.plan.running.values()]
            following = self.planner.next_event()
            moment = min([*moments, following if following is not None else inf, until])
            moment = max(moment, self.now)
            if moment >= until:
                break
            self.now = moment
            self.settle()
        self.now = until
        self.settle()

    def _real_end(self, entry: PlanEntry) -> float:
        assert entry.start is not None
        length = entry.options[entry.alternative].length if entry.options else entry.ask.time_s
        part = self.real.get(entry.id, 1.0)
        return entry.start + length * part if part else inf  # 0: it ends only when it is ended

    def settle(self) -> None:
        """All that happens now: ends, then starts, until nothing more happens."""
        for _ in range(50):
            over = sorted(
                (entry.start or 0.0, entry.id)
                for entry in self.planner.plan.running.values()
                if self._real_end(entry) <= self.now
            )
            for _start, id in over:
                if id in self.planner.plan.running:
                    self._ended(id)
            self.planner.tick(self.now)
            if self.compared:
                self.brute.tick(self.now)
            self.same()
            expired, self.planner.plan.expired = self.planner.plan.expired, []
            for id in expired:
                if id in self.planner.plan.entries:
                    self._ended(id, complete=False)
            begun = self.planner.begin(self.now)
            if self.compared:
                expected = self.brute.begin(self.now)
                assert sorted((each.entry.id, sorted(each.victims)) for each in begun) == sorted(expected), "begun"
            for each in begun:
                self.promised.pop(each.entry.id, None)
            for each in begun:
                for victim in each.victims:
                    if victim in self.planner.plan.entries:
                        self._ended(victim, complete=False)
            if not begun and not over:
                return
        raise AssertionError("it never comes to rest")

    # -- what must hold

    def same(self) -> None:
        """Both have planned the same."""
        if not self.compared:
            return
        ours = {
            entry.id: (entry.state, entry.start, self.planner.plan.site.ids(entry.resources))
            for entry in self.planner.plan.entries.values()
        }
        theirs = {job.id: (job.state, job.start, sorted(job.resources)) for job in self.brute.jobs.values()}
        different = {id for id in ours.keys() | theirs.keys() if ours.get(id) != theirs.get(id)}
        assert not different, [(id, ours.get(id), theirs.get(id)) for id in sorted(different)]

    @invariant()
    def both_agree(self) -> None:
        if hasattr(self, "planner"):
            self.same()

    @invariant()
    def the_plan_is_sound(self) -> None:
        if hasattr(self, "planner"):
            check(self)

    @invariant()
    def nobody_waits_who_could_begin_now_and_harm_nobody(self) -> None:
        if not hasattr(self, "planner"):
            return
        if self.compared:
            nobody_could_begin_now(self)
        for klass in self.planner.plan.classes:
            if klass.backfill == "none":
                first_could_not_begin_now(self, klass)
            elif klass.backfill != "conservative":
                nobody_could_pass_now(self, klass)

    @invariant()
    def promises_are_kept_or_spoken_of(self) -> None:
        if not hasattr(self, "planner"):
            return
        told = {moved.job: moved for moved in self.planner.plan.moved}
        assert all(moved.cause for moved in told.values())
        for id, before in self.promised.items():
            entry = self.planner.plan.entries.get(id)
            if entry is None or entry.state != WAITING or before is None:
                continue
            if entry.start is None or entry.start > before:
                assert id in told, f"job {id} was promised {before}, now {entry.start}, and nobody said so"
        self.planner.plan.moved.clear()
        self.promised = {
            entry.id: entry.start
            for entry in self.planner.plan.entries.values()
            if entry.state == WAITING and self.planner.plan.plans_all(entry)
        }
        for id, (start, end) in self.granted.items():
            entry = self.planner.plan.entries.get(id)
            if entry is not None and entry.state == WAITING:
                assert (entry.start, entry.end) == (start, end), "a granted reservation is never moved"


def nobody_could_begin_now(machine: Plans) -> None:
    """Everybody has a planned start. Who is not to begin now could not, beside all that others hold or will.

    There is one exception: each has its turn once after an event. When somebody gives up a place later in the same
    pass, those that had their turn before look at it in the next one.
    """
    if any(klass.freed for klass in machine.planner.plan.classes):
        return
    brute = machine.brute
    for job in brute.jobs.values():
        if (
            job.state != "waiting"
            or job.fixed
            or job.hopeless
            or (job.start is not None and job.start <= brute.now)
        ):
            continue
        option, places = job.option, brute.out(job)
        found = brute.find(job)
        for each, (start, end, resources, home) in places.items():
            each.start, each.end, each.resources, each.home = start, end, resources, home
        job.option = option
        # Of several alternatives the one that ends first is right, though another could begin now.
        better = found is not None and (job.end is None or found[1] < job.end)
        assert not better or found[0] > brute.now, f"job {job.id} could begin now: {found}"


def nobody_could_pass_now(machine: Plans, klass: PriorityClass) -> None:
    """`easy`: no job fits from now for all its time beside what runs, is planned above or kept for the first.

    As with `conservative`, what a job vacated after the others had their turn is looked at in the next pass.
    """
    if klass.freed:
        return
    for entry in [*klass.jobs]:
        if not entry.after:
            planner, same = _copied(machine, entry)
            assert not search.place(planner.plan, same, machine.now, before=nextafter(machine.now, inf)), (
                f"{entry} fits now"
            )


def first_could_not_begin_now(machine: Plans, klass: PriorityClass) -> None:
    """`none`: the first job that has any start at all has none now; jobs behind it wait for it."""
    if klass.freed:
        return
    for entry in [*klass.jobs]:
        planner, same = _copied(machine, entry)
        if search.place(planner.plan, same, machine.now):
            assert same.start is not None
            assert same.after or same.start > machine.now, f"{entry} fits now"
            return


def _copied(machine: Plans, entry: PlanEntry) -> tuple[Planner, PlanEntry]:
    """A planner to try things with, in which the job has no place."""
    planner = machine.planner.snapshot()
    same = planner.plan.entries[entry.id]
    planner.plan.unplan(same)
    return planner, same


def check(machine: Plans) -> None:
    planner, now = machine.planner, machine.now
    site = planner.plan.site
    placed = [entry for entry in planner.plan.entries.values() if entry.start is not None]
    for entry in placed:
        assert entry.end is not None
        assert entry.state in (WAITING, RUNNING)
        if entry.state == RUNNING:
            continue
        others = [other for other in placed if other is not entry]
        assert entry.fixed or entry.start >= now or entry.after
        if not entry.fixed:
            assert entry.resources
            assert not entry.resources & ~site.usable, "planned on what may not be used"
        for other in others:
            late = other.state == RUNNING and entry.fixed
            if other.home != entry.home or late or (other.ask.types.besteffort != entry.ask.types.besteffort):
                continue
            if other.start < entry.end and entry.start < other.end and not may_share(entry.ask, other.ask):
                assert not other.resources & entry.resources, f"{entry} and {other} overlap"
        if entry.home:
            home = planner.plan.entries[entry.home]
            assert home.start is not None
            assert home.end is not None
            assert home.start <= entry.start
            assert entry.end <= home.end
            assert not entry.resources & ~home.resources
        for parent in entry.after:
            found = planner.plan.entries[parent]
            assert found.end is not None
            assert found.end <= entry.start
        if not entry.fixed:
            _memory(machine, entry, others)
    _consistent(planner, now)


def _memory(machine: Plans, entry: PlanEntry, others: list[PlanEntry]) -> None:
    if not entry.ask.mem:
        return
    low = entry.ask.types.besteffort
    for host, most in machine.mem.items():
        of_host = machine.planner.plan.site.hosts.get(host, 0)
        if not entry.resources & of_host:
            continue
        there = [
            other for other in others if other.resources & of_host and (low or not other.ask.types.besteffort)
        ]
        for moment in {entry.start, *(other.start for other in there if entry.start < other.start < entry.end)}:
            used = sum(other.ask.mem for other in there if other.start <= moment < other.end)
            assert used + entry.ask.mem <= most, "more memory than there is"


def _consistent(planner: Planner, now: float) -> None:
    """What is free is everything but what the entries hold."""
    holders = [
        each for each in planner.plan.entries.values() if each.start is not None and not each.ask.types.besteffort
    ]
    expected = Slots(planner.plan.site.everything, -inf)
    for start, end, mask in planner.plan.closures:
        expected.cover(mask, start, end)
    for each in holders:
        if not each.home:
            expected.cover(each.resources, each.start, each.end)
    assert _from(planner.plan.slots, now) == _from(expected, now), "free resources"
    assert planner.plan.slots.counts == [free.bit_count() for free in planner.plan.slots.free]
    for id, slots in planner.plan.inside.items():
        home = planner.plan.entries[id]
        expected = Slots.within(home.resources, home.start, home.end)
        for start, end, mask in planner.plan.closures:
            expected.cover(mask, start, end)
        for each in holders:
            if each.home == id:
                expected.cover(each.resources, each.start, each.end)
        assert _from(slots, now) == _from(expected, now), f"free resources inside {id}"


def _from(slots: Slots, now: float) -> list[tuple[float, int]]:
    """Moments from now on at which what is free changes."""
    found: list[tuple[float, int]] = [(now, slots.free[slots.index(now)])]
    for moment, free in zip(slots.times, slots.free, strict=True):
        if moment > now and free != found[-1][1]:
            found.append((moment, free))
    return found


class TestConservative(Plans.TestCase):
    settings = histories(half(60), steps=25)


class Passing(Plans):
    """Queues in which only the first has a reservation, above one in which everybody has."""

    policy = Policy(
        queues={
            "admin": Queue(priority=10),
            "default": Queue(priority=2, backfill="easy"),
            "besteffort": Queue(priority=0),
        }
    )
    compared = False


class Shortest(Plans):
    policy = Policy(
        queues={
            "admin": Queue(priority=10, backfill="easy-sjbf"),
            "default": Queue(priority=2),
            "besteffort": Queue(priority=0),
        }
    )
    compared = False


class Strict(Plans):
    policy = Policy(
        queues={
            "admin": Queue(priority=10, backfill="none"),
            "default": Queue(priority=2, backfill="none"),
            "besteffort": Queue(priority=0),
        }
    )
    compared = False


FEWER = histories(20, steps=25)


class TestEasy(Passing.TestCase):
    settings = FEWER


class TestShortestFirst(Shortest.TestCase):
    settings = FEWER


class TestStrictlyInOrder(Strict.TestCase):
    settings = FEWER
