"""The runner's loop: take leases, have them started in seats, see them end, survive the manager.

One thread, one `epoll`. On the way of a short job (`Beginnings`, then here) as few system calls are made as
possible; everything rarer is in the other modules. It never decides what should run.
"""

from __future__ import annotations

import os
import select
import signal
import time

from rota.core.attempts.leases import Finished
from rota.core.jobs.job import Outcome
from rota.runner import clock, libc
from rota.runner.contain import procfs
from rota.runner.contain.fences import Fences
from rota.runner.contain.suspension import Pausing
from rota.runner.end.behaviours import Behaviours
from rota.runner.end.ending import Endings
from rota.runner.end.verdict import judge, quiet_success
from rota.runner.end.walltime_warnings import Warnings
from rota.runner.end.watchdog import Watchdog
from rota.runner.enter.channels import Channels
from rota.runner.enter.relay import Relay
from rota.runner.identity import Identity
from rota.runner.log import say, say_exception
from rota.runner.node import Node
from rota.runner.output.followers import Followers
from rota.runner.output.segments import Segments
from rota.runner.output.streams import Streams
from rota.runner.report import journal
from rota.runner.report.contact import Contact
from rota.runner.report.journal import Contained, Intent, Journal, Key, Over, Preparing
from rota.runner.report.linger import Linger
from rota.runner.report.link import Dial
from rota.runner.report.orders import Orders
from rota.runner.start.environment import Catalogue
from rota.runner.start.hooks import Hooks
from rota.runner.start.parts import Parts
from rota.runner.start.seats import Seating
from rota.runner.start.starting import Beginnings
from rota.runner.task import Seat, Task
from rota.wire.orders import Rules

_SIGNALS = (signal.SIGCHLD, signal.SIGTERM)
_SIGINFO = 128  # bytes of one signal read from a signalfd
_WNOHANG = os.WNOHANG


