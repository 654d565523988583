"""The runner's loop, and the one place where its components are made and given to each other.

One thread, one `epoll`. It never decides what should run.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable

from rota.runner import libc
from rota.runner.contain.fences import Fences
from rota.runner.contain.process_family import ProcessFamily
from rota.runner.contain.suspension import Suspension
from rota.runner.contain.task_containment import Containment
from rota.runner.current_rules import CurrentRules
from rota.runner.end.behaviours import Behaviours
from rota.runner.end.finishing import Finisher
from rota.runner.end.reaping import Reaper
from rota.runner.end.sampling import Sampling
from rota.runner.end.task_signals import TaskSignals
from rota.runner.end.termination import Terminator
from rota.runner.end.watchdog import Watchdog
from rota.runner.enter.channels import JobChannels
from rota.runner.enter.consoles import Consoles
from rota.runner.enter.exec_streams import Conduits
from rota.runner.enter.relay import Relay
from rota.runner.identity import RunnerIdentity
from rota.runner.log import say, say_exception
from rota.runner.loop import Loop
from rota.runner.node import Node
from rota.runner.output.followers import Followers
from rota.runner.output.pipe_pool import PipePool
from rota.runner.output.segments import Segments
from rota.runner.output.shipping import Shipping
from rota.runner.output.streams import Streams
from rota.runner.report.connection import Connection
from rota.runner.report.contact import Contact
from rota.runner.report.dead_runners import DeadRunners
from rota.runner.report.journal import Journal
from rota.runner.report.leaving import Leaving
from rota.runner.report.link import MAX_DELAY_S, Dial, Link
from rota.runner.report.orders import Orders
from rota.runner.report.outbox import Outbox
from rota.runner.report.records import TaskRecords
from rota.runner.start.command_setup import CommandSetup
from rota.runner.start.cores import Cores
from rota.runner.start.environment import Catalogue
from rota.runner.start.hook_process import Script
from rota.runner.start.hooks import NodeHooks
from rota.runner.start.launching import Launcher
from rota.runner.start.parts import Parts
from rota.runner.start.seats import Seating
from rota.runner.task_table import TaskTable

#: The agent of a node waits this long for being accepted, then reconnects.
PATIENCE_S = 20.0
_SIGNALS = (signal.SIGCHLD, signal.SIGTERM)
_SIGINFO = 128  # bytes of one signal read from a signalfd


class Agent:
    """All components of a runner process. `run` returns when it is time to exit."""

    def __init__(
        self, dial: Dial, root: str, *, ticket: str = "", linger_s: float | None = None, node: Node | None = None
    ) -> None:
        """`node`: for the agent of a node. `ticket`: by which the pool that asked for this runner knows it."""
        root = os.path.abspath(root)
        home = os.path.dirname(root)
        scratch_root = f"{home}/scratch"
        libc.become_subreaper()
        null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)

        # What the components share.
        self.loop = loop = Loop()
        self.tasks = tasks = TaskTable()
        self.rules = rules = CurrentRules()
        self.identity = identity = RunnerIdentity(root, host="" if node is None else node.name)
        self._journal = journal = Journal(identity.directory, identity.began())
        self._outbox = outbox = Outbox()
        self._seating = seating = Seating(loop.now)
        segments = Segments(f"{home}/output", identity.id)
        catalogue = Catalogue(scratch_root)
        link = Link(dial) if node is None else Link(dial, patience_s=PATIENCE_S, knock_s=MAX_DELAY_S)
        self._connection = connection = Connection(loop, link)
        pool = PipePool(loop.poll, null)

        # Holding and ending tasks.
        scripts: dict[int, Script] = {}
        family = ProcessFamily(os.getpid(), others=scripts)
        # A node has one agent. Elsewhere other runners pick cores too, and must not all start with the first.
        first = 0 if node is not None else os.getpid()
        self.containment = containment = Containment(
            loop=loop,
            tasks=tasks,
            rules=rules,
            journal=journal,
            family=family,
            fences=Fences(identity.id),
            cores=Cores(os.sched_getaffinity(0), of_host=os.cpu_count() or 1, first=first),
            # Several runners may share an allocation of a batch system, unknown to each other.
            picks=not ticket,
        )
        terminator = Terminator(loop=loop, tasks=tasks, rules=rules, containment=containment)
        self.watchdog = watchdog = Watchdog(
            scratch_root, loop=loop, tasks=tasks, rules=rules, containment=containment, terminator=terminator
        )
        sampling = Sampling(loop=loop, tasks=tasks, rules=rules, containment=containment, watchdog=watchdog)
        task_signals = TaskSignals(
            loop=loop, tasks=tasks, rules=rules, containment=containment, terminator=terminator
        )

        # Output and channels.
        followers = Followers(home, loop=loop, tasks=tasks, rules=rules, connection=connection, pool=pool)
        self._streams = streams = Streams(loop=loop, rules=rules, pool=pool, followers=followers)
        self._conduits = conduits = Conduits(loop.poll, connection)
        consoles = Consoles(loop=loop, tasks=tasks, rules=rules, conduits=conduits, terminator=terminator)
        self._relay = relay = Relay(
            identity.directory,
            poll=loop.poll,
            connection=connection,
            conduits=conduits,
            containment=containment,
        )
        channels = JobChannels(
            loop=loop,
            tasks=tasks,
            rules=rules,
            containment=containment,
            conduits=conduits,
            consoles=consoles,
            relay=relay,
        )
        catalogue.more[b"ROTA_NODE"] = os.fsencode(identity.host)
        catalogue.more[b"ROTA_RELAY"] = os.fsencode(relay.path)

        # Before, after and beside the command of a job.
        hooks = NodeHooks(
            null,
            scripts,
            loop=loop,
            tasks=tasks,
            rules=rules,
            journal=journal,
            outbox=outbox,
            seating=seating,
            containment=containment,
            identity=identity,
            scratch_root=scratch_root,
        )
        suspension = Suspension(
            loop=loop,
            tasks=tasks,
            rules=rules,
            outbox=outbox,
            containment=containment,
            task_signals=task_signals,
            hooks=hooks,
        )
        parts = Parts(
            scratch_root,
            loop=loop,
            tasks=tasks,
            rules=rules,
            journal=journal,
            outbox=outbox,
            catalogue=catalogue,
            containment=containment,
            terminator=terminator,
            sampling=sampling,
            hooks=hooks,
            channels=channels,
        )
        behaviours = Behaviours(
            null,
            loop=loop,
            tasks=tasks,
            rules=rules,
            journal=journal,
            pool=pool,
            containment=containment,
            sampling=sampling,
        )

        # From the end of one task to the start of the next.
        self._records = records = TaskRecords(
            tasks=tasks, journal=journal, outbox=outbox, segments=segments, ships=node is not None
        )
        finisher = Finisher(
            loop=loop,
            tasks=tasks,
            rules=rules,
            records=records,
            seating=seating,
            pool=pool,
            streams=streams,
            followers=followers,
            segments=segments,
            sampler=sampling.sampler,
            containment=containment,
            consoles=consoles,
            behaviours=behaviours,
            hooks=hooks,
            parts=parts,
        )
        special = CommandSetup(
            null,
            rules=rules,
            containment=containment,
            consoles=consoles,
            scratch_root=scratch_root,
            host=identity.host,
        )
        self._launcher = launcher = Launcher(
            loop=loop,
            tasks=tasks,
            rules=rules,
            journal=journal,
            outbox=outbox,
            seating=seating,
            pool=pool,
            containment=containment,
            sampling=sampling,
            task_signals=task_signals,
            behaviours=behaviours,
            hooks=hooks,
            finisher=finisher,
            special=special,
        )
        self._reaper = reaper = Reaper(
            loop=loop,
            tasks=tasks,
            rules=rules,
            family=family,
            containment=containment,
            terminator=terminator,
            streams=streams,
            followers=followers,
            channels=channels,
            hooks=hooks,
            finisher=finisher,
            launcher=launcher,
        )

        # The manager.
        self._leaving = leaving = Leaving(
            loop=loop,
            tasks=tasks,
            rules=rules,
            outbox=outbox,
            seating=seating,
            connection=connection,
            terminator=terminator,
            parts=parts,
            followers=followers,
            launcher=launcher,
            host=identity.host,
            stays=node is not None,
            linger_s=linger_s,
        )
        orders = Orders(
            loop=loop,
            tasks=tasks,
            rules=rules,
            outbox=outbox,
            seating=seating,
            catalogue=catalogue,
            containment=containment,
            terminator=terminator,
            task_signals=task_signals,
            suspension=suspension,
            parts=parts,
            followers=followers,
            channels=channels,
            leaving=leaving,
        )
        self._contact = contact = Contact(
            loop=loop,
            tasks=tasks,
            rules=rules,
            journal=journal,
            outbox=outbox,
            records=records,
            seating=seating,
            catalogue=catalogue,
            connection=connection,
            dead=DeadRunners(identity, scratch_root),
            orders=orders,
            leaving=leaving,
            parts=parts,
            followers=followers,
            identity=identity,
            ticket=ticket,
            node=node,
            shipping=None if node is None else Shipping(segments.directory, connection.send),
        )
        connection.when_lost += [contact.lost, followers.lost, channels.lost]

        #: Called when a deadline has passed. Each sets its next deadline with `Loop.due`.
        self.ticks: list[Callable[[float], None]] = [
            contact.tick,
            terminator.tick,
            reaper.tick,
            sampling.tick,
            containment.tick,
            watchdog.tick,
            followers.tick,
            finisher.tick,
            launcher.tick,
            channels.tick,
            hooks.tick,
            parts.tick,
            task_signals.tick,
            leaving.tick,
        ]
        self._signals = -1

    @property
    def failed(self) -> bool:
        """Did the manager refuse this runner?"""
        return self.loop.failed

    def run(self) -> None:
        """Run until it is time to exit."""
        for number in (signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        self._signals = libc.signal_fd(_SIGNALS)
        self.loop.poll.register(self._signals, select.EPOLLIN)
        say(f"runner {self.identity.id} begins")
        failures = 0
        while not self.loop.done:
            try:
                self._turn()
                failures = 0
            except Exception:
                # An error in handling one event must not end other jobs.
                say_exception("unexpected")
                failures += 1
                if failures > 10:
                    time.sleep(0.2)
        say(f"runner {self.identity.id} ends")
        self._close()

    def _turn(self) -> None:
        loop, contact, tasks = self.loop, self._contact, self.tasks
        wait = min(loop.due_at, contact.report_at) - time.monotonic()
        signalled = False
        for fd, events in loop.poll.poll(wait if wait > 0 else 0, 256):
            if fd == self._signals:
                signalled = True
            elif fd == self._connection.fd:
                loop.now = time.monotonic()
                contact.readable()
            elif fd in self._conduits.by_fd:
                self._conduits.ready(fd, events)
            else:
                self._streams.readable(fd)
        loop.now = now = time.monotonic()
        if signalled:
            self._on_signals()
        if self._seating.fillable:
            self._launcher.fill()
        if tasks.begun or tasks.quiet or self._outbox:
            contact.consider(now)
        if now >= loop.due_at:
            loop.due_at = now + 60.0
            for tick in self.ticks:
                tick(now)

    def _on_signals(self) -> None:
        data = os.read(self._signals, 16 * _SIGINFO)
        for at in range(0, len(data), _SIGINFO):
            if int.from_bytes(data[at : at + 4], "little") == signal.SIGTERM:
                self._leaving.terminate()
        self._reaper.reap()

    def _close(self) -> None:
        self._relay.close()
        self.containment.close()
        self._records.write_up()
        try:
            self._journal.flush()
            if self._contact.take_leave():
                self.identity.remove()
        except OSError as error:
            say(f"while leaving: {error}")
