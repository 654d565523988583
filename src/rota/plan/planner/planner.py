"""The planner: who runs where from when to when.

It keeps a plan of everything that runs or waits and changes only what an event touches. It has no clock:
every call says what time it is. Jobs never see it; the engine and the simulator do, with the same code.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from heapq import heappop, heappush
from math import inf, nextafter

from rota.plan.ask import Ask
from rota.plan.explain.fair_share_order import first_by_share
from rota.plan.planner import (
    backfill,
    besteffort,
    extension,
    overrun,
    preemption_notice,
    reservations,
    site_changes,
    suspension,
)
from rota.plan.planner.entry import BLOCKED, RUNNING, SUSPENDED, WAITING, Begin, Entry
from rota.plan.planner.passes import REFRESH_S, Passes
from rota.plan.planner.timesharing import may_share
from rota.plan.policy.decay import Usage
from rota.plan.policy.policy import Policy
from rota.plan.policy.quota_rules import quota_subject
from rota.plan.policy.quotas import Quotas
from rota.plan.reasons import Waits
from rota.plan.site.resources import Site
from rota.plan.timeline.slots import Slots


class Planner(Passes):
    """A plan over the resources of one site."""

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
        self.ready(entry)
        if ask.at is not None and not reservations.may_reserve(self, entry, now):
            return entry
        self.entries[id] = entry
        for parent in after:
            if parent in self.entries or parent == id:
                entry.after.add(parent)
                self._children.setdefault(parent, []).append(entry)
        if ask.types.inner:
            self._inner.setdefault(ask.types.inner, []).append(entry)
        entry.rank = self.rank_of(entry, now)
        limits = [moment for moment in (ask.types.expire, ask.types.deadline) if moment is not None]
        if limits:
            heappush(self._expiries, (min(limits), id))
        if ask.types.besteffort:
            self.low.add(entry)
            steps = self._refresh(now, submitted=entry) or iter(())
        elif ask.at is not None:
            steps = reservations.reserve(self, entry, now)
        else:
            if ask.types.postpone is not None and self.class_of(ask).backfill != "conservative":
                heappush(self.wakes, ask.types.postpone)
            self.class_of(ask).add(entry)
            steps = self._refresh(now, submitted=entry) or iter(())
        self.go_through(steps, now, f"reservation {id}" if entry.fixed else f"job {id} goes first")
        return entry

    def adopt(
        self, id: int, ask: Ask, *, start: float, resources: int, now: float, end: float | None = None
    ) -> Entry:
        """A job that runs already; `end`: until then, if that is not what it asked for."""
        self.finish()
        self.now = now
        entry = Entry(id, ask, start)
        self.ready(entry)
        self.entries[id] = entry
        length = entry.options[0].length if entry.options else ask.time_s
        if end is None:
            end = start + length
        if end <= now:
            end = overrun.new_end(start, now)
        entry.start, entry.end, entry.resources = start, end, resources
        if ask.types.inner:
            entry.home = self._lay_in(entry)
        in_the_way = overrun.in_the_way(self, entry, now, end)
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
        self.ready(entry)
        entry.alternative = alternative if alternative < len(entry.options) else 0
        end = ask.at + entry.options[entry.alternative].length
        if end <= now:
            entry.reason = Waits("reservation", "its time was over before it could begin")
            return entry
        self.entries[id] = entry
        entry.rank = self.rank_of(entry, now)
        entry.fixed = True
        entry.start, entry.end, entry.resources = ask.at, end, resources
        in_the_way = overrun.in_the_way(self, entry, max(ask.at, now), end)
        for other in in_the_way:
            self.unplan(other)
        self.hold(entry, since=max(ask.at, now))
        self.reserved[id] = entry
        preemption_notice.reserved(self, entry)
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
        if id in self.suspended:
            freed += suspension.gone(self, id, now)
            was_running = was_running or entry.state == SUSPENDED
        self.guests.pop(id, None)
        self._tangled.discard(id)
        self.forget_ties(entry)
        if not was_running:
            self.reserved.pop(id, None)
            self.told_for.discard(id)
            self._late.pop(id, None)
            if entry in self.starting:
                self.starting.remove(entry)
            (self.low if entry.ask.types.besteffort else self.class_of(entry.ask)).discard(entry)
        elif entry.start is not None:
            width = entry.resources if self.counted else entry.resources.bit_count()
            if entry.state == RUNNING:
                self.charge_rest(entry, now)
            if entry.counted is not None and self.quotas is not None:
                self.quotas.spend(entry.counted, quota_subject(entry.ask), width, entry.start, now)
        matters = not again and self._tell_children(entry, now, complete=complete, ran=was_running)
        self._empty(entry, now)
        self.slots.forget_before(now)
        if self.given or matters or not entry.ask.types.besteffort:
            freed += [(start, end) for _entry, start, end, _resources in self.given]
            gentle = all(klass.backfill == "conservative" for klass in self.classes)
            self.go_through(backfill.on_freed(self, freed, now), now, "what it waits for moved", gentle=gentle)
        else:
            self._settle(now, "what it waits for moved")

    def tick(self, now: float) -> None:
        """Time has passed: jobs past their expected end keep what they hold, and ranks may have changed."""
        if self._pass is not None and self._gentle and not self._is_due(now):
            return
        self.finish()
        self.now = now
        while self.overdue and self.overdue[0][0] <= now:
            end, id = heappop(self.overdue)
            entry, pinned = self.running.get(id), self.suspended.get(id)
            if entry is not None and entry.end == end:
                overrun.outlives(self, entry, now)
            elif pinned is not None and pinned.until == end:
                suspension.stays(self, pinned, now)
        for late in list(self._late.values()):
            if late.fixed and late.end is not None and late.end <= now:
                del self._late[late.id], self.reserved[late.id]
                self.expired.append(late.id)  # what it lacked did not come before its end
        while self._expiries and self._expiries[0][0] < now:
            _moment, id = heappop(self._expiries)
            entry = self.entries.get(id)
            if entry is not None and entry.state == WAITING:
                self.expired.append(id)
        if self.notices and self.notices[0][0] <= now:
            preemption_notice.give(self, now)
        woken = False
        while self.wakes and self.wakes[0] <= now:
            woken = heappop(self.wakes) <= now
        steps = self._refresh(now)
        if steps is None and woken:
            steps = backfill.on_freed(self, [], now)
        if steps is not None:
            self.go_through(steps, now, "ranks changed")
        elif self._pass is None:
            self._settle(now, "ranks changed")

    def _is_due(self, now: float) -> bool:
        """Is there something that time alone has changed?"""
        moments = [self._refreshed + REFRESH_S]
        moments += [heap[0][0] for heap in (self.overdue, self._expiries, self.notices) if heap] + self.wakes[:1]
        return bool(self._late) or min(moments) <= now

    def begin(self, now: float) -> list[Begin]:
        """Everything that is planned for now begins. A paused pass that may still move some is finished first."""
        if not self._gentle:
            self.finish()
        self.now = now
        found, self.starting = self.starting, []
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
            if entry.state != WAITING or entry.id in self._late or entry.start is None or entry.start > now:
                continue
            if entry.fixed and entry.end is not None and entry.end <= now:
                self.expired.append(entry.id)  # what it lacked did not come
            elif entry.after or (entry.fixed and not reservations.all_there(self, entry, now)):
                self._late[entry.id] = entry  # what it waits for is late as well
            elif not self.awake(entry):
                self._late[entry.id] = entry  # its hosts are being woken
            elif entry.ask.types.besteffort:
                if entry not in guests:
                    guests.append(entry)
            else:
                begun.append(self._begin(entry, now))
        if self._pass is not None:
            guests = []  # they have their turn when everybody else is planned
        elif self.low.line and (begun or any(each.start is not None and each.start < now for each in guests)):
            besteffort.plan(self, now)
            guests = [
                each
                for each in self.low.line
                if each.start is not None and each.start <= now and not each.after and self.awake(each)
            ]
        begun += [self._begin(entry, now) for entry in guests if entry.start is not None and entry.start <= now]
        for begin in begun:
            if begin.entry.ask.types.besteffort:
                backfill.follow(self, begin.entry, now)
        if self._pass is None:
            self._settle(now, "what it waits for moved")
        return begun

    def _begin(self, entry: Entry, now: float) -> Begin:
        besteffort.avoid(self, entry, now)
        self._leave(entry)
        victims = besteffort.victims(self, entry)
        late = entry.start is not None and entry.start < now
        if late:
            entry.start = now
        self._run(entry)
        if late and not entry.fixed:
            overrun.begins_late(self, entry, now)
        return Begin(entry, victims)

    def next_start(self) -> float | None:
        """The earliest planned start of a job that waits."""
        if self.starting:
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
            if late.ask.at is not None and late.ask.at + self.patience_s > self.now:
                times.append(late.ask.at + self.patience_s)
            elif late.end is not None and late.end > self.now:
                times.append(late.end)
        while self.overdue:
            end, id = self.overdue[0]
            entry, pinned = self.running.get(id), self.suspended.get(id)
            if (entry is not None and entry.end == end) or (pinned is not None and pinned.until == end):
                times.append(end)
                break
            heappop(self.overdue)
        times += self.wakes[:1]
        if self.notices:
            times.append(self.notices[0][0])
        if self._expiries:
            times.append(nextafter(self._expiries[0][0], inf))
        if self._ranks_change():
            times.append(self._refreshed + REFRESH_S)
        return min(times, default=None)

    def suspend(self, id: int, now: float, *, left_s: float) -> None:
        """A running job gives up its cores and keeps the rest; `left_s`: so long it will run when it goes on."""
        suspension.suspend(self, id, now, left_s=left_s)

    def resume(self, id: int, now: float, *, left_s: float, submitted: float, serial: int) -> None:
        """It is queued by its rank, for exactly its cores; `begin` tells when it may go on."""
        suspension.resume(self, id, now, left_s=left_s, submitted=submitted, serial=serial)

    def join(self, entry: Entry, now: float, cause: str) -> None:
        """Somebody who has a rank stands in line."""
        self.class_of(entry.ask).add(entry)
        self.go_through(self._refresh(now, submitted=entry) or iter(()), now, cause)

    def move_end(self, id: int, end: float, now: float, *, force: bool = False) -> float:
        """Let a running job end then, or as late as no promise to others is broken; until when it may go on."""
        return extension.move_end(self, id, end, now, force=force)

    def change_site(self, site: Site, now: float) -> None:
        """Resources came, went or changed: what runs stays, everything else is planned again in order of rank."""
        site_changes.change_site(self, site, now)

    def change_rules(
        self,
        site: Site,
        now: float,
        *,
        policy: Policy,
        quotas: Quotas | None,
        limits: Mapping[str, int],
        usage: Usage | None = None,
    ) -> None:
        """Queues, quotas, limits or resources changed: what runs stays, all others are planned again."""
        site_changes.change_rules(self, site, now, policy=policy, quotas=quotas, limits=limits, usage=usage)

    def why(self, entry: Entry) -> list[Waits]:
        """What keeps a waiting job from beginning now."""
        from rota.plan.explain import why_waiting  # it asks copies of plans

        return [*why_waiting.why(self, entry), *first_by_share(self, entry)]

    def modify(self, id: int, ask: Ask, now: float) -> Entry:
        """A waiting job asks for something else: it leaves, and comes again with its old time of submission."""
        old = self.entries[id]
        after, submitted, serial = set(old.after), old.submitted, old.serial
        self.ended(id, now, again=True)
        self._children[id] = [child for child in self._children.get(id, ()) if child.state == WAITING]
        return self.submit(id, ask, now, after=after, submitted=submitted, serial=serial)

    def _leave(self, entry: Entry) -> None:
        """The job waits no more."""
        if entry.fixed:
            self.reserved.pop(entry.id, None)
            self.told_for.discard(entry.id)
        elif entry.ask.types.besteffort:
            self.low.discard(entry)
        else:
            self.class_of(entry.ask).discard(entry)

    def _run(self, entry: Entry) -> None:
        entry.state = RUNNING
        entry.reason = None
        self.running[entry.id] = entry
        if entry.id in self.suspended:
            suspension.begun(self, entry)
        if entry.ask.types.besteffort:
            self.guests[entry.id] = entry
            if self.reserved:
                preemption_notice.guest_runs(self, entry)
        if entry.ask.types.container and entry.id not in self.inside and not self.counted:
            self.open_inside(entry)
        if entry.end is not None:
            heappush(self.overdue, (entry.end, entry.id))

    def _tell_children(self, entry: Entry, now: float, *, complete: bool, ran: bool) -> bool:
        """Who waits for it may begin, or never will. True if that may let somebody begin who is not besteffort."""
        matters = False
        if complete and ran:
            for child in self._children.pop(entry.id, ()):
                child.after.discard(entry.id)
                child.blamed = True
                matters = matters or (child.state == WAITING and not child.ask.types.besteffort)
            return matters
        failed = [entry]
        while failed:  # chains may be long
            parent = failed.pop()
            for child in self._children.pop(parent.id, ()):
                if child.state != WAITING:
                    continue
                self._late.pop(child.id, None)
                # Where not everybody is planned it may have been the one that others waited behind.
                matters = matters or not (child.ask.types.besteffort or self.everybody_planned(child))
                self._leave(child)
                self.unplan(child)
                child.fixed = False
                child.state = BLOCKED
                child.reason = Waits("dependency_never", f"job {parent.id}, which it waits for, did not complete")
                failed.append(child)
        return matters

    def _lay_in(self, entry: Entry) -> int:
        """The container that a job which runs already was placed in; 0: it is not there."""
        homes = [each for each in self.containers(entry.ask.types.inner) if each.id in self.inside]
        homes.sort(key=lambda each: (bool(entry.resources & ~each.resources), each.state != RUNNING))
        return homes[0].id if homes else 0

    def _empty(self, entry: Entry, now: float) -> None:
        """The container is gone: what runs inside holds its resources by itself from now on."""
        if self.inside.pop(entry.id, None) is None:
            return
        for each in self._asked_inside(entry):
            pinned = self.suspended.get(each.id)
            if pinned is not None and not pinned.mask & ~entry.resources:
                self.orphans.append((each.id, entry.id))
        for inner in self.lies_inside(entry):
            if inner.state != RUNNING:
                self.unplan(inner)
            inner.home = 0
            if inner.state == RUNNING:
                self.orphans.append((inner.id, entry.id))
            if inner.state == RUNNING and inner.end is not None and not inner.ask.types.besteffort:
                for other in overrun.in_the_way(self, inner, now, inner.end):
                    if (
                        not other.home
                        and other.resources & inner.resources
                        and not may_share(inner.ask, other.ask)
                    ):
                        self.unplan(other)
                self.hold_anyway(inner, self.slots, now, inner.end)
