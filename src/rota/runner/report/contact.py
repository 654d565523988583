"""What this runner says to the manager and when: who it is, what it holds, what happened.

Uses `Link` and `Outbox`; hands everything about jobs to the agent. It survives any manager: when one
goes away it tries again, says again what was not acknowledged, and goes on.
"""

from __future__ import annotations

import os
import select
from typing import TYPE_CHECKING

import msgspec

from rota import __version__
from rota.core.attempts.leases import HeldLease, LeaseRef
from rota.errors import BadInput, Denied, WireError
from rota.runner import clock
from rota.runner.contain import fences
from rota.runner.end import settling
from rota.runner.identity import name_of
from rota.runner.log import say, say_exception
from rota.runner.output.shipping import Shipping
from rota.runner.report.journal import Acked
from rota.runner.report.link import MAX_DELAY_S, MOST_ENDED, Dial, Link, Lost, Outbox, plainer
from rota.wire import codec
from rota.wire.greeting import PROTOCOL, REMOVED, Failure, Hello, Welcome
from rota.wire.orders import Ack, Rules
from rota.wire.reports import Join, Report, Settle

if TYPE_CHECKING:
    from rota.runner.agent import Agent

#: Ends are told at once, but while many come not more often than this.
FLUSH_EVERY_S = 0.02
#: A start is told after this, unless its end comes first.
STARTED_AFTER_S = 0.01
FLUSH_COUNT = 64
#: What could not be settled at first is tried again after so many touches.
SETTLE_EVERY = 4
#: The agent of a node waits so long for being accepted, then tries again.
PATIENCE_S = 20.0
#: For so long an agent that was never let in goes on asking.
REFUSED_S = 10.0
#: While so many bytes wait to be sent, no more output is read from the disk.
MOST_UNSENT = 4 << 20
_NEVER = float("inf")


