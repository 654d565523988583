"""The planner: who runs where from when to when.

It keeps a plan of everything that runs or waits and changes only what an event touches. It has no clock:
every call says what time it is. Jobs never see it; the engine and the simulator do, with the same code.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from math import inf, nextafter

from rota.plan import backfill, besteffort, waiting
from rota.plan.ask import Ask
from rota.plan.bounds import Bounds
from rota.plan.entry import BLOCKED, RUNNING, WAITING, Begin, Entry, Option, Rank
from rota.plan.ledger import Ledger
from rota.plan.order import Usage, rank
from rota.plan.placement import Moved, Waits
from rota.plan.policy import Policy, Queue
from rota.plan.quota_rules import who_asks
from rota.plan.quotas import Quotas, Refusal
from rota.plan.request import Group
from rota.plan.resources import Site
from rota.plan.shapes import Shape
from rota.plan.slots import Counted, Pick, Slots

#: Ranks that depend on use or waiting are looked at again so often.
REFRESH_S = 60.0
#: A reservation waits so long for resources that are missing, then begins with fewer.
PATIENCE_S = 300.0

#: A core, in hundredths.
WHOLE = 100

#: Who was planned where: start, end, resources, container, alternative.
Place = tuple[Entry, float, float, int, int, int]


class Planner:
    """A plan over the resources of one site."""

    def __init__(
        self,
        site: Site,
        policy: Policy,
        *,
        quotas: Quotas | None = None,
        now: float = 0.0,
        counted: bool = False,
        usage: Mapping[str, float] | None = None,
        limits: Mapping[str, int] | None = None,
    ) -> None:
        self.site = site
        self.policy = policy
        self.quotas = quotas
        self.counted = counted
        self.now = now
        self.entries: dict[int, Entry] = {}
        self.classes: list[backfill.Class] = []  #: queues of one priority, the highest first
        self.low = backfill.Class(-inf, "conservative")  #: besteffort jobs, planned when all others are
        self.running: dict[int, Entry] = {}
        self.guests: dict[int, Entry] = {}  #: those that run and are besteffort
        self.reserved: dict[int, Entry] = {}  #: granted reservations that have not begun
        self.moved: list[Moved] = []
        self.expired: list[int] = []  #: waiting jobs whose time is over
        self.usage = Usage(policy.fair_share.half_life_s)
        for user, seconds in (usage or {}).items():
            self.usage.add(user, "", seconds, seconds, now)
        self.limits = dict(limits or {})
        self._shapes: dict[tuple[tuple[Group, ...], int], Shape] = {}
        self._starting: list[Entry] = []  #: chosen to begin at once
        self._starts: list[tuple[float, int]] = []  #: heap of planned starts, some of them outdated
        self._overdue: list[tuple[float, int]] = []  #: heap of expected ends of what runs, some of them outdated
        self._expiries: list[tuple[float, int]] = []  #: heap of moments after which a waiting job gives up
        self._children: dict[int, list[Entry]] = {}
        self._inner: dict[str, list[Entry]] = {}  #: id or name of a container → who asked to lie in it
        self.was: dict[int, float] = {}  #: what those were promised that this event took out
        self.given: list[tuple[Entry, float, float, int]] = []  #: who gave up which places meanwhile
        self._late: dict[int, Entry] = {}  #: reservations that lack resources, or whose parents still run
        self._tangled: set[int] = set()  #: who holds what others hold as well, because somebody outlived his time
        self.pending: set[int] = set()  #: waiting jobs that are about to be planned
        #: a pass is paused after so many steps, until `work` is called; None: never
        self.pause_after: int | None = None
        self._pass: tuple[Iterator[None], float, str] | None = None  #: its steps, time and cause
        self._refreshed = now
        self._serial = 0
        self._open()

    def _open(self) -> None:
        """An empty plan over the present site."""
        site = self.site
        self.slots: Slots = Counted(site.count, self.now) if self.counted else Slots(site.everything, self.now)
        for moment, mask in site.until.items():
            if not self.counted:
                self.slots.take(mask, max(moment, self.now), inf)
        self.ledger = Ledger(site, self.limits)
        self.inside: dict[int, Slots] = {}  #: container → what is free inside
        self.special: dict[int, Entry] = {}  #: who may hold resources together with others
        self._bounds: dict[object, Bounds] = {}

    # ------------------------------------------------------------------ what happens

    def submit(
        self,
        id: int,
        ask: Ask,
        now: float,
        *,
        after: Iterable[int] = (),
        submitted: float | None = None,
        serial: int = 0,
    ) -> Entry:
        """A new job: it is planned behind all of better rank, and those of worse rank after it.

        `submitted` and `serial`, of jobs submitted at one moment, are given where they are not those of this call.
        """
        self.finish()
        self.now = now
        entry = Entry(id, ask, now if submitted is None else submitted)
        entry.serial = serial
        self._ready(entry)
        if ask.at is not None and not self._may_reserve(entry, now):
            return entry
        self.entries[id] = entry
        for parent in after:
            if parent in self.entries or parent == id:
                entry.after.add(parent)
                self._children.setdefault(parent, []).append(entry)
        if ask.types.inner:
            self._inner.setdefault(ask.types.inner, []).append(entry)
        entry.rank = self._rank(entry, now)
        limits = [moment for moment in (ask.types.expire, ask.types.deadline) if moment is not None]
        if limits:
            heappush(self._expiries, (min(limits), id))
        if ask.types.besteffort:
            self.low.add(entry)
            steps = self._refresh(now, submitted=entry) or iter(())
        elif ask.at is not None:
            steps = self._reserve(entry, now)
        else:
            self._class(ask).add(entry)
            steps = self._refresh(now, submitted=entry) or iter(())
        self._go_through(steps, now, f"reservation {id}" if entry.fixed else f"job {id} goes first")
        return entry

    def adopt(self, id: int, ask: Ask, *, start: float, resources: int, now: float) -> Entry:
        """A job that runs already."""
        self.finish()
        self.now = now
        entry = Entry(id, ask, start)
        self._ready(entry)
        self.entries[id] = entry
        length = entry.options[0].length if entry.options else ask.time_s
        end = start + length
        if end <= now:
            end = _new_end(start, now)
        entry.start, entry.end, entry.resources = start, end, resources
        container = self.container(ask.types.inner) if ask.types.inner else None
        if container is not None and container.id in self.inside:
            entry.home = container.id
        in_the_way = self._in_the_way(entry, now, end)
        for other in in_the_way:
            self.unplan(other)
        self.hold(entry, since=max(start, now))
        self._run(entry)
        if in_the_way:
            backfill.again_in_order(self, in_the_way, now)
        self._settle(now, f"job {id} runs there")
        return entry

    def keep(
        self, id: int, ask: Ask, now: float, *, resources: int, alternative: int, submitted: float, serial: int
    ) -> Entry:
        """A reservation that was granted before there was this plan keeps its time and its resources.

        Only when its time is over it is NOT kept, and `reason` says so.
        """
        self.finish()
        self.now = now
        assert ask.at is not None
        entry = Entry(id, ask, submitted)
        entry.serial = serial
        self._ready(entry)
        entry.alternative = alternative if alternative < len(entry.options) else 0
        end = ask.at + entry.options[entry.alternative].length
        if end <= now:
            entry.reason = Waits("reservation", "its time was over before it could begin")
            return entry
        self.entries[id] = entry
        entry.rank = self._rank(entry, now)
        entry.fixed = True
        entry.start, entry.end, entry.resources = ask.at, end, resources
        in_the_way = self._in_the_way(entry, max(ask.at, now), end)
        for other in in_the_way:
            self.unplan(other)
        self.hold(entry, since=max(ask.at, now))
        self.reserved[id] = entry
        if ask.types.container and not self.counted:
            self.inside[id] = Slots.within(resources, ask.at, end)
        self._will_start(entry)
        if in_the_way:
            backfill.again_in_order(self, in_the_way, now)
        self._settle(now, f"reservation {id}")
        return entry

    def ended(self, id: int, now: float, *, complete: bool = True, again: bool = False) -> None:
        """A job ended, or waits no more; others may begin earlier. `again`: it is about to be submitted once more,
        and who waits for it goes on waiting."""
        self.finish()
        self.now = now
        entry = self.entries.pop(id, None)
        if entry is None:
            return
        freed: list[tuple[float, float]] = []
        if entry.start is not None and entry.end is not None:
            freed.append((max(now, entry.start), entry.end))
            self.drop(entry, since=now)
        was_running = self.running.pop(id, None) is not None
        self.guests.pop(id, None)
        self._tangled.discard(id)
        self._forget(entry)
        if not was_running:
            self.reserved.pop(id, None)
            self._late.pop(id, None)
            if entry in self._starting:
                self._starting.remove(entry)
            (self.low if entry.ask.types.besteffort else self._class(entry.ask)).discard(entry)
        elif entry.start is not None:
            width = entry.resources if self.counted else entry.resources.bit_count()
            asked = entry.end - entry.start if entry.end is not None else 0.0
            self.usage.add(entry.ask.user, entry.ask.project, width * (now - entry.start), width * asked, now)
        if not again:
            self._tell_children(entry, now, complete=complete, ran=was_running)
        self._empty(entry, now)
        self.slots.forget_before(now)
        if self.given or not entry.ask.types.besteffort:
            freed += [(start, end) for _entry, start, end, _resources in self.given]
            self._go_through(backfill.on_freed(self, freed, now), now, "what it waits for moved")
        else:
            self._settle(now, "what it waits for moved")

    def tick(self, now: float) -> None:
        """Time has passed: jobs past their expected end keep what they hold, and ranks may have changed."""
        self.finish()
        self.now = now
        while self._overdue and self._overdue[0][0] <= now:
            end, id = heappop(self._overdue)
            entry = self.running.get(id)
            if entry is not None and entry.end == end:
                self._outlives(entry, now)
        for late in list(self._late.values()):
            if late.fixed and late.end is not None and late.end <= now:
                del self._late[late.id], self.reserved[late.id]
                self.expired.append(late.id)  # what it lacked did not come before its end
        while self._expiries and self._expiries[0][0] < now:
            _moment, id = heappop(self._expiries)
            entry = self.entries.get(id)
            if entry is not None and entry.state == WAITING:
                self.expired.append(id)
        steps = self._refresh(now)
        if steps is not None:
            self._go_through(steps, now, "ranks changed")
        elif self._pass is None:
            self._settle(now, "ranks changed")

    def begin(self, now: float) -> list[Begin]:
        """Everything that is planned for now begins. A paused pass is finished first: it may still move some."""
        self.finish()
        self.now = now
        found, self._starting = self._starting, []
        found += [each for each in self._late.values() if each.start is not None and each.start <= now]
        self._late = {}
        while self._starts and self._starts[0][0] <= now:
            start, id = heappop(self._starts)
            entry = self.entries.get(id)
            if entry is not None and entry.start == start:
                found.append(entry)
        begun = []
        guests = []
        for entry in found:
            if entry.state != WAITING or entry.id in self._late:
                continue
            if entry.fixed and entry.end is not None and entry.end <= now:
                self.expired.append(entry.id)  # what it lacked did not come
            elif entry.after or (entry.fixed and not self._all_there(entry, now)):
                self._late[entry.id] = entry  # what it waits for is late as well
            elif entry.ask.types.besteffort:
                if entry not in guests:
                    guests.append(entry)
            else:
                begun.append(self._begin(entry, now))
        if self._pass is not None:
            guests = []  # they have their turn when everybody else is planned
        elif begun and self.low.line:
            besteffort.plan(self, now)
            guests = [
                each for each in self.low.line if each.start is not None and each.start <= now and not each.after
            ]
        begun += [self._begin(entry, now) for entry in guests if entry.start is not None and entry.start <= now]
        for begin in begun:
            if begin.entry.ask.types.besteffort:
                backfill.follow(self, begin.entry, now)
        if self._pass is None:
            self._settle(now, "what it waits for moved")
        return begun

    def _begin(self, entry: Entry, now: float) -> Begin:
        self._leave(entry)
        besteffort.avoid(self, entry, now)
        victims = besteffort.victims(self, entry)
        if entry.start is not None and entry.start < now:
            entry.start = now
        self._run(entry)
        return Begin(entry, victims)

    def next_start(self) -> float | None:
        """The earliest planned start of a job that waits."""
        if self._starting:
            return self.now
        while self._starts:
            start, id = self._starts[0]
            entry = self.entries.get(id)
            if entry is not None and entry.state == WAITING and entry.start == start and id not in self._late:
                return start
            heappop(self._starts)
        return None

    def next_event(self) -> float | None:
        """When the planner must be told that time has passed."""
        times = [start for start in (self.next_start(),) if start is not None]
        for late in self._late.values():
            if late.ask.at is not None and late.ask.at + PATIENCE_S > self.now:
                times.append(late.ask.at + PATIENCE_S)
            elif late.end is not None and late.end > self.now:
                times.append(late.end)
        while self._overdue:
            end, id = self._overdue[0]
            entry = self.running.get(id)
            if entry is not None and entry.end == end:
                times.append(end)
                break
            heappop(self._overdue)
        if self._expiries:
            times.append(nextafter(self._expiries[0][0], inf))
        if self._ranks_change():
            times.append(self._refreshed + REFRESH_S)
        return min(times, default=None)

    def change_site(self, site: Site, now: float) -> None:
        """Resources came, went or changed: what runs stays, everything else is planned again in order of rank."""
        self.finish()
        self.now = now
        staying = [*self.running.values(), *self.reserved.values()]
        staying.sort(key=self._depth)  # containers before what lies in them
        ids = {entry.id: self.site.ids(entry.resources) for entry in staying} if not self.counted else {}
        counted: list[Entry] = []
        for entry in self.entries.values():
            if entry.counted is not None and entry.start is not None and self.quotas is not None:
                counted.append(entry)
            if entry.state == WAITING and not entry.fixed:
                if entry.start is not None and entry.end is not None and not entry.ask.types.besteffort:
                    self.was.setdefault(entry.id, entry.start)
                entry.start = entry.end = None
                entry.resources = entry.home = 0
        self.site = site
        self._shapes.clear()
        self._unchoose()
        self._open()
        if self.quotas is not None:
            kept = {entry.id for entry in staying}
            for entry in counted:
                if entry.id in kept and entry.counted is not None:
                    self.quotas.give(entry.counted, entry.id)
            counted = [entry for entry in counted if entry.id not in kept]
        for entry in staying:
            if not self.counted:
                entry.resources = site.mask(id for id in ids[entry.id] if site.knows(id))
            self._ready(entry)
            if entry.start is not None and entry.end is not None:
                self.hold(entry, since=max(entry.start, now))
                if entry.ask.types.container and not self.counted:
                    self._open_inside(entry)
        self._go_through(self._all_again(counted, now), now, "the resources changed")

    def _all_again(self, counted: list[Entry], now: float) -> Iterator[None]:
        """Plan everybody who waits anew on a new site; so far they are counted in their quotas as they were."""
        waiting = [entry for entry in self.entries.values() if entry.state == WAITING and not entry.fixed]
        for number, entry in enumerate(counted, 1):
            if self.quotas is not None and entry.counted is not None:
                self.quotas.give(entry.counted, entry.id)
            if number % 16 == 0:
                yield
        for number, entry in enumerate(waiting, 1):
            self._ready(entry)
            if number % 16 == 0:
                yield
        yield from backfill.replan(self, now)

    def _depth(self, entry: Entry) -> int:
        """In how many containers it lies."""
        depth = 0
        while entry.home:
            entry, depth = self.entries[entry.home], depth + 1
        return depth

    def _unchoose(self) -> None:
        """Those that were about to begin wait again."""
        for entry in self._starting:
            klass = self.low if entry.ask.types.besteffort else self._class(entry.ask)
            if entry not in klass.line:
                klass.add(entry)
        self._starting = []

    def change_rules(
        self, site: Site, now: float, *, policy: Policy, quotas: Quotas | None, limits: Mapping[str, int]
    ) -> None:
        """Queues, quotas, limits or resources changed: what runs stays, all others are planned again."""
        self.finish()
        self._unchoose()
        waiting = [entry for klass in (*self.classes, self.low) for entry in klass.line]
        for entry in self.entries.values():
            entry.counted = None  # the old quotas are gone with all that they counted
        self.policy, self.quotas, self.limits = policy, quotas, dict(limits)
        self.classes, self.low.line = [], []
        for entry in waiting:
            entry.rank = self._rank(entry, now)
            (self.low if entry.ask.types.besteffort else self._class(entry.ask)).add(entry)
        self.change_site(site, now)

    def shapes(self, ask: Ask) -> list[Shape]:
        """What each of a job's alternatives means on this site."""
        entry = Entry(0, ask, self.now)
        self._ready(entry)
        return [option.shape for option in entry.options]

    def why(self, entry: Entry) -> list[Waits]:
        """What keeps a waiting job from beginning now."""
        return waiting.why(self, entry)

    def modify(self, id: int, ask: Ask, now: float) -> Entry:
        """A waiting job asks for something else: it leaves, and comes again with its old time of submission."""
        old = self.entries[id]
        after, submitted, serial = set(old.after), old.submitted, old.serial
        self.ended(id, now, again=True)
        self._children[id] = [child for child in self._children.get(id, ()) if child.state == WAITING]
        return self.submit(id, ask, now, after=after, submitted=submitted, serial=serial)

    def _go_through(self, steps: Iterator[None], now: float, cause: str) -> None:
        """Begin a pass, and carry it out unless passes are paused."""
        self.finish()
        self._pass = (steps, now, cause)
        if self.pause_after is None:
            self.finish()
        else:
            self.work(self.pause_after)

    def work(self, steps: int) -> bool:
        """Go on for so many steps with a pass that was paused. True: there is more to do."""
        if self._pass is None:
            return False
        left, now, cause = self._pass
        for done, _step in enumerate(left, 1):
            if done >= steps:
                return True
        self._pass = None
        self._settle(now, cause)
        return False

    def finish(self) -> None:
        """Carry out what is left of a pass that was paused; before anything else happens it must be."""
        while self.work(1_000_000):
            pass

    def _settle(self, now: float, cause: str) -> None:
        """An event is over: besteffort jobs take what is left, and promises that were moved are spoken of."""
        besteffort.plan(self, now)
        was, self.was = self.was, {}
        given, self.given = self.given, []
        for entry, start, end, resources in given:
            if (entry.start, entry.end, entry.resources) == (start, end, resources):
                continue  # it came back to its place
            for klass in self.classes:
                if -klass.priority <= entry.rank[0] and klass.backfill == "conservative":
                    klass.freed.append((start, end))
        for id, promised in was.items():
            found = self.entries.get(id)
            if found is None or found.state != WAITING:
                continue
            if (found.start is None and self.everybody_planned(found)) or (found.start or promised) > promised:
                self.moved.append(Moved(id, promised, found.start, cause))

    # ------------------------------------------------------------------ making ready

    def _ready(self, entry: Entry) -> None:
        """Work out what the job's request means on the present site."""
        ask = entry.ask
        usable = self.site.everything if self.counted else self.site.usable
        queue = self.queue(ask.queue)
        entry.options, entry.trouble = [], None
        for alternative in ask.alternatives:
            shape = self._shapes.get((alternative.groups, usable))
            if shape is None:
                shape = self._shapes[alternative.groups, usable] = Shape(alternative, self.site, within=usable)
            walltime = alternative.walltime_s or queue.walltime_s
            entry.options.append(Option(shape, walltime or ask.time_s, walltime is not None))
        entry.least = min((option.shape.least for option in entry.options), default=0)
        entry.shortest = min((option.length for option in entry.options), default=0.0)
        entry.taking = self.ledger.taking(ask)
        entry.everywhere = self.ledger.everywhere(ask)
        if entry.state == WAITING:
            entry.trouble = self._impossible(entry, usable)
        entry.counted = None
        if self.quotas is not None and not ask.types.container:
            entry.counted = self.quotas.counted(who_asks(ask))

    def _impossible(self, entry: Entry, usable: int) -> Waits | None:
        """Why no set of resources, were all of them free, could do."""
        if self.counted:
            if entry.least <= self.site.count:
                return None
            return Waits("unsatisfiable", f"never fits: asked {entry.least}, there are {self.site.count}")
        short = None
        if entry.taking is not None:
            taking = entry.taking

            def short(mask: int) -> int:
                return self.ledger.never(taking, mask)

        if short is None and any(option.shape.possible for option in entry.options):
            return None
        if any(option.shape.choose(usable, short) for option in entry.options):
            return None
        if any(option.shape.bounded for option in entry.options):
            return Waits("unsatisfiable", "no way to take its groups was found among the first 10,000 tried")
        if not usable:
            return Waits("no_resources", "no resource may be used now")
        return Waits("unsatisfiable", "never fits: no set of the resources that may be used has what it asks for")

    def queue(self, name: str) -> Queue:
        return self.policy.queues.get(name) or Queue()

    def _class(self, ask: Ask) -> backfill.Class:
        queue = self.queue(ask.queue)
        at = bisect_left(self.classes, float(-queue.priority), key=lambda each: -each.priority)
        if at == len(self.classes) or self.classes[at].priority != queue.priority:
            self.classes.insert(at, backfill.Class(queue.priority, queue.backfill))
        return self.classes[at]

    # ------------------------------------------------------------------ rank

    def _rank(self, entry: Entry, now: float, active: int | None = None) -> Rank:
        queue = self.queue(entry.ask.queue)
        key = rank(
            queue,
            entry.ask,
            submitted=entry.submitted,
            now=now,
            usage=self.usage,
            active_users=0 if queue.order == "fifo" else self._active() if active is None else active,
            fair_share=self.policy.fair_share,
        )
        self._serial += 1
        entry.serial = entry.serial or self._serial
        return (*key, entry.serial)

    def _active(self) -> int:
        return self.usage.active(entry.ask.user for entry in self.entries.values())

    def _may_change(self, klass: backfill.Class, now: float) -> bool:
        """Might somebody have another rank than before? By submission, only who starves by now."""
        queues = (Queue(), *self.policy.queues.values())
        if any(queue.order != "fifo" for queue in queues):
            return True
        patience = min(queue.max_wait_s for queue in queues)
        return any(now - entry.submitted > patience for entry in klass.line)

    def _ranks_change(self) -> bool:
        if all(queue.order == "fifo" for queue in self.policy.queues.values()):
            return False
        return any(self.queue(entry.ask.queue).order != "fifo" for klass in self.classes for entry in klass.line)

    def _refresh(self, now: float, submitted: Entry | None = None) -> Iterator[None] | None:
        """Rank waiting jobs anew where ranks depend on time or use, and plan again from the first that changed.

        A job that was just submitted is planned as well.
        """
        klass, at = None, 0
        if now >= self._refreshed + REFRESH_S or (submitted is not None and self._ranks_change()):
            self._refreshed = now
            active = self._active()
            for each in reversed((*self.classes, self.low)):
                if not self._may_change(each, now):
                    continue
                before = each.line[:]
                for entry in each.line:
                    entry.rank = self._rank(entry, now, active)
                each.line.sort(key=_by_rank)
                if each is not self.low and each.line != before:
                    pairs = zip(before, each.line, strict=True)
                    klass, at = each, next(at for at, (a, b) in enumerate(pairs) if a is not b)
        if submitted is not None and not submitted.ask.types.besteffort:
            own = self._class(submitted.ask)
            if klass is None or klass.priority < own.priority:
                return backfill.on_submitted(self, own, submitted, now)
            if klass is own:
                at = min(at, bisect_left(own.line, submitted.rank, key=_by_rank))
        return backfill.replan_from(self, klass, at, now) if klass is not None else None

    # ------------------------------------------------------------------ placing

    def place(self, entry: Entry, now: float, *, before: float = inf, since: float | None = None) -> bool:
        """Plan a waiting job at its earliest possible end. False if there is none; `reason` says why."""
        found = self._find(entry, now, before=before, since=since)
        if found is None:
            entry.start = entry.end = None
            entry.resources = 0
            return False
        start, resources, at = found
        entry.start, entry.resources, entry.alternative = start, resources, at
        entry.end = start + entry.options[at].length
        self.hold(entry)
        if entry.ask.types.container:
            self._open_inside(entry)
        self._will_start(entry)
        return True

    def _find(
        self, entry: Entry, now: float, *, before: float, since: float | None
    ) -> tuple[float, int, int] | None:
        """Start, resources and number of the alternative that ends first."""
        entry.blamed = False
        if entry.trouble is not None:
            entry.reason = entry.trouble
            return None
        types = entry.ask.types
        earliest, waits = self.not_before(entry, now)
        if waits is not None:
            entry.reason = waits
            entry.blamed = True
            return None
        room = self.room(entry)
        if isinstance(room, Waits):
            entry.reason, entry.blamed = room, True
            return None
        slots, earliest = room, max(earliest, since if since is not None else now)
        best: tuple[float, int, int] | None = None
        best_end = inf
        entry.reason = None
        for at, option in enumerate(entry.options):
            if entry.home and not option.hard:
                continue
            limit = before
            if types.deadline is not None:
                limit = min(limit, nextafter(types.deadline - option.length, inf))
            if types.expire is not None:
                limit = min(limit, nextafter(types.expire, inf))
            if best is not None:
                limit = min(limit, best_end - option.length)
            found = self._search(entry, option, slots, after=earliest, before=limit, fresh=since is None)
            if found is not None and found[0] + option.length < best_end:
                best = (*found, at)
                best_end = found[0] + option.length
        if best is None and entry.reason is None:
            entry.reason = self._why_nowhere(entry, before)
        return best

    def _search(
        self, entry: Entry, option: Option, slots: Slots, *, after: float, before: float, fresh: bool
    ) -> tuple[float, int] | None:
        shape, length, _hard = option
        pick, also = self._pick(entry, option)
        bounds = None
        if pick is None and slots is self.slots:
            bounds = self._bounds.get(shape.family)
            if bounds is None:
                bounds = self._bounds[shape.family] = Bounds()
            known = bounds.start(shape.number, length)
            if known > after:
                after = known
            elif not fresh or after > self.now:
                bounds = None  # nothing was proved about what lies before
        while after < before:
            found = slots.earliest(shape, length, after=after, before=before, pick=pick, also=also)
            if found is None:
                return None
            start, taken = found
            if bounds is not None:
                bounds.proved(shape.number, length, start)
                bounds = None
            again = self._refused(entry, taken, start, start + length)
            if again is None:
                return found
            after = again
            if not shape.even:
                # Later it may be given fewer resources, where not all blocks have as many.
                after = min(again, slots.following(start))
                if entry.counted is not None and self.quotas is not None:
                    after = min(after, self.quotas.following(entry.counted, start))
        return None

    def _refused(self, entry: Entry, taken: int, start: float, end: float) -> float | None:
        """When to look again, if a quota or a limit forbids this; None if nothing does."""
        if entry.counted is not None and self.quotas is not None:
            number = taken if self.counted else taken.bit_count()
            refusal = self.quotas.refusal(entry.counted, number, start, end)
            if refusal is not None:
                entry.blamed = True
                if entry.reason is None:
                    entry.reason = _quota_reason(refusal)
                return refusal.again
        if entry.everywhere:
            short = self.ledger.again(entry.everywhere, start, end, low=entry.ask.types.besteffort)
            if short is not None:
                entry.blamed = True
                if entry.reason is None:
                    entry.reason = Waits("limit", f"limit '{short[0]}' is in use", short[0])
                return short[1]
        return None

    def _pick(self, entry: Entry, option: Option) -> tuple[Pick | None, Sequence[float]]:
        """How to choose for it where more than free resources matters, and more moments to try."""
        if self.counted:
            return None, ()
        shape, hard = option.shape, option.hard
        taking = entry.taking
        obstacles = [] if hard or entry.ask.at is not None else self._obstacles()
        split = 0  #: cores that are shared already: better one of these than another whole one
        for each in self.special.values() if entry.ask.share else ():
            split |= each.resources if each.ask.share else 0
        if taking is None and not obstacles and not split:
            return None, ()
        ledger, low = self.ledger, entry.ask.types.besteffort
        entry.blamed = entry.blamed or bool(obstacles)

        def pick(free: int, start: float, end: float) -> int:
            for until, mask in obstacles:
                if until > start:
                    free &= ~mask
            short = None
            if taking is not None:

                def short(mask: int) -> int:
                    return ledger.short(taking, mask, start, end, low=low)

            return (split and shape.choose(free & split, short)) or shape.choose(free, short)

        also = sorted({until for until, _mask in obstacles if until != inf}) if obstacles else []
        if taking is not None:
            also = sorted({*also, *ledger.ends()})
        return pick, also

    def picking(self, entry: Entry) -> Pick:
        """How to choose for it by the alternative that was chosen."""
        option = entry.options[entry.alternative]
        return self._pick(entry, option)[0] or (lambda free, _start, _end: option.shape.choose(free))

    def _obstacles(self) -> list[tuple[float, int]]:
        """What only a job with a walltime may be placed before: (until when, resources)."""
        found = [(inf, mask) for mask in self.site.until.values()]
        found += [(entry.end or inf, entry.resources) for entry in self.reserved.values()]
        return found

    def not_before(self, entry: Entry, now: float) -> tuple[float, Waits | None]:
        """The earliest start that its parents and terms allow."""
        earliest = now
        postpone = entry.ask.types.postpone
        if postpone is not None:
            earliest = max(earliest, postpone)
        for parent in entry.after:
            found = self.entries.get(parent)
            if found is None or found.end is None:
                return inf, Waits("dependency", f"job {parent}, which it waits for, has no planned start")
            if found.ask.types.besteffort and found.state == WAITING and not entry.ask.types.besteffort:
                return inf, Waits(
                    "dependency", f"job {parent}, which it waits for, is besteffort and has not begun"
                )
            earliest = max(earliest, found.end)
        return earliest, None

    def _why_nowhere(self, entry: Entry, before: float) -> Waits | None:
        if before != inf:
            return None  # only an early start was looked for
        types = entry.ask.types
        if types.inner:
            return Waits("container", f"it does not fit in its container {types.inner}")
        if types.deadline is not None:
            return Waits("resources", "no start lets it end before its deadline")
        if types.expire is not None:
            return Waits("resources", "no start is possible before it expires")
        if any(not option.hard for option in entry.options) and self._obstacles():
            return Waits("reservation", "without a walltime it cannot be placed before a reservation")
        return Waits("resources", "no start was found for it")

    # -- where

    def room(self, entry: Entry) -> Slots | Waits:
        """The free resources as this job sees them."""
        inner = entry.ask.types.inner
        slots, home = self.slots, 0
        if inner:
            container = self.container(inner)
            if container is None:
                return Waits("container", f"its container {inner} is not there")
            if container.id not in self.inside:
                return Waits("container", f"its container {inner} has no planned start")
            if not any(option.hard for option in entry.options):
                return Waits("container", f"without a walltime it cannot be placed in container {inner}")
            home = container.id
            slots = self.inside[home]
        entry.home = home
        return self._shared(entry, slots) if entry.special else slots

    def container(self, name: str) -> Entry | None:
        """The container of this id or name."""
        if name.isdigit() and (found := self.entries.get(int(name))) is not None and found.ask.types.container:
            return found
        named = (e for e in self.entries.values() if e.ask.types.container and e.ask.name == name)
        return next(named, None)

    def _shared(self, entry: Entry, slots: Slots) -> Slots:
        """The free resources, with those that others hold who let this job have them as well."""
        if not self.special:
            return slots
        view = slots.copy()
        here = [each for each in self.special.values() if each.home == entry.home and each is not entry]
        for each in here:
            view.uncover(each.resources, max(each.start or 0.0, self.now), each.end or inf)
        for each in here:
            if not may_share(entry.ask, each.ask):
                view.cover(each.resources, max(each.start or 0.0, self.now), each.end or inf)
        if entry.ask.share:
            for core, start, end in full_cores(here, WHOLE - entry.ask.share):
                view.cover(core, max(start, self.now), end)
        # Who outlived his time may hold what others hold as well, or what lies beyond its container's end.
        for each in (*self.running.values(), *self.reserved.values()) if self._tangled else ():
            if each.home == entry.home and not each.special and not each.ask.types.besteffort:
                view.cover(each.resources, max(each.start or 0.0, self.now), each.end or inf)
        if entry.home:
            view.cover(self.entries[entry.home].resources, self.entries[entry.home].end or inf, inf)
        for moment, mask in self.site.until.items():
            view.cover(mask, max(moment, self.now), inf)
        return view

    def slots_of(self, entry: Entry) -> Slots | None:
        """Where the job's resources are taken from; None: nowhere that others look at."""
        return self.inside.get(entry.home) if entry.home else self.slots

    # -- holding

    def exchange(self, entry: Entry, resources: int) -> None:
        """Who begins now takes other resources; what it had is free for others."""
        if resources != entry.resources and entry.end is not None:
            self.given.append((entry, self.now, entry.end, entry.resources))
            entry.resources = resources

    def hold(self, entry: Entry, since: float | None = None) -> None:
        """What the entry was given is not free any more."""
        start, end = entry.start, entry.end
        assert start is not None
        assert end is not None
        begin = start if since is None else since
        types = entry.ask.types
        if not types.besteffort:
            slots = self.slots_of(entry)
            if slots is not None:
                if entry.special:
                    slots.cover(entry.resources, begin, end)
                    self.special[entry.id] = entry
                elif since is None or self.counted:
                    slots.take(entry.resources, begin, end)
                else:
                    self._cover(entry, slots, begin, end)
        if entry.counted is not None and self.quotas is not None:
            number = entry.resources if self.counted else entry.resources.bit_count()
            self.quotas.take(entry.counted, entry.id, number, start, end)
        if entry.taking is not None or entry.everywhere:
            self._take_of_hosts(entry)

    def _take_of_hosts(self, entry: Entry) -> None:
        assert entry.start is not None
        assert entry.end is not None
        span, low = (entry.start, entry.end), entry.ask.types.besteffort
        self.ledger.take(entry.id, entry.taking, entry.everywhere, entry.resources, span, low=low)

    def _cover(self, entry: Entry, slots: Slots, start: float, end: float) -> None:
        """It holds what perhaps is not free."""
        if start < end and slots.common(start, end) & entry.resources != entry.resources:
            self._tangled.add(entry.id)
        slots.cover(entry.resources, start, end)

    def _uncover(self, entry: Entry, slots: Slots, start: float, end: float) -> None:
        """It gives back what others may hold as well."""
        home = self.entries.get(entry.home)
        if home is not None and home.start is not None and home.end is not None:
            start, end = max(start, home.start), min(end, home.end)
        slots.uncover(entry.resources, start, end)
        for moment, mask in self.site.until.items():
            slots.cover(mask & entry.resources, max(moment, start), end)
        for other in (*self.running.values(), *self.reserved.values(), *self.special.values()):
            if other is entry or other.home != entry.home or other.ask.types.besteffort:
                continue
            if other.start is not None and other.end is not None and other.resources & entry.resources:
                slots.cover(other.resources & entry.resources, max(other.start, start), min(other.end, end))

    def drop(self, entry: Entry, since: float) -> None:
        """What the entry was given is free from this moment on."""
        start, end = entry.start, entry.end
        if start is None or end is None:
            return
        begin = max(start, since)
        slots = self.slots_of(entry)
        if slots is not None and not entry.ask.types.besteffort:
            kept = entry.state == RUNNING or entry.fixed
            if entry.special or (kept and not self.counted and (self._tangled or entry.home)):
                self.special.pop(entry.id, None)
                self._uncover(entry, slots, begin, end)
            else:
                slots.give(entry.resources, begin, end)
            if slots is self.slots:
                self._bounds.clear()
        if entry.counted is not None and self.quotas is not None:
            self.quotas.give(entry.counted, entry.id)
        self.ledger.give(entry.id)

    def unplan(self, entry: Entry) -> None:
        """The waiting job has no planned start any more; nor have those planned inside it."""
        if entry.start is None or entry.end is None:
            return
        if not entry.ask.types.besteffort:
            self.was.setdefault(entry.id, entry.start)
            self.given.append((entry, entry.start, entry.end, entry.resources))
        for inner in self._inside(entry):
            if inner.state == WAITING:
                self.unplan(inner)
                inner.home = 0
        self.drop(entry, since=self.now)
        entry.start = entry.end = None
        entry.resources = 0
        self.inside.pop(entry.id, None)
        if entry in self._starting:
            self._starting.remove(entry)
            if not self.everybody_planned(entry):
                self._class(entry.ask).add(entry)

    def _open_inside(self, entry: Entry) -> None:
        """All of the container is free for those who ask to lie in it."""
        assert entry.start is not None
        assert entry.end is not None
        slots = self.inside[entry.id] = Slots.within(entry.resources, entry.start, entry.end)
        for moment, mask in self.site.until.items():
            slots.cover(mask, max(moment, entry.start), inf)

    def _inside(self, entry: Entry) -> list[Entry]:
        """Who has a place inside this container."""
        if not entry.ask.types.container:
            return []
        return [inner for inner in self._asked_inside(entry) if inner.home == entry.id and inner.start is not None]

    def _asked_inside(self, entry: Entry) -> list[Entry]:
        names = {str(entry.id): None, entry.ask.name: None}
        return [inner for name in names if name for inner in self._inner.get(name, ())]

    def planned_inside(self, entry: Entry) -> list[Place]:
        """Waiting jobs inside a container, outer ones first, and where."""
        found = []
        for inner in self._inside(entry):
            if inner.state == WAITING and inner.start is not None and inner.end is not None:
                found.append((inner, inner.start, inner.end, inner.resources, inner.home, inner.alternative))
                found += self.planned_inside(inner)
        return found

    def restore(self, places: list[Place]) -> None:
        """These come back to where they were, which is free."""
        for entry, start, end, resources, home, alternative in places:
            entry.start, entry.end, entry.resources = start, end, resources
            entry.home, entry.alternative = home, alternative
            self.hold(entry)
            if entry.ask.types.container:
                self._open_inside(entry)
            self._will_start(entry)

    def _will_start(self, entry: Entry) -> None:
        assert entry.start is not None
        if len(self._starts) > 1000 + 4 * len(self.entries):
            there = self.entries.values()
            self._starts = [
                (each.start, each.id) for each in there if each.state == WAITING and each.start is not None
            ]
            heapify(self._starts)
        heappush(self._starts, (entry.start, entry.id))

    def everybody_planned(self, entry: Entry) -> bool:
        """Does everybody of its queue have a planned start?"""
        return not entry.ask.types.besteffort and self._class(entry.ask).backfill == "conservative"

    def only_wants_room(self, entry: Entry) -> bool:
        """Will there certainly be a time at which it can begin?"""
        types = entry.ask.types
        if entry.trouble is not None or entry.counted is not None or entry.after or entry.everywhere:
            return False
        return not types.inner and types.deadline is None and types.expire is None and not self.site.until

    def followers(self, entry: Entry) -> list[Entry]:
        """Waiting jobs whose place depends on this one's, in order of rank."""
        found = [child for child in self._children.get(entry.id, ()) if child.state == WAITING]
        if entry.ask.types.container:
            found += [each for each in self._asked_inside(entry) if each.state == WAITING and each not in found]
        return sorted(found, key=_by_rank)

    def _forget(self, entry: Entry) -> None:
        """It depends on nothing any more."""
        siblings = self._inner.get(entry.ask.types.inner)
        if siblings is not None and entry in siblings:
            siblings.remove(entry)
            if not siblings:
                del self._inner[entry.ask.types.inner]
        for parent in entry.after:
            children = self._children.get(parent)
            if children is not None and entry in children:
                children.remove(entry)

    # ------------------------------------------------------------------ beginning and ending

    def chosen(self, entry: Entry) -> None:
        """A pass decided that this job begins now."""
        self._starting.append(entry)

    def _leave(self, entry: Entry) -> None:
        """The job waits no more."""
        if entry.fixed:
            self.reserved.pop(entry.id, None)
        elif entry.ask.types.besteffort:
            self.low.discard(entry)
        else:
            self._class(entry.ask).discard(entry)

    def _run(self, entry: Entry) -> None:
        entry.state = RUNNING
        entry.reason = None
        self.running[entry.id] = entry
        if entry.ask.types.besteffort:
            self.guests[entry.id] = entry
        if entry.ask.types.container and entry.id not in self.inside and not self.counted:
            self._open_inside(entry)
        if entry.end is not None:
            heappush(self._overdue, (entry.end, entry.id))

    def _tell_children(self, entry: Entry, now: float, *, complete: bool, ran: bool) -> None:
        if complete and ran:
            for child in self._children.pop(entry.id, ()):
                child.after.discard(entry.id)
                child.blamed = True
            return
        failed = [entry]
        while failed:  # chains may be long
            parent = failed.pop()
            for child in self._children.pop(parent.id, ()):
                if child.state != WAITING:
                    continue
                self._late.pop(child.id, None)
                self._leave(child)
                self.unplan(child)
                child.fixed = False
                child.state = BLOCKED
                child.reason = Waits("dependency_never", f"job {parent.id}, which it waits for, did not complete")
                failed.append(child)

    def _empty(self, entry: Entry, now: float) -> None:
        """The container is gone: what runs inside holds its resources by itself from now on."""
        if self.inside.pop(entry.id, None) is None:
            return
        for inner in self._inside(entry):
            if inner.state != RUNNING:
                self.unplan(inner)
            inner.home = 0
            if inner.state == RUNNING and inner.end is not None and not inner.ask.types.besteffort:
                for other in self._in_the_way(inner, now, inner.end):
                    if (
                        not other.home
                        and other.resources & inner.resources
                        and not may_share(inner.ask, other.ask)
                    ):
                        self.unplan(other)
                self._cover(inner, self.slots, now, inner.end)

    def _outlives(self, entry: Entry, now: float) -> None:
        """A running job is past its expected end: it keeps its resources, and plans in the way move."""
        assert entry.start is not None
        assert entry.end is not None
        self.finish()
        old, end = entry.end, _new_end(entry.start, now)
        in_the_way = self._in_the_way(entry, old, end)
        for other in in_the_way:
            self.unplan(other)
        if entry.counted is not None and self.quotas is not None:
            self.quotas.give(entry.counted, entry.id)
            number = entry.resources if self.counted else entry.resources.bit_count()
            self.quotas.take(entry.counted, entry.id, number, entry.start, end)
        entry.end = end
        if entry.taking is not None or entry.everywhere:
            self.ledger.give(entry.id)
            self._take_of_hosts(entry)
        slots = self.slots_of(entry)
        if slots is not None and not entry.ask.types.besteffort:
            if self.counted:
                slots.take(entry.resources, old, end)
            else:
                self._cover(entry, slots, old, end)
        if entry.id in self.inside:
            self._open_inside(entry)
            for inner in self._inside(entry):
                if inner.start is not None and inner.end is not None and not inner.ask.types.besteffort:
                    self.inside[entry.id].cover(inner.resources, inner.start, inner.end)
        heappush(self._overdue, (end, entry.id))
        steps = self._make_way(entry, in_the_way, now)
        self._go_through(steps, now, f"job {entry.id} runs longer than expected")

    def _make_way(self, entry: Entry, in_the_way: list[Entry], now: float) -> Iterator[None]:
        """Those in the way, who were taken out, go before all of worse rank again."""
        if in_the_way:
            first = min(in_the_way, key=_by_rank)
            klass = self._class(first.ask)
            at = bisect_left(klass.line, first.rank, key=_by_rank)
            yield from backfill.replan_from(self, klass, at, now)
        backfill.follow(self, entry, now)
        yield from backfill.on_freed(self, [(start, end) for _entry, start, end, _resources in self.given], now)

    def _in_the_way(self, entry: Entry, start: float, end: float) -> list[Entry]:
        """Waiting jobs that want, between start and end, what a running job will hold then."""
        if entry.ask.types.besteffort:
            return []
        return [
            other
            for other in (*self._starting, *(each for klass in self.classes for each in klass.line))
            if other.start is not None
            and other.end is not None
            and other.start < end
            and other.end > start
            and not other.ask.types.besteffort
            and self._meet(entry, other)
        ]

    def _meet(self, entry: Entry, other: Entry) -> bool:
        """Do both want something of which there may be too little?"""
        if self.counted:
            return True
        if entry.home == other.home and entry.resources & other.resources and not may_share(entry.ask, other.ask):
            return True
        if entry.counted is not None and other.counted is not None:
            ours = set(map(id, entry.counted.counters))
            if any(id(counter) in ours for counter in other.counted.counters):
                return True
        if entry.everywhere.keys() & other.everywhere.keys():
            return True
        if entry.taking is None or other.taking is None or not entry.taking.keys() & other.taking.keys():
            return False
        hosts = set(self.site.hosts_of(entry.resources))
        return any(host in hosts for host in self.site.hosts_of(other.resources))

    # ------------------------------------------------------------------ reservations

    def _may_reserve(self, entry: Entry, now: float) -> bool:
        ask = entry.ask
        assert ask.at is not None
        if ask.types.besteffort or ask.types.inner:
            entry.reason = Waits("reservation", "besteffort and inner jobs cannot be reservations")
        elif ask.at < now:
            entry.reason = Waits("reservation", "the reservation begins in the past")
        elif entry.trouble is not None:
            entry.reason = Waits("reservation", f"rejected: {entry.trouble.message}")
        else:
            return True
        return False

    def _reserve(self, entry: Entry, now: float) -> Iterator[None]:
        """Grant or reject a reservation: it sees what is of better rank as fixed, like any submission."""
        at = entry.ask.at
        assert at is not None
        klass = self._class(entry.ask)
        position = bisect_left(klass.line, entry.rank, key=_by_rank)
        for other in backfill.below(self, klass, position):
            self.unplan(other)
        if self.place(entry, now, since=at, before=nextafter(at, inf)):
            entry.fixed = True
            self.reserved[entry.id] = entry
            for other in self._endless_before(entry):
                self.unplan(other)
                if other.rank < entry.rank:
                    klass = min(klass, self._class(other.ask), key=lambda each: -each.priority)
                    position = 0
        else:
            del self.entries[entry.id]
            self._forget(entry)
            said = f": {entry.reason.message}" if entry.reason is not None else ""
            entry.reason = Waits("reservation", f"rejected: its resources are not free at that time{said}")
        return backfill.put_back(self, klass, position, now)

    def _endless_before(self, entry: Entry) -> list[Entry]:
        """Waiting jobs that nothing ends in time, planned where a reservation was granted for later."""
        return [
            other
            for klass in self.classes
            for other in klass.line
            if other.start is not None and entry.end is not None and self.now < other.start < entry.end
            and not other.home and not other.options[other.alternative].hard and other.resources & entry.resources
        ]  # fmt: skip

    def _all_there(self, entry: Entry, now: float) -> bool:
        """May the reservation begin? With what is missing it waits a while, then begins with fewer."""
        if self.counted:
            return True
        missing = entry.resources & ~self.site.usable
        for other in self.running.values():
            if other.home != entry.home or other.ask.types.besteffort or may_share(entry.ask, other.ask):
                continue
            missing |= entry.resources & other.resources
        if not missing and entry.resources:
            return True
        assert entry.ask.at is not None
        if now < entry.ask.at + PATIENCE_S or missing == entry.resources:
            return False
        assert entry.end is not None
        self.drop(entry, since=now)
        entry.resources &= ~missing
        self.hold(entry, since=now)
        return True


