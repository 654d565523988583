"""Waiting lanes and their limits: who may begin where, who waits in line for which limit, and who looks again.

A lane that waits for room is in a rack. One that there is room for, and that only limits keep, is *parked*
in the lines of these limits, and those of worse rank queue up behind it, so that it is not starved by jobs
that need fewer of them. One that no end of a job could help is *stopped* until its limit changes.
"""

from __future__ import annotations

from collections.abc import Iterable

from rota.plan.need import Need
from rota.plan.packing.hosts import Host, Hosts, fits
from rota.plan.packing.lanes import Lane, Line, Racks
from rota.plan.packing.shadow_time import Shadows
from rota.plan.policy.limits import Limits
from rota.plan.size import Size


class Lines:
    """The lines of all limits, and the racks for whoever is in none."""

    def __init__(self, limits: Limits, hosts: Hosts, racks: Racks, shadows: Shadows) -> None:
        self._limits = limits
        self._hosts = hosts
        self._racks = racks
        self._shadows = shadows
        self._waiting: dict[str, Line] = {}  #: limit → lanes that it keeps waiting
        #: of these, those that let another one of better rank go first: at which limit, and whom
        self._behind: dict[Lane, tuple[str, Lane]] = {}
        self._stopped: dict[str, list[Lane]] = {}  #: limit → lanes that only a change of it can help
        self._woken: set[str] = set()  #: limits of which something became free
        self._roomless: set[str] = set()  #: limits at which more room may help somebody
        self._tried: set[Lane] = set()  #: lanes that looked for room again since the last `names_woken`
        self.roomier = False  #: somewhere there is more room than before

    # -- lanes come, change and go

    def enter(self, lane: Lane) -> None:
        """The lane, which has jobs, waits for room, unless one of its limits stops it altogether."""
        stopped = self._limits.stopped(lane.need.limits) if lane.need.limits else None
        lane.at, lane.stopped = stopped, stopped is not None
        if stopped is not None:
            self._stopped.setdefault(stopped, []).append(lane)
            return
        self._racks.put(lane)

    def moved_up(self, lane: Lane) -> None:
        """The lane has another first job than before."""
        if lane.at is None:
            self._racks.put(lane)
        elif not lane.stopped:
            for use in lane.need.limits:
                line = self._waiting.get(use.name)
                if line is not None and lane in line:
                    line.put(lane)

    def park(self, lane: Lane, limits: list[str]) -> None:
        """There is room, and only these limits keep the lane from starting."""
        lane.at, lane.stopped = limits[0], False
        for limit in limits:
            line = self._waiting.get(limit)
            if line is None:
                line = self._waiting[limit] = Line()
            line.put(lane)
            if self._limits.per_host(limit):
                self._roomless.add(limit)  # another host has units of its own

    def leave(self, lane: Lane) -> None:
        """The lane waits in no line any more."""
        self._behind.pop(lane, None)
        for use in lane.need.limits:
            line = self._waiting.get(use.name)
            if line is not None:
                line.discard(lane)
                if not line:
                    del self._waiting[use.name]

    # -- limits open and close

    def given_back(self, need: Need) -> None:
        """Units of these limits became free."""
        for use in need.limits:
            if use.name in self._waiting:
                self._woken.add(use.name)

    def limit_changed(self, name: str, lanes: Iterable[Lane]) -> None:
        """A limit was declared anew, opened or closed: look again at all that concerns it."""
        self._woken.add(name)
        for lane in self._stopped.pop(name, ()):
            if lane.head() is not None:
                self.enter(lane)
        for lane in lanes:
            uses = lane.need.limits
            if not lane.stopped and any(use.name == name for use in uses) and self._limits.stopped(uses) == name:
                self.leave(lane)
                lane.at, lane.stopped = name, True
                self._stopped.setdefault(name, []).append(lane)

    # -- who may begin

    def room(self, lane: Lane) -> tuple[Host | None, list[str]]:
        """A host on which the first job may begin, or None; and the limits that keep it where there is room."""
        need = lane.need
        keeps: list[str] = []
        behind: dict[str, Lane] | None = None
        for host in self._hosts.for_need(need):
            if host.usable and fits(need.size, host.free) and self._shadows.may_pass(lane, host):
                if not need.limits:
                    return host, []
                missing = self._limits.missing(need.limits, host.name)
                if not missing:
                    if behind is None:
                        behind = self.before(lane) if self._waiting else {}
                    if not behind:
                        return host, []
                    missing = list(behind)
                keeps += missing
        if behind:
            self._behind[lane] = next(iter(behind.items()))
        return None, keeps

    def before(self, lane: Lane, *, besides: str = "") -> dict[str, Lane]:
        """The limits for which somebody of better rank queues up, and who does."""
        found: dict[str, Lane] = {}
        rank = lane.rank()
        for use in lane.need.limits:
            line = self._waiting.get(use.name)
            if line is not None and use.name != besides:
                ahead = next((other for other in line.before(rank) if self._queues(other, use.name)), None)
                if ahead is not None:
                    found[use.name] = ahead
        return found

    def _queues(self, lane: Lane, limit: str) -> bool:
        """Does nothing but this limit keep the lane from starting?"""
        need = lane.need
        for host in self._hosts.for_need(need):
            if (
                host.usable
                and fits(need.size, host.free)
                and self._limits.missing(need.limits, host.name) == [limit]
                and self._shadows.may_pass(lane, host)
            ):
                return not self.before(lane, besides=limit)
        return False

    def ahead_of(self, lane: Lane) -> tuple[str, Lane] | None:
        """The limit at which it lets another lane go first, and which."""
        return self._behind.get(lane)

    # -- who looks again

    def names_woken(self) -> list[str]:
        """Limits of which something may be free, or for which there may be room now; and all may look again."""
        self._tried.clear()
        names, self._woken = self._woken, set()
        if self.roomier:
            self.roomier = False
            if self._roomless:
                names |= self._roomless
                self._roomless = set()
        return sorted(names)

    def wake(self, names: list[str]) -> bool:
        """Those who wait for these limits look for room again, best rank first, as far as the units go.

        True if somebody left the limits that it waited for. Called again after those have been served,
        for whoever could not start leaves units to the next.
        """
        found = False
        for name in names:
            line = self._waiting.get(name)
            left = self._limits.left(name) if line is not None else 0
            while left > 0 and line and (lane := self._next_in(line, name)) is not None:
                self._tried.add(lane)
                if self._look_again(lane):
                    found = True
                    use = next(use for use in lane.need.limits if use.name == name)
                    left = 0 if use.exclusive else left - use.units * len(lane)
        return found

    def _next_in(self, line: Line, name: str) -> Lane | None:
        """The first in a line that has not looked again yet.

        Of a size for which there is no room one lane is enough, so that it is known that room is wanted.
        """
        for _rank, lane in sorted(line.firsts(self._tried)):
            size = lane.need.size
            if self._hosts.made_for or not self._racks.waits(size) or self._fits(size):
                return lane
            self._roomless.add(name)
        return None

    def _fits(self, size: Size) -> bool:
        """Is there room for it on a host that is there for all?"""
        return any(host.usable and fits(size, host.free) for host in self._hosts.shared.values())

    def look_behind(self) -> bool:
        """Who let somebody go first may not have to any more: that one began, or waits for room as well."""
        if not self._behind:
            return False
        found = False
        still: dict[tuple[str, Lane], bool] = {}
        for lane, ahead in list(self._behind.items()):
            holds = still.get(ahead)
            if holds is None:
                limit, other = ahead
                holds = other in self._waiting.get(limit, ()) and self._queues(other, limit)
                still[ahead] = holds
            if not holds or lane.rank() < ahead[1].rank():
                found |= self._look_again(lane)
        return found

    def _look_again(self, lane: Lane) -> bool:
        """True if the lane has left the limits that it waited for."""
        self.leave(lane)
        _host, keeps = self.room(lane)
        if keeps:
            self.park(lane, keeps)
            return False
        self.enter(lane)
        return True
