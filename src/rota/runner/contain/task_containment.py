"""The cores and fences of tasks, from their start to their end.

Cores are bound by affinity when a task starts, which is cheap. A fence is made when the task is seen to last,
or before it is frozen; or before its command starts, if the site wants that.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Collection

from rota.errors import BadInput
from rota.launcher import procfs
from rota.launcher.base import Begun
from rota.launcher.trees import remove_file
from rota.runner.contain.fence import Fence, signal_all
from rota.runner.contain.fences import Fences, errand_name
from rota.runner.contain.process_family import ProcessFamily
from rota.runner.current_rules import CurrentRules
from rota.runner.log import say, say_all
from rota.runner.loop import Loop
from rota.runner.report.journal import Contained, Journal, Key
from rota.runner.start.cores import ANY, Cores, Owner, Share
from rota.runner.task import Seat, Task
from rota.runner.task_table import TaskTable

_SWEEPS = 5
_REMOVE_AGAIN_S = 1.0
#: A memory limit exceeds the request by at least this, for what else the kernel counts.
_MEMORY_SLACK = 16 * 1024 * 1024


class Containment:
    """Cores and fences of a runner's tasks."""

    def __init__(
        self,
        *,
        loop: Loop,
        tasks: TaskTable,
        rules: CurrentRules,
        journal: Journal,
        family: ProcessFamily,
        fences: Fences,
        cores: Cores,
        picks: bool,
    ) -> None:
        """`picks`: may it choose cores for tasks to which the planner gave none?"""
        self._loop = loop
        self._tasks = tasks
        self._rules = rules
        self._journal = journal
        self.family = family
        self.fences = fences
        self.cores = cores
        self._picks = picks
        self._garbage: list[Fence] = []
        self._logged: set[str] = set()

    # -------------------------------------------------------------- cores

    def share(self, task: Task) -> Share:
        """The cores of a task that is about to start: given by the planner, else picked for its seat."""
        seat, allocation = task.seat, task.grant.allocation
        if allocation is not None and allocation.cpu_list:
            self.vacated(seat)
            task.plain = False
            return self.give(task.key, allocation.cpu_list)
        if seat.share is None:
            seat.share = self.cores.pick(seat, task.env.size.cpus) if self._picks else ANY
        return seat.share

    def give(self, key: Key, cpu_list: str) -> Share:
        """The cores that the planner gave to an attempt, or to a part of one, until `take_back`."""
        try:
            cores = self.cores.named(cpu_list)
        except BadInput as error:
            if cpu_list not in self._logged:
                self._logged.add(cpu_list)
                say(f"jobs cannot be bound to cores {cpu_list}: {error}")
            share = Share(frozenset(), binds=False, fences=False)
            share.entry = b"ROTA_CPU_LIST=" + cpu_list.encode("utf-8", "surrogateescape")
            return share
        self._move_all(self.cores.give(key, cores))
        return self.cores.of(key)

    def take_back(self, key: Key) -> None:
        self._move_all(self.cores.release(key))

    def vacated(self, seat: Seat) -> None:
        """Free the cores that were picked for a seat: it is closed, or its next task has an allocation."""
        if seat.share is not None:
            seat.share = None
            self._move_all(self.cores.release(seat))

    def _move_all(self, owners: list[Owner]) -> None:
        for owner in owners:
            if isinstance(owner, Seat):
                self._move(owner, self.cores.of(owner))

    def _move(self, seat: Seat, share: Share) -> None:
        """Move the task in that seat to other cores at once."""
        seat.share = share
        for task in self._tasks.by_key.values():
            if task.seat is seat and not task.over and task.share is not None:
                task.share = share
                self._tasks.changed[task] = None
                cores = share.cores or self.cores.all
                if task.fence is not None:
                    task.fence.keep_to(cores)
                bind(self.living(task), cores, anew=True)

    # -------------------------------------------------------------- fences

    def first(self, task: Task) -> list[str]:
        """Make the fence that a task must be in before its command starts; directories of the groups to join."""
        rules = self._rules.current
        asked = task.env.size.mem
        memory = 0
        if rules.enforce_memory == "cgroup" and asked:
            memory = asked + max(_MEMORY_SLACK, asked // 20)
        hold = rules.containment == "cgroup"
        if hold or memory:
            self._make(task, hold=hold, memory=memory)
        return [] if task.fence is None else task.fence.paths

    def started(self, task: Task, begun: Begun, groups: Collection[str]) -> None:
        """Fence a process that was just started for a task, unless it joins these groups by itself."""
        if begun.unbound:
            say(f"a job cannot be bound to its cores: {begun.unbound}")
        if task.fence is not None and not groups:  # the fence of a script cannot be joined
            task.fence.add(begun.pid)

    def hold_part(self, task: Task) -> None:
        """Fence a part: it has no process yet, and processes may be started in it at any time."""
        allocation, rules = task.grant.allocation, self._rules.current
        if allocation is not None and allocation.cpu_list:
            task.share = self.give(task.key, allocation.cpu_list)
        self.first(task)
        if rules.containment != "session":
            self._make(task, hold=True)

    def late(self, tasks: Collection[Task]) -> None:
        """Fence tasks that have run for a while, with everything they have started."""
        fresh = [task for task in tasks if self._make(task, hold=True)]
        if not fresh:
            return
        for _ in range(_SWEEPS):  # again, for what was forked meanwhile
            members = self.members()
            moved = [self._take_in(task, members.get(task, ())) for task in fresh]
            if not any(moved):
                break
        self._journal.flush_or_log()

    def _make(self, task: Task, *, hold: bool, memory: int = 0) -> bool:
        """Make or extend the fence of a task; False if nothing was added."""
        fences = self.fences
        cores = task.share.cores if hold and task.share is not None and task.share.fences else ()
        if task.fence is not None:
            if task.fence.holds or not fences.widen(task.fence, hold=hold, cores=cores, memory=memory):
                return False
        else:
            name = errand_name(*task.key) if task.is_errand else ""
            fence = fences.make(*task.key[:2], hold=hold, cores=cores, memory=memory, name=name)
            if not fence.exists:
                return False
            task.fence = fence
        task.plain = False
        self._tasks.changed[task] = None
        self._journal.add(Contained(*task.key, task.fence.record()))
        return True

    def make_sure(self, task: Task, processes: Collection[procfs.Process]) -> None:
        """Fence and bind processes that escaped that when they were started."""
        self._take_in(task, processes)
        if task.share is not None and task.share.binds:
            bind([seen for seen in processes if seen.alive], task.share.cores)

    def _take_in(self, task: Task, processes: Collection[procfs.Process]) -> bool:
        fence = task.fence
        if fence is None:
            return False
        outside = fence.outside(seen.pid for seen in processes if seen.alive)
        moved = [fence.add(pid) for pid in outside]
        return any(moved)

    def freeze(self, task: Task, on: bool) -> bool:
        """Stop all processes of a task, or continue them. False: not all could be stopped, so none is.

        Its deadlines are not moved: that is up to the caller."""
        if on and self._rules.current.containment != "session":
            self.late([task])
        fence = task.fence
        if fence is None or not fence.holds:
            done = signal_all(lambda: self.living(task), signal.SIGSTOP if on else signal.SIGCONT)
        else:
            done = fence.freeze(on)
            for _ in range(_SWEEPS):
                if not on or not done or not self._take_in(task, self.living(task)):
                    break
                # The group must freeze again, and a script may have stopped only the processes it knew.
                done = fence.freeze(True)
            else:
                done = False
        if on and not done:
            self.freeze(task, False)
        task.frozen = on and done
        self._tasks.changed[task] = None
        task.plain = False
        self._share_while_frozen(task)
        return done

    def _share_while_frozen(self, task: Task) -> None:
        """Free the cores that were picked for a task while it is frozen; pick again when it is thawed."""
        seat = task.seat
        if seat.share is None or task.share is not seat.share:
            return
        if task.frozen:
            self._move_all(self.cores.release(seat))
        elif (share := self.cores.pick(seat, task.env.size.cpus)).cores != seat.share.cores and share.cores:
            self._move(seat, share)

    def inside(self, task: Task, known: Collection[procfs.Process]) -> list[procfs.Process]:
        """The living processes of a task: the known ones, and all others in its fence."""
        living = [seen for seen in known if seen.alive]
        if task.fence is not None:
            pids = {seen.pid for seen in known}
            living += [seen for seen in task.fence.living() if seen.pid not in pids]
        return living

    # -------------------------------------------------------------- whose is a process?

    def members(self) -> dict[Task, list[procfs.Process]]:
        """The processes of each task, living or zombie."""
        return self.family.sort(self.family.look(), self._tasks.by_key.values())

    def living(self, task: Task) -> list[procfs.Process]:
        """The living processes of a task."""
        return [seen for seen in self.members().get(task, ()) if seen.alive]

    def lease_of(self, pid: int) -> Key | None:
        """To which lease a process belongs, if to any."""
        for task, members in self.members().items():
            if any(seen.pid == pid for seen in members):
                return task.key
        return None

    # -------------------------------------------------------------- the end

    def clean_up(self, task: Task) -> None:
        """Nothing is left of a task: remove what was made for it, free its cores, remove its fence."""
        if task.scratch is not None:
            say_all(task.scratch.remove())
        if task.nodefile is not None:
            say_all(remove_file(task.nodefile))
        if task.ticket is not None:
            say_all(remove_file(task.ticket))
        if task.call_file is not None:
            task.call_file.close()
        self.take_back(task.key)
        if task.fence is not None and not task.fence.remove():
            self._garbage.append(task.fence)
            self._loop.due(self._loop.now + _REMOVE_AGAIN_S)

    def tick(self, now: float) -> None:
        if self._garbage:
            self._garbage = [fence for fence in self._garbage if not fence.remove()]
            if self._garbage:
                self._loop.due(now + _REMOVE_AGAIN_S)

    def close(self) -> None:
        """The runner leaves."""
        for fence in self._garbage:
            fence.remove_patiently()


def bind(processes: Collection[procfs.Process], cores: Collection[int], *, anew: bool = False) -> None:
    """Confine these processes, with all their threads, to these cores. Unless `anew`, a thread that has chosen
    some of them itself is left alone."""
    for seen in processes:
        try:
            threads = os.listdir(f"/proc/{seen.pid}/task")
        except OSError:
            continue
        for thread in threads:
            try:
                if anew or not os.sched_getaffinity(int(thread)).issubset(cores):
                    os.sched_setaffinity(int(thread), cores)
            except OSError:
                continue