class Contact:
    """The runner's side of the conversation."""

    def __init__(self, agent: Agent, dial: Dial, poll: select.epoll) -> None:
        self._agent = agent
        node = agent.node
        self._link = Link(dial) if node is None else Link(dial, patience_s=PATIENCE_S, knock_s=MAX_DELAY_S)
        self._poll = poll
        self._writing = False
        self._last_report = 0.0
        self._touch_at = _NEVER
        self._dead: list[tuple[settling.Dead, Settle]] | None = None  #: None: not looked for yet
        self._settle_at = _NEVER
        self._outcomes_acked = 0  #: since the journal was compacted
        self.outbox = Outbox()
        self._shipping = None if node is None else Shipping(agent, self.send)
        self.fd = -1
        self.joined = False
        self._was_in = False
        self._deployment = ""  #: whose manager let us in; empty: none did
        self._refused_since = 0.0  #: 0: it was not
        self.report_at = _NEVER  #: when what is in the outbox must go at the latest
        self.away_since = agent.now

    @property
    def unsent(self) -> int:
        return self._link.unsent

    @property
    def settled(self) -> bool:
        """Every dead runner that was found is known to the manager."""
        return not self._dead

    # -------------------------------------------------------------- the connection

    def connect(self, now: float) -> None:
        if self._link.up or now < self._link.retry_at:
            return
        try:
            self.fd = self._link.connect(now)
        except Lost:
            return
        self._writing = False
        self._poll.register(self.fd, select.EPOLLIN)
        node, software = self._agent.node, f"rota {__version__}"
        hello = Hello(PROTOCOL, "runner", software=software)
        if node is not None:
            hello = Hello(PROTOCOL, "runner", node.token, software, node.name)
        self.send(codec.frame(hello))

    def readable(self) -> None:
        """Something happened on the connection."""
        try:
            messages = self._link.receive()
            self._link.flush()
            self._watch_writing()
        except Lost as why:
            self.lost(str(why))
            return
        for message in messages:
            match message:
                case Welcome():
                    if not self._knows(message.deployment):
                        self.lost(f"deployment {message.deployment} answers, not {self._deployment}")
                        return
                    self._on_welcome()
                case Rules():
                    self._on_rules(message)
                case Ack(seq):
                    self._on_ack(seq)
                case Failure():
                    self._take_refusal(message)
                    self.lost(f"refused: {message.message}")
                    self._consider_staying(message)
                    return
                case _:
                    try:
                        self._agent.orders.handle(message)
                    except Exception:
                        # Half of it may be done. Who joins anew says what it holds, and that is decided anew.
                        say_exception(f"{type(message).__name__} could not be done")
                        self.lost("an order could not be done")
                        return

    def lost(self, why: str) -> None:
        if not self._link.up:
            return
        say(f"connection lost: {why}")
        try:
            self._poll.unregister(self.fd)
        except OSError:
            pass
        now = self._agent.now
        self._link.close(now)
        self.fd = -1
        if self.joined:
            self.away_since = now
        self.joined = False
        self.report_at = self._touch_at = _NEVER
        self._agent.followers.lost()
        self._agent.channels.lost()
        self._agent.due(self._link.retry_at)

    def _take_refusal(self, refusal: Failure) -> None:
        """What the manager cannot take is not said again in the same words, or it would never be rid of it."""
        if refusal.code != WireError.code:
            return
        if self.joined:
            self.outbox.refused()
        elif self._dead:
            dead, told = self._dead[0]
            self._dead[0] = dead, msgspec.structs.replace(told, ended=[plainer(each) for each in told.ended])

    def _consider_staying(self, refusal: Failure) -> None:
        """The agent of a node that is one no more ends, and so does one that was never let in, after some tries.
        Whoever answers for a job stays."""
        agent = self._agent
        if agent.node is None or agent.tasks or agent.seating.waiting or not self.outbox.clear:
            return
        if refusal.code != REMOVED:
            if self._was_in or refusal.code not in (Denied.code, BadInput.code):
                return
            self._refused_since = self._refused_since or agent.now
            if agent.now < self._refused_since + REFUSED_S:
                return
        say(f"this node is not wanted: {refusal.message}" + (f"; {refusal.hint}" if refusal.hint else ""))
        agent.failed = refusal.code != REMOVED
        agent.done = True

    def send(self, frame: bytes) -> None:
        """Send if connected; what must not get lost is in the outbox."""
        if not self._link.up:
            return
        try:
            self._link.send(frame)
        except Lost as why:
            self.lost(str(why))
            return
        self._watch_writing()

    def _watch_writing(self) -> None:
        if self._link.wants_write != self._writing:
            self._writing = not self._writing
            self._poll.modify(self.fd, select.EPOLLIN | (select.EPOLLOUT if self._writing else 0))

    # -------------------------------------------------------------- joining

    def _knows(self, deployment: str) -> bool:
        """Is this the manager whose jobs we have? A copy of its home may have taken its place."""
        agent = self._agent
        busy = agent.tasks or agent.seating.waiting or not self.outbox.clear
        if busy and self._deployment not in ("", deployment):
            return False
        self._deployment = deployment
        return True

    def _on_welcome(self) -> None:
        if self._dead is None:
            self._dead = self._settle_dead(hasty=False)
        for _, message in self._dead:
            self._send_settle(message)
        agent, who = self._agent, self._agent.identity
        agent.catalogue.clear()
        agent.write_up()
        disk = os.statvfs(who.directory)
        join = Join(
            runner=who.id,
            host=who.host,
            boot_id=who.boot_id,
            pid=who.pid,
            start_time=who.start_time,
            cores=len(os.sched_getaffinity(0)),
            mem=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
            disk=disk.f_bavail * disk.f_frsize,
            held=self._held(),
            seats=list(agent.seating.seats),
            ticket=agent.ticket,
            node=None if agent.node is None else agent.node.facts(),
            leaving=agent.orders.told_to_end,
            parts=[LeaseRef(*key) for key in agent.parts.held()],
            now=clock.now(),
            tails=True,
        )
        self.send(codec.frame(join))

    def _held(self) -> list[HeldLease]:
        """All leases this runner still answers for. Those that have ended belong to it until their
        outcome is on the manager's disk: else the manager could take them for never executed."""
        agent = self._agent
        held = [HeldLease(*key, 0) for key in agent.seating.waiting]
        for key, task in agent.tasks.items():
            if task.part:
                continue
            started_at = None if task.preparing else task.started_at
            held.append(HeldLease(*key, task.seat.id, started_at, task.pid))
        held += [
            HeldLease(*key, done.seat, done.outcome.started_at, over=True)
            for key, done in self.outbox.unacked.items()
        ]
        return held

    def _settle_again(self, now: float) -> None:
        """A journal may be readable now, or a process may have ended at last."""
        self._settle_at = now + SETTLE_EVERY * self._agent.rules.touch_s
        if self._dead:
            return  # the manager has not answered to the last ones yet
        self._dead = self._settle_dead(hasty=True)
        for _, message in self._dead:
            self._send_settle(message)

    def _send_settle(self, message: Settle) -> None:
        if self._shipping is not None:
            self._shipping.send(message.ended)
        self.send(codec.frame(message))

    def _settle_dead(self, *, hasty: bool) -> list[tuple[settling.Dead, Settle]]:
        agent, who = self._agent, self._agent.identity
        if not hasty:
            fences.sweep(name_of(who.host))
        settled: list[tuple[settling.Dead, Settle]] = []
        try:
            found = settling.dead_runners(who.root, who.id, who.machine)
        except OSError:
            say_exception("cannot look for dead runners")
            return settled
        for dead in found:
            try:
                finished, whole = settling.settle(
                    dead, boot_id=who.boot_id, scratch_root=agent.scratch_root, hasty=hasty
                )
            except Exception:
                say_exception(f"runner {dead.runner} cannot be settled")
                dead.release()
                continue
            say(f"runner {dead.runner} is dead; {len(finished)} of its attempts ended")
            began = dead.story.began
            rebooted = began is not None and began.boot_id != who.boot_id
            settled.append((dead, Settle(dead.runner, finished, whole, rebooted)))
        return settled

    def _on_rules(self, rules: Rules) -> None:
        now = self._agent.now
        joins = not self.joined
        if joins:
            self.joined = self._was_in = True
            self._link.accepted()
            say("joined")
            if self._shipping is not None:
                self._shipping.send(list(self.outbox.unacked.values()))
            for frame in self.outbox.unacknowledged():
                self.send(frame)
        self._touch_at = now + rules.touch_s
        self._settle_at = now + SETTLE_EVERY * rules.touch_s
        self._agent.due(self._touch_at)
        self._agent.orders.obey(rules)
        if joins:
            self._agent.followers.joined(now)
        if self.outbox:
            self.report()

    # -------------------------------------------------------------- reports

    def consider(self, now: float) -> None:
        """Something happened: report now, or remember when."""
        agent, box = self._agent, self.outbox
        if not self.joined:
            agent.write_up()
            self._flush_journal()
        elif now >= self.report_at or box.closed:
            self.report()
        elif agent.quiet or box.ended or box.returned:
            soon = self._last_report + FLUSH_EVERY_S
            # With few leases left, seats might soon have nothing to do.
            few = len(agent.seating.waiting) <= len(agent.by_pid)
            if few or now >= soon or len(agent.quiet) >= FLUSH_COUNT:
                self.report()
            else:
                self.report_at = soon
        elif self.report_at == _NEVER:
            self.report_at = now + STARTED_AFTER_S

    def report(self) -> None:
        """Send everything that is new. What it says is in the journal first."""
        self._agent.write_up()
        self._flush_journal()
        while self.outbox.may_cut and self.joined and (self._shipping is None or self.unsent < MOST_UNSENT):
            most = MOST_ENDED
            if self._shipping is not None:
                most = self._shipping.send(self.outbox.ended[:most], most_bytes=MOST_UNSENT)
            self.send(self.outbox.cut(most))
        self._last_report = now = self._agent.now
        self.report_at = _NEVER
        self._touch_at = now + self._agent.rules.touch_s

    def _flush_journal(self) -> None:
        try:
            self._agent.journal.flush()
        except OSError as error:
            # A full disk must not keep the manager from learning of an end; the journal matters only
            # if this process dies before the acknowledgement.
            say(f"journal: {error}")

    def _on_ack(self, seq: int) -> None:
        if seq < 0:
            if self._dead:
                self._dead.pop(0)[0].remove()
            return
        outcomes = self.outbox.acknowledge(seq)
        if outcomes:
            self._outcomes_acked += outcomes
            self._agent.journal.add(Acked(self._outcomes_acked))
            self._agent.acknowledged()
        if self.outbox.careful and self.outbox:
            self.report()

    def leaving(self) -> None:
        """Nothing more should be sent: it will end when its jobs have."""
        if self.joined:
            self.send(codec.frame(Report(0, leaving=True)))

    def take_leave(self) -> None:
        """Everything is told and nothing is left. A lease that is on its way was never executed."""
        if self.joined:
            self.send(codec.frame(Settle(self._agent.identity.id)))

    def compacted(self) -> None:
        """The journal holds only outcomes that are not acknowledged."""
        self._outcomes_acked = 0

    def tick(self, now: float) -> None:
        if not self._link.up:
            self.connect(now)
            if not self._link.up:
                self._agent.due(self._link.retry_at)
        elif not self.joined and self._link.overdue(now):
            self.lost("nobody answers")
        elif now >= self._touch_at:
            self._touch_at = now + self._agent.rules.touch_s
            self.send(codec.frame(Report(0)))
        if self.joined:
            if now >= self._settle_at:
                self._settle_again(now)
            self._agent.due(self._settle_at)
        self._agent.due(self._touch_at)
