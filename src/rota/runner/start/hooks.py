"""Hooks of the site on a node: prologue, epilogue, suspend and resume.

They run as the runner's user, outside the job's fence, and without the job's own variables. What they print goes
to the runner's log. A job without hooks costs nothing more.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

from rota.core.attempts.leases import Finished, NodeFault, Phase
from rota.core.jobs.outcome import Outcome
from rota.launcher import procfs
from rota.launcher.base import CannotRun, IntoFile, Refused, StartOrder
from rota.launcher.nodefile import nodefile_path, write_nodefile
from rota.launcher.variables import Variables
from rota.plan.size import CORE, Size
from rota.runner.contain import process_mark, signals
from rota.runner.contain.task_containment import Containment
from rota.runner.current_rules import CurrentRules
from rota.runner.end.behaviour_progress import outcome_word
from rota.runner.identity import RunnerIdentity
from rota.runner.launch.keeping import Keeping
from rota.runner.log import say
from rota.runner.loop import Loop
from rota.runner.report.journal import Ended, Journal, Key, Preparing, Void
from rota.runner.report.outbox import Outbox
from rota.runner.start.environment import scratch_goes
from rota.runner.start.hook_process import (
    EPILOGUE,
    PROLOGUE,
    SUSPEND,
    TEMPLATE,
    Done,
    Script,
    log_output,
    send,
)
from rota.runner.start.own_variables import OF_ONE_JOB
from rota.runner.start.seats import Seating
from rota.runner.task import Task
from rota.runner.task_table import TaskTable

#: The variables of an epilogue for a job whose command was never begun.
_VOIDED = [b"ROTA_OUTCOME=voided", b"ROTA_EXIT_CODE=", b"ROTA_SIGNAL="]
#: Called with a task of which nothing is left, and its outcome.
Close = Callable[[Task, Outcome], None]


class NodeHooks:
    """Runs the hooks of the site."""

    def __init__(
        self,
        running: dict[int, Script],
        *,
        loop: Loop,
        tasks: TaskTable,
        rules: CurrentRules,
        journal: Journal,
        outbox: Outbox,
        seating: Seating,
        containment: Containment,
        keeping: Keeping,
        identity: RunnerIdentity,
        scratch_root: str,
    ) -> None:
        self.running = running  #: by pid; they are no task's processes
        self._loop = loop
        self._tasks = tasks
        self._rules = rules
        self._journal = journal
        self._outbox = outbox
        self._seating = seating
        self._containment = containment
        self._keeping = keeping
        self._identity = identity
        self._scratch_root = scratch_root

    # -------------------------------------------------------------- for any lease, on any of its hosts

    def run(self, name: str, task: Task, entries: list[bytes], done: Done) -> Script | None:
        """Run a hook of the site for the lease of a task, with these variables. None: it could not be started,
        and `done` has been called already."""
        rules = self._rules.current
        path = {PROLOGUE: rules.prologue, EPILOGUE: rules.epilogue, SUSPEND: rules.suspend_hook}.get(
            name, rules.resume_hook
        )
        try:
            script = self._start(path, name, task, entries, done)
        except (OSError, Refused, CannotRun) as why:
            say(f"{name} of job {task.key[0]}: {why}")
            done(f"the {name} cannot be run: {why}")
            return None
        self.running[script.pid] = script
        self._loop.due(script.deadline)
        return script

    def _start(self, path: str, name: str, task: Task, entries: list[bytes], done: Done) -> Script:
        key = task.key
        own = {name: value for name, value in os.environb.items() if name not in OF_ONE_JOB}
        variables = Variables(
            [
                *(b"%s=%s" % pair for pair in own.items()),
                b"ROTA_HOOK=" + name.encode(),
                b"ROTA_NODE=" + os.fsencode(self._identity.host),
                b"ROTA_JOB_ID=%d" % key[0],
                b"ROTA_ATTEMPT=%d" % key[1],
                process_mark.entry(key[2]),  # identifies the processes that it leaves
                *entries,
            ],
            own.get(b"PATH", b"/usr/sbin:/usr/bin:/sbin:/bin"),
        )
        words = (None, [os.fsencode(path)])
        stdio = IntoFile(self._identity.directory)
        if task.launcher.lasting:
            self._keeping.announce(task, name)
        begun = task.launcher.start(StartOrder(key, "hook", words, variables, b"/", stdio))
        task.runs += 1
        self._tasks.changed[task] = None
        deadline = time.monotonic() + self._rules.current.hook_timeout_s
        return Script(name, key, task.launcher, begun, deadline=deadline, done=done)

    def reaped(self, pid: int, status: int) -> bool:
        """A child has ended. True: it was a hook, and its `done` was called."""
        script = self.running.pop(pid, None)
        if script is None:
            return False
        if script.name == TEMPLATE:
            script.done("")
            return True
        code = os.waitstatus_to_exitcode(status)
        words = log_output(script)
        if (task := self._tasks.by_key.get(script.key)) is not None:
            self._tasks.changed[task] = None
        wrong = ""
        if code or script.late:
            ended = script.late or (f"signal {-code}" if code < 0 else f"exit {code}")
            wrong = f"the {script.name} failed: {ended}" + (f": {words}" if words else "")
            say(f"job {script.key[0]}: {wrong}")
        script.done(wrong)
        return True

    def tick(self, now: float) -> None:
        for script in list(self.running.values()):
            if now >= script.deadline:
                script.late = script.late or f"over its {self._rules.current.hook_timeout_s:g} s"
                script.deadline = now + 1.0
                send(script, signal.SIGKILL)
            self._loop.due(script.deadline)

    def fault(self, key: Key, name: str, message: str) -> None:
        """Report that no job should start on this node, and hand back all waiting leases."""
        self._outbox.faults.append(NodeFault(key[0], key[1], name, message))
        for waiting in list(self._seating.waiting):
            if self._seating.drop(waiting):
                self._outbox.give_back(waiting)

    def adopt(self, script: Script) -> None:
        """Watch over a hook that an earlier runner has started."""
        self.running[script.pid] = script
        self._loop.due(script.deadline)

    @property
    def limit_s(self) -> float:
        """How long a hook may run."""
        return self._rules.current.hook_timeout_s

    def run_again(self, task: Task, name: str, done: Done) -> None:
        """Run a hook that an earlier runner was about to run."""
        if name == PROLOGUE:
            self._run_for(task, PROLOGUE, [], done)
        else:
            self._run_for(task, EPILOGUE, _VOIDED if task.concluding is None else _ended(task), done)

    def follows(self, task: Task, name: str, start: Callable[[Task], None], close: Close) -> Done:
        """What follows when this hook of an adopted task has ended: `start` its command, or `close` it."""
        if name == PROLOGUE:
            return lambda wrong: self._prepared(task, wrong, start)
        if task.concluding is None:
            return lambda wrong: self._give_up(task, wrong)
        return self._concluded(task, task.concluding, close)

    # -------------------------------------------------------------- before the command of a task

    def prepare(self, task: Task, then: Callable[[Task], None]) -> None:
        """Run the prologue, `then` start the command. The task has its seat. Raises `Refused`."""
        allocation = task.grant.allocation
        if allocation is not None and allocation.nodes:
            path = nodefile_path(self._scratch_root, task.key[0], task.key[1])
            try:
                write_nodefile(path, allocation.nodes)
            except OSError as error:
                raise Refused(f"cannot write a nodefile: {error}") from None
            task.nodefile = path
        task.plain = False
        self._without_process(task)
        task.preparing = True
        self._journal.add(Preparing(*task.key))
        self._journal.flush_or_log()
        self._outbox.phases.append(Phase(*task.key, PROLOGUE))
        self._run_for(task, PROLOGUE, [], lambda wrong: self._prepared(task, wrong, then))

    def _prepared(self, task: Task, wrong: str, then: Callable[[Task], None]) -> None:
        task.script = None
        if wrong and not task.reason:
            self.fault(task.key, PROLOGUE, wrong)
            task.reason = "prologue"
        if not task.reason:
            del self._tasks.by_key[task.key]
            task.preparing, task.prepared = False, True
            task.status = None
            then(task)
            return
        if self._rules.current.epilogue:
            self._run_for(task, EPILOGUE, _VOIDED, lambda wrong: self._give_up(task, wrong))
        else:
            self._give_up(task, "")

    def _give_up(self, task: Task, wrong: str) -> None:
        """Its command was never begun: the lease goes back."""
        if wrong:
            self.fault(task.key, EPILOGUE, wrong)
        self._end_what_it_left(task)
        task.script = None
        task.over = True
        self._tasks.by_key.pop(task.key, None)
        self._journal.add(Void(*task.key))
        self._containment.clean_up(task)
        self._outbox.give_back(task.key)
        if task.launcher.lasting:
            self._tasks.released.append(task)
        self._seating.vacate(task.seat, self._loop.now)

    # -------------------------------------------------------------- after everything of a task

    def conclude(self, task: Task, outcome: Outcome, then: Close) -> None:
        """Run the epilogue, `then` report the end of the task."""
        if task.key not in self._tasks.by_key:
            self._without_process(task)  # its command could not be started
        task.concluding = outcome
        task.deadline = task.kill_at = None
        self._journal.add(epilogue_record(task, outcome))
        self._journal.flush_or_log()
        self._outbox.phases.append(Phase(*task.key, EPILOGUE))
        self._run_for(task, EPILOGUE, _ended(task), self._concluded(task, outcome, then))

    def _concluded(self, task: Task, outcome: Outcome, then: Close) -> Done:
        def concluded(wrong: str) -> None:
            if wrong:
                self.fault(task.key, EPILOGUE, wrong)
            self._end_what_it_left(task)
            task.script = None
            then(task, outcome)

        return concluded

    # -------------------------------------------------------------- both

    def _run_for(self, task: Task, name: str, more: list[bytes], done: Done) -> None:
        script = self.run(name, task, about(task) + more, done)
        if script is not None:  # else it is over, and perhaps the next one runs
            task.script = script

    def _without_process(self, task: Task) -> None:
        """Enter a task without a process into the task table."""
        task.pid, task.status = 0, 0
        task.start_time = procfs.start_time_now()
        task.began = time.monotonic()
        self._tasks.by_key[task.key] = task

    def _end_what_it_left(self, task: Task) -> None:
        signals.kill(self._containment.living(task))


def _ended(task: Task) -> list[bytes]:
    outcome = task.concluding
    assert outcome is not None
    return [
        b"ROTA_OUTCOME=" + outcome_word(outcome, task.spec).encode(),
        b"ROTA_EXIT_CODE=" + (b"" if outcome.exit_code is None else b"%d" % outcome.exit_code),
        b"ROTA_SIGNAL=" + (b"" if outcome.signal is None else b"%d" % outcome.signal),
    ]


def epilogue_record(task: Task, outcome: Outcome) -> Ended:
    """For the journal: how the attempt ended if this runner dies during its epilogue."""
    ok = outcome_word(outcome, task.spec) == "complete"
    goes = task.scratch is not None and scratch_goes(task.spec, ok=ok)
    return Ended(Finished(*task.key, task.seat.id, outcome), goes)


def about(task: Task) -> list[bytes]:
    """The variables that tell a hook about the job of a task."""
    spec = task.spec
    own = {
        b"ROTA_USER": spec.user,
        b"ROTA_JOB_NAME": spec.name,
        b"ROTA_GROUP": spec.group,
        b"ROTA_WALLTIME_S": "" if spec.walltime_s is None else f"{spec.walltime_s:g}",
    }
    found = [name + b"=" + _clean(value) for name, value in own.items()]
    cores = None if task.share is None else task.share.entry
    return found + about_size(task.env.size) + about_place(cores, task.nodefile)


def about_size(size: Size) -> list[bytes]:
    return [b"ROTA_CPUS=%g" % (size.cpus / CORE), b"ROTA_MEM_MB=%d" % (size.mem >> 20)]


def about_place(cores: bytes | None, nodefile: str | None) -> list[bytes]:
    """Which cores it has (`Share.entry`), and the file that names all its nodes."""
    found = [] if cores is None else [cores]
    if nodefile:
        found.append(b"ROTA_NODEFILE=" + os.fsencode(nodefile))
    return found


def _clean(value: str) -> bytes:
    return value.replace("\0", "").encode("utf-8", "surrogateescape")
