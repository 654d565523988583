"""Adopts the tasks of a dead agent from its launchers.

Each lease that a launcher holds becomes a task again, as its last note says. What has happened since then is known
from its processes: a further one is what the note announced, and the ends of all are told again. A lease that no
launcher knows was never started.
"""

from __future__ import annotations

import time

from rota.core.jobs.command import Call
from rota.launcher.base import Begun
from rota.launcher.client.processes import Adopted
from rota.launcher.client.remote import RemoteLauncher
from rota.launcher.messages import HeldProcess
from rota.launcher.spool import ERR, OUT
from rota.plan.size import Size
from rota.runner import clock
from rota.runner.contain import fences
from rota.runner.contain.fence import Fence
from rota.runner.contain.suspension import Suspension
from rota.runner.contain.task_containment import Containment
from rota.runner.end.behaviours import Behaviours
from rota.runner.end.finishing import Finisher
from rota.runner.end.returned import CallFile
from rota.runner.end.sampling import Sampling
from rota.runner.end.task_signals import TaskSignals
from rota.runner.enter.channels import JobChannels
from rota.runner.enter.consoles import Consoles
from rota.runner.launch.fleet import Fleet
from rota.runner.launch.notes import HookNote, TaskNote, Unreadable, decode, task_of
from rota.runner.launch.predecessor import Predecessor
from rota.runner.log import say
from rota.runner.loop import Loop
from rota.runner.output.capture import Capture
from rota.runner.output.pipe_pool import PipePool
from rota.runner.report.journal import Key
from rota.runner.report.outbox import Outbox, bulk_of
from rota.runner.start.calls import request_of
from rota.runner.start.environment import Catalogue
from rota.runner.start.hook_process import PROLOGUE, RESUME, SUSPEND, Script
from rota.runner.start.hooks import NodeHooks
from rota.runner.start.parts import Parts, PartTask
from rota.runner.start.seats import Seating
from rota.runner.start.starting import Starter
from rota.runner.task import LeaseQueue, Pipes, Seat, Task
from rota.runner.task_table import TaskTable

_STEPS = ("command", "behaviour", "hook")


