"""Start the command of a job that needs more than a shell in its directory: scratch, files, groups.

What is made here for a task is removed by `Endings.clean_up`, or here if it could not be started now.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from rota.runner.start.allocation import nodefile_path, on_its_cores, write_nodefile
from rota.runner.start.output_files import Files
from rota.runner.start.process import Refused, start, words_of
from rota.runner.start.scratch import Scratch

if TYPE_CHECKING:
    from rota.runner.agent import Agent
    from rota.runner.task import Task


class Special:
    """Starts tasks of an agent."""

    def __init__(self, agent: Agent, null: int) -> None:
        self._agent = agent
        self._null = null

    def start(self, task: Task) -> int:
        """The pid of its command. Raises `Refused` or `CannotRun`; after the latter its scratch directory
        is left to its behaviours."""
        agent, env, spec = self._agent, task.env, task.spec
        job, attempt, _ = task.key
        words = words_of(task.grant.cmd, pipefail=spec.pipefail)
        cwd, actions_at = env.cwd, task.pipes.actions_at
        files: Files | None = None
        allocation = task.grant.allocation
        pid = 0
        if env.behaves or agent.rules.epilogue:
            task.plain = False
        try:
            if spec.stdout or spec.stderr:
                host = agent.identity.host
                files = Files(spec, task.grant, host=host, pipes=task.pipes, null=self._null)
                actions_at = files.actions_at
            if spec.scratch:
                task.scratch = Scratch(agent.scratch_root, job, attempt)
                task.plain = False
                cwd = os.fsencode(task.scratch.path)
                env.in_scratch(task.scratch)
            if allocation is not None and allocation.nodes:
                task.nodefile = nodefile_path(agent.scratch_root, job, attempt)
                task.plain = False
                write_nodefile(task.nodefile, allocation)
            if spec.interactive:
                actions_at = agent.channels.consoles.make(task)
            groups = agent.endings.holding.first(task) if agent.contain_first else ()
            # What joins a group of some cores by itself need not be bound as well, which costs more.
            with on_its_cores(None if task.fence is not None and task.fence.keeps else task.share):
                pid = start(words, env, actions_at, cwd=cwd, cgroups=groups)
            agent.endings.holding.started(task, pid, groups)
        except (OSError, Refused) as why:
            agent.endings.clean_up(task)
            if isinstance(why, OSError):
                what = "write a nodefile" if task.nodefile else "make a scratch directory"
                raise Refused(f"cannot {what}: {why}") from None
            raise
        finally:
            if files is not None:
                files.close()
            if task.console is not None:
                agent.channels.consoles.began(task, started=pid > 0)
        if spec.walltime_s is not None:
            task.deadline = time.monotonic() + spec.walltime_s
        return pid


def fill_environment(task: Task) -> None:
    """Make the variables of its specification those of this task."""
    env = task.env
    env.fill(task.job_entry, task.key[1], task.lease_entry)
    if task.index_entry is not None:
        env.at_index(task.index_entry)
    env.on_cores(None if task.share is None else task.share.entry)
    if task.scratch is not None:
        env.in_scratch(task.scratch)
