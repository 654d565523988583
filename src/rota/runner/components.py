"""The one place where the components of a runner are made and given to each other."""

from __future__ import annotations

import os
from collections.abc import Callable

from rota.launcher import libc
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
from rota.runner.launch.keeping import Keeping
from rota.runner.launch.place import Place
from rota.runner.loop import Loop
from rota.runner.node import Node
from rota.runner.output.followers import Followers
from rota.runner.output.pipe_pool import PipePool
from rota.runner.output.segments import Segments
from rota.runner.output.shipping import Shipping
from rota.runner.output.streams import Streams
from rota.runner.output.told_progress import ToldProgress
from rota.runner.report.connection import Connection
from rota.runner.report.contact import Contact
from rota.runner.report.dead_runners import DeadRunners
from rota.runner.report.journal import Journal
from rota.runner.report.leaving import Leaving
from rota.runner.report.link import MAX_DELAY_S, Dial, Link
from rota.runner.report.orders import Orders
from rota.runner.report.outbox import Outbox
from rota.runner.report.records import TaskRecords
from rota.runner.start.ahead import LeasesAhead
from rota.runner.start.calls import Calls
from rota.runner.start.command_setup import CommandSetup
from rota.runner.start.cores import Cores
from rota.runner.start.disk_room import DiskRoom
from rota.runner.start.environment import Catalogue
from rota.runner.start.hook_process import Script
from rota.runner.start.hooks import NodeHooks
from rota.runner.start.parts import Parts
from rota.runner.start.seats import Seating
from rota.runner.start.starting import Starter
from rota.runner.task_table import TaskTable

#: The agent of a node waits this long for being accepted, then reconnects.
PATIENCE_S = 20.0