class Agent:
    """All state of a runner process. `run` returns when it is time to exit."""

    def __init__(
        self, dial: Dial, root: str, *, ticket: str = "", linger_s: float | None = None, node: Node | None = None
    ) -> None:
        root = os.path.abspath(root)
        libc.become_subreaper()
        self.now = time.monotonic()
        self.node = node  #: whose agent it is, if it is one
        self.identity = Identity(root, host="" if node is None else node.name)
        home = os.path.dirname(root)
        self.scratch_root = f"{home}/scratch"
        self.journal = Journal(self.identity.directory, self.identity.began())
        self.segments = Segments(f"{home}/output", self.identity.id)
        self.seating = Seating()
        self.fences = Fences(self.identity.id)
        self.rules = Rules(15.0, 7 * 86400.0, 5.0, 16 * 1024 * 1024, "auto")

        self.tasks: dict[Key, Task] = {}
        self.by_pid: dict[int, Task] = {}  #: tasks whose first process has not been reaped
        self.begun: list[Task] = []  #: started, and not yet written up
        self.quiet: list[Task] = []  #: ended with nothing to say, and not yet written up
        self.endings = Endings(self)
        self.watchdog = Watchdog(self)
        self.followers = Followers(self, home)
        self.catalogue = Catalogue(self.scratch_root)
        self.orders = Orders(self)
        self.parts = Parts(self)
        self.pausing = Pausing(self)
        self.warnings = Warnings(self)

        self.ticket = ticket  #: by which the pool that asked for this runner knows it
        self.worked_at = self.now  #: when a job last ended here
        self._linger = Linger(self, linger_s)
        self._poll = select.epoll()
        self.contact = Contact(self, dial, self._poll)
        self.outbox = self.contact.outbox
        self.channels = Channels(self, self._poll)
        self.relay = Relay(self, self._poll)
        self.catalogue.more[b"ROTA_NODE"] = os.fsencode(self.identity.host)
        self.catalogue.more[b"ROTA_RELAY"] = os.fsencode(self.relay.path)
        null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        self.streams = Streams(self, self._poll, null)
        self.beginnings = Beginnings(self, null)
        self.behaviours = Behaviours(self, null)
        self.hooks = Hooks(self, null)
        self.endings.family.others = self.hooks.running
        self._signals = -1
        self._children = procfs.OwnChildren()

        self._due = 0.0
        self.done = False
        self.failed = False  #: has it ended for nothing?
        self.contain_first = False  #: every job must be in its control groups from its first moment

    # -------------------------------------------------------------- the loop

    def run(self) -> None:
        """Until there is nothing left to do here."""
        for number in (signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        self._signals = libc.signal_fd(_SIGNALS)
        self._poll.register(self._signals, select.EPOLLIN)
        say(f"runner {self.identity.id} begins")
        failures = 0
        while not self.done:
            try:
                self._turn()
                failures = 0
            except Exception:
                # A fault in the handling of one thing must not end the jobs of others.
                say_exception("unexpected")
                failures += 1
                if failures > 10:
                    time.sleep(0.2)
        say(f"runner {self.identity.id} ends")
        self._close()

    def _turn(self) -> None:
        contact = self.contact
        wait = min(self._due, contact.report_at) - time.monotonic()
        signalled = False
        for fd, events in self._poll.poll(wait if wait > 0 else 0, 256):
            if fd == self._signals:
                signalled = True
            elif fd == contact.fd:
                self.now = time.monotonic()
                contact.readable()
            elif fd in self.channels.by_fd:
                self.channels.ready(fd, events)
            else:
                self.streams.readable(fd)
        self.now = now = time.monotonic()
        if signalled:
            self._on_signals()
        if self.beginnings.dirty:
            self.beginnings.fill()
        if self.begun or self.quiet or self.outbox:
            contact.consider(now)
        if now >= self._due:
            self._tick(now)

    def due(self, at: float) -> None:
        """Look after things no later than this (monotonic) time."""
        if at < self._due:
            self._due = at

    def _tick(self, now: float) -> None:
        """Everything that has its time. Each part says again when it wants to be called."""
        self._due = now + 60.0
        self.contact.tick(now)
        self.endings.tick(now)
        self.watchdog.tick(now)
        self.followers.tick(now)
        self.beginnings.tick(now)
        self.channels.tick(now)
        self.hooks.tick(now)
        self.parts.tick(now)
        self.warnings.tick(now)
        self.orders.tick(now)
        self._linger.tick(now)

    def _close(self) -> None:
        self.relay.close()
        self.endings.close()
        self.write_up()
        try:
            self.journal.flush()
            if self.contact.outbox.clear and self.contact.settled:
                self.contact.take_leave()
                self.identity.remove()
        except OSError as error:
            say(f"while leaving: {error}")

    # -------------------------------------------------------------- processes end

    def _on_signals(self) -> None:
        data = os.read(self._signals, 16 * _SIGINFO)
        for at in range(0, len(data), _SIGINFO):
            if int.from_bytes(data[at : at + 4], "little") == signal.SIGTERM:
                self.orders.terminate()
        self._reap()

    def _reap(self) -> None:
        by_pid = self.by_pid
        orphans = self.endings.family.orphans
        ended: list[Task] = []
        disturbed = False
        while by_pid or orphans or not ended or self.hooks.running:
            try:
                pid, status, usage = os.wait4(-1, _WNOHANG)
            except ChildProcessError:
                break
            if not pid:
                break
            task = by_pid.pop(pid, None)
            if task is None:
                if not self.hooks.reaped(pid, status):
                    self.endings.orphan_reaped(pid, status, usage)
                disturbed = True
                continue
            task.status = status
            task.usage = usage
            ended.append(task)
            if orphans:
                self.channels.job_ended(task)
        if not ended:
            if disturbed and self.endings.lingering:
                self.endings.check(self.now)
            return
        # Nothing but first processes of other tasks (and known orphans) among our children: everything
        # these tasks started is gone too, and what they wrote is in the pipes.
        if self.all_children_known():
            self.streams.collect()
            for task in ended:
                if (orphans and self.endings.has_orphans(task)) or (
                    task.fence is not None and not task.fence.empty()
                ):
                    self.endings.linger(task)
                elif task.plain and not task.status and not self.followers:
                    self._finish_quietly(task)
                else:
                    self.finish(task)
        else:
            for task in ended:
                self.endings.linger(task)
        if self.endings.lingering:
            self.endings.check(self.now)

    def all_children_known(self) -> bool:
        """Are there no other children than first processes of tasks and known orphans?"""
        known = len(self.by_pid) + len(self.endings.family.orphans) + len(self.hooks.running)
        return self._children.count() == known

    def _finish_quietly(self, task: Task) -> None:
        """A task that went well and said nothing: its seat takes the next, the writing waits."""
        task.over = True
        task.ended_at = clock.now()
        self.quiet.append(task)
        del self.tasks[task.key]
        self.beginnings.follow(task.seat)

    def finish(self, task: Task) -> None:
        """Nothing of this task is left: keep its output, see to its behaviours, then its end is told."""
        if task.part:
            self.parts.emptied(task)
            return
        if task.doubtful:
            self.streams.drain(task.pipes)
        if self.followers and not self.followers.may_end(task):
            return
        if task.console is not None:
            self.channels.consoles.last_words(task)
        outcome: Outcome | None
        if task.afterwards is not None:
            outcome = self.behaviours.proceed(task, task.afterwards)
        else:
            outcome = judge(task, self.endings.sampler, self.segments)
            if task.env.behaves:
                outcome = self.behaviours.begin(task, outcome)
        if outcome is not None:
            self.conclude(task, outcome)

    def conclude(self, task: Task, outcome: Outcome) -> None:
        """A task has ended like this: after the site's epilogue, if there is one, that is told."""
        if self.rules.epilogue:
            self.hooks.conclude(task, outcome)
        else:
            self.close_task(task, outcome)

    def close_task(self, task: Task, outcome: Outcome) -> None:
        """Journal and report the end of a task, free its seat."""
        seat, pipes = task.seat, task.pipes
        task.over = True
        self._record_end(task.key, seat, outcome)
        self.tasks.pop(task.key, None)
        if self.followers or task.out is not None or task.err is not None:
            self.followers.ended(task, outcome)
        if task.console is not None:
            self.channels.consoles.concluded(task, outcome)
        pipes.task = None
        if task.doubtful:
            self.streams.discard(pipes)
            seat.pipes = None
        self.endings.clean_up(task)
        if task.still_since is not None:
            self.beginnings.close(seat)
        else:
            self.beginnings.vacate(seat)

    def _record_end(self, key: Key, seat: Seat, outcome: Outcome) -> None:
        finished = Finished(key[0], key[1], key[2], seat.id, outcome)
        self.journal.add(Over(finished))
        self.outbox.end(key, finished)

    def write_up(self) -> None:
        """Put what has happened since the last time into the journal's buffer and the outbox.

        For short jobs this is done for many at once: it costs much less than after each.
        """
        for task in self.begun:
            if not task.over:
                self.journal.add(task.spawned())
                self.outbox.started.append(task)
        self.begun.clear()
        for task in self.quiet:
            self._record_end(task.key, task.seat, quiet_success(task))
        self.quiet.clear()

    # -------------------------------------------------------------- housekeeping

    def acknowledged(self) -> None:
        """Outcomes reached the manager: the journal may be able to forget."""
        idle = not self.tasks and not self.quiet and self.outbox.clear
        if self.journal.size > (journal.COMPACT_IDLE_OVER if idle else journal.COMPACT_OVER):
            self._compact()
        if self.node is not None:
            self.segments.forget({done.outcome.segment for done in self.outbox.unacked.values()})
        if idle:
            os.chdir("/")  # keep no job's directory busy
        if self.orders.leaving:
            self.due(self.now)

    def _compact(self) -> None:
        self.write_up()
        live: list[journal.Record] = []
        for key, done in self.outbox.unacked.items():
            live += [Intent(*key), Over(done)]
        for key, task in self.tasks.items():
            goes = task.spec.scratch if task.part else task.env.scratch_goes
            live += [Intent(*key, goes, task.part), *([task.spawned()] if task.pid else [])]
            if task.preparing:
                live.append(Preparing(*key))
            if task.concluding is not None:
                live.append(self.hooks.ended(task, task.concluding))
            elif task.afterwards is not None:
                live.append(self.behaviours.ended(task, task.afterwards))
            if task.fence is not None:
                live.append(Contained(*key, task.fence.record()))
        try:
            self.journal.compact(live)
        except OSError as error:
            say(f"the journal cannot be compacted: {error}")
        else:
            self.contact.compacted()
