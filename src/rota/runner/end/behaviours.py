"""What happens after the command of a job has ended: `on_success` or `on_failure`, then `on_exit`.

Each `run` is a process like the command's: in its own session, in the job's control group if there is one, ended
with all it started. The job keeps its seat until the last one is done. The outcome of the job is in the journal
before the first one starts: nothing here can change it, and if the runner dies its successor reports that.
"""

from __future__ import annotations

import os
import time

import msgspec

from rota.core.attempts.leases import Finished
from rota.core.jobs.outcome import Behaved, Outcome
from rota.launcher.base import Begun, CannotRun, Captured, Refused, StartOrder, shell
from rota.runner.contain.task_containment import Containment
from rota.runner.current_rules import CurrentRules
from rota.runner.end.behaviour_progress import STDERR_BYTES, BehaviourProgress
from rota.runner.end.sampling import Sampling
from rota.runner.launch.keeping import Keeping
from rota.runner.log import say_all, say_exception
from rota.runner.loop import Loop
from rota.runner.output.capture import Capture
from rota.runner.output.pipe_pool import PipePool
from rota.runner.report.journal import Ended, Journal
from rota.runner.start.environment import scratch_goes
from rota.runner.task import Task
from rota.runner.task_table import TaskTable

#: Behaviours of a killed job have at least this much of its grace, even if the command took long to end.
_LEAST_GRACE_S = 5.0
_RUN = "run:"


#: After these reasons a job must end soon.
_URGENT = {"kill_requested", "lost"}


