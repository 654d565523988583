"""The planner: who runs where from when to when.

It keeps a plan of everything that runs or waits and changes only what an event touches. It has no clock:
every call says what time it is. Jobs never see it; the engine and the simulator do, with the same code.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from heapq import heappop, heappush
from math import inf, nextafter

from rota.plan import backfill, besteffort
from rota.plan.ask import Ask
from rota.plan.bounds import Bounds
from rota.plan.entry import BLOCKED, RUNNING, WAITING, Begin, Entry, Moved, Option, Rank
from rota.plan.ledger import Ledger
from rota.plan.order import Usage, rank
from rota.plan.placement import Waits
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
        self.reserved: dict[int, Entry] = {}  #: granted reservations that have not begun
        self.moved: list[Moved] = []
        self.usage = Usage(policy.fair_share.half_life_s)
        for user, seconds in (usage or {}).items():
            self.usage.add(user, "", seconds, seconds, now)
        self._limits = dict(limits or {})
        self._shapes: dict[tuple[tuple[Group, ...], int], Shape] = {}
        self._starting: list[Entry] = []  #: chosen to begin at once
        self._starts: list[tuple[float, int]] = []  #: heap of planned starts, some of them outdated
        self._overdue: list[tuple[float, int]] = []  #: heap of expected ends of what runs, some of them outdated
        self._children: dict[int, list[Entry]] = {}
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
        self.ledger = Ledger(site, self._limits)
        self.inside: dict[int, Slots] = {}  #: container → what is free inside
        self.special: dict[int, Entry] = {}  #: who may hold resources together with others
        self._bounds: dict[object, Bounds] = {}

    # ------------------------------------------------------------------ what happens

    def submit(self, id: int, ask: Ask, now: float, *, after: Iterable[int] = ()) -> Entry:
        """A new job: it is planned behind all of better rank, and those of worse rank after it."""
        self.now = now
        entry = Entry(id, ask, now)
        self._ready(entry)
        if ask.at is not None and not self._may_reserve(entry, now):
            return entry
        self.entries[id] = entry
        for parent in after:
            if parent in self.entries or parent == id:
                entry.after.add(parent)
                self._children.setdefault(parent, []).append(entry)
        entry.rank = self._rank(entry, now)
        if ask.types.besteffort:
            self.low.add(entry)
            self._refresh(now)
            besteffort.plan(self, now)
        elif ask.at is not None:
            self._reserve(entry, now)
        else:
            klass = self._class(ask)
            klass.add(entry)
            if not self._refresh(now):
                backfill.on_submitted(self, klass, entry, now)
            besteffort.plan(self, now)
        return entry

    def adopt(self, id: int, ask: Ask, *, start: float, resources: int, now: float) -> Entry:
        """A job that runs already."""
        self.now = now
        entry = Entry(id, ask, start)
        self._ready(entry)
        self.entries[id] = entry
        length = entry.options[0].length if entry.options else ask.time_s
        end = start + length
        if end <= now:
            end = now + max(60.0, (now - start) / 4)
        entry.start, entry.end, entry.resources = start, end, resources
        self._hold(entry, since=max(start, now))
        self._run(entry)
        return entry

    def ended(self, id: int, now: float, *, complete: bool = True, again: bool = False) -> None:
        """A job ended, or waits no more; others may begin earlier. `again`: it is about to be submitted once more,
        and who waits for it goes on waiting."""
        self.now = now
        entry = self.entries.pop(id, None)
        if entry is None:
            return
        freed: list[tuple[float, float]] = []
        if entry.start is not None and entry.end is not None:
            freed.append((max(now, entry.start), entry.end))
            self.drop(entry, since=now)
        was_running = self.running.pop(id, None) is not None
        if not was_running:
            self.reserved.pop(id, None)
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
        if entry.ask.types.besteffort:
            besteffort.plan(self, now)
            return
        backfill.on_freed(self, freed, now)
        besteffort.plan(self, now)

    def tick(self, now: float) -> None:
        """Time has passed: jobs past their expected end keep what they hold, and ranks may have changed."""
        self.now = now
        while self._overdue and self._overdue[0][0] <= now:
            end, id = heappop(self._overdue)
            entry = self.running.get(id)
            if entry is not None and entry.end == end:
                self._outlives(entry, now)
        self._refresh(now)

    def begin(self, now: float) -> list[Begin]:
        """Everything that is planned for now begins."""
        self.now = now
        found, self._starting = self._starting, []
        while self._starts and self._starts[0][0] <= now:
            start, id = heappop(self._starts)
            entry = self.entries.get(id)
            if entry is None or entry.state != WAITING or entry.start != start:
                continue
            if entry.fixed and not self._all_there(entry, now):
                continue
            found.append(entry)
        begun = []
        for entry in found:
            if entry.state != WAITING:
                continue
            if entry.after:
                backfill.again(self, entry, now)  # it was hoped that its parents would have ended
                if entry.start is None or entry.start > now:
                    continue
            self._leave(entry)
            begun.append(Begin(entry, besteffort.victims(self, entry)))
            if entry.start is not None and entry.start < now:
                entry.start = now
            self._run(entry)
        return begun

    def next_start(self) -> float | None:
        """The earliest planned start of a job that waits."""
        if self._starting:
            return self.now
        while self._starts:
            start, id = self._starts[0]
            entry = self.entries.get(id)
            if entry is not None and entry.state == WAITING and entry.start == start:
                return start
            heappop(self._starts)
        return None

    def next_event(self) -> float | None:
        """When the planner must be told that time has passed."""
        times = [start for start in (self.next_start(),) if start is not None]
        while self._overdue:
            end, id = self._overdue[0]
            entry = self.running.get(id)
            if entry is not None and entry.end == end:
                times.append(end)
                break
            heappop(self._overdue)
        if self._ranks_change():
            times.append(self._refreshed + REFRESH_S)
        return min(times, default=None)

    def change_site(self, site: Site, now: float) -> None:
        """Resources came, went or changed: what runs stays, everything else is planned again in order of rank."""
        self.now = now
        running = [(entry, self.site.ids(entry.resources)) for entry in self.running.values()]
        planned = [(entry, self.site.ids(entry.resources)) for entry in self.reserved.values()]
        before = {entry.id: entry.start for entry in self.entries.values() if entry.state == WAITING}
        self.site = site
        self._shapes.clear()
        if self.quotas is not None:
            for entry in self.entries.values():
                if entry.counted is not None and entry.start is not None:
                    self.quotas.give(entry.counted, entry.id)
        self._open()
        for entry, ids in running + planned:
            entry.resources = site.mask(id for id in ids if site.knows(id))
            self._ready(entry)
            if entry.start is not None:
                self._hold(entry, since=max(entry.start, now))
        for entry in self.entries.values():
            if entry.state == WAITING and not entry.fixed:
                entry.start = entry.end = None
                entry.resources = 0
                self._ready(entry)
        self._starting = []
        backfill.replan(self, now)
        besteffort.plan(self, now)
        for id, start in before.items():
            entry = self.entries[id]
            if entry.start != start and start is not None:
                self.moved.append(Moved(id, start, entry.start, "the resources changed"))

    def modify(self, id: int, ask: Ask, now: float) -> Entry:
        """A waiting job asks for something else."""
        self.now = now
        old = self.entries[id]
        after = set(old.after)
        submitted = old.submitted
        self.ended(id, now)
        entry = self.submit(id, ask, now, after=after)
        entry.submitted = submitted
        self._refreshed = -inf
        self._refresh(now)
        return entry

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

    def _rank(self, entry: Entry, now: float) -> Rank:
        queue = self.queue(entry.ask.queue)
        key = rank(
            queue,
            entry.ask,
            submitted=entry.submitted,
            now=now,
            usage=self.usage,
            active_users=0 if queue.order == "fifo" else self._active(),
            fair_share=self.policy.fair_share,
        )
        self._serial += 1
        entry.serial = entry.serial or self._serial
        return (*key, entry.serial)

    def _active(self) -> int:
        return self.usage.active(entry.ask.user for entry in self.entries.values())

    def _ranks_change(self) -> bool:
        return any(self.queue(entry.ask.queue).order != "fifo" for klass in self.classes for entry in klass.line)

    def _refresh(self, now: float) -> bool:
        """Rank all waiting jobs anew where ranks depend on time or use. True if the plan was made again."""
        due = now >= self._refreshed + REFRESH_S
        if not due and not self._ranks_change():
            return False
        self._refreshed = now
        changed = False
        for klass in self.classes:
            before = klass.line[:]
            for entry in klass.line:
                entry.rank = self._rank(entry, now)
            klass.line.sort(key=_by_rank)
            if klass.line != before:
                at = next(at for at, (a, b) in enumerate(zip(before, klass.line, strict=True)) if a is not b)
                backfill.replan_from(self, klass, at, now, cause="ranks changed")
                changed = True
        self.low.line.sort(key=_by_rank)
        if changed:
            # Jobs that were never planned come with the next pass of their class.
            backfill.replan_missing(self, now)
        return changed

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
        self._hold(entry)
        if entry.ask.types.container:
            self.inside[entry.id] = Slots.within(resources, start, entry.end)
        heappush(self._starts, (start, entry.id))
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
        earliest, waits = self._not_before(entry, now)
        if waits is not None:
            entry.reason = waits
            entry.blamed = True
            return None
        room = self._room(entry)
        if isinstance(room, Waits):
            entry.reason, entry.blamed = room, True
            return None
        slots, earliest = room, max(earliest, since if since is not None else now)
        best: tuple[float, int, int] | None = None
        best_end = inf
        entry.reason = None
        for at, option in enumerate(entry.options):
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
            short = self.ledger.again(entry.everywhere, start, end)
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
        low = not entry.ask.types.besteffort and besteffort.running(self)
        if taking is None and not obstacles and not low:
            return None, ()
        ledger = self.ledger

        def pick(free: int, start: float, end: float) -> int:
            for until, mask in obstacles:
                if until > start:
                    free &= ~mask
            short = None
            if taking is not None:

                def short(mask: int) -> int:
                    return ledger.short(taking, mask, start, end)

            if low:
                return besteffort.choose(self, shape, free, short, start)
            return shape.choose(free, short)

        also = sorted({until for until, _mask in obstacles if until != inf}) if obstacles else []
        if taking is not None:
            also = sorted({*also, *ledger.ends()})
        if low:
            entry.blamed = True
        return pick, also

    def _obstacles(self) -> list[tuple[float, int]]:
        """What only a job with a walltime may be placed before: (until when, resources)."""
        found = [(inf, mask) for mask in self.site.until.values()]
        found += [(entry.end or inf, entry.resources) for entry in self.reserved.values()]
        return found

    def _not_before(self, entry: Entry, now: float) -> tuple[float, Waits | None]:
        """The earliest start that its parents and terms allow."""
        earliest = now
        postpone = entry.ask.types.postpone
        if postpone is not None:
            earliest = max(earliest, postpone)
        for parent in entry.after:
            found = self.entries.get(parent)
            if found is None or found.end is None:
                return inf, Waits("dependency", f"job {parent}, which it waits for, has no planned start")
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

    def _room(self, entry: Entry) -> Slots | Waits:
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
            if not _may_share(entry.ask, each.ask):
                view.cover(each.resources, max(each.start or 0.0, self.now), each.end or inf)
        return view

    def slots_of(self, entry: Entry) -> Slots | None:
        """Where the job's resources are taken from; None: nowhere that others look at."""
        return self.inside.get(entry.home) if entry.home else self.slots

    # -- holding

    def _hold(self, entry: Entry, since: float | None = None) -> None:
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
                    slots.cover(entry.resources, begin, end)
        if entry.counted is not None and self.quotas is not None:
            number = entry.resources if self.counted else entry.resources.bit_count()
            self.quotas.take(entry.counted, entry.id, number, start, end)
        if entry.taking is not None or entry.everywhere:
            self.ledger.take(entry.id, entry.taking, entry.everywhere, entry.resources, (start, end))

    def drop(self, entry: Entry, since: float) -> None:
        """What the entry was given is free from this moment on."""
        start, end = entry.start, entry.end
        if start is None or end is None:
            return
        begin = max(start, since)
        slots = self.slots_of(entry)
        if slots is not None and not entry.ask.types.besteffort:
            if entry.special:
                self.special.pop(entry.id, None)
                slots.uncover(entry.resources, begin, end)
                for other in self.special.values():
                    if other.home == entry.home and other.start is not None and other.end is not None:
                        slots.cover(other.resources, max(other.start, self.now), other.end)
            else:
                slots.give(entry.resources, begin, end)
            if slots is self.slots:
                self._bounds.clear()
        if entry.counted is not None and self.quotas is not None:
            self.quotas.give(entry.counted, entry.id)
        self.ledger.give(entry.id)

    def unplan(self, entry: Entry) -> None:
        """The waiting job has no planned start any more; nor have those planned inside it."""
        if entry.start is None:
            return
        self.drop(entry, since=self.now)
        entry.start = entry.end = None
        entry.resources = 0
        if self.inside.pop(entry.id, None) is not None:
            for inner in list(self.entries.values()):
                if inner.home == entry.id and inner.state == WAITING:
                    inner.start = inner.end = None
                    inner.resources = 0
                    inner.home = 0
                    if inner.counted is not None and self.quotas is not None:
                        self.quotas.give(inner.counted, inner.id)
                    self.ledger.give(inner.id)
                    self.inside.pop(inner.id, None)

    def followers(self, entry: Entry) -> list[Entry]:
        """Waiting jobs whose place depends on this one's, in order of rank."""
        found = [child for child in self._children.get(entry.id, ()) if child.state == WAITING]
        if entry.ask.types.container:
            inside = {str(entry.id), entry.ask.name}
            found += [
                each
                for each in self.entries.values()
                if each.state == WAITING and each.ask.types.inner and each.ask.types.inner in inside
            ]
        return sorted(found, key=_by_rank)

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
        if entry.ask.types.container and entry.id not in self.inside and not self.counted:
            assert entry.start is not None
            assert entry.end is not None
            self.inside[entry.id] = Slots.within(entry.resources, entry.start, entry.end)
        if entry.end is not None:
            heappush(self._overdue, (entry.end, entry.id))

    def _tell_children(self, entry: Entry, now: float, *, complete: bool, ran: bool) -> None:
        for child in self._children.pop(entry.id, ()):
            if child.state != WAITING:
                continue
            if complete and ran:
                child.after.discard(entry.id)
                child.blamed = True
                continue
            self.unplan(child)
            child.state = BLOCKED
            child.reason = Waits("dependency_never", f"job {entry.id}, which it waits for, did not complete")
            self._leave(child)
            self._tell_children(child, now, complete=False, ran=False)

    def _empty(self, entry: Entry, now: float) -> None:
        """The container is gone: what runs inside holds its resources by itself from now on."""
        if self.inside.pop(entry.id, None) is None:
            return
        for inner in self.entries.values():
            if inner.home != entry.id or inner.start is None or inner.end is None:
                continue
            inner.home = 0
            if inner.state == RUNNING:
                self.slots.cover(inner.resources, now, inner.end)
            else:
                if inner.counted is not None and self.quotas is not None:
                    self.quotas.give(inner.counted, inner.id)
                self.ledger.give(inner.id)
                inner.start = inner.end = None
                inner.resources = 0
                inner.blamed = True
                self.inside.pop(inner.id, None)

    def _outlives(self, entry: Entry, now: float) -> None:
        """A running job is past its expected end: it keeps its resources, and plans in the way move."""
        assert entry.start is not None
        assert entry.end is not None
        old, end = entry.end, now + max(60.0, (now - entry.start) / 4)
        in_the_way = []
        if not entry.ask.types.besteffort and not entry.home:
            for klass in self.classes:
                for other in klass.line:
                    if (
                        other.start is not None
                        and not other.home
                        and other.start < end
                        and self._meet(entry, other)
                    ):
                        in_the_way.append(other)
        before = {other.id: other.start for other in in_the_way}
        for other in in_the_way:
            self.unplan(other)
            if other in self._starting:
                self._starting.remove(other)
        if entry.counted is not None and self.quotas is not None:
            self.quotas.give(entry.counted, entry.id)
            number = entry.resources if self.counted else entry.resources.bit_count()
            self.quotas.take(entry.counted, entry.id, number, entry.start, end)
        if entry.taking is not None or entry.everywhere:
            self.ledger.give(entry.id)
            self.ledger.take(entry.id, entry.taking, entry.everywhere, entry.resources, (entry.start, end))
        slots = self.slots_of(entry)
        if slots is not None and not entry.ask.types.besteffort:
            if self.counted:
                slots.take(entry.resources, old, end)
            else:
                slots.cover(entry.resources, old, end)
        entry.end = end
        heappush(self._overdue, (end, entry.id))
        for other in in_the_way:
            backfill.again(self, other, now)
            if other.start != before[other.id]:
                cause = f"job {entry.id} runs longer than expected"
                self.moved.append(Moved(other.id, before[other.id], other.start, cause))
        for child in self.followers(entry):
            backfill.again(self, child, now)
        besteffort.plan(self, now)

    def _meet(self, entry: Entry, other: Entry) -> bool:
        return self.counted or bool(entry.resources & other.resources)

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

    def _reserve(self, entry: Entry, now: float) -> None:
        """Grant or reject a reservation: it sees what is of better rank as fixed, like any submission."""
        at = entry.ask.at
        assert at is not None
        klass = self._class(entry.ask)
        position = bisect_left(klass.line, entry.rank, key=_by_rank)
        below = backfill.below(self, klass, position)
        places = {other.id: other.start for other in below}
        for other in below:
            self.unplan(other)
        granted = self.place(entry, now, since=at, before=nextafter(at, inf))
        if granted:
            entry.fixed = True
            self.reserved[entry.id] = entry
        else:
            del self.entries[entry.id]
            said = f": {entry.reason.message}" if entry.reason is not None else ""
            entry.reason = Waits("reservation", f"rejected: its resources are not free at that time{said}")
        for other in below:
            backfill.again(self, other, now)
            if other.start != places[other.id] and places[other.id] is not None:
                self.moved.append(Moved(other.id, places[other.id], other.start, f"reservation {entry.id}"))
        besteffort.plan(self, now)

    def _all_there(self, entry: Entry, now: float) -> bool:
        """May the reservation begin? With what is missing it waits a while, then begins with fewer."""
        missing = entry.resources & ~self.site.usable if not self.counted else 0
        for other in self.running.values():
            if not entry.special and not other.ask.types.besteffort and not other.home:
                missing |= entry.resources & other.resources
        if not missing:
            return True
        assert entry.start is not None
        assert entry.ask.at is not None
        if now < entry.ask.at + PATIENCE_S or missing == entry.resources:
            entry.start = now  # it is looked at again with the next event
            heappush(self._starts, (nextafter(now, inf), entry.id))
            entry.start = nextafter(now, inf)
            return False
        entry.resources &= ~missing
        return True


def _by_rank(entry: Entry) -> Rank:
    return entry.rank


def _may_share(one: Ask, other: Ask) -> bool:
    """May both hold the same resources at the same time?"""
    ours, theirs = one.types, other.types
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
    return Waits(code, f"quota {refusal.rule}: {refusal.limit:g} {refusal.what}{held}{more}", refusal.rule)
