"""The runner's loop: take leases, start them in seats, see them end, survive the manager.

One thread, one `epoll`. Whatever happens on the way of a short job is done here with as few system
calls as possible; everything rarer is in the modules it calls. It never decides what should run.
"""

from __future__ import annotations

import os
import resource
import select
import signal
import time

from rota.core.job import Outcome
from rota.core.leases import Finished
from rota.runner import journal, libc, procfs
from rota.runner.behaviours import Behaviours
from rota.runner.cgroup import Cgroups
from rota.runner.contact import Contact
from rota.runner.endings import Endings
from rota.runner.environment import Catalogue
from rota.runner.identity import Identity
from rota.runner.journal import Contained, Intent, Journal, Key, Over, Void
from rota.runner.linger import Linger
from rota.runner.link import Dial
from rota.runner.live import Followers
from rota.runner.log import say, say_exception
from rota.runner.orders import Orders
from rota.runner.output import Capture
from rota.runner.process import CannotRun, Refused, start_shell
from rota.runner.seats import Line, Pipes, Seat, Seating
from rota.runner.segments import Segments
from rota.runner.special import Special
from rota.runner.task import Task
from rota.runner.verdict import failed_to_start, judge, quiet_success
from rota.runner.watchdog import Watchdog
from rota.wire import messages as m

_READ = 65536
_MAX_READS = 16
_SPARE_PIPES = 64
_FIRST_BACKOFF_S = 0.1
_MAX_BACKOFF_S = 5.0
_SIGNALS = (signal.SIGCHLD, signal.SIGTERM)
_SIGINFO = 128  # bytes of one signal read from a signalfd
_WNOHANG = os.WNOHANG