class Behaviours:
    """Carries out behaviours, for each task one after the other."""

    def __init__(
        self,
        *,
        loop: Loop,
        tasks: TaskTable,
        rules: CurrentRules,
        journal: Journal,
        pool: PipePool,
        containment: Containment,
        sampling: Sampling,
        keeping: Keeping,
    ) -> None:
        self._loop = loop
        self._tasks = tasks
        self._rules = rules
        self._journal = journal
        self._pool = pool
        self._containment = containment
        self._sampling = sampling
        self._keeping = keeping

    def begin(self, task: Task, outcome: Outcome) -> Outcome | None:
        """The command has ended and nothing of it is left; see `proceed`."""
        by = None
        if outcome.reason in _URGENT:
            # A killed job must end soon: all behaviours together have the rest of its grace.
            now = self._loop.now
            by = max(task.kill_at or now, now + min(self._rules.current.grace_s, _LEAST_GRACE_S))
        task.behaviours = BehaviourProgress(task.spec, outcome, by=by)
        return self._next(task, task.behaviours)

    def resume(self, task: Task, after: BehaviourProgress) -> Outcome | None:
        """An adopted task was about to run its next behaviour; see `proceed`."""
        return self._next(task, after)

    def proceed(self, task: Task, after: BehaviourProgress) -> Outcome | None:
        """The behaviour that ran has ended. The whole outcome, or None: the next one runs."""
        failure = self._failure(task, after)
        self._finished(after, ok=not failure, message=failure)
        if task.reason in _URGENT:
            after.spent = "the job was being ended"
        return self._next(task, after)

    def _next(self, task: Task, after: BehaviourProgress) -> Outcome | None:
        """Do what needs no process and start the next `run`; None if one was started."""
        while after.todo:
            behaviour = after.todo[0]
            try:
                if behaviour.startswith(_RUN):
                    if self._started(task, after, behaviour.removeprefix(_RUN).strip()):
                        return None
                elif behaviour == "cleanup":
                    self._clean_up(task, after)
                elif behaviour == "remove":
                    self._finished(after, ok=True)  # the manager does it, once it knows of the end
                else:
                    self._finished(after, ok=False, message="unknown behaviour")
            except Exception:
                # The end of the job must be reported even if its behaviours fail unexpectedly.
                say_exception(f"behaviour of job {task.key[0]}")
                if after.todo and after.todo[0] is behaviour:
                    self._finished(after, ok=False, message="unexpected error in the runner")
        if task.scratch is not None and not scratch_goes(task.spec, ok=after.word == "complete"):
            kept = f"not after this outcome: its scratch directory is kept in {task.scratch.path}"
            after.done.append(Behaved("cleanup", True, kept))
            say_all(task.scratch.keep())
            task.scratch = None
        return msgspec.structs.replace(after.outcome, behaviours=tuple(after.done))

    def _finished(self, after: BehaviourProgress, *, ok: bool, message: str = "") -> None:
        after.done.append(Behaved(after.todo.pop(0), ok, message))

    def _clean_up(self, task: Task, after: BehaviourProgress) -> None:
        if task.scratch is None:
            self._finished(after, ok=False, message="the job has no scratch directory")
            return
        path = task.scratch.path
        say_all(task.scratch.remove())
        left = task.scratch.exists
        self._finished(after, ok=not left, message=f"{path} could not be removed" if left else "")
        if not left:
            task.scratch = None

    # -------------------------------------------------------------- a command

    def _started(self, task: Task, after: BehaviourProgress, text: str) -> bool:
        if after.by is not None and self._loop.now >= after.by:
            after.spent = after.spent or "the job was being ended and its grace had passed"
        if after.spent:
            self._finished(after, ok=False, message=f"not run: {after.spent}")
            return False
        self._journal.add(end_record(task, after))
        self._journal.flush_or_log()
        try:
            begun = self._spawn(task, after, text)
        except (OSError, Refused, CannotRun) as why:
            self._finished(after, ok=False, message=f"cannot be run: {why}")
            return False
        fresh = task.key not in self._tasks.by_key
        task.pid, task.status = begun.pid, None
        task.start_time = begun.start_time
        task.plain, task.doubtful = False, False
        task.reason = task.message = ""
        task.kill_at = None
        now = time.monotonic()
        self.set_limit(task, after, now)
        self._tasks.by_pid[task.pid] = self._tasks.by_key[task.key] = task
        if fresh:  # its own command could not be started
            task.began = now
            self._tasks.begun.append(task)
            self._sampling.began(now)
        else:
            self._journal.add(task.spawned())
        self._journal.flush_or_log()
        return True

    def set_limit(self, task: Task, after: BehaviourProgress, now: float) -> None:
        """A behaviour has begun: when it must be over."""
        task.deadline = now + self._rules.current.behaviour_timeout_s
        if after.by is not None:
            task.deadline = min(task.deadline, after.by)
        self._loop.due(task.deadline)

    def _spawn(self, task: Task, after: BehaviourProgress, text: str) -> Begun:
        outcome = after.outcome
        command = text.encode("utf-8", "surrogateescape")
        if b"\0" in command:
            raise CannotRun(126, "the command contains a NUL character")
        pipes = self._pool.clean(task)
        task.fill_environment()
        variables = task.env.and_also(
            [
                b"ROTA_OUTCOME=" + after.word.encode(),
                b"ROTA_EXIT_CODE=" + (b"" if outcome.exit_code is None else b"%d" % outcome.exit_code),
                b"ROTA_SIGNAL=" + (b"" if outcome.signal is None else b"%d" % outcome.signal),
            ]
        )
        cwd = os.fsencode(task.scratch.path) if task.scratch is not None else task.env.cwd
        if task.frozen:  # it was killed while suspended
            self._containment.freeze(task, False)
        groups = [] if task.fence is None else task.fence.paths
        bound = () if task.share is None else task.share.bound
        stdio = Captured(pipes.held, out=os.devnull)
        order = StartOrder(task.key, "behaviour", shell(command), variables, cwd, stdio, groups, bound)
        if task.launcher.lasting:
            self._keeping.announce(task)
        begun = task.launcher.start(order)
        task.runs += 1
        self._tasks.changed[task] = None
        self._containment.started(task, begun, groups)
        after.stderr = Capture(2 * STDERR_BYTES)
        pipes.task = task
        return begun

    def _failure(self, task: Task, after: BehaviourProgress) -> str:
        """Why the behaviour that ran failed; empty if it succeeded."""
        code = os.waitstatus_to_exitcode(task.status or 0)
        if not code and not task.reason:
            return ""
        parts = [task.message] if task.reason else []
        parts.append(f"signal {-code}" if code < 0 else f"exit {code}")
        _, tail = after.stderr.read(max(0, after.stderr.total - STDERR_BYTES), STDERR_BYTES)
        if words := tail.decode("utf-8", "replace").strip():
            parts.append(words)
        return ": ".join(parts)


def end_record(task: Task, after: BehaviourProgress) -> Ended:
    """For the journal: how the attempt ended if this runner dies during its behaviours."""
    goes = task.scratch is not None and scratch_goes(task.spec, ok=after.word == "complete")
    behaviours = list(after.done)
    for n, behaviour in enumerate(after.todo):
        if behaviour == "remove" or (behaviour == "cleanup" and goes):
            behaviours.append(Behaved(behaviour, True))  # the manager, or the next runner, sees to it
        else:
            behaviours.append(Behaved(behaviour, False, f"the runner died {'before' if n else 'during'} this"))
    outcome = msgspec.structs.replace(after.outcome, behaviours=tuple(behaviours))
    return Ended(Finished(*task.key, task.seat.id, outcome), goes)
