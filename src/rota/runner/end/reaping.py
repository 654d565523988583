"""Sees processes end: reaps children, finds what an ended command left behind, and finishes its task.

A task ends only when all its processes are gone. For a short job as few system calls are made as possible.
"""

from __future__ import annotations

from rota.launcher import procfs
from rota.launcher.base import Usage
from rota.runner import clock
from rota.runner.contain import signals
from rota.runner.contain.process_family import ProcessFamily
from rota.runner.contain.task_containment import Containment
from rota.runner.current_rules import CurrentRules
from rota.runner.end.finishing import Finisher
from rota.runner.end.termination import Terminator
from rota.runner.enter.channels import JobChannels
from rota.runner.launch.launchers import Launchers
from rota.runner.log import say
from rota.runner.loop import Loop
from rota.runner.output.followers import Followers
from rota.runner.output.streams import Streams
from rota.runner.start.hooks import NodeHooks
from rota.runner.start.starting import Starter
from rota.runner.task import Task
from rota.runner.task_table import TaskTable

_LOOKS = 20
_MIN_LOOK_S = 0.02
_MAX_LOOK_S = 1.0


class Reaper:
    """Waits for the children of all launchers."""

    def __init__(
        self,
        *,
        loop: Loop,
        launchers: Launchers,
        tasks: TaskTable,
        rules: CurrentRules,
        family: ProcessFamily,
        containment: Containment,
        terminator: Terminator,
        streams: Streams,
        followers: Followers,
        channels: JobChannels,
        hooks: NodeHooks,
        finisher: Finisher,
        starter: Starter,
    ) -> None:
        self._loop = loop
        self._launchers = launchers
        self._tasks = tasks
        self._rules = rules
        self._family = family
        self._containment = containment
        self._terminator = terminator
        self._streams = streams
        self._followers = followers
        self._channels = channels
        self._hooks = hooks
        self._finisher = finisher
        self._starter = starter
        self._look_s = _MIN_LOOK_S

    def tick(self, now: float) -> None:
        if self._tasks.lingering:
            self._check(now)

    def reap(self) -> None:
        """Children have ended."""
        by_pid = self._tasks.by_pid
        orphans = self._family.orphans
        scripts = self._hooks.running
        ended: list[Task] = []
        disturbed = False
        alone = True  #: was nothing else left when each of these ends was told?
        for launcher in self._launchers.all:
            told = launcher.fd >= 0  # else an end must be asked for, which costs a system call
            if told:
                self._launchers.when_told(launcher)  # what it has begun is known before its end is
            while told or by_pid or orphans or not ended or scripts:
                over = launcher.reap()
                if over is None:
                    break
                pid, status, usage = over
                task = by_pid.pop(pid, None)
                if task is None:
                    if not self._hooks.reaped(pid, status):
                        self._orphan_reaped(pid, status, usage)
                    disturbed = True
                    continue
                task.status = status
                task.usage = usage
                ended.append(task)
                alone = alone and launcher.alone(pid)
                if orphans:
                    self._channels.job_ended(task)
        lingering = self._tasks.lingering
        if not ended:
            if disturbed and lingering:
                self._check(self._loop.now)
            return
        # Nothing but first processes of other tasks (and known orphans) among our children: everything
        # these tasks started is gone too, and what they wrote is in the pipes.
        if alone or self._all_children_known():
            if not alone:
                self._streams.collect()
            for task in ended:
                if (orphans and self._has_orphans(task)) or (task.fence is not None and not task.fence.empty()):
                    lingering[task] = None
                elif task.plain and not task.status and not self._followers:
                    self._finish_quietly(task)
                else:
                    self._finisher.finish(task)
        else:
            lingering.update(dict.fromkeys(ended))
        if lingering:
            self._check(self._loop.now)

    def _finish_quietly(self, task: Task) -> None:
        """It succeeded without output: its seat takes the next task, its end is recorded later with others."""
        task.over = True
        task.ended_at = clock.now()
        self._tasks.quiet.append(task)
        del self._tasks.by_key[task.key]
        if not task.left:
            self._starter.follow(task.seat, task)

    def _all_children_known(self) -> bool:
        """Are there no other children than first processes of tasks, known orphans and hooks?"""
        count = self._launchers.children()
        self._launchers.hear()
        known = len(self._tasks.by_pid) + len(self._family.orphans) + len(self._hooks.running)
        return count == known

    # -------------------------------------------------------------- what is left of ended jobs

    def _has_orphans(self, task: Task) -> bool:
        """Is a known orphan certainly of this task? (A doubtful one waits for the last candidate.)"""
        return any(orphan.owner is task or orphan.candidates == {task} for orphan in self._family.orphans.values())

    def _orphan_reaped(self, pid: int, status: int, usage: Usage) -> None:
        orphan = self._family.orphans.pop(pid, None)
        self._channels.reaped(pid, status)
        owner = orphan.owner if orphan is not None else None
        tasks = self._tasks.by_key
        if owner is None and len(tasks) == 1:
            (owner,) = tasks.values()
        if owner is not None:
            owner.plain = False
            owner.cpu_s += usage.ru_utime + usage.ru_stime

    def _check(self, now: float) -> None:
        """Look for the processes of tasks whose first one is gone; finish those without any."""
        table, members = self._all()
        signals.kill(self._family.unowned(table))
        lingering = self._tasks.lingering
        for task in list(lingering):
            left = self._containment.inside(task, members[task])
            task.plain = False
            task.doubtful = True
            if not left:
                del lingering[task]
                self._finisher.finish(task)
                continue
            if task.kill_at is None:
                task.kill_at = now + self._rules.current.grace_s
                signals.ask_to_end(left)
            elif now >= task.kill_at:
                self._terminator.kill(task, now)
        if lingering:
            # Most survivors are our children and their end is signalled; this is for the others.
            nearest = min(task.kill_at or now for task in lingering)
            self._look_s = min(_MAX_LOOK_S, self._look_s * 1.5)
            self._loop.due(min(nearest, now + self._look_s))
        else:
            self._look_s = _MIN_LOOK_S

    def _all(self) -> tuple[dict[int, procfs.Process], dict[Task, list[procfs.Process]]]:
        """The process table and whose is what, with none of our children unseen.

        A process that forks and ends while the table is read can hide its child; the child is then
        ours, and there are more children than the table showed.
        """
        for _ in range(_LOOKS):
            table = self._family.look()
            members = self._family.sort(table, self._tasks.by_key.values())
            self._reap_zombies(table)
            if self._all_children_known():
                break
        else:
            say("some children are missing from the process table")
        return table, members

    def _reap_zombies(self, table: dict[int, procfs.Process]) -> None:
        for pid in list(self._family.orphans):
            if not table[pid].alive:
                for launcher in self._launchers.all:
                    if (over := launcher.reap(pid)) is not None:
                        self._orphan_reaped(*over)
                        break
        self._launchers.hear()
        for launcher, pid in self._launchers.queued():
            if pid not in self._tasks.by_pid and pid not in self._hooks.running:
                over = launcher.reap(pid)
                if over is not None:
                    self._orphan_reaped(*over)
