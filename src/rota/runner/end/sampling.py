"""Looks at running tasks from time to time: measures them, and fences what has lasted for a while.

Short jobs are never looked at, so they cost nothing here.
"""

from __future__ import annotations

from rota.runner.contain.task_containment import Containment
from rota.runner.current_rules import CurrentRules
from rota.runner.end.measure import Sampler
from rota.runner.end.watchdog import Watchdog
from rota.runner.loop import Loop
from rota.runner.output.told_progress import ToldProgress
from rota.runner.task_table import TaskTable

FIRST_SAMPLE_S = 0.2
SAMPLE_EVERY_S = 1.0
#: Samples are not taken more often than this, however many jobs become old enough.
_SAMPLE_GAP_S = 0.1
_NEVER = float("inf")


class Sampling:
    """Decides when to sample. It sleeps while nothing runs."""

    def __init__(
        self,
        *,
        loop: Loop,
        tasks: TaskTable,
        rules: CurrentRules,
        containment: Containment,
        watchdog: Watchdog,
        told: ToldProgress,
    ) -> None:
        self._loop = loop
        self._tasks = tasks
        self._rules = rules
        self._containment = containment
        self._watchdog = watchdog
        self._told = told
        self.sampler = Sampler()
        self._sample_at = _NEVER

    def began(self, now: float) -> None:
        """A task has started."""
        if self._sample_at == _NEVER:
            self._sample_at = now + FIRST_SAMPLE_S
            self._loop.due(self._sample_at)
            self._watchdog.began(now)

    def tick(self, now: float) -> None:
        if now >= self._sample_at:
            self._sample(now)
        self._loop.due(self._sample_at)

    def _sample(self, now: float) -> None:
        tasks = self._tasks.by_key.values()
        if not tasks:
            self._sample_at = _NEVER
            return
        old = [task for task in tasks if task.sampled or now - task.began >= FIRST_SAMPLE_S]
        young = [task.began + FIRST_SAMPLE_S for task in tasks if not task.sampled]
        if old:
            members = self._containment.members()
            for task in [task for task in old if not task.sampled]:
                self._containment.make_sure(task, members[task])
            self.sampler.begin(now)
            for task in old:
                self.sampler.sample(task, [seen for seen in members[task] if seen.alive], now)
            self._told.look(old, now)
            if self._rules.current.containment != "session":
                unheld = [task for task in old if task.fence is None or not task.fence.holds]
                self._containment.late([task for task in unheld if task.status is None])
            young = [task.began + FIRST_SAMPLE_S for task in tasks if not task.sampled]
        after = min(young) if young else _NEVER
        self._sample_at = min(max(after, now + _SAMPLE_GAP_S), now + SAMPLE_EVERY_S)
