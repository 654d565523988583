"""Which job class may start on which host, and which waits for units of a limit.

A job class that waits for room is in a size class. If there is room and only limits are missing, it is *parked*
in the queues of these limits. Job classes of worse rank queue behind it there: jobs that need fewer units cannot
starve it. A job class that no end of a job can help is *stopped* until its limit changes.
"""

from __future__ import annotations

from collections.abc import Iterable

from rota.plan.need import LimitUse, Need
from rota.plan.packing.hosts import Host, Hosts, fits
from rota.plan.packing.job_classes import JobClass, LimitQueue, SizeClasses
from rota.plan.packing.shadow_time import Shadows
from rota.plan.policy.limits import Limits


class LimitQueues:
    """The queues of all limits. A job class that leaves them goes back to its size class."""

    def __init__(self, limits: Limits, hosts: Hosts, size_classes: SizeClasses, shadows: Shadows) -> None:
        self._limits = limits
        self._hosts = hosts
        self._size_classes = size_classes
        self._shadows = shadows
        self._waiting: dict[str, LimitQueue] = {}  #: limit → job classes parked there
        #: parked job class → the limit at which another one of better rank goes first, and that one
        self._behind: dict[JobClass, tuple[str, JobClass]] = {}
        self._stopped: dict[str, list[JobClass]] = {}  #: limit → job classes that only a change of it can help
        self._woken: set[str] = set()  #: limits that got units back
        self._roomless: set[str] = set()  #: limits with a job class parked there that more room may help
        self._tried: set[JobClass] = set()  #: job classes tried again since the last `names_woken`
        self.roomier = False  #: has a host more room than before?

    # -- job classes come, change and go

    def enter(self, job_class: JobClass) -> None:
        """The job class, which has jobs, waits for room, unless one of its limits stops it altogether."""
        stopped = self._limits.stopped(job_class.need.limits) if job_class.need.limits else None
        job_class.at, job_class.stopped = stopped, stopped is not None
        if stopped is not None:
            self._stopped.setdefault(stopped, []).append(job_class)
            return
        self._size_classes.put(job_class)

    def moved_up(self, job_class: JobClass) -> None:
        """The job class has another first job than before."""
        if job_class.at is None:
            self._size_classes.put(job_class)
        elif not job_class.stopped:
            for use in job_class.need.limits:
                limit_queue = self._waiting.get(use.name)
                if limit_queue is not None and job_class in limit_queue:
                    limit_queue.put(job_class)

    def park(self, job_class: JobClass, limits: list[str]) -> None:
        """There is room, and only these limits keep the job class from starting."""
        job_class.at, job_class.stopped = limits[0], False
        for limit in limits:
            limit_queue = self._waiting.get(limit)
            if limit_queue is None:
                limit_queue = self._waiting[limit] = LimitQueue()
            limit_queue.put(job_class)
            if self._limits.per_host(limit):
                self._roomless.add(limit)  # another host has units of its own

    def leave(self, job_class: JobClass) -> None:
        """The job class leaves the queues of its limits."""
        self._behind.pop(job_class, None)
        for use in job_class.need.limits:
            limit_queue = self._waiting.get(use.name)
            if limit_queue is not None:
                limit_queue.discard(job_class)
                if not limit_queue:
                    del self._waiting[use.name]

    # -- limits open and close

    def given_back(self, uses: tuple[LimitUse, ...]) -> None:
        """Units of these limits became free."""
        for use in uses:
            if use.name in self._waiting:
                self._woken.add(use.name)

    def limit_changed(self, name: str, job_classes: Iterable[JobClass]) -> None:
        """A limit was declared anew, opened or closed: try all job classes again that use it."""
        self._woken.add(name)
        for job_class in self._stopped.pop(name, ()):
            if job_class.head() is not None:
                self.enter(job_class)
        for job_class in job_classes:
            uses = job_class.need.limits
            if (
                not job_class.stopped
                and any(use.name == name for use in uses)
                and self._limits.stopped(uses) == name
            ):
                self.leave(job_class)
                job_class.at, job_class.stopped = name, True
                self._stopped.setdefault(name, []).append(job_class)

    # -- which may start

    def room(self, job_class: JobClass) -> tuple[Host | None, list[str]]:
        """A host on which the first job may start, or None and the limits that are missing where it has room."""
        need = job_class.need
        keeps: list[str] = []
        behind: dict[str, JobClass] | None = None
        for host in self._hosts.for_need(need):
            if (
                host.usable
                and fits(need.size, host.free)
                and host.admits(need.size)
                and self._shadows.may_pass(job_class, host)
            ):
                if not need.limits:
                    return host, []
                missing = self._limits.missing(need.limits, host.name)
                if not missing:
                    if behind is None:
                        behind = self.before(job_class) if self._waiting else {}
                    if not behind:
                        return host, []
                    missing = list(behind)
                keeps += missing
        if behind:
            self._behind[job_class] = next(iter(behind.items()))
        return None, keeps

    def before(self, job_class: JobClass, *, besides: str = "") -> dict[str, JobClass]:
        """The limits for which a job class of better rank queues, each with that job class."""
        found: dict[str, JobClass] = {}
        rank = job_class.rank()
        for use in job_class.need.limits:
            limit_queue = self._waiting.get(use.name)
            if limit_queue is not None and use.name != besides:
                ahead = next((other for other in limit_queue.before(rank) if self._queues(other, use.name)), None)
                if ahead is not None:
                    found[use.name] = ahead
        return found

    def _queues(self, job_class: JobClass, limit: str) -> bool:
        """Does nothing but too few units of this limit keep the job class from starting?"""
        need = job_class.need
        if self._limits.is_shut(limit) and not any(use.exclusive for use in need.limits if use.name == limit):
            return False  # it waits for somebody who wants the limit alone, and must not be in the way
        for host in self._hosts.for_need(need):
            if (
                host.usable
                and fits(need.size, host.free)
                and host.admits(need.size)
                and self._limits.missing(need.limits, host.name) == [limit]
                and self._shadows.may_pass(job_class, host)
            ):
                return not self.before(job_class, besides=limit)
        return False

    def ahead_of(self, job_class: JobClass) -> tuple[str, JobClass] | None:
        """The limit at which another job class goes first, and that job class."""
        return self._behind.get(job_class)

    # -- trying again

    def names_woken(self) -> list[str]:
        """Limits whose queues are worth trying again. Begins a new round: every job class may be tried once."""
        self._tried.clear()
        names, self._woken = self._woken, set()
        if self.roomier:
            self.roomier = False
            if self._roomless:
                names |= self._roomless
                self._roomless = set()
        return sorted(names)

    def wake(self, names: list[str]) -> bool:
        """Try the job classes parked at these limits again, best rank first, as far as the units go.

        True if one of them left its queues. Called again after these were served: a job class that could not
        start leaves its units to the next.
        """
        found = False
        for name in names:
            limit_queue = self._waiting.get(name)
            left = self._limits.left(name) if limit_queue is not None else 0
            while left > 0 and limit_queue and (job_class := self._next_in(limit_queue, name)) is not None:
                self._tried.add(job_class)
                if self._look_again(job_class):
                    found = True
                    use = next(use for use in job_class.need.limits if use.name == name)
                    left = 0 if use.exclusive else left - use.units * len(job_class)
        return found

    def _next_in(self, limit_queue: LimitQueue, name: str) -> JobClass | None:
        """The first in a queue that was not tried yet.

        Where a size has no room, one job class of it is enough to ask for room.
        """
        for _rank, job_class in sorted(limit_queue.firsts(self._tried)):
            need = job_class.need
            if self._hosts.made_for or not self._size_classes.waits(need) or self._fits(need):
                return job_class
            self._roomless.add(name)
        return None

    def _fits(self, need: Need) -> bool:
        """Does a shared host have room for it?"""
        return any(
            host.usable and fits(need.size, host.free) and host.admits(need.size) and host.takes(need)
            for host in self._hosts.shared.values()
        )

    def look_behind(self) -> bool:
        """Try job classes again that let another one go first, if that one has started or lacks room itself."""
        if not self._behind:
            return False
        found = False
        still: dict[tuple[str, JobClass], bool] = {}
        for job_class, ahead in list(self._behind.items()):
            holds = still.get(ahead)
            if holds is None:
                limit, other = ahead
                holds = other in self._waiting.get(limit, ()) and self._queues(other, limit)
                still[ahead] = holds
            if not holds or job_class.rank() < ahead[1].rank():
                found |= self._look_again(job_class)
        return found

    def _look_again(self, job_class: JobClass) -> bool:
        """True if the job class has left the queues of its limits."""
        self.leave(job_class)
        _host, keeps = self.room(job_class)
        if keeps:
            self.park(job_class, keeps)
            return False
        self.enter(job_class)
        return True
