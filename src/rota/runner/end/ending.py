"""Everything that must happen to running tasks with time: samples, walltimes, kills, and the search
for what an ended job left behind. A task ends only when all its processes are gone.
"""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Any

from rota.runner.contain import procfs, signals
from rota.runner.contain.process_family import Family
from rota.runner.contain.task_containment import Holding
from rota.runner.end.measure import Sampler
from rota.runner.log import say
from rota.runner.start.allocation import remove_nodefile
from rota.runner.task import Task

if TYPE_CHECKING:
    from rota.runner.agent import Agent

FIRST_SAMPLE_S = 0.2
SAMPLE_EVERY_S = 1.0
#: Samples are not taken more often than this, however many jobs become old enough.
_SAMPLE_GAP_S = 0.1
_NEVER = float("inf")
_SWEEPS = 5
_KILL_AGAIN_S = 0.1
_LOOKS = 20
_MIN_LOOK_S = 0.02
_MAX_LOOK_S = 1.0


class Endings:
    """Watches over the tasks of an agent."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self.family = Family(os.getpid())
        self.sampler = Sampler()
        self.lingering: dict[Task, None] = {}  #: the first process is gone, others are not
        self._sample_at = _NEVER
        self._look_s = _MIN_LOOK_S
        self.holding = Holding(agent)

    # -------------------------------------------------------------- called by the agent

    def began(self, now: float) -> None:
        """A task has started."""
        if self._sample_at == _NEVER:
            self._sample_at = now + FIRST_SAMPLE_S
            self._agent.due(self._sample_at)
            self._agent.watchdog.began(now)

    def has_orphans(self, task: Task) -> bool:
        """Is a known orphan certainly of this task? (A doubtful one waits for the last candidate.)"""
        return any(orphan.owner is task or orphan.candidates == {task} for orphan in self.family.orphans.values())

    def linger(self, task: Task) -> None:
        """The first process has been reaped; perhaps others are left."""
        self.lingering[task] = None

    def orphan_reaped(self, pid: int, status: int, usage: Any) -> None:
        orphan = self.family.orphans.pop(pid, None)
        self._agent.channels.reaped(pid, status)
        owner = orphan.owner if orphan is not None else None
        if owner is None and len(self._agent.tasks) == 1:
            (owner,) = self._agent.tasks.values()
        if owner is not None:
            owner.plain = False
            owner.cpu_s += usage.ru_utime + usage.ru_stime

    def freeze(self, task: Task, on: bool) -> bool:
        """Stop all processes of a task, or let them go on. False: not all can be stopped, and none is.

        Its deadlines go on: whoever suspends it must move `task.deadline`. A task that must end is let go on
        by `end`.
        """
        return self.holding.freeze(task, on)

    def clean_up(self, task: Task) -> None:
        """Remove what was made for a task that has ended."""
        if task.scratch is not None:
            task.scratch.remove()
        if task.nodefile is not None:
            remove_nodefile(task.nodefile)
        self.holding.let_go(task)

    def close(self) -> None:
        """The runner leaves."""
        self.holding.close()

    def end(self, task: Task, now: float, *, reason: str, message: str, grace_s: float | None = None) -> None:
        """End a running task: TERM now, KILL when its grace is over. The first reason counts."""
        if task.script is not None:
            grace_s = self._agent.rules.grace_s if grace_s is None else grace_s
            self._agent.hooks.interrupt(task, now, reason=reason, message=message, grace_s=grace_s)
            return
        if task.kill_at is not None:
            return
        task.plain = False
        task.reason, task.message = reason, message
        task.kill_at = now + (self._agent.rules.grace_s if grace_s is None else grace_s)
        self._agent.due(task.kill_at)
        asked: set[int] = set()
        for _ in range(_SWEEPS):  # again, for what was forked meanwhile
            fresh = [seen for seen in self.living(task) if seen.pid not in asked]
            if not fresh:
                break
            signals.ask_to_end(fresh)
            asked.update(seen.pid for seen in fresh)
        if task.frozen:
            self.freeze(task, False)  # now it hears what it was told

    def tick(self, now: float) -> None:
        due = _NEVER
        check = bool(self.lingering)
        for task in list(self._agent.tasks.values()):
            if task.kill_at is not None:
                if now >= task.kill_at and (task.status is None or task.part):
                    self._kill(task, now)
                due = min(due, task.kill_at)
            elif task.deadline is not None and task.still_since is None:
                if now >= task.deadline:
                    self._over_time(task, now)
                else:
                    due = min(due, task.deadline)
        if check:
            self.check(now)
        if now >= self._sample_at:
            self._sample(now)
        self.holding.tick(now)
        self._agent.due(min(due, self._sample_at))

    def _over_time(self, task: Task, now: float) -> None:
        after, rules = task.afterwards, self._agent.rules
        if after is None:
            limit = task.walltime_s or task.spec.walltime_s or 0.0
            self.end(task, now, reason="walltime", message=f"over its walltime of {limit:g} s")
        elif after.by is not None and now >= after.by:  # it has had its grace
            self.end(task, now, reason="walltime", message="its job was ended and the grace is over", grace_s=0.0)
        else:
            message = f"over the {rules.behaviour_timeout_s:g} s of a behaviour"
            self.end(task, now, reason="walltime", message=message)

    # -------------------------------------------------------------- what is left of ended jobs

    def check(self, now: float) -> None:
        """Look for the processes of tasks whose first one is gone; finish those without any."""
        table, members = self._all()
        signals.kill(self.family.unowned(table))
        for task in list(self.lingering):
            left = self.holding.inside(task, members[task])
            task.plain = False
            task.doubtful = True
            if not left:
                del self.lingering[task]
                self._agent.finish(task)
                continue
            if task.kill_at is None:
                task.kill_at = now + self._agent.rules.grace_s
                signals.ask_to_end(left)
            elif now >= task.kill_at:
                self._kill(task, now)
        if self.lingering:
            # Most survivors are our children and their end is signalled; this is for the others.
            nearest = min(task.kill_at or now for task in self.lingering)
            self._look_s = min(_MAX_LOOK_S, self._look_s * 1.5)
            self._agent.due(min(nearest, now + self._look_s))
        else:
            self._look_s = _MIN_LOOK_S

    def _all(self) -> tuple[dict[int, procfs.Process], dict[Task, list[procfs.Process]]]:
        """The process table and whose is what, with none of our children unseen.

        A process that forks and ends while the table is read can hide its child; the child is then
        ours, and there are more children than the table showed.
        """
        for _ in range(_LOOKS):
            table = procfs.table()
            members = self.family.sort(table, self._agent.tasks.values())
            self._reap_zombies(table)
            if self._agent.all_children_known():
                break
        else:
            say("some children do not show in the process table")
        return table, members

    def _reap_zombies(self, table: dict[int, procfs.Process]) -> None:
        for pid in list(self.family.orphans):
            if not table[pid].alive:
                try:
                    gone, status, usage = os.wait4(pid, os.WNOHANG)
                except ChildProcessError:
                    continue
                if gone:
                    self.orphan_reaped(pid, status, usage)

    def living(self, task: Task) -> list[procfs.Process]:
        """The processes of a task that are there now."""
        members = self.family.sort(procfs.table(), self._agent.tasks.values())
        return [seen for seen in members.get(task, ()) if seen.alive]

    def _kill(self, task: Task, now: float) -> None:
        """KILL everything of a task, again and again while it forks, and later what is still there."""
        task.kill_at = now + _KILL_AGAIN_S
        if task.fence is not None:
            task.fence.kill()
        if task.status is None:
            try:
                os.killpg(task.pid, signal.SIGKILL)  # not reaped: the number is certainly its own
            except OSError:
                pass
        for _ in range(_SWEEPS):
            left = self.living(task)
            if not left:
                return
            signals.kill(left)

    # -------------------------------------------------------------- samples

    def _sample(self, now: float) -> None:
        tasks = self._agent.tasks.values()
        if not tasks:
            self._sample_at = _NEVER
            return
        old = [task for task in tasks if task.sampled or now - task.began >= FIRST_SAMPLE_S]
        young = [task.began + FIRST_SAMPLE_S for task in tasks if not task.sampled]
        if old:
            members = self.family.sort(procfs.table(), tasks)
            for task in [task for task in old if not task.sampled]:
                self.holding.make_sure(task, members[task])
            self.sampler.begin(now)
            for task in old:
                self.sampler.sample(task, [seen for seen in members[task] if seen.alive], now)
            if self._agent.rules.containment != "session":
                unheld = [task for task in old if task.fence is None or not task.fence.holds]
                self.holding.late([task for task in unheld if task.status is None])
            young = [task.began + FIRST_SAMPLE_S for task in tasks if not task.sampled]
        after = min(young) if young else _NEVER
        self._sample_at = min(max(after, now + _SAMPLE_GAP_S), now + SAMPLE_EVERY_S)
