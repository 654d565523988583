"""The conversation with the manager: join, report, heartbeat, and hand its orders on.

When a manager goes away the runner keeps its jobs, reconnects, and repeats what was not acknowledged.
"""

from __future__ import annotations

import os

from rota import __version__
from rota.core.attempts.leases import HeldLease, LeaseRef
from rota.errors import BadInput, Denied, WireError
from rota.runner import clock
from rota.runner.current_rules import CurrentRules
from rota.runner.identity import RunnerIdentity
from rota.runner.log import say, say_exception
from rota.runner.loop import Loop
from rota.runner.node import Node
from rota.runner.output.followers import Followers
from rota.runner.output.shipping import Shipping
from rota.runner.report.connection import Connection
from rota.runner.report.dead_runners import DeadRunners
from rota.runner.report.journal import Journal
from rota.runner.report.leaving import Leaving
from rota.runner.report.orders import Orders
from rota.runner.report.outbox import MOST_ENDED, Outbox
from rota.runner.report.records import TaskRecords
from rota.runner.start.disk_room import DiskRoom
from rota.runner.start.environment import Catalogue
from rota.runner.start.parts import Parts
from rota.runner.start.seats import Seating
from rota.runner.task_table import TaskTable
from rota.wire import codec
from rota.wire.greeting import PROTOCOL, REMOVED, TICKET, Failure, Hello, Welcome
from rota.wire.orders import Ack, Rules
from rota.wire.reports import Join, Report, Settle

#: Ends are reported at once, but not more often than this.
FLUSH_EVERY_S = 0.02
#: A start is reported after this, unless its end comes first.
STARTED_AFTER_S = 0.01
FLUSH_COUNT = 64
#: Settling is tried again after this many heartbeats.
SETTLE_EVERY = 4
#: An agent that was never accepted keeps trying for this long.
REFUSED_S = 10.0
#: With this many bytes unsent, no more output is read from disk.
MOST_UNSENT = 4 << 20
_NEVER = float("inf")


