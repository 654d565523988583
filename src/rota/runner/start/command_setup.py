"""Starts commands that need more than a shell in a directory: scratch, files, a terminal, control groups.

What is made here for a task is removed by `Containment.clean_up`, or here if it could not be started now.
"""

from __future__ import annotations

import os
import time
from functools import partial

from rota.core.jobs.command import Call
from rota.launcher.base import Begun, Captured, OnTerminal, Refused, StartOrder
from rota.launcher.nodefile import nodefile_path, write_nodefile
from rota.launcher.scratch import Scratch
from rota.runner.contain.task_containment import Containment
from rota.runner.current_rules import CurrentRules
from rota.runner.end.returned import CallFile
from rota.runner.enter.consoles import Consoles
from rota.runner.launch.keeping import Keeping
from rota.runner.output.told_progress import ToldProgress
from rota.runner.start.calls import Calls, request_of
from rota.runner.start.command_words import words_of
from rota.runner.start.errands import ticket_path, write_ticket
from rota.runner.start.output_files import output_file
from rota.runner.task import Task


class CommandSetup:
    """Prepares what a command needs and starts it."""

    def __init__(
        self,
        *,
        rules: CurrentRules,
        containment: Containment,
        consoles: Consoles,
        keeping: Keeping,
        told: ToldProgress,
        calls: Calls,
        scratch_root: str,
        host: str,
    ) -> None:
        self._rules = rules
        self._containment = containment
        self._consoles = consoles
        self._keeping = keeping
        self._told = told
        self._calls = calls
        self._scratch_root = scratch_root
        self._host = host

    def start(self, task: Task) -> Begun:
        """Start its command. Raises `Refused` or `CannotRun`; after the latter its scratch directory is left to
        its behaviours."""
        env, spec = task.env, task.spec
        job, attempt, _ = task.key
        tells = partial(self._told.command, task.seat, task) if env.tells else None
        words = words_of(task.grant.cmd, pipefail=spec.pipefail, prepare=tells)
        cwd = env.cwd
        allocation = task.grant.allocation
        if env.behaves or self._rules.current.epilogue:
            task.plain = False
        try:
            if spec.scratch:
                task.scratch = Scratch(self._scratch_root, job, attempt)
                task.plain = False
                cwd = os.fsencode(task.scratch.path)
                env.in_scratch(task.scratch)
            if allocation is not None and allocation.nodes:
                task.nodefile = nodefile_path(self._scratch_root, job, attempt)
                task.plain = False
                write_nodefile(task.nodefile, allocation.nodes)
            if task.grant.errand is not None and task.grant.errand.ticket:
                task.ticket = ticket_path(self._scratch_root, task.key)
                task.plain = False
                write_ticket(task.ticket, task.grant.errand.ticket)
            groups = self._containment.first(task) if self._rules.contain_first else ()
            share, fence = task.share, task.fence
            # What joins a group of some cores by itself need not be bound as well, which costs more.
            bound = () if share is None or (fence is not None and fence.keeps) else share.bound
            stdio = self._terminal() if spec.interactive else self._output(task)
            call = task.grant.cmd if task.calls else None
            request = request_of(call) if isinstance(call, Call) else None
            order = StartOrder(task.key, "command", words, env, cwd, stdio, groups, bound, file=request)
            if task.launcher.lasting:
                self._keeping.announce(task)
            if isinstance(call, Call) and request is not None:
                task.plain = False
                begun = self._calls.start(task, call, order)
                task.call_file = CallFile(begun.fds[-1], len(request)) if begun.fds else None
            else:
                begun = task.launcher.start(order)
            self._containment.started(task, begun, groups)
        except (OSError, Refused) as why:
            self._containment.clean_up(task)
            if isinstance(why, OSError):
                what = "write a nodefile" if task.nodefile else "make a scratch directory"
                what = "write a ticket" if task.ticket else what
                raise Refused(f"cannot {what}: {why}") from None
            raise
        if spec.interactive:
            self._consoles.began(task, begun.fds[0])
        if spec.walltime_s is not None:
            task.deadline = time.monotonic() + spec.walltime_s
        return begun

    def _output(self, task: Task) -> Captured:
        spec = task.spec
        out, err = (output_file(name, spec, task.grant, self._host) for name in (spec.stdout, spec.stderr))
        return Captured(task.pipes.held, out, err)

    def _terminal(self) -> OnTerminal:
        return OnTerminal(rows=24, cols=80)
