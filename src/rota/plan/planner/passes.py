"""Passes: after an event those that wait are gone through, all at once or in pieces; and in which order.

Which places they are given is `plan.planner.search`; who is gone through, and how, is `plan.planner.backfill`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from typing import Final

from rota.plan.planner import backfill, besteffort
from rota.plan.planner.entry import WAITING, Entry, Rank, by_rank
from rota.plan.planner.search import Search
from rota.plan.policy.fair_share import Targets
from rota.plan.policy.job_order import rank
from rota.plan.policy.policy import Queue
from rota.plan.reasons import Moved

#: Ranks that depend on use or waiting are looked at again so often.
REFRESH_S: Final = 60.0


class Passes(Search):
    """A search that can go through everybody who waits, and pause."""

    @property
    def working(self) -> bool:
        """Is a pass paused?"""
        return self._pass is not None

    @property
    def unsettled(self) -> bool:
        """Is one paused in which some have no place yet?"""
        return self._pass is not None and not self._gentle

    def go_through(self, steps: Iterator[None], now: float, cause: str, *, gentle: bool = False) -> None:
        """Begin a pass, and carry it out unless passes are paused."""
        self.finish()
        self._pass, self._gentle = (steps, now, cause), gentle
        if gentle:
            self._left = False
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
        if self._left:
            # The pass that was given up begins again, for all that became free since.
            self.go_through(backfill.on_freed(self, [], now), now, "what it waits for moved", gentle=True)
            return self.working
        return False

    def finish(self) -> None:
        """Carry out what is left of a pass that was paused; before anything else happens it must be.

        A gentle one is given up instead: the next one begins anew with all that became free meanwhile.
        """
        if self._pass is not None and self._gentle and self.pause_after is not None:
            _steps, now, cause = self._pass
            self._pass, self._left = None, True
            self._settle(now, cause)
        while self._pass is not None:
            self.work(1_000_000)

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

    # -- order

    def rank_of(self, entry: Entry, now: float, targets: Mapping[str, Targets] | None = None) -> Rank:
        """Where it stands; `targets` are those of `targets()`, for whoever asks about many."""
        queue = self.queue(entry.ask.queue)
        own: Targets | None = None
        if queue.order != "fifo":
            own = (self.targets() if targets is None else targets)[entry.ask.queue]
        key = rank(
            queue,
            entry.ask,
            submitted=entry.submitted,
            now=now,
            usage=self.usage,
            targets=own,
            fair_share=self.policy.fair_share,
        )
        self._serial += 1
        entry.serial = entry.serial or self._serial
        return (*key, entry.serial)

    def targets(self) -> dict[str, Targets]:
        """What users and projects should have, for each queue in whose order it matters."""
        shared = {name: queue for name, queue in self.policy.queues.items() if queue.order != "fifo"}
        if not shared:
            return {}
        active = self.usage.active({(entry.ask.user, entry.ask.project) for entry in self.entries.values()})
        return {name: Targets(queue, active) for name, queue in shared.items()}

    def charge_running(self, now: float) -> None:
        """What running jobs used up to now counts, where use matters."""
        if all(queue.order == "fifo" for queue in self.policy.queues.values()):
            return
        self.usage.look(now)
        for entry in self.running.values():
            self.charge(entry, now)

    def _may_change(self, klass: backfill.PriorityClass, now: float) -> bool:
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
            self.charge_running(now)
            targets = self.targets()
            for each in reversed((*self.classes, self.low)):
                if not self._may_change(each, now):
                    continue
                before = each.line[:]
                for entry in each.line:
                    entry.rank = self.rank_of(entry, now, targets)
                each.line.sort(key=by_rank)
                if each is not self.low and each.line != before:
                    pairs = zip(before, each.line, strict=True)
                    klass, at = each, next(at for at, (a, b) in enumerate(pairs) if a is not b)
        if submitted is not None and not submitted.ask.types.besteffort:
            own = self.class_of(submitted.ask)
            if klass is None or klass.priority < own.priority:
                return backfill.on_submitted(self, own, submitted, now)
            if klass is own:
                at = min(at, bisect_left(own.line, submitted.rank, key=by_rank))
        return backfill.replan_from(self, klass, at, now) if klass is not None else None