class Adoption:
    """Makes tasks of what launchers hold."""

    def __init__(
        self,
        predecessor: Predecessor,
        *,
        loop: Loop,
        launchers: Fleet,
        tasks: TaskTable,
        outbox: Outbox,
        seating: Seating,
        pool: PipePool,
        catalogue: Catalogue,
        containment: Containment,
        sampling: Sampling,
        task_signals: TaskSignals,
        suspension: Suspension,
        behaviours: Behaviours,
        hooks: NodeHooks,
        parts: Parts,
        consoles: Consoles,
        channels: JobChannels,
        finisher: Finisher,
        starter: Starter,
        scratch_root: str,
    ) -> None:
        self._predecessor = predecessor
        self._loop = loop
        self._launchers = launchers
        self._tasks = tasks
        self._outbox = outbox
        self._seating = seating
        self._pool = pool
        self._catalogue = catalogue
        self._containment = containment
        self._sampling = sampling
        self._signals = task_signals
        self._suspension = suspension
        self._behaviours = behaviours
        self._hooks = hooks
        self._parts = parts
        self._consoles = consoles
        self._channels = channels
        self._finisher = finisher
        self._starter = starter
        self._scratch_root = scratch_root
        self._fences = fences.of_runner(predecessor.id)

    def adopt(self) -> set[Key]:
        """Take over everything that lives; which leases go on."""
        story, going_on = self._predecessor.story, set()
        for key, ended in story.leases.items():
            if ended.finished is not None:
                self._outbox.end(key, ended.finished)
                self._outbox.bulk += bulk_of(ended.finished.outcome)
        for launcher, all_held in self._predecessor.launchers:
            self._launchers.adopt(launcher)
            for held in all_held:
                lease = story.leases.get(held.key)
                runs = any(process.status is None for process in held.processes)
                if lease is not None and lease.finished is not None:
                    self._forget(launcher, held)
                elif lease is None and story.whole and not runs:
                    self._forget(launcher, held)  # it was handed back
                elif self._take_over(launcher, held, "" if lease is None else lease.fence):
                    going_on.add(held.key)
        return going_on

    # -------------------------------------------------------------- one lease

    def _forget(self, launcher: RemoteLauncher, held: Adopted) -> None:
        """Its end was recorded, or it was handed back: remove what was made for it."""
        try:
            task = self._task(launcher, held, decode(held.note), "")
        except Unreadable:
            pass  # of a script of the site
        else:
            self._containment.clean_up(task)
        launcher.release(held.key)

    def _take_over(self, launcher: RemoteLauncher, held: Adopted, fence: str) -> bool:
        """Go on with a lease. False: it was never started, or has no note."""
        try:
            note = decode(held.note)
        except Unreadable as why:
            say(f"job {held.key[0]} cannot go on: {why}")
            launcher.release(held.key)
            return False
        task = self._task(launcher, held, note, fence)
        steps = [process for process in held.processes if process.kind in _STEPS]
        fresh = steps[note.runs] if len(steps) > note.runs else None
        task.runs = len(steps)
        if note.starting and fresh is None and note.behaviours is None and not note.prepared:
            self._forget(launcher, held)
            return False
        if note.seat and not note.part:
            self._seating.seats[note.seat] = task.seat
        task = self._enter(task, note)
        self._hold(task, note, held)
        self._resume(task, note, held, fresh)
        self._hang_up(task, held)
        task.noted = held.note
        self._tasks.changed[task] = None
        return True

    def _task(self, launcher: RemoteLauncher, held: Adopted, note: TaskNote, fence: str) -> Task:
        env = self._catalogue.rebuilt(note.grant, note.spec, note.stored)
        seat = self._seat(note, env.size)
        task = task_of(note, env, seat=seat, launcher=launcher, scratch_root=self._scratch_root)
        task.fence = self._fence(task, note.fence or fence)
        return task

    def _seat(self, note: TaskNote, size: Size) -> Seat:
        if note.part or note.seat not in self._seating.seats:
            return Seat(note.seat, LeaseQueue(size) if note.part else self._seating.queue(size))
        return self._seating.seats[note.seat]

    def _fence(self, task: Task, record: str) -> Fence | None:
        job, attempt, _ = task.key
        name = fences.errand_name(*task.key) if task.is_errand else f"{job}.{attempt}"
        fence = self._fences.get(name) or fences.recorded(record, job, attempt, task.launcher)
        if fence is not None:
            fence.frozen = task.frozen
            if not task.frozen:
                # The agent may have died after it had frozen it and before it could note that. The manager, which
                # has not heard of it, repeats the order.
                fence.freeze(False)
        return fence

    def _enter(self, task: Task, note: TaskNote) -> Task:
        if note.part:
            return self._parts.adopt(task, closing=note.closing, failed=note.failed)
        self._tasks.by_key[task.key] = task
        return task

    def _hold(self, task: Task, note: TaskNote, held: Adopted) -> None:
        """Its cores, and what it has printed."""
        allocation, seat = note.grant.allocation, task.seat
        if allocation is not None and allocation.cpu_list:
            task.share = self._containment.give(task.key, allocation.cpu_list)
        elif note.cores and not task.part:
            task.share = seat.share = self._containment.cores.keep(seat, task.env.size.cpus, note.cores)
        if task.part:
            return
        if held.pipes is None:
            task.pipes = self._pool.lend(task.launcher)
        else:
            task.pipes = Pipes(task.launcher, held.pipes)
            self._pool.adopt(task.pipes)
            if task.behaviours is None:
                keep = held.pipes.pipes.spools[OUT].keep
                task.out = Capture.resumed(keep, *held.pipes.restore(OUT))
                task.err = Capture.resumed(keep, *held.pipes.restore(ERR))
        seat.pipes = task.pipes
        task.pipes.task = task

    # -------------------------------------------------------------- how far it has come

    def _resume(self, task: Task, note: TaskNote, held: Adopted, fresh: HeldProcess | None) -> None:
        for hook in note.hooks:
            self._resume_hook(task, hook, held, fresh)
        if isinstance(task, PartTask):
            if not note.hooks:
                self._parts.resume(task)
        elif note.starting and fresh is None:
            self._start_again(task)
        elif task.concluding is not None or task.preparing:
            task.status = 0  # it has no process of its own
            if not note.hooks:
                say(f"job {task.key[0]} has lost a hook")
                self._follow(task, "")("")
        else:
            self._resume_process(task, note, held, fresh)
        if held.ended_for and not task.reason:
            task.reason, task.message = _why(held.ended_for, task)
        if task.deadline is not None:
            self._loop.due(task.deadline)
            self._signals.moved(task)
        self._sampling.began(self._loop.now)
        self._loop.due(self._loop.now)

    def _resume_process(self, task: Task, note: TaskNote, held: Adopted, fresh: HeldProcess | None) -> None:
        pid = task.pid if fresh is None or fresh.kind == "hook" else fresh.pid
        index, process = next((n, each) for n, each in enumerate(held.processes) if each.pid == pid)
        if task.pid != pid:
            self._begun(task, process)
        if task.env.spec.interactive and process.kind == "command" and held.fds[index]:
            self._consoles.adopt(task, held.fds[index][0])
        if task.calls and process.kind == "command" and held.fds[index]:
            request = request_of(task.grant.cmd) if isinstance(task.grant.cmd, Call) else b""
            task.call_file = CallFile(held.fds[index][-1], len(request))
        task.status = None
        self._tasks.by_pid[pid] = task
        self._tell_end(task, process)

    def _begun(self, task: Task, process: HeldProcess) -> None:
        """The process was started, and the agent died before it noted that."""
        task.pid, task.start_time = process.pid, process.start_time
        now = time.monotonic()
        if task.behaviours is not None:
            task.reason = task.message = ""
            task.kill_at = None
            self._behaviours.set_limit(task, task.behaviours, now)
            return
        passed_s = clock.passed_since(process.start_time)
        task.began = now - passed_s
        task.started_at = clock.now() - passed_s
        if task.spec.walltime_s is not None:
            task.deadline = task.began + task.spec.walltime_s

    def _tell_end(self, task: Task, process: HeldProcess) -> None:
        launcher = task.launcher
        if process.status is not None and isinstance(launcher, RemoteLauncher):
            launcher.tell_again(process)

    def _start_again(self, task: Task) -> None:
        """The agent died when it was about to start its command after a prologue, or a behaviour."""
        if task.behaviours is None:
            del self._tasks.by_key[task.key]
            task.status = None
            self._loop.later.append(lambda: self._starter.go_on(task))
        else:
            after = task.behaviours
            task.status = 0

            def go_on() -> None:
                outcome = self._behaviours.resume(task, after)
                if outcome is not None:
                    self._finisher.conclude(task, outcome)

            self._loop.later.append(go_on)

    # -------------------------------------------------------------- hooks of the site

    def _resume_hook(self, task: Task, hook: HookNote, held: Adopted, fresh: HeldProcess | None) -> None:
        pid = hook.pid or (0 if fresh is None or fresh.kind != "hook" else fresh.pid)
        done = self._follow(task, hook.name)
        for process, fds in zip(held.processes, held.fds, strict=True):
            if pid and process.pid == pid:
                begun = Begun(pid, process.start_time, tuple(fds))
                deadline = hook.deadline or time.monotonic() + self._hooks.limit_s
                script = Script(hook.name, task.key, task.launcher, begun, deadline=deadline, done=done)
                script.late = hook.late
                self._hooks.adopt(script)
                if hook.name not in (SUSPEND, RESUME):
                    task.script = script
                self._tell_end(task, process)
                return
        self._loop.later.append(lambda: self._run_hook(task, hook.name))

    def _run_hook(self, task: Task, name: str) -> None:
        """Run a hook that was announced and not started."""
        if name in (SUSPEND, RESUME):
            self._suspension.run_hook(name, task)
        elif isinstance(task, PartTask):
            self._parts.run_hook(task, name)
        else:
            self._hooks.run_again(task, name, self._follow(task, name))

    def _follow(self, task: Task, name: str):  # type: ignore[no-untyped-def]
        if name in (SUSPEND, RESUME):
            return self._suspension.follows(task, name)
        if isinstance(task, PartTask):
            return self._parts.go_on(task, name)
        if not name:
            name = PROLOGUE if task.preparing else "epilogue"
        return self._hooks.follows(task, name, self._starter.go_on, self._finisher.close)

    # -------------------------------------------------------------- what entered it

    def _hang_up(self, task: Task, held: Adopted) -> None:
        """Processes that clients started in it: their channels ended with the agent."""
        for process in held.processes:
            if process.kind == "exec" and process.status is None:
                self._channels.hang_up_adopted(task, process.pid)


def _why(ended_for: str, task: Task) -> tuple[str, str]:
    if ended_for == "walltime":
        if task.behaviours is not None:
            return "walltime", "over the limit of a behaviour"
        return "walltime", f"over its walltime of {task.walltime_s or task.spec.walltime_s or 0.0:g} s"
    return "lost", "its agent was away for too long"