class Components:
    """All components of a runner process."""

    def __init__(
        self,
        dial: Dial,
        root: str,
        *,
        linger_s: float | None = None,
        node: Node | None = None,
        lasting: bool = False,
    ) -> None:
        """`node`: for the agent of a node, or a runner with a ticket, which leaves after `linger_s` without work.
        `lasting`: do its jobs outlive it?"""
        root = os.path.abspath(root)
        home = os.path.dirname(root)
        scratch_root = f"{home}/scratch"
        libc.become_subreaper()

        # What the components share.
        self.loop = loop = Loop()
        self.tasks = tasks = TaskTable()
        self.rules = rules = CurrentRules()
        self._place = place = Place(root, loop, tasks, host="" if node is None else node.name, lasting=lasting)
        self.identity = identity = place.identity
        self.launchers = launchers = place.launchers
        self._journal = journal = Journal(identity.directory, identity.began())
        self._outbox = outbox = Outbox(place.first_report)
        self._seating = seating = Seating(loop.now)
        segments = Segments(f"{home}/output", identity.id)
        if place.predecessor is not None:
            segments.go_on()
        if node is not None:
            segments.remove_old(root)
        catalogue = Catalogue(scratch_root)
        link = Link(dial) if node is None else Link(dial, patience_s=PATIENCE_S, knock_s=MAX_DELAY_S)
        self._connection = connection = Connection(loop, link)
        self._pool = pool = PipePool(loop.poll)
        told = ToldProgress(identity.directory, seating.seats, connection)
        # What is known of its tasks must be on file before its own journal goes.
        launchers.when_gone += [lambda _: journal.flush(), pool.forget]

        # Holding and ending tasks.
        scripts: dict[int, Script] = {}
        self._keeping = keeping = Keeping(scripts, tasks=tasks, rules=rules, journal=journal)
        family = ProcessFamily(launchers, others=scripts)
        # A node has one agent. Elsewhere other runners pick cores too, and must not all start with the first.
        alone = node is not None and node.alone
        first = 0 if alone else os.getpid()
        self.containment = containment = Containment(
            loop=loop,
            tasks=tasks,
            rules=rules,
            journal=journal,
            family=family,
            fences=Fences(identity.id, launchers=launchers),
            cores=Cores(os.sched_getaffinity(0), of_host=os.cpu_count() or 1, first=first),
            # Several runners may share an allocation of a batch system, unknown to each other.
            picks=node is None or alone,
        )
        terminator = Terminator(loop=loop, tasks=tasks, rules=rules, containment=containment)
        self.watchdog = watchdog = Watchdog(
            scratch_root, loop=loop, tasks=tasks, rules=rules, containment=containment, terminator=terminator
        )
        sampling = Sampling(
            loop=loop, tasks=tasks, rules=rules, containment=containment, watchdog=watchdog, told=told
        )
        task_signals = TaskSignals(
            loop=loop, tasks=tasks, rules=rules, containment=containment, terminator=terminator
        )

        # Output and channels.
        followers = Followers(home, loop=loop, tasks=tasks, rules=rules, connection=connection, pool=pool)
        self._streams = streams = Streams(
            loop=loop, launchers=launchers, rules=rules, pool=pool, followers=followers
        )
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
            scripts,
            loop=loop,
            tasks=tasks,
            rules=rules,
            journal=journal,
            outbox=outbox,
            seating=seating,
            containment=containment,
            keeping=keeping,
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
            launchers=launchers,
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
            loop=loop,
            tasks=tasks,
            rules=rules,
            journal=journal,
            pool=pool,
            containment=containment,
            sampling=sampling,
            keeping=keeping,
        )

        # From the end of one task to the start of the next.
        self._records = records = TaskRecords(
            launchers=launchers,
            tasks=tasks,
            journal=journal,
            outbox=outbox,
            segments=segments,
            ships=node is not None,
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
            rules=rules,
            containment=containment,
            consoles=consoles,
            keeping=keeping,
            told=told,
            calls=Calls(scripts),
            scratch_root=scratch_root,
            host=identity.host,
        )
        disk = DiskRoom(identity.directory, loop=loop, outbox=outbox)
        self._ahead = ahead = LeasesAhead(
            loop=loop,
            launchers=launchers,
            tasks=tasks,
            rules=rules,
            journal=journal,
            seating=seating,
            connection=connection,
            followers=followers,
            keeping=keeping,
            disk=disk,
            told=told,
        )
        self._starter = starter = Starter(
            loop=loop,
            launchers=launchers,
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
            keeping=keeping,
            special=special,
            disk=disk,
            ahead=ahead,
            told=told,
        )
        self._reaper = reaper = Reaper(
            loop=loop,
            launchers=launchers,
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
            starter=starter,
        )

        # The manager.
        self._leaving = leaving = Leaving(
            loop=loop,
            launchers=launchers,
            tasks=tasks,
            rules=rules,
            outbox=outbox,
            seating=seating,
            connection=connection,
            terminator=terminator,
            parts=parts,
            followers=followers,
            starter=starter,
            host=identity.host,
            node=node,
            linger_s=linger_s,
        )
        orders = Orders(
            loop=loop,
            launchers=launchers,
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
            ahead=ahead,
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
            dead=DeadRunners(identity, launchers, scratch_root=scratch_root),
            orders=orders,
            leaving=leaving,
            parts=parts,
            followers=followers,
            disk=disk,
            identity=identity,
            epoch=place.epoch,
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
            starter.tick,
            disk.tick,
            channels.tick,
            hooks.tick,
            parts.tick,
            task_signals.tick,
            leaving.tick,
        ]
        if place.predecessor is not None:
            place.take_over(
                orders,
                records,
                loop=loop,
                tasks=tasks,
                outbox=outbox,
                seating=seating,
                pool=pool,
                catalogue=catalogue,
                containment=containment,
                sampling=sampling,
                task_signals=task_signals,
                suspension=suspension,
                behaviours=behaviours,
                hooks=hooks,
                parts=parts,
                consoles=consoles,
                channels=channels,
                finisher=finisher,
                starter=starter,
                scratch_root=scratch_root,
            )
            loop.later.append(reaper.reap)
