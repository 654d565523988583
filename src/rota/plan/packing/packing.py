"""Packs jobs onto hosts by priority, then age, never over what a host or a limit has.

Waiting jobs form *job classes*, one per rank key and need: a million equal jobs are one entry. The job classes of
one size form a *size class*, so a thousand limits make only a few entries. When the first in rank does not fit,
its shadow time is estimated, and only jobs that do not delay it may pass (EASY backfilling). A job class that only
a limit keeps from starting is parked in the queue of that limit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from heapq import heapify, heappop, heappush

from rota.plan.need import LimitUse, Need, is_planned
from rota.plan.packing.demand import copies, firsts, never_fit, wanting
from rota.plan.packing.explanation import why_waiting
from rota.plan.packing.hosts import Host, Hosts, amounts, fits
from rota.plan.packing.job_classes import JobClass, SizeClass, SizeClasses
from rota.plan.packing.limit_queues import LimitQueues
from rota.plan.packing.made_hosts import MadeHosts
from rota.plan.packing.shadow_time import Shadows
from rota.plan.placement.decisions import Decision, Opened, Placed
from rota.plan.placement.explanation import Waiting
from rota.plan.placement.queue import Entrant, LearnedSizes, Rank, RankKey
from rota.plan.policy.limits import Limits
from rota.plan.reasons import Waits
from rota.plan.size import Capacity, Size

#: So many jobs in a row move to another job class at once when their need has changed.
MOVED_MAX = 16


class Packing:
    """A placement that plans nothing: it decides what starts now, and protects only the first job that waits."""

    def __init__(self, *, first_seat: int = 1) -> None:
        self.limits = Limits()
        self._hosts = Hosts(first_seat)
        self._size_classes = SizeClasses()
        self.made = MadeHosts(self._hosts, self._size_classes)
        self._shadows = Shadows()
        self._limit_queues = LimitQueues(self.limits, self._hosts, self._size_classes, self._shadows)
        self._job_classes: dict[tuple[RankKey, Need], JobClass] = {}
        self._sizes = 0  #: counts what was learned
        self.entrants: Mapping[int, Entrant] = {}
        self._learned: dict[str, LearnedSizes] = {}  #: by learning group
        self.resized: dict[int, Size] = {}  #: jobs that moved to another job class since the last `take_resized`
        self._provisioned: set[str] = set()  #: hosts
        self._cleared_out: set[str] = set()  #: hosts that somebody waits to have provisioned
        self.ahead = True  #: may jobs be leased before there is a seat for them?

    # -- hosts

    def host_known(self, host: str, capacity: Capacity, only: Need | None = None) -> None:
        self._limit_queues.roomier = True
        self._hosts.known(host, capacity, only)

    def host_gone(self, host: str) -> None:
        self._hosts.gone(host)

    def host_usable(self, host: str, usable: bool, *, forceable: bool | None = None) -> None:
        where = self._hosts.all[host]
        where.usable, where.forceable = usable, usable if forceable is None else forceable
        self._limit_queues.roomier = True

    def refusal(self, size: Size, pool: str = "") -> str | None:
        return self._hosts.refusal(size, pool)

    # -- the queue

    def offer(self, need: Need, rank: RankKey, jobs: list[int]) -> None:
        job_class = self._job_classes.get((rank, need))
        if job_class is None:
            job_class = self._job_classes[rank, need] = JobClass(rank, need, self._sizes)
        before = job_class.head()
        job_class.add(jobs)
        if before is None:
            self._limit_queues.enter(job_class)
        elif before != job_class.head():
            self._limit_queues.moved_up(job_class)

    def withdraw(self, need: Need, rank: RankKey, job: int) -> None:
        job_class = self._job_classes[rank, need]
        head = job_class.head()
        job_class.gone.add(job)
        if not len(job_class):
            del self._job_classes[rank, need]
            job_class.drop()
            self._limit_queues.leave(job_class)
        elif head != job_class.head():
            self._limit_queues.moved_up(job_class)

    def learned(self, group: str, sizes: LearnedSizes | None) -> None:
        """The sizes of waiting jobs of this learning group may have changed since they were offered."""
        if sizes is None:
            self._learned.pop(group, None)
        else:
            self._learned[group] = sizes
            self._sizes += 1

    def take_resized(self) -> dict[int, Size]:
        resized, self.resized = self.resized, {}
        return resized

    def limit_changed(self, name: str) -> None:
        """A limit was declared anew, opened or closed: try all job classes again that use it."""
        self._limit_queues.limit_changed(name, self._job_classes.values())

    def hold(self, job: int, uses: tuple[LimitUse, ...]) -> tuple[LimitUse, ...]:
        return self.limits.hold(job, uses)

    def let_go(self, job: int) -> None:
        self._limit_queues.given_back(self.limits.let_go(job))

    def shut(self, name: str, job: int) -> None:
        self.limits.shut(name, job)

    def reopen(self, name: str, job: int) -> None:
        if self.limits.reopen(name, job):
            self._limit_queues.limit_changed(name, self._job_classes.values())

    def place(self, now: float) -> list[Decision]:
        decided: list[Decision] = []
        limit_queues, shadows = self._limit_queues, self._shadows
        shadows.now = now
        woken = limit_queues.names_woken()
        limit_queues.wake(woken)
        idle = 0
        while idle < 2:
            before = len(decided)
            self._pass(now, decided)
            again = limit_queues.wake(woken) | limit_queues.look_behind()
            shadows.protect(None)
            if not again:
                break
            idle = idle + 1 if len(decided) == before else 0
        return decided

    def _pass(self, now: float, decided: list[Decision]) -> None:
        aside = []
        while (first := self._size_classes.take()) is not None:
            if not self._runnable(first):
                aside.append(first)  # it must not hold up the others
                continue
            until = self._size_classes.first_rank()
            room = self._fill(first, now, decided, until=until)
            if room is False and first.best() is not None:
                self._send_ahead(first, now, decided, until=until)
                job_class = first.best()
                if job_class is not None and (until is None or job_class.rank() < until):
                    aside.append(first)
                    self._shadows.protect(job_class)
                    self._backfill(now, decided)
                    break
            self._size_classes.put_back(first)
        for size_class in aside:
            self._size_classes.put_back(size_class)

    def _runnable(self, size_class: SizeClass) -> bool:
        """Could a host that may be used now run this size if it were empty?"""
        groups = (job_class.need.group for job_class in size_class.job_classes())
        return self._hosts.could_run(size_class.size, size_class.pool, groups)

    def _fill(
        self, size_class: SizeClass, now: float, decided: list[Decision], *, until: Rank | None
    ) -> bool | None:
        """Open seats for the first size class while they fit and it stays first. False if room ran out, None if
        a job moved to another job class."""
        while (job_class := size_class.best()) is not None:
            if until is not None and job_class.rank() > until:
                return True
            host, keeps = self._limit_queues.room(job_class)
            if keeps:
                self._limit_queues.park(job_class, keeps)
                continue
            if job_class.since != self._sizes and self._moved(size_class, job_class):
                return None
            if host is None:
                return False
            decided.append(self._choose(size_class, job_class, host, now))
        return True

    def _moved(self, size_class: SizeClass, job_class: JobClass) -> bool:
        """Look at the first job's size again before it is leased. True if it moved to another job class.

        Sizes are learned from similar jobs while a job waits. Only the first of a job class is looked at, and a
        few after it if it moves: the cost does not depend on how many wait.
        """
        moved: dict[Need, list[int]] = {}
        for _ in range(MOVED_MAX):
            job = job_class.heap[0]
            need = self._need_now(job, job_class.need)
            if need == job_class.need:
                break
            self.resized[job] = need.size
            self._pop(size_class, job_class)
            moved.setdefault(need, []).append(job)
            if job_class.head() is None:
                break
        for need, jobs in moved.items():
            self.offer(need, job_class.key, jobs)
        return bool(moved)

    def _need_now(self, job: int, need: Need) -> Need:
        """The need of a waiting job that had this need when it was offered."""
        entrant = self.entrants[job]
        sizes = self._learned.get(entrant.learning_group)
        if sizes is None:
            return need
        size = sizes.size(entrant.spec, entrant.floor, entrant.input_bytes)
        return Need(size, need.limits, need.terms, need.pool, need.walltime_s)

    def _choose(
        self, size_class: SizeClass, job_class: JobClass, host: Host, now: float, *, ahead: bool = False
    ) -> Decision:
        """Lease the first job of the class to this host, in a seat of its own unless it is sent `ahead` of one."""
        job = self._pop(size_class, job_class)
        uses = job_class.need.limits
        size = size_class.size
        seat = None if ahead else self._hosts.open(host, size, now)
        host.flow(size).leases += 1
        if uses:
            self.limits.take(uses, host.name)
        return (Placed(job, host.name, seat),)

    def _pop(self, size_class: SizeClass, job_class: JobClass) -> int:
        """Take the first job out of its class."""
        job = job_class.pop()
        self._popped(size_class, job_class)
        return job

    def _popped(self, size_class: SizeClass, job_class: JobClass) -> None:
        """The job class has lost its first job, or more."""
        if job_class.head() is None:
            del self._job_classes[job_class.key, job_class.need]
            job_class.drop()
        else:
            size_class.put(job_class)  # of worse rank now; `SizeClasses` corrects the order later

    def _send_ahead(
        self, size_class: SizeClass, now: float, decided: list[Decision], *, until: Rank | None
    ) -> None:
        """Lease jobs that will take over a seat of their own size when its job ends.

        Only from the size class whose turn it is, so no job is overtaken; only while jobs end so quickly that a
        seat would be idle during the round trip to the manager.
        """
        for host in self._hosts.all.values():
            flow = host.flows.get(size_class.size) if self.ahead else None
            if not host.usable or flow is None or not flow.seats or not host.admits(size_class.size):
                continue
            room = flow.seats + flow.ahead(now) - flow.leases
            while room > 0 and (job_class := size_class.best()) is not None:
                if until is not None and job_class.rank() > until:
                    return
                if not host.takes(job_class.need):
                    break
                if job_class.since != self._sizes and self._moved(size_class, job_class):
                    return
                uses = job_class.need.limits
                if not uses and job_class.since == self._sizes and size_class.has_only(job_class):
                    # The usual case, in which hundreds are sent at once.
                    jobs = job_class.take(room, until)
                    self._popped(size_class, job_class)
                    flow.leases += len(jobs)
                    decided += [(Placed(job, host.name),) for job in jobs]
                    room -= len(jobs)
                    continue
                if uses and (self.limits.missing(uses, host.name) or self._limit_queues.before(job_class)):
                    return
                decided.append(self._choose(size_class, job_class, host, now, ahead=True))
                room -= 1

    def _backfill(self, now: float, decided: list[Decision]) -> None:
        """Let later size classes, in order of rank, use what the first job cannot, without delaying its start."""
        least = self._size_classes.least()
        roomy = [
            host.free
            for host in self._hosts.all.values()
            if host.usable and any(fits(size, host.free) and host.admits(size) for size in least)
        ]
        if not roomy:
            return
        queue = [
            (job_class.rank(), size_class)
            for size_class in self._size_classes.listed()
            if any(fits(size_class.size, free) for free in roomy) and (job_class := size_class.best()) is not None
        ]
        heapify(queue)
        while queue:
            _rank, size_class = heappop(queue)
            job_class = size_class.best()
            if job_class is None:
                continue
            host, keeps = self._limit_queues.room(job_class)
            if keeps:
                self._limit_queues.park(job_class, keeps)
            elif host is None:
                continue
            else:
                self._shadows.passed(host, size_class.size)
                decided.append(self._choose(size_class, job_class, host, now))
            if (job_class := size_class.best()) is not None:
                heappush(queue, (job_class.rank(), size_class))

    # -- for a planner that decides instead

    def hand_over(self) -> list[tuple[Need, RankKey, list[int]]]:
        """Remove all waiting jobs that may take a core of ours: need, rank key and jobs of each class."""
        found = []
        for (rank, need), job_class in list(self._job_classes.items()):
            if is_planned(need):
                found.append((need, rank, sorted(job_class.jobs())))
                del self._job_classes[rank, need]
                job_class.drop()
                self._limit_queues.leave(job_class)
        return found

    def firsts(self, most: int) -> tuple[list[tuple[int, Need]], int]:
        return firsts(self._job_classes.values(), self.limits, most)

    def grant(self, host: str, need: Need, now: float) -> Opened:
        """Open a seat for a lease with this need at this host, whether there is room or not."""
        where = self._hosts.all[host]
        where.flow(need.size).leases += 1
        if need.limits:
            self.limits.take(need.limits, host)
        return self._hosts.open(where, need.size, now)

    def in_use(self, host: str) -> list[int]:
        """What the open seats of a host take: processors, memory, disk, GPUs, jobs without a processor."""
        where = self._hosts.all[host]
        return [has - free for has, free in zip(amounts(where.capacity), where.free, strict=True)]

    def takes_more(self, host: str) -> bool:
        """May one more job that takes no processor run there?"""
        where = self._hosts.all[host]
        return where.free[-1] > 0 and not where.whole

    @property
    def coreless(self) -> set[str]:
        """The hosts with jobs that take no processor."""
        return self._hosts.coreless

    def provisioned(self, hosts: Collection[str], on: bool) -> None:
        """These hosts are provisioned, or not any more: no other job begins there meanwhile."""
        self._provisioned = self._provisioned | set(hosts) if on else self._provisioned - set(hosts)
        self._keep_whole()

    def clear_out(self, hosts: set[str]) -> None:
        """No job that takes no processor begins on these hosts, until others are named."""
        self._cleared_out = hosts
        self._keep_whole()

    def _keep_whole(self) -> None:
        if self._hosts.keep_whole(self._provisioned | self._cleared_out):
            self._limit_queues.roomier = True

    @property
    def roomier(self) -> bool:
        """Has there been room since the last decision for what had none then?"""
        return self._limit_queues.roomier

    def host_names(self) -> set[str]:
        """Hosts that new work may be placed on."""
        return {host.name for host in self._hosts.shared.values() if host.usable}

    def may_force(self, host: str) -> bool:
        """May a job that forces this host begin there?"""
        where = self._hosts.shared.get(host)
        return where is not None and where.forceable

    def waiting(self) -> list[Waiting]:
        """A copy of all waiting jobs."""
        return copies(self._job_classes)

    def usable_in(self, pools: Collection[str]) -> bool:
        return self._hosts.usable_in(pools)

    def capacities(self) -> list[Capacity]:
        """The capacities of the hosts that new work may be placed on."""
        return [host.capacity for host in self._hosts.all.values() if host.usable]

    # -- demand

    def job_classes(self) -> Collection[JobClass]:
        """All waiting jobs."""
        return self._job_classes.values()

    def wanting(self) -> dict[str, int]:
        return wanting(self._job_classes.values())

    # -- seats

    def seat(self, host: str, size: Size, now: float, *, kept: bool = False) -> Opened | None:
        where = self._hosts.all[host]
        if not (kept or (where.usable and where.admits(size))) or not fits(size, where.free):
            return None
        return self._hosts.open(where, size, now)

    def started(self, seat: int, now: float) -> None:
        self._hosts.started(seat, now)

    def released(self, host: str, need: Need, *, ended_at: float | None) -> None:
        flow = self._hosts.all[host].flow(need.size)
        flow.leases -= 1
        if ended_at is not None:
            flow.ended(ended_at)
        if need.limits:
            self.limits.give(need.limits, host)
            self._limit_queues.given_back(need.limits)

    def adopt(self, seat: int, host: str, size: Size) -> None:
        self._hosts.adopt(seat, host, size)

    def adopt_lease(self, host: str, need: Need) -> None:
        self._hosts.all[host].flow(need.size).leases += 1
        self.limits.take(need.limits, host)

    def close(self, seat: int) -> None:
        if self._hosts.close(seat):
            self._limit_queues.roomier = True

    # -- explanations

    def never_fit(self) -> Iterator[tuple[JobClass, str]]:
        return never_fit(self._job_classes.values(), self.refusal)

    def why(self, need: Need, rank: RankKey, job: int) -> list[Waits]:
        refusal = self.refusal(need.size, need.pool)
        if refusal:
            return [Waits("unsatisfiable", refusal)]
        hosts = self._hosts.for_need(need)
        return why_waiting(need, rank, job, self._job_classes, self.limits, self._limit_queues, hosts)
