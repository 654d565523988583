"""A planner that is slow and easy to believe: sets of numbers, lists of jobs, and every rule in its plainest form.

It knows nothing of bits, slots, bounds or shortcuts. A start is tried at every moment at which anything ends; a
place is possible if nobody who may not share it holds part of it meanwhile. Queues are conservative.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import combinations
from math import inf

from rota.plan.ask import Ask
from rota.plan.language.request import ALL, BEST, HALF_BEST, Alternative, ResourceGroup
from rota.plan.policy.policy import Policy
from rota.plan.site.resources import Resource

Free = frozenset[int]
NOTHING: Free = frozenset()

#: Expressions that the naive planner understands, by their text.
WHERE = {
    "": lambda values: True,
    "gpu = true": lambda values: values.get("gpu") is True,
    "not gpu = true": lambda values: values.get("gpu") is False,
    "speed >= 2": lambda values: values.get("speed", 0) >= 2,
}


# ------------------------------------------------------------------ what a request may take


class Naive:
    """The resources of a site, and ways to take groups of them."""

    def __init__(self, resources: Iterable[Resource], usable: Iterable[int]) -> None:
        self.values = {each.id: each.values for each in resources}
        self.usable = frozenset(usable)

    def value(self, id: int, level: str) -> object:
        level = {"nodes": "host"}.get(level, level)
        return self.values[id].get(level, id if level == "core" else None)

    def eligible(self, group: ResourceGroup) -> Free:
        """Those that match and lie in a block of every level."""
        return frozenset(
            id
            for id in self.usable
            if WHERE[group.where](self.values[id])
            and all(self.value(id, level.name) is not None for level in group.levels)
        )

    def blocks(self, group: ResourceGroup, depth: int, within: Free) -> list[Free]:
        """The blocks of one level in a block of the level above, by their lowest member."""
        found: dict[object, set[int]] = {}
        for id in sorted(within):
            found.setdefault(self.value(id, group.levels[depth].name), set()).add(id)
        return [frozenset(each) for each in found.values()]

    def wanted(self, group: ResourceGroup, there: int, blocks: int) -> int:
        number = group.levels[0].number
        if number == ALL:
            return blocks
        if number == BEST:
            return max(1, there)
        if number == HALF_BEST:
            return there // 2
        assert isinstance(number, int)
        return number

    def ways(self, group: ResourceGroup, free: Free, depth: int = 0, within: Free | None = None) -> Iterator[Free]:
        """Every set that satisfies the group, the preferred first."""
        within = self.eligible(group) if within is None else within
        blocks = self.blocks(group, depth, within)
        last = depth == len(group.levels) - 1
        able = [
            block
            for block in blocks
            if (block <= free if last else next(self.ways(group, free, depth + 1, block), None))
        ]
        number = group.levels[depth].number
        wanted = self.wanted(group, len(able), len(blocks)) if depth == 0 else number
        assert isinstance(wanted, int)
        if wanted < 1 or len(able) < wanted:
            return
        for some in combinations(able, wanted):
            if last:
                yield frozenset().union(*some)
            else:
                yield from self._each(group, free, depth, some)

    def _each(self, group: ResourceGroup, free: Free, depth: int, blocks: tuple[Free, ...]) -> Iterator[Free]:
        if not blocks:
            yield NOTHING
            return
        for taken in self.ways(group, free, depth + 1, blocks[0]):
            for rest in self._each(group, free, depth, blocks[1:]):
                yield taken | rest

    def first(self, group: ResourceGroup, free: Free) -> Free:
        return next(self.ways(group, free), NOTHING)

    def choose(self, alternative: Alternative, free: Free) -> Free:
        """What to take; nothing if it does not fit."""
        in_turn = self._in_turn(alternative.groups, free)
        if in_turn or len(alternative.groups) == 1:
            return in_turn
        narrow = sorted(alternative.groups, key=lambda group: len(self.eligible(group)))
        return self._in_turn(narrow, free) or self.search(alternative.groups, free)

    def _in_turn(self, groups: Iterable[ResourceGroup], free: Free) -> Free:
        taken = NOTHING
        for group in groups:
            some = self.first(group, free - taken)
            if not some:
                return NOTHING
            taken |= some
        return taken

    def search(self, groups: tuple[ResourceGroup, ...], free: Free) -> Free:
        """Try everything."""
        if not groups:
            return NOTHING
        for some in self.ways(groups[0], free):
            if len(groups) == 1:
                return some
            rest = self.search(groups[1:], free - some)
            if rest:
                return some | rest
        return NOTHING


# ------------------------------------------------------------------ jobs and their places


@dataclass(eq=False)
class Job:
    id: int
    ask: Ask
    submitted: float
    rank: tuple[float, ...] = ()
    state: str = "waiting"
    after: set[int] = field(default_factory=set)
    fixed: bool = False
    home: int = 0
    start: float | None = None
    end: float | None = None
    resources: Free = NOTHING
    hopeless: bool = False
    option: int = 0

    @property
    def low(self) -> bool:
        return self.ask.types.besteffort

    @property
    def place(self) -> tuple[float | None, Free]:
        return self.start, self.resources

    def lengths(self, policy: Policy) -> list[tuple[float, bool]]:
        default = policy.queues[self.ask.queue].walltime_s
        walltimes = [each.walltime_s or default for each in self.ask.alternatives]
        return [(each or self.ask.time_s, each is not None) for each in walltimes]


def meet(one: Job, start: float, end: float) -> bool:
    """Does it hold something between start and end?"""
    return one.start is not None and one.end is not None and one.start < end and one.end > start


def may_share(one: Ask, other: Ask) -> bool:
    ours, theirs = one.types, other.types
    if ours.timesharing is not None and theirs.timesharing is not None:
        user = one.user == other.user or (ours.timesharing[0] == "*" and theirs.timesharing[0] == "*")
        named = bool(one.name) and one.name == other.name
        name = named or (ours.timesharing[1] == "*" and theirs.timesharing[1] == "*")
        return user and name
    if ours.allowed and theirs.placeholder:
        return ours.allowed == theirs.placeholder
    return bool(ours.placeholder and theirs.allowed and ours.placeholder == theirs.allowed)


class Brute:
    """Everybody and their places."""

    def __init__(
        self,
        resources: list[Resource],
        policy: Policy,
        *,
        usable: Iterable[int],
        until: dict[int, float] | None = None,
        closed: list[tuple[float, float, Free]] | None = None,
        mem: dict[str, int] | None = None,
        rules: dict[str, tuple[int, int]] | None = None,
    ) -> None:
        self.resources = resources
        self.policy = policy
        self.naive = Naive(resources, usable)
        self.until = until or {}
        self.closed = closed or []
        self.mem = mem or {}
        self.rules = rules or {}
        self.jobs: dict[int, Job] = {}
        self.now = 0.0
        self.serial = 0

    # -- who

    def waiting(self, *, low: bool = False) -> list[Job]:
        """Those that may be moved, in order of rank."""
        found = [job for job in self.jobs.values() if job.state == "waiting" and not job.fixed and job.low == low]
        return sorted(found, key=lambda job: job.rank)

    def containers(self, name: str) -> list[Job]:
        """That of this id, or all of this name that have a place, by their start."""
        found = [job for job in self.jobs.values() if job.ask.types.container]
        if any(str(job.id) == name for job in found):
            return [job for job in found if str(job.id) == name and job.start is not None]
        named = [job for job in found if job.ask.name == name and job.start is not None]
        return sorted(named, key=lambda job: (job.start, job.id))

    def asked_for(self, job: Job, container: Job) -> bool:
        return job.ask.types.inner in {str(container.id), container.ask.name} - {""}

    def inside(self, container: Job) -> list[Job]:
        return [job for job in self.jobs.values() if job.home == container.id and job.start is not None]

    def host(self, id: int) -> str:
        return str(self.naive.values[id]["host"])

    # -- is a place possible?

    def free(self, job: Job, start: float, end: float, *, hard: bool) -> Free:
        """What nobody holds who may not share it, from start to end."""
        free = self.naive.usable
        if job.home:
            container = self.jobs[job.home]
            if container.start is None or container.end is None or start < container.start or end > container.end:
                return NOTHING
            free &= container.resources
        for other in self.jobs.values():
            if other is job or other.home != job.home or not meet(other, start, end):
                continue
            if (other.low and not job.low) or may_share(job.ask, other.ask):
                continue
            free -= other.resources
        gone = {id for id, moment in self.until.items() if moment < end or not hard}
        for begins, ends, ids in self.closed:
            if not hard or (begins < end and ends > start):
                gone |= ids
        if not hard:
            for other in self.jobs.values():
                if other.fixed and other.state == "waiting" and other.end is not None and other.end > start:
                    gone |= other.resources
        return free - gone - self.short(job, start, end)

    def short(self, job: Job, start: float, end: float) -> Free:
        """Those on hosts that have too little memory left."""
        if not job.ask.mem:
            return NOTHING
        lacking: set[int] = set()
        for host, most in self.mem.items():
            of_host = {id for id in self.naive.values if self.host(id) == host}
            there = [
                other
                for other in self.jobs.values()
                if other is not job
                and (job.low or not other.low)
                and meet(other, start, end)
                and other.resources & of_host
            ]
            moments = {start} | {other.start for other in there if other.start is not None and other.start > start}
            for moment in moments:
                used = sum(other.ask.mem for other in there if meet(other, moment, moment + 0.001))
                if used + job.ask.mem > most:
                    lacking |= of_host
        return frozenset(lacking)

    def over_quota(self, job: Job, number: int, start: float, end: float) -> bool:
        """Would some rule be broken?"""
        for key, (resources, jobs) in self.rules.items():
            group = self._group(key, job)
            if group is None:
                continue
            there = [
                other
                for other in self.jobs.values()
                if other is not job and meet(other, start, end) and self._group(key, other) == group
            ]
            moments = {start} | {other.start for other in there if other.start is not None and other.start > start}
            for moment in moments:
                now = [other for other in there if meet(other, moment, moment + 0.001)]
                held = sum(len(other.resources) for other in now)
                if 0 <= resources < held + number or 0 <= jobs < len(now) + 1:
                    return True
        return False

    def _group(self, key: str, job: Job) -> tuple[str, ...] | None:
        """Among whom a rule counts a job; None: not at all."""
        queue, project, _kind, user = key.split(",")
        ask = job.ask
        if ask.types.container or (queue == "*" and ask.types.besteffort):
            return None
        names = []
        for part, value in ((queue, ask.queue), (project, ask.project), (user, ask.user)):
            if part not in ("*", "/", value):
                return None
            names.append(value if part == "/" else part)
        return tuple(names)

    # -- finding a place

    def find(self, job: Job, *, at: float | None = None) -> tuple[float, float, Free] | None:
        """Start, end and resources of the alternative that ends first."""
        types = job.ask.types
        earliest = self.now if at is None else at
        if types.postpone is not None:
            earliest = max(earliest, types.postpone)
        for parent in job.after:
            found = self.jobs.get(parent)
            if found is None or found.end is None or (found.low and not job.low and found.state == "waiting"):
                return None
            earliest = max(earliest, found.end)
        homes = [0]
        if types.inner:
            homes = [each.id for each in self.containers(types.inner) if each is not job]
        best_home = job.home = 0
        if at is not None and earliest > at:
            return None
        best: tuple[float, float, Free] | None = None
        for home, number, (length, hard) in (
            (home, number, each) for home in homes for number, each in enumerate(job.lengths(self.policy))
        ):
            alternative = job.ask.alternatives[number]
            job.home = home
            if home and not hard:
                continue
            for start in [at] if at is not None else self.moments(earliest):
                end = start + length
                if types.deadline is not None and end > types.deadline:
                    break
                if types.expire is not None and start > types.expire:
                    break
                if best is not None and end >= best[1]:
                    break
                taken = self.naive.choose(alternative, self.free(job, start, end, hard=hard or at is not None))
                if taken and not self.over_quota(job, len(taken), start, end):
                    best = (start, end, taken)
                    job.option, best_home = number, home
                    break
        job.home = best_home
        return best

    def moments(self, earliest: float) -> list[float]:
        """An earliest start is the first moment allowed, or one at which something begins or ends."""
        found = {earliest, *(moment for moment in self.until.values() if moment > earliest)}
        found |= {ends for _begins, ends, _ids in self.closed if earliest < ends < inf}
        for other in self.jobs.values():
            found.update(each for each in (other.start, other.end) if each is not None and each > earliest)
        return sorted(found)

    def place(self, job: Job) -> None:
        found = None if job.hopeless else self.find(job)
        job.start, job.end, job.resources = found or (None, None, NOTHING)

    def out(self, job: Job) -> dict[Job, tuple[float | None, float | None, Free, int]]:
        """Take it out, and what is planned inside it. Who was taken out, and where they were."""
        places = {job: (job.start, job.end, job.resources, job.home)}
        if job.ask.types.container:
            for inner in self.inside(job):
                if inner.state == "waiting":
                    places |= self.out(inner)
        job.start = job.end = None
        job.resources = NOTHING
        return places

    def put_back(self, jobs: Iterable[Job]) -> None:
        """Place them, one after the other; those that hang on one come after it, at the latest in their turn."""
        jobs = list(jobs)
        for at, job in enumerate(jobs):
            self.place(job)
            self.follow(job, pending=jobs[at + 1 :])

    def follow(self, job: Job, *, pending: list[Job]) -> None:
        for child in self.waiting():
            if child in pending:
                continue
            if job.id in child.after:
                wrong = child.start is None or job.end is None or child.start < job.end
            else:
                wrong = (
                    self.asked_for(child, job)
                    and child is not job
                    and (
                        child.start is None
                        or (
                            child.home == job.id
                            if job.start is None
                            else child.home != job.id and child.start > job.start
                        )
                    )
                )
            if wrong:
                self.out(child)
                self.place(child)
                # Also if it stays without a place: it may have lost it before, with its container.
                self.follow(child, pending=pending)

    def besteffort(self) -> None:
        """Those that nobody regards are planned last."""
        waiting = self.waiting(low=True)
        for job in waiting:
            self.out(job)
        for job in waiting:
            self.place(job)

    # -- what happens

    def submit(self, id: int, ask: Ask, now: float, *, after: Iterable[int] = ()) -> bool:
        self.serial += 1
        return self._enter(id, ask, now, after=after, submitted=now, serial=self.serial)

    def _enter(
        self, id: int, ask: Ask, now: float, *, after: Iterable[int], submitted: float, serial: int
    ) -> bool:
        self.now = now
        job = Job(id, ask, submitted)
        queue = self.policy.queues[ask.queue]
        job.rank = (-queue.priority, -ask.priority, submitted, serial)
        job.after = {parent for parent in after if parent in self.jobs}
        job.hopeless = self._hopeless(job)
        if ask.at is not None and (ask.at < now or job.hopeless):
            return False
        self.jobs[id] = job
        if job.low:
            self.besteffort()
            return True
        lower = [other for other in self.waiting() if other.rank > job.rank]
        for other in lower:
            self.out(other)
        granted = True
        if ask.at is not None:
            found = self.find(job, at=ask.at)
            if found is None:
                granted = False
                del self.jobs[id]
            else:
                job.start, job.end, job.resources = found
                job.fixed = True
                endless = [other for other in self.waiting() if self._endless_before(other, job)]
                for other in endless:
                    self.out(other)
                lower = sorted([*lower, *endless], key=lambda other: other.rank)
                self.follow(job, pending=lower)
            self.put_back(lower)
        else:
            self.put_back([job, *lower])
        self.besteffort()
        return granted

    def _endless_before(self, other: Job, job: Job) -> bool:
        """Is it planned, and nothing would end it in time, where a reservation was granted?"""
        if other.start is None or other.end is None or other.home or not other.resources & job.resources:
            return False
        length = other.end - other.start
        soft = any(each.walltime_s is None and other.ask.time_s == length for each in other.ask.alternatives)
        return soft and job.end is not None and self.now < other.start < job.end

    def _hopeless(self, job: Job) -> bool:
        short = frozenset(
            id for id in self.naive.usable if self.host(id) in self.mem and job.ask.mem > self.mem[self.host(id)]
        )
        free = self.naive.usable - (short if job.ask.mem else NOTHING)
        return not any(self.naive.choose(each, free) for each in job.ask.alternatives)

    def ended(self, id: int, now: float, *, complete: bool = True, again: bool = False) -> None:
        self.now = now
        job = self.jobs.pop(id)
        freed = not job.low
        if not again:
            freed |= self._tell(job, complete and job.state == "running")
        if job.ask.types.container:
            self._emptied(job)
        if freed:
            self.compress()
        self.besteffort()

    def _tell(self, job: Job, complete: bool) -> bool:
        """Its children may begin, or never will. True if somebody won or lost a place by it."""
        changed = False
        for child in list(self.jobs.values()):
            if job.id not in child.after or child.state != "waiting":
                continue
            if complete:
                child.after.discard(job.id)
                changed |= not child.low
            else:
                changed |= child.start is not None and not child.low
                self.out(child)
                child.fixed = False
                child.state = "blocked"
                changed |= self._tell(child, False)
        return changed

    def _emptied(self, container: Job) -> None:
        """Who runs inside goes on by itself; who waits has no place."""
        for inner in self.inside(container):
            if inner.state == "waiting":
                self.out(inner)
                continue
            inner.home = 0
            for other in self.waiting():
                if meet(other, self.now, inner.end or inf) and not inner.low and self._overlap(inner, other):
                    self.out(other)

    def compress(self) -> None:
        """Once, in order, each is taken out alone and put back at its earliest start."""
        line = self.waiting()
        for at, job in enumerate(line):
            if job.start is not None and job.start <= self.now:
                continue
            places = self.out(job)
            before = places[job][0], places[job][2]
            self.place(job)
            if job.place == before or self._worse(job, places[job]):
                for other, (start, end, resources, home) in places.items():
                    other.start, other.end, other.resources, other.home = start, end, resources, home
            else:
                self.follow(job, pending=line[at + 1 :])

    def _worse(self, job: Job, before: tuple[float | None, float | None, Free, int]) -> bool:
        """Did it lose by moving, though its old place is as good as ever? All that is free may be over a quota."""
        start, end, resources, home = before
        if start is None or end is None or home != job.home or (job.end is not None and job.end < end):
            return False
        levels = [level for each in job.ask.alternatives for group in each.groups for level in group.levels]
        greedy = any(level.number in (BEST, HALF_BEST) for level in levels)
        if job.end == end and not (greedy and len(job.resources) < len(resources)):
            return False
        parents = [self.jobs.get(parent) for parent in job.after]
        return all(each is not None and each.end is not None and each.end <= start for each in parents)

    def tick(self, now: float) -> None:
        self.now = now
        late = [
            job for job in self.jobs.values() if job.state == "running" and job.end is not None and job.end <= now
        ]
        for job in sorted(late, key=lambda job: (job.end, job.id)):
            self._outlives(job)

    def _outlives(self, job: Job) -> None:
        assert job.start is not None
        assert job.end is not None
        old, end = job.end, round((self.now + max(60.0, (self.now - job.start) / 4)) * 64) / 64
        in_the_way = [
            other
            for other in self.waiting()
            if meet(other, old, end) and not job.low and self._collide(job, other)
        ]
        job.end = end
        if in_the_way:
            lower = [other for other in self.waiting() if other.rank >= in_the_way[0].rank]
            for other in lower:
                self.out(other)
            self.put_back(lower)
        self.follow(job, pending=[])
        self.compress()
        self.besteffort()

    def _collide(self, job: Job, other: Job) -> bool:
        """Do both want something of which there may be too little?"""
        if self._overlap(job, other):
            return True
        if any(
            self._group(key, job) is not None and self._group(key, job) == self._group(key, other)
            for key in self.rules
        ):
            return True
        hosts = {self.host(id) for id in job.resources} & {self.host(id) for id in other.resources}
        return bool(job.ask.mem and other.ask.mem and hosts & self.mem.keys())

    def _overlap(self, job: Job, other: Job) -> bool:
        return (
            job.home == other.home and bool(job.resources & other.resources) and not may_share(job.ask, other.ask)
        )

    def begin(self, now: float) -> list[tuple[int, list[int]]]:
        """Who begins, and who must end for it."""
        self.now = now
        begun: list[tuple[int, list[int]]] = []
        aside = False
        due = [job for job in self.jobs.values() if job.state == "waiting" and job.start is not None]
        due = sorted(
            (job for job in due if job.start <= now and not job.after), key=lambda job: (job.start, job.id)
        )
        for job in [job for job in due if not job.low]:
            if job.fixed and (job.end <= now or not self._there(job)):
                continue
            planned = job.resources
            self._avoid(job)
            aside = aside or job.resources != planned
            job.state = "running"
            job.start = now
            begun.append((job.id, sorted(self._victims(job))))
        if aside:
            self.compress()
        self.besteffort()
        due = sorted(self.waiting(low=True), key=lambda job: (job.start or 0.0, job.id))
        for job in due:
            if job.start is not None and job.start <= now and not job.after:
                job.state = "running"
                begun.append((job.id, []))
        for id, _victims in begun:
            self.follow(self.jobs[id], pending=[])
        self.besteffort()
        return begun

    def _guests(self) -> list[Job]:
        return [job for job in self.jobs.values() if job.state == "running" and job.low]

    def _in_the_way(self, job: Job) -> list[Job]:
        """Besteffort jobs with whom it may not share."""
        return [other for other in self._guests() if other.home != job.home or not may_share(other.ask, job.ask)]

    def _avoid(self, job: Job) -> None:
        """Take what ends the fewest besteffort jobs, then the youngest."""
        guests = [other for other in self._in_the_way(job) if other.resources & job.resources]
        if not guests or (job.ask.types.container and self.inside(job)):
            return
        assert job.start is not None
        assert job.end is not None
        alternative = job.ask.alternatives[job.option]
        hard = job.lengths(self.policy)[job.option][1]
        free = self.free(job, self.now, job.end, hard=hard)
        guests = [other for other in self._in_the_way(job) if other.resources & free and other.id != job.home]
        guests.sort(key=lambda other: (-(other.start or 0.0), len(other.resources), other.id))
        for number in range(len(guests) + 1):
            for some in combinations(guests, number):
                spared = frozenset().union(*(other.resources for other in guests if other not in some))
                taken = self.naive.choose(alternative, free - spared)
                if taken and len(taken) == len(job.resources):
                    job.resources = taken
                    return

    def _victims(self, job: Job) -> list[int]:
        found = [other.id for other in self._in_the_way(job) if other.resources & job.resources]
        if not job.ask.mem:
            return found
        youngest = sorted(
            self._guests(), key=lambda other: (-(other.start or 0.0), len(other.resources), other.id)
        )
        for host, most in self.mem.items():
            of_host = {id for id in self.naive.values if self.host(id) == host}
            if not job.resources & of_host:
                continue
            there = [other for other in self.jobs.values() if other.resources & of_host]
            there = [other for other in there if meet(other, self.now, self.now + 0.001) and other.id not in found]
            used = sum(other.ask.mem for other in there)
            for other in youngest:
                if used > most and other in there and other.ask.mem:
                    found.append(other.id)
                    used -= other.ask.mem
        return found

    def _there(self, job: Job) -> bool:
        """May a reservation begin?"""
        missing = job.resources - self.naive.usable
        for other in self.jobs.values():
            if other.state == "running" and not other.low and not other.home and not may_share(job.ask, other.ask):
                missing |= job.resources & other.resources
        if not missing:
            return True
        assert job.ask.at is not None
        if self.now < job.ask.at + 300 or missing == job.resources:
            return False
        job.resources -= missing
        return True

    def change_usable(self, usable: Iterable[int], now: float) -> None:
        self.now = now
        self.naive = Naive(self.resources, usable)
        waiting = self.waiting()
        for job in waiting + self.waiting(low=True):
            self.out(job)
            job.hopeless = self._hopeless(job)
        self.put_back(waiting)
        self.besteffort()

    def modify(self, id: int, ask: Ask, now: float) -> None:
        old = self.jobs[id]
        after = set(old.after)
        self.ended(id, now, again=True)
        self._enter(id, ask, now, after=after, submitted=old.submitted, serial=int(old.rank[-1]))


__all__ = ["Brute", "Job", "Naive", "inf", "may_share", "meet"]