class Contact:
    """The runner's side of the conversation."""

    def __init__(
        self,
        *,
        loop: Loop,
        tasks: TaskTable,
        rules: CurrentRules,
        journal: Journal,
        outbox: Outbox,
        records: TaskRecords,
        seating: Seating,
        catalogue: Catalogue,
        connection: Connection,
        dead: DeadRunners,
        orders: Orders,
        leaving: Leaving,
        parts: Parts,
        followers: Followers,
        disk: DiskRoom,
        identity: RunnerIdentity,
        epoch: int,
        node: Node | None,
        shipping: Shipping | None,
    ) -> None:
        """`node` and `shipping` are those of a node's agent."""
        self._loop = loop
        self._tasks = tasks
        self._rules = rules
        self._journal = journal
        self._outbox = outbox
        self._records = records
        self._seating = seating
        self._catalogue = catalogue
        self._connection = connection
        self._dead = dead
        self._orders = orders
        self._leaving = leaving
        self._parts = parts
        self._followers = followers
        self._disk = disk
        self._identity = identity
        self._epoch = epoch
        self._node = node
        self._shipping = shipping
        self._last_report = 0.0
        self._heartbeat_at = _NEVER
        self._settle_at = _NEVER
        self._deployment = ""  #: of the manager that accepted this runner; empty: none did
        self._refused_since = 0.0  #: 0: not refused
        self.report_at = _NEVER  #: when the outbox must be sent at the latest

    # -------------------------------------------------------------- the connection

    def _connect(self, now: float) -> None:
        connection, node = self._connection, self._node
        if not connection.open(now):
            self._loop.due(connection.retry_at)
            return
        software = f"rota {__version__}"
        hello = Hello(PROTOCOL, "runner", software=software)
        if node is not None:
            hello = Hello(PROTOCOL, "runner", node.token, software, node.name, key=node.key)
        connection.send(codec.frame(hello))

    def readable(self) -> None:
        """Something happened on the connection."""
        connection = self._connection
        for message in connection.receive():
            match message:
                case Welcome():
                    if not self._knows(message.deployment):
                        connection.lost(f"deployment {message.deployment} answers, not {self._deployment}")
                        return
                    self._on_welcome()
                case Rules():
                    self._on_rules(message)
                case Ack(seq):
                    self._on_ack(seq)
                case Failure():
                    self._take_refusal(message)
                    connection.lost(f"refused: {message.message}")
                    self._consider_staying(message)
                    return
                case _:
                    try:
                        self._orders.handle(message)
                    except Exception:
                        # It may be half done. Joining again reports what we hold, so the manager decides again.
                        say_exception(f"{type(message).__name__} failed")
                        connection.lost("an order failed")
                        return

    def lost(self) -> None:
        """The connection is gone."""
        self.report_at = self._heartbeat_at = _NEVER

    def _take_refusal(self, refusal: Failure) -> None:
        """The manager cannot decode a report: repeat it in simpler form, or it would be refused for ever."""
        if refusal.code != WireError.code:
            return
        if self._connection.joined:
            self._outbox.refused()
        else:
            self._dead.refused()

    def _consider_staying(self, refusal: Failure) -> None:
        """End the agent of a node that was removed, or that was never accepted after some tries; and a runner
        whose ticket is not accepted, as happens to runners that come late. One that still answers for a job
        stays."""
        if self._node is None or self._tasks.by_key or self._seating.waiting or not self._outbox.clear:
            return
        if refusal.code not in (REMOVED, TICKET):
            if self._connection.ever_joined or refusal.code not in (Denied.code, BadInput.code):
                return
            self._refused_since = self._refused_since or self._loop.now
            if self._loop.now < self._refused_since + REFUSED_S:
                return
        what = "node" if self._node.stays else "runner"
        say(f"the manager refuses this {what}: {refusal.message}" + (f"; {refusal.hint}" if refusal.hint else ""))
        self._loop.failed = refusal.code not in (REMOVED, TICKET)
        self._loop.done = True

    # -------------------------------------------------------------- joining

    def _knows(self, deployment: str) -> bool:
        """Do our jobs belong to this manager? A copy of its home may have taken its place."""
        busy = self._tasks.by_key or self._seating.waiting or not self._outbox.clear
        if busy and self._deployment not in ("", deployment):
            return False
        self._deployment = deployment
        return True

    def _on_welcome(self) -> None:
        for message in self._dead.first():
            self._send_settle(message)
        own = self._identity
        self._catalogue.clear()
        self._records.write_up()
        disk = os.statvfs(own.directory)
        join = Join(
            runner=own.id,
            host=own.host,
            boot_id=own.boot_id,
            pid=own.pid,
            start_time=own.start_time,
            cores=len(os.sched_getaffinity(0)),
            mem=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
            disk=disk.f_bavail * disk.f_frsize,
            held=self._held(),
            seats=list(self._seating.seats),
            node=None if self._node is None else self._node.facts(),
            leaving=self._leaving.told_to_end,
            parts=[LeaseRef(*key) for key in self._parts.held()],
            now=clock.now(),
            tails=True,
            epoch=self._epoch,
            left_s=None if self._node is None else self._node.left_s,
            machine="" if self._node is None else self._node.machine,
            unfit=self._disk.unfit,
        )
        self._connection.send(codec.frame(join))

    def _held(self) -> list[HeldLease]:
        """All leases this runner still answers for. An ended one counts until its outcome is on the manager's
        disk: else the manager could take it for never executed."""
        held = [HeldLease(*key, 0) for key in self._seating.waiting]
        for key, task in self._tasks.by_key.items():
            if task.part:
                continue
            started_at = None if task.preparing else task.started_at
            held.append(HeldLease(*key, task.seat.id, started_at, task.pid))
        held += [
            HeldLease(*key, done.seat, done.outcome.started_at, over=True)
            for key, done in self._outbox.unacked.items()
        ]
        return held

    def _send_settle(self, message: Settle) -> None:
        if self._shipping is not None:
            self._shipping.send(message.ended)
        self._connection.send(codec.frame(message))

    def _on_rules(self, rules: Rules) -> None:
        now = self._loop.now
        joins = not self._connection.joined
        if joins:
            self._connection.accepted()
            say("joined")
            if self._shipping is not None:
                self._shipping.send(list(self._outbox.unacked.values()))
            for frame in self._outbox.unacknowledged():
                self._connection.send(frame)
        self._heartbeat_at = now + rules.touch_s
        self._settle_at = now + SETTLE_EVERY * rules.touch_s
        self._loop.due(self._heartbeat_at)
        self._orders.obey(rules)
        if joins:
            self._followers.joined(now)
        if self._outbox:
            self.report()

    # -------------------------------------------------------------- reports

    def consider(self, now: float) -> None:
        """Something happened: report now, or decide when to."""
        box, quiet = self._outbox, self._tasks.quiet
        if not self._connection.joined:
            self._records.write_up()
            self._journal.flush_or_log()
        elif now >= self.report_at or box.closed:
            self.report()
        elif quiet or box.ended or box.returned:
            soon = self._last_report + FLUSH_EVERY_S
            # With few leases left, seats might soon have nothing to do.
            few = len(self._seating.waiting) <= len(self._tasks.by_pid)
            if few or now >= soon or len(quiet) >= FLUSH_COUNT:
                self.report()
            else:
                self.report_at = soon
        elif self.report_at == _NEVER:
            self.report_at = now + STARTED_AFTER_S

    def report(self) -> None:
        """Send everything that is new, after it is in the journal."""
        self._records.write_up()
        self._journal.flush_or_log()
        box, connection, shipping = self._outbox, self._connection, self._shipping
        while box.may_cut and connection.joined and (shipping is None or connection.unsent < MOST_UNSENT):
            most = MOST_ENDED
            if shipping is not None:
                most = shipping.send(box.ended[:most], most_bytes=MOST_UNSENT)
            connection.send(box.cut(most))
        self._last_report = now = self._loop.now
        self.report_at = _NEVER
        self._heartbeat_at = now + self._rules.current.touch_s

    def _on_ack(self, seq: int) -> None:
        if seq < 0:
            self._dead.acknowledged()
            return
        outcomes = self._outbox.acknowledge(seq)
        if outcomes:
            self._records.acknowledged(outcomes)
            if self._leaving.leaving:
                self._loop.due(self._loop.now)
        if self._outbox.careful and self._outbox:
            self.report()

    def take_leave(self) -> bool:
        """If everything is reported, say goodbye: a lease that is still on its way was never executed."""
        if not self._outbox.clear or self._dead.unacked:
            return False
        if self._connection.joined:
            self._connection.send(codec.frame(Settle(self._identity.id)))
        return True

    def tick(self, now: float) -> None:
        connection = self._connection
        if not connection.up:
            self._connect(now)
        elif connection.overdue(now):
            connection.lost("no answer from the manager")
        elif now >= self._heartbeat_at:
            self._heartbeat_at = now + self._rules.current.touch_s
            connection.send(codec.frame(Report(0)))
        if connection.joined:
            if now >= self._settle_at:
                self._settle_at = now + SETTLE_EVERY * self._rules.current.touch_s
                for message in self._dead.again():
                    self._send_settle(message)
            self._loop.due(self._settle_at)
        self._loop.due(self._heartbeat_at)
