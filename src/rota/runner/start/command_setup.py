"""Starts commands that need more than a shell in a directory: scratch, files, a terminal, control groups.

What is made here for a task is removed by `Containment.clean_up`, or here if it could not be started now.
"""

from __future__ import annotations

import os
import time

from rota.runner.contain.task_containment import Containment
from rota.runner.current_rules import CurrentRules
from rota.runner.enter.consoles import Consoles
from rota.runner.start.allocation import nodefile_path, on_its_cores, write_nodefile
from rota.runner.start.output_files import OutputFiles
from rota.runner.start.process import Refused, start, words_of
from rota.runner.start.scratch import Scratch
from rota.runner.task import Task


class CommandSetup:
    """Prepares what a command needs and starts it."""

    def __init__(
        self,
        null: int,
        *,
        rules: CurrentRules,
        containment: Containment,
        consoles: Consoles,
        scratch_root: str,
        host: str,
    ) -> None:
        """`null`: a descriptor of /dev/null."""
        self._null = null
        self._rules = rules
        self._containment = containment
        self._consoles = consoles
        self._scratch_root = scratch_root
        self._host = host

    def start(self, task: Task) -> int:
        """The pid of its command. Raises `Refused` or `CannotRun`; after the latter its scratch directory
        is left to its behaviours."""
        env, spec = task.env, task.spec
        job, attempt, _ = task.key
        words = words_of(task.grant.cmd, pipefail=spec.pipefail)
        cwd, actions_at = env.cwd, task.pipes.actions_at
        files: OutputFiles | None = None
        allocation = task.grant.allocation
        pid = 0
        if env.behaves or self._rules.current.epilogue:
            task.plain = False
        try:
            if spec.stdout or spec.stderr:
                files = OutputFiles(spec, task.grant, host=self._host, pipes=task.pipes, null=self._null)
                actions_at = files.actions_at
            if spec.scratch:
                task.scratch = Scratch(self._scratch_root, job, attempt)
                task.plain = False
                cwd = os.fsencode(task.scratch.path)
                env.in_scratch(task.scratch)
            if allocation is not None and allocation.nodes:
                task.nodefile = nodefile_path(self._scratch_root, job, attempt)
                task.plain = False
                write_nodefile(task.nodefile, allocation)
            if spec.interactive:
                actions_at = self._consoles.make(task)
            groups = self._containment.first(task) if self._rules.contain_first else ()
            # What joins a group of some cores by itself need not be bound as well, which costs more.
            with on_its_cores(None if task.fence is not None and task.fence.keeps else task.share):
                pid = start(words, env, actions_at, cwd=cwd, cgroups=groups)
            self._containment.started(task, pid, groups)
        except (OSError, Refused) as why:
            self._containment.clean_up(task)
            if isinstance(why, OSError):
                what = "write a nodefile" if task.nodefile else "make a scratch directory"
                raise Refused(f"cannot {what}: {why}") from None
            raise
        finally:
            if files is not None:
                files.close()
            if task.console is not None:
                self._consoles.began(task, started=pid > 0)
        if spec.walltime_s is not None:
            task.deadline = time.monotonic() + spec.walltime_s
        return pid
