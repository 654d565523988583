"""Parts of attempts whose command runs on another host: what is needed for processes of theirs to run here too.

A part is a task without a command. It is one of the agent's tasks, so whatever is started in it (see `place`) is
fenced, kept to its cores, measured and found again like any process of a job; and when it is closed everything in
it ends like a job does: TERM, grace, KILL, until nothing is left. Whether there is one is for the manager to say.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from rota.core.attempts.leases import LeaseRef, PartOpened
from rota.runner import clock
from rota.runner.contain import procfs
from rota.runner.log import say
from rota.runner.report.journal import Intent, Key, Void, pack
from rota.runner.start.allocation import nodefile_path, write_nodefile
from rota.runner.start.hooks import EPILOGUE, PROLOGUE, about
from rota.runner.start.scratch import Scratch
from rota.runner.task import Line, Seat, Task
from rota.wire.orders import Grant, Part

if TYPE_CHECKING:
    from rota.runner.agent import Agent

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
        self.pid = 0
        self.start_time = procfs.start_time_now()
        self.started_at = clock.now()
        self.began = time.monotonic()
        self.seat = Seat(0, Line(task.env.size))  # which is nobody's
        self.block = pack((Intent(*key, task.spec.scratch, part=True),))


class Parts:
    """Opens and closes the parts of an agent."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._open: dict[Key, PartTask] = {}

    def held(self) -> list[Key]:
        """Of those of which something may be here."""
        return list(self._open)

    # -------------------------------------------------------------- opening

    def open(self, order: Part) -> None:
        """Make this host ready for a part, and say so; again, if it was asked for again."""
        agent = self._agent
        key = (order.job, order.attempt, order.token)
        known = self._open.get(key)
        if known is not None:
            if not known.preparing and not known.closing:
                agent.outbox.opened.append(PartOpened(*key))
            return
        grant = Grant(*key, order.spec, [], 0, order.size, order.element, order.allocation)
        env = agent.catalogue.environment(grant)
        if env is None:
            agent.outbox.opened.append(PartOpened(*key, ok=False, message="its specification is not known"))
            return
        part = PartTask(key, order, Task(key, grant, env))
        try:
            agent.journal.intend(part.block)
            self._prepare(part)
        except OSError as error:
            agent.endings.clean_up(part)
            agent.journal.add(Void(*key))
            why = f"cannot prepare: {error}"
            say(f"part of job {key[0]}: {why}")
            agent.outbox.opened.append(PartOpened(*key, ok=False, message=why))
            return
        self._open[key] = part
        agent.tasks[key] = part
        agent.endings.began(agent.now)
        if agent.rules.prologue:
            part.preparing = True
            part.script = agent.hooks.run(PROLOGUE, key, about(part), lambda wrong: self._prepared(part, wrong))
            if not part.preparing:
                part.script = None  # it was over at once
        else:
            agent.outbox.opened.append(PartOpened(*key))

    def _prepare(self, part: PartTask) -> None:
        """Raises `OSError`."""
        agent = self._agent
        job, attempt, _ = part.key
        allocation = part.order.allocation
        if allocation.nodes:
            part.nodefile = nodefile_path(agent.scratch_root, job, attempt)
            write_nodefile(part.nodefile, allocation)
        if part.spec.scratch:
            part.scratch = Scratch(agent.scratch_root, job, attempt)
        agent.endings.holding.hold_part(part)

    def _prepared(self, part: PartTask, wrong: str) -> None:
        agent = self._agent
        part.script, part.preparing = None, False
        if part.closing:
            self._end(part)
        elif wrong:
            agent.hooks.fault(part.key, PROLOGUE, wrong)
            part.failed = wrong
            self._end(part)
        else:
            agent.outbox.opened.append(PartOpened(*part.key))
        agent.due(agent.now)

    # -------------------------------------------------------------- closing

    def close(self, key: Key) -> None:
        """End everything in a part, and say when nothing is left. What is not here is closed already."""
        agent = self._agent
        part = self._open.get(key)
        if part is None:
            agent.outbox.shut.append(LeaseRef(*key))
            return
        if part.closing:
            return
        part.closing = True
        if part.preparing:
            # Its prologue is ended; then `_prepared` goes on.
            agent.endings.end(part, agent.now, reason="kill_requested", message="its job has ended")
        elif not part.failed:
            self._end(part)

    def _end(self, part: PartTask) -> None:
        endings = self._agent.endings
        self._agent.channels.job_ended(part)
        endings.end(part, self._agent.now, reason="kill_requested", message="its job has ended")
        endings.linger(part)
        self._agent.due(self._agent.now)

    def emptied(self, part: Task) -> None:
        """Nothing of it is left: the site's epilogue, if there is one, then it is told."""
        assert isinstance(part, PartTask)
        agent = self._agent
        part.kill_at = None
        if not agent.rules.epilogue:
            self._shut(part, "")
            return
        outcome = b"voided" if part.failed else b"closed"
        more = [b"ROTA_OUTCOME=" + outcome, b"ROTA_EXIT_CODE=", b"ROTA_SIGNAL="]
        script = agent.hooks.run(EPILOGUE, part.key, about(part) + more, lambda wrong: self._shut(part, wrong))
        if part.key in self._open:
            part.script = script

    def _shut(self, part: PartTask, wrong: str) -> None:
        agent = self._agent
        key = part.key
        part.script = None
        if wrong:
            agent.hooks.fault(key, EPILOGUE, wrong)
        part.over = True
        del self._open[key]
        agent.tasks.pop(key, None)
        agent.journal.add(Void(*key))
        agent.endings.clean_up(part)
        if part.failed and not part.closing:
            agent.outbox.opened.append(PartOpened(*key, ok=False, message=part.failed))
        else:
            agent.outbox.shut.append(LeaseRef(*key))
        if not agent.tasks:
            os.chdir("/")  # keep no job's directory busy
        agent.due(agent.now)

    def tick(self, now: float) -> None:
        """What had to be ended for lack of memory is, and the part goes on."""
        for part in self._open.values():
            if part.kill_at is not None and part not in self._agent.endings.lingering and not part.script:
                if self._agent.endings.living(part):
                    self._agent.due(now + _LOOK_AGAIN_S)
                else:
                    part.kill_at, part.reason = None, ""
