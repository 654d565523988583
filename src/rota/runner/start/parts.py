"""Parts: what a job over several hosts has on each host but its first, where its command runs.

A part is a task without a command. Processes that enter it (see `EntryPoint`) are fenced, bound to cores and
measured like any process of a job. When it is closed they end like a job: TERM, grace, KILL, until none is left.
The manager opens and closes parts.
"""

from __future__ import annotations

import time

from rota.core.attempts.leases import LeaseRef, PartOpened
from rota.launcher import procfs
from rota.launcher.nodefile import nodefile_path, write_nodefile
from rota.launcher.scratch import Scratch
from rota.runner import clock
from rota.runner.contain.task_containment import Containment
from rota.runner.current_rules import CurrentRules
from rota.runner.end.sampling import Sampling
from rota.runner.end.termination import Terminator
from rota.runner.enter.channels import JobChannels
from rota.runner.launch.launchers import Launchers
from rota.runner.log import say
from rota.runner.loop import Loop
from rota.runner.report.journal import Intent, Journal, Key, Void, pack
from rota.runner.report.outbox import Outbox
from rota.runner.start.environment import Catalogue
from rota.runner.start.hook_process import EPILOGUE, PROLOGUE, Done
from rota.runner.start.hooks import NodeHooks, about
from rota.runner.task import LeaseQueue, Seat, Task
from rota.runner.task_table import TaskTable
from rota.wire.orders import Grant, Part

_LOOK_AGAIN_S = 0.2


class PartTask(Task):
    """What the runner knows about a part."""

    part = True
    plain = False
    status = 0  #: there is no first process that could be reaped
    closing = False
    failed = ""  #: why it could not be opened

    def __init__(self, key: Key, order: Part, task: Task) -> None:
        self.__dict__.update(task.__dict__)
        self.order = order
        self.status = 0
        self.pid = 0
        self.start_time = procfs.start_time_now()
        self.started_at = clock.now()
        self.began = time.monotonic()
        self.seat = Seat(0, LeaseQueue(task.env.size))  # no real seat
        self.block = pack((Intent(*key, task.spec.scratch, part=True),))