def full_cores(sharing: Iterable[Entry], most: int) -> Iterator[tuple[int, float, float]]:
    """Cores of which more than so many hundredths are taken, and from when to when."""
    edges: dict[int, list[tuple[float, int]]] = {}
    for entry in sharing:
        if entry.ask.share and entry.start is not None and entry.end is not None:
            edges.setdefault(entry.resources, []).extend(
                ((entry.start, entry.ask.share), (entry.end, -entry.ask.share))
            )
    for core, moments in edges.items():
        taken = 0
        since = None
        for moment, more in sorted(moments):  # at one moment ends come first
            taken += more
            if taken > most and since is None:
                since = moment
            elif taken <= most and since is not None:
                yield core, since, moment
                since = None


def _new_end(start: float, now: float) -> float:
    """When a job that should have ended by now is expected to; in 64ths, so that sums stay exact."""
    return round((now + max(60.0, (now - start) / 4)) * 64) / 64


def _by_rank(entry: Entry) -> Rank:
    return entry.rank


def may_share(one: Ask, other: Ask) -> bool:
    """May both hold the same resources at the same time?"""
    ours, theirs = one.types, other.types
    if one.share and other.share:
        return one.share + other.share <= WHOLE
    if ours.timesharing is not None and theirs.timesharing is not None:
        same = (one.user == other.user, bool(one.name) and one.name == other.name)
        return all(
            alike or (mine == "*" and yours == "*")
            for alike, mine, yours in zip(same, ours.timesharing, theirs.timesharing, strict=True)
        )
    if ours.allowed and theirs.placeholder:
        return ours.allowed == theirs.placeholder
    if ours.placeholder and theirs.allowed:
        return ours.placeholder == theirs.allowed
    return False


def _quota_reason(refusal: Refusal) -> Waits:
    code = "calendar" if refusal.calendar else "quota"
    holders = refusal.holders
    held = f", held by {', '.join(f'job {id}' for id in holders[:5])}" if holders else ""
    more = f" and {len(holders) - 5} more" if len(holders) > 5 else ""
    message = f"quota {refusal.rule}: {refusal.limit:g} {refusal.what}{held}{more}"
    return Waits(code, message, refusal.rule, blockers=tuple(holders[:100]))