class Agent:
    """All state of a runner process. `run` returns when it is time to exit."""

    def __init__(self, dial: Dial, root: str, *, ticket: str = "", linger_s: float | None = None) -> None:
        root = os.path.abspath(root)
        libc.become_subreaper()
        self.now = time.monotonic()
        self.identity = Identity(root)
        home = os.path.dirname(root)
        self.scratch_root = f"{home}/scratch"
        self.journal = Journal(self.identity.directory, self.identity.began())
        self.segments = Segments(f"{home}/output", self.identity.id)
        self.seating = Seating()
        self.cgroups = Cgroups(self.identity.id)
        self.rules = m.Rules(15.0, 7 * 86400.0, 5.0, 16 * 1024 * 1024, "auto")

        self.tasks: dict[Key, Task] = {}
        self.by_pid: dict[int, Task] = {}  #: tasks whose first process has not been reaped
        self.begun: list[Task] = []  #: started, and not yet written up
        self.quiet: list[Task] = []  #: ended with nothing to say, and not yet written up
        self.endings = Endings(self)
        self.watchdog = Watchdog(self)
        self.followers = Followers(self)
        self.catalogue = Catalogue(self.scratch_root)
        self.orders = Orders(self)

        self.ticket = ticket  #: by which the pool that asked for this runner knows it
        self.worked_at = self.now  #: when a job last ended here
        self._linger = Linger(self, linger_s)
        self._poll = select.epoll()
        self.contact = Contact(self, dial, self._poll)
        self.outbox = self.contact.outbox
        self._null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        self.behaviours = Behaviours(self, self._null)
        self._special = Special(self, self._null)
        self._streams: dict[int, Pipes] = {}
        self._spare: list[Pipes] = []
        self._signals = -1
        self._children = procfs.OwnChildren()
        self.dirty: dict[Line, None] = {}  #: lines with a free seat

        self._due = 0.0
        self.retry_starts_at = 0.0
        self._backoff_s = _FIRST_BACKOFF_S
        self.done = False
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
        for fd, _ in self._poll.poll(wait if wait > 0 else 0, 256):
            if fd == self._signals:
                signalled = True
            elif fd == contact.fd:
                self.now = time.monotonic()
                contact.readable()
            else:
                self._on_output(fd)
        self.now = now = time.monotonic()
        if signalled:
            self._on_signals()
        if self.dirty:
            self._fill()
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
        if self.retry_starts_at > now:
            self.due(self.retry_starts_at)
        self.orders.tick(now)
        self._linger.tick(now)

    def _close(self) -> None:
        self.endings.close()
        self.write_up()
        try:
            self.journal.flush()
            if self.contact.outbox.clear and self.contact.settled:
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
        while by_pid or orphans or not ended:
            try:
                pid, status, usage = os.wait4(-1, _WNOHANG)
            except ChildProcessError:
                break
            if not pid:
                break
            task = by_pid.pop(pid, None)
            if task is None:
                self.endings.orphan_reaped(pid, usage)
                disturbed = True
                continue
            task.status = status
            task.usage = usage
            ended.append(task)
        if not ended:
            if disturbed and self.endings.lingering:
                self.endings.check(self.now)
            return
        # Nothing but first processes of other tasks (and known orphans) among our children: everything
        # these tasks started is gone too, and what they wrote is in the pipes.
        if self.all_children_known():
            self._collect()
            for task in ended:
                if orphans and self.endings.has_orphans(task):
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
        return self._children.count() == len(self.by_pid) + len(self.endings.family.orphans)

    def _collect(self) -> None:
        """Read whatever is in any pipe now."""
        streams = self._streams
        for fd, _ in self._poll.poll(0, max(256, 2 * len(streams))):
            if fd in streams:
                self._on_output(fd)

    def _finish_quietly(self, task: Task) -> None:
        """A task that went well and said nothing: its seat takes the next, the writing waits."""
        task.over = True
        task.ended_at = time.time()
        self.quiet.append(task)
        del self.tasks[task.key]
        seat = task.seat
        if not self.retry_starts_at:
            following = self.seating.take(seat.line)
            if following is not None:
                self._try(seat, following)
                return
        self._vacate(seat)

    def finish(self, task: Task) -> None:
        """Nothing of this task is left: keep its output, see to its behaviours, then its end is told."""
        if task.doubtful:
            self._drain(task.pipes)
        outcome: Outcome | None
        if task.afterwards is not None:
            outcome = self.behaviours.proceed(task, task.afterwards)
        else:
            outcome = judge(task, self.endings.sampler, self.segments)
            if task.env.behaves:
                outcome = self.behaviours.begin(task, outcome)
        if outcome is not None:
            self._conclude(task, outcome)

    def _conclude(self, task: Task, outcome: Outcome) -> None:
        """Journal and report the end of a task, free its seat."""
        seat, pipes = task.seat, task.pipes
        task.over = True
        self._record_end(task.key, seat, outcome)
        self.tasks.pop(task.key, None)
        if self.followers:
            self.followers.ended(task)
        pipes.task = None
        if task.doubtful:
            self._discard(pipes)
            seat.pipes = None
        self.endings.clean_up(task)
        self._vacate(seat)

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

    # -------------------------------------------------------------- output

    def _on_output(self, fd: int) -> None:
        pipes = self._streams.get(fd)
        if pipes is None:
            return
        task = pipes.task
        for _ in range(_MAX_READS):
            try:
                data = os.read(fd, _READ)
            except BlockingIOError:
                return
            if task is not None:
                task.plain = False
                if task.afterwards is not None:
                    task.afterwards.said.add(data)
                elif fd == pipes.out:
                    if task.out is None:
                        task.out = Capture(self.rules.keep_output)
                    task.out.add(data)
                else:
                    if task.err is None:
                        task.err = Capture(self.rules.keep_output)
                    task.err.add(data)
            if len(data) < _READ:
                break
        if self.followers and task is not None:
            self.followers.wrote(task, self.now)

    def _drain(self, pipes: Pipes) -> None:
        """A pipe holds at most its capacity, which is less than this reads."""
        self._on_output(pipes.out)
        self._on_output(pipes.err)

    def _pipes(self) -> Pipes:
        if self._spare:
            return self._spare.pop()
        try:
            pipes = Pipes(self._null)
        except OSError:
            _raise_file_limit()
            pipes = Pipes(self._null)
        for fd in (pipes.out, pipes.err):
            self._poll.register(fd, select.EPOLLIN)
            self._streams[fd] = pipes
        return pipes

    def clean_pipes(self, task: Task) -> Pipes:
        """Pipes that nobody but the next process of this task can write to. Raises `OSError`."""
        if task.doubtful:
            fresh = self._pipes()
            self._discard(task.pipes)
            task.pipes = task.seat.pipes = fresh
            task.doubtful = False
        return task.pipes

    def _discard(self, pipes: Pipes) -> None:
        for fd in (pipes.out, pipes.err):
            self._poll.unregister(fd)
            del self._streams[fd]
        pipes.close()

    # -------------------------------------------------------------- seats are filled

    def _vacate(self, seat: Seat) -> None:
        self.worked_at = self.now
        seat.line.free.append(seat)
        self.dirty[seat.line] = None

    def _fill(self) -> None:
        """Start the leases of lowest rank in the free seats, and give back seats without a lease."""
        if self.now < self.retry_starts_at:
            self.due(self.retry_starts_at)
            return
        dirty, self.dirty = self.dirty, {}
        for line in dirty:
            while line.free:
                task = self.seating.take(line)
                if task is None:
                    self._close_seats(line)
                    break
                if not self._try(line.free.pop(), task):
                    self.dirty.update(dirty)
                    return
        if self.retry_starts_at:
            self.retry_starts_at, self._backoff_s = 0.0, _FIRST_BACKOFF_S

    def _close_seats(self, line: Line) -> None:
        for seat in self.seating.close(line):
            self.outbox.closed.append(seat.id)
            if seat.pipes is not None:
                seat.pipes.task = None
                if len(self._spare) < _SPARE_PIPES:
                    self._spare.append(seat.pipes)
                else:
                    self._discard(seat.pipes)
                seat.pipes = None

    def _try(self, seat: Seat, task: Task) -> bool:
        """Execute a lease. False: not now; it was handed back and nothing is started for a while."""
        try:
            self._start(seat, task)
        except Refused as why:
            self._refuse(seat, task.key, str(why))
            return False
        except CannotRun as why:
            self._never_began(task, failed_to_start(why, task.started_at))
        except Exception:
            say_exception(f"cannot start job {task.key[0]}")
            self._refuse(seat, task.key, "an unexpected fault")
            return False
        return True

    def _never_began(self, task: Task, outcome: Outcome) -> None:
        whole: Outcome | None = outcome
        if task.env.behaves:
            whole = self.behaviours.begin(task, outcome)
        if whole is not None:
            self._conclude(task, whole)

    def _start(self, seat: Seat, task: Task) -> None:
        task.seat = seat
        task.started_at = time.time()
        try:
            pipes = seat.pipes
            if pipes is None:
                pipes = seat.pipes = self._pipes()
            task.pipes = pipes
            self.journal.intend(task.block)
        except OSError as error:
            raise Refused(f"cannot prepare: {error}") from None
        env = task.env
        env.fill(task.job_entry, task.key[1], task.lease_entry)
        if task.index_entry is not None:
            env.at_index(task.index_entry)
        if task.text is not None and not self.contain_first:
            pid = start_shell(task.text, env, pipes)
        else:
            pid = self._special.start(task)
        task.pid = pid
        task.start_time = procfs.start_time_now()
        task.began = now = time.monotonic()
        pipes.task = task
        self.tasks[task.key] = self.by_pid[pid] = task
        self.begun.append(task)
        if task.deadline is not None:
            self.due(task.deadline)
        self.endings.began(now)

    def _refuse(self, seat: Seat, key: Key, why: str) -> None:
        """Hand a lease back because nothing can be started now, and wait a little longer each time."""
        say(f"lease of job {key[0]} handed back: {why}")
        self.journal.add(Void(*key))
        self._vacate(seat)
        self.outbox.give_back(key)
        self.retry_starts_at = self.now + self._backoff_s
        self._backoff_s = min(_MAX_BACKOFF_S, self._backoff_s * 2)
        self.due(self.retry_starts_at)

    # -------------------------------------------------------------- housekeeping

    def acknowledged(self) -> None:
        """Outcomes reached the manager: the journal may be able to forget."""
        idle = not self.tasks and not self.quiet and self.outbox.clear
        if self.journal.size > (journal.COMPACT_IDLE_OVER if idle else journal.COMPACT_OVER):
            self._compact()
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
            live += [Intent(*key, task.env.scratch_goes), task.spawned()]
            if task.afterwards is not None:
                live.append(self.behaviours.ended(task, task.afterwards))
            if task.cgroup is not None:
                live.append(Contained(*key, task.cgroup.path))
        try:
            self.journal.compact(live)
        except OSError as error:
            say(f"the journal cannot be compacted: {error}")
        else:
            self.contact.compacted()


def _raise_file_limit() -> None:
    """Four descriptors a seat: many seats need more than the usual soft limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, soft * 4), hard))