class Parts:
    """Opens and closes parts."""

    def __init__(
        self,
        scratch_root: str,
        *,
        loop: Loop,
        launchers: Launchers,
        tasks: TaskTable,
        rules: CurrentRules,
        journal: Journal,
        outbox: Outbox,
        catalogue: Catalogue,
        containment: Containment,
        terminator: Terminator,
        sampling: Sampling,
        hooks: NodeHooks,
        channels: JobChannels,
    ) -> None:
        self._scratch_root = scratch_root
        self._loop = loop
        self._launchers = launchers
        self._tasks = tasks
        self._rules = rules
        self._journal = journal
        self._outbox = outbox
        self._catalogue = catalogue
        self._containment = containment
        self._terminator = terminator
        self._sampling = sampling
        self._hooks = hooks
        self._channels = channels
        self._open: dict[Key, PartTask] = {}

    def held(self) -> list[Key]:
        """The leases of all open parts."""
        return list(self._open)

    # -------------------------------------------------------------- opening

    def open(self, order: Part) -> None:
        """Prepare this host for a part and report it, or report again that it is open."""
        key = (order.job, order.attempt, order.token)
        known = self._open.get(key)
        if known is not None:
            if not known.preparing and not known.closing:
                self._outbox.opened.append(PartOpened(*key))
            return
        grant = Grant(*key, order.spec, [], 0, order.size, order.element, order.allocation)
        env = self._catalogue.environment(grant)
        if env is None:
            self._outbox.opened.append(PartOpened(*key, ok=False, message="unknown specification"))
            return
        part = PartTask(key, order, Task(key, grant, env))
        part.launcher = self._launchers.new
        try:
            self._journal.intend(part.block)
            self._prepare(part)
        except OSError as error:
            self._containment.clean_up(part)
            self._journal.add(Void(*key))
            self._released(part)
            why = f"cannot prepare: {error}"
            say(f"part of job {key[0]}: {why}")
            self._outbox.opened.append(PartOpened(*key, ok=False, message=why))
            return
        self._open[key] = part
        self._tasks.by_key[key] = part
        self._tasks.changed[part] = None
        self._sampling.began(self._loop.now)
        if self._rules.current.prologue:
            self._run_prologue(part)
        else:
            self._outbox.opened.append(PartOpened(*key))

    def _run_prologue(self, part: PartTask) -> None:
        part.preparing = True
        part.script = self._hooks.run(PROLOGUE, part, about(part), lambda wrong: self._prepared(part, wrong))
        if not part.preparing:
            part.script = None  # it was over at once

    def _prepare(self, part: PartTask) -> None:
        """Make the files and the fence of a part. Raises `OSError`."""
        job, attempt, _ = part.key
        allocation = part.order.allocation
        if allocation.nodes:
            part.nodefile = nodefile_path(self._scratch_root, job, attempt)
            write_nodefile(part.nodefile, allocation.nodes)
        if part.spec.scratch:
            part.scratch = Scratch(self._scratch_root, job, attempt)
        self._containment.hold_part(part)

    def _prepared(self, part: PartTask, wrong: str) -> None:
        part.script, part.preparing = None, False
        if part.closing:
            self._end(part)
        elif wrong:
            self._hooks.fault(part.key, PROLOGUE, wrong)
            part.failed = wrong
            self._tasks.changed[part] = None
            self._end(part)
        else:
            self._outbox.opened.append(PartOpened(*part.key))
        self._loop.due(self._loop.now)

    def _released(self, part: PartTask) -> None:
        if part.launcher.lasting:
            self._tasks.released.append(part)

    def adopt(self, task: Task, *, closing: bool, failed: str) -> PartTask:
        """Go on with a part that an earlier runner has opened."""
        grant, key = task.grant, task.key
        assert grant.allocation is not None
        order = Part(*key, grant.spec, grant.allocation, grant.size, grant.element)
        part = PartTask(key, order, task)
        part.start_time, part.began, part.started_at = task.start_time, task.began, task.started_at
        part.closing, part.failed = closing, failed
        self._open[key] = self._tasks.by_key[key] = part
        return part

    def go_on(self, part: PartTask, hook: str) -> Done:
        """What follows when this hook of an adopted part has ended."""
        if hook == PROLOGUE:
            return lambda wrong: self._prepared(part, wrong)
        return lambda wrong: self._shut(part, wrong)

    def run_hook(self, part: PartTask, name: str) -> None:
        """Run a hook that an earlier runner was about to run."""
        if name == PROLOGUE:
            self._run_prologue(part)
        else:
            self.emptied(part)

    def resume(self, part: PartTask) -> None:
        """No hook runs for an adopted part: take its next step."""
        if part.closing or part.failed:
            self._end(part)
        else:
            part.preparing = False
            self._outbox.opened.append(PartOpened(*part.key))

    # -------------------------------------------------------------- closing

    def close(self, key: Key) -> None:
        """End everything in a part and report when nothing is left. An unknown part counts as closed."""
        part = self._open.get(key)
        if part is None:
            self._outbox.shut.append(LeaseRef(*key))
            return
        if part.closing:
            return
        part.closing = True
        self._tasks.changed[part] = None
        if part.preparing:
            # Its prologue is ended; then `_prepared` goes on.
            self._terminator.end(part, self._loop.now, reason="kill_requested", message="its job has ended")
        elif not part.failed:
            self._end(part)

    def _end(self, part: PartTask) -> None:
        self._channels.job_ended(part)
        self._terminator.end(part, self._loop.now, reason="kill_requested", message="its job has ended")
        self._tasks.lingering[part] = None
        self._loop.due(self._loop.now)

    def emptied(self, part: Task) -> None:
        """No process of it is left: run the site's epilogue, if there is one, then report."""
        assert isinstance(part, PartTask)
        part.kill_at = None
        if not self._rules.current.epilogue:
            self._shut(part, "")
            return
        outcome = b"voided" if part.failed else b"closed"
        more = [b"ROTA_OUTCOME=" + outcome, b"ROTA_EXIT_CODE=", b"ROTA_SIGNAL="]
        script = self._hooks.run(EPILOGUE, part, about(part) + more, lambda wrong: self._shut(part, wrong))
        if part.key in self._open:
            part.script = script

    def _shut(self, part: PartTask, wrong: str) -> None:
        key = part.key
        part.script = None
        if wrong:
            self._hooks.fault(key, EPILOGUE, wrong)
        part.over = True
        del self._open[key]
        self._tasks.by_key.pop(key, None)
        self._journal.add(Void(*key))
        self._containment.clean_up(part)
        self._released(part)
        if part.failed and not part.closing:
            self._outbox.opened.append(PartOpened(*key, ok=False, message=part.failed))
        else:
            self._outbox.shut.append(LeaseRef(*key))
        if not self._tasks.by_key:
            self._launchers.rest()
        self._loop.due(self._loop.now)

    def tick(self, now: float) -> None:
        """Let a part go on after its processes were ended for lack of memory."""
        for part in self._open.values():
            if part.kill_at is not None and part not in self._tasks.lingering and not part.script:
                if self._containment.living(part):
                    self._loop.due(now + _LOOK_AGAIN_S)
                else:
                    part.kill_at, part.reason = None, ""
