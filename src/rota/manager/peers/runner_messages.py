"""What runners send: checked, and turned into events. What is decided for them is sent by `loop.perform`."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from rota.core import events
from rota.core.attempts.leases import Finished
from rota.core.machines.nodes import check_facts
from rota.core.world import World
from rota.errors import Denied
from rota.manager.loop import clock
from rota.manager.loop.readers import Readers
from rota.manager.output.segment_copies import SegmentCopies
from rota.manager.peers import report_checks
from rota.manager.peers.channels import ChannelRouter
from rota.manager.peers.peer import Peer
from rota.manager.peers.runners import Runners
from rota.manager.watch.tails import OutputTails
from rota.manager.watch.watches import Watches
from rota.plan.need import Need
from rota.plan.site.node_facts import NodeFacts
from rota.pools.base import DelegatedPool, Pool
from rota.runner.contain import procfs
from rota.runner.identity import name_of
from rota.store.base import Store
from rota.wire import messages as m


class RunnerMessages:
    """Checks what runners send and turns it into events."""

    def __init__(
        self,
        world: World,
        store: Store,
        runners: Runners,
        *,
        watches: Watches,
        tails: OutputTails,
        channels: ChannelRouter,
        pieces: SegmentCopies,
        pool: Pool,
        readers: Readers,
        happened: Callable[[events.Event], None],
    ) -> None:
        self._world = world
        self._store = store
        self._runners = runners
        self._watches = watches
        self._tails = tails
        self._channels = channels
        self._pieces = pieces
        self._pool = pool
        self._readers = readers
        self._happened = happened
        self._tasks: set[asyncio.Task[None]] = set()

    def received(self, peer: Peer, message: Any) -> None:
        """A message of a runner."""
        happened = self._happened
        match message:
            case m.Report() if peer.runner:
                report = report_checks.sane_report(message, runner=peer.runner, by=peer.behind_s)
                happened(
                    events.RunnerReported(
                        runner=peer.runner, seq=report.seq, started=report.started,
                        ended=self._settle_output(peer, report.ended),
                        returned=report.returned, closed=report.closed, phases=report.phases,
                        faults=report.faults, opened=report.opened, shut=report.shut, paused=report.paused,
                        leaving=report.leaving,
                    )
                )  # fmt: skip
            case m.Live():
                self._watches.printed(peer.runner, message)
            case m.LiveEnd():
                self._tails.ended(peer.runner, message)
            case m.Full() if peer.runner:
                self._asked(peer.runner, message)
            case m.Idle() if peer.runner:
                happened(events.RunnerIdled(runner=peer.runner))
            case m.Relayed(passed) if peer.runner:
                self._channels.received(peer, passed)
            case m.Join():
                self._join(peer, message)
            case m.Settle(runner, ended, whole, rebooted):
                self._may_speak_for(peer, runner)
                happened(
                    events.RunnerSettled(
                        runner=runner,
                        by_runner=self._runners.settling(peer),
                        ended=self._settle_output(peer, report_checks.sane_ends(ended, runner=runner)),
                        whole=whole,
                        rebooted=rebooted,
                    )
                )
            case m.Piece():
                self._keep_piece(peer, message)
            case _:
                raise Denied("a runner must join before it reports")

    def _asked(self, runner: str, full: m.Full) -> None:
        """A runner may ask about attempts that it runs, or ran under an earlier manager."""
        known = self._world.runners.get(runner)
        job = self._world.jobs.get(full.job)
        if known is not None and full.job in known.leases and job is not None and job.attempt == full.attempt:
            self._tails.asked(runner, full)
        elif full.held:
            task = asyncio.get_running_loop().create_task(self._offered(runner, full))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _offered(self, runner: str, full: m.Full) -> None:
        attempts = await self._readers.read(lambda: self._store.attempts(full.job))
        if any(each.number == full.attempt and each.runner == runner for each in attempts):
            self._tails.asked(runner, full)

    def _join(self, peer: Peer, join: m.Join) -> None:
        report_checks.check_join(join)
        made_for = self._made_for(join.ticket) if join.ticket else None
        node = self._node(peer, join)
        if (
            made_for is None
            and node is None
            and (join.host not in self._world.capacity or join.host in self._world.site["node"])
        ):
            raise Denied(f"host {join.host!r} belongs to no pool here", hint="add it as a node")
        if not peer.local and made_for is None and node is None:
            raise Denied("only the agent of a node may join from elsewhere", hint="start it with 'rota node run'")
        if made_for is None and self._world.runner_hosts.get(join.runner, join.host) != join.host:
            raise Denied(f"runner {join.runner} was one of another host")
        known = self._world.runners.get(join.runner)
        process = (join.boot_id, join.pid, join.start_time)
        if known is not None and known.pid and (known.boot_id, known.pid, known.start_time) != process:
            raise Denied(f"runner {join.runner} is another process")
        other = self._runners.newest(join.runner)
        if other is not None:
            other.close()
        peer.runner, peer.ticket, peer.tails = join.runner, join.ticket, join.tails
        peer.skew_s = report_checks.skew(join, clock.now())
        self._runners.joining(join.runner, peer)
        self._happened(
            events.RunnerJoined(
                runner=join.runner,
                host=join.host if made_for is None else join.runner,
                boot_id=join.boot_id,
                pid=join.pid,
                start_time=join.start_time,
                held=report_checks.sane_held(join.held, peer.behind_s),
                seats=join.seats,
                made_for=made_for,
                node=node,
                parts=join.parts,
                leaving=join.leaving,
            )
        )

    def _made_for(self, ticket: str) -> Need | None:
        """The need for which the pool asked for the runner with this ticket."""
        return self._pool.made_for(ticket) if isinstance(self._pool, DelegatedPool) else None

    def _node(self, peer: Peer, join: m.Join) -> NodeFacts | None:
        """The facts that the agent of a node reports about its host; None: it is no agent. Raises `RotaError`."""
        if peer.local or not join.node:
            return None
        world = self._world
        if join.host != peer.host:
            raise Denied(f"this is the agent of {peer.host!r}, not of {join.host!r}")
        if not re.fullmatch(rf"{re.escape(name_of(join.host))}-\d+-[0-9a-f]{{8}}", join.runner):
            raise Denied(f"no runner of {join.host!r} is called {join.runner[:100]!r}")
        if join.host in world.capacity and join.host not in world.site["node"]:
            raise Denied(f"the manager's own host is called {join.host!r}", hint="give this node another --name")
        now = world.runners.get(world.runner_at.get(join.host, ""))
        if now is not None and now.id != join.runner and now.connected and now.boot_id == join.boot_id:
            other = self._runners.newest(now.id)
            if other is not None and not other.closed:
                # If the other agent died unnoticed, its successor settles it first.
                raise Denied(
                    f"node {join.host!r} has an agent already", hint="stop it first, or use another --name"
                )
        check_facts(world, join.host, join.node)
        return join.node

    def _may_speak_for(self, peer: Peer, runner: str) -> None:
        """Raise `Denied` unless this peer may settle a dead runner: it must be on the same host."""
        known = self._world.runners.get(runner)
        if runner == peer.runner:
            return  # it leaves, and has settled its own jobs
        if peer.local:
            lives = known is not None and procfs.lives(known.pid, known.start_time)
            if self._runners.peer_of(runner) is not None and lives:  # its death may not have been noticed yet
                raise Denied(f"runner {runner} is alive and speaks for itself")
        elif not peer.host or (known is not None and known.host != peer.host):
            raise Denied("only a runner on the same host may speak for a dead one")
        elif (other := self._runners.newest(runner)) is not None:
            other.close()

    def _keep_piece(self, peer: Peer, piece: m.Piece) -> None:
        """Copy output of a node's jobs, but only of attempts that it holds a lease for."""
        key = (piece.job, piece.attempt, piece.token)
        owner = piece.segment.rpartition("-")[0]
        world, pieces = self._world, self._pieces
        if not peer.host or world.runner_hosts.get(owner) != peer.host:
            return
        if not piece.job and (known := world.runners.get(owner)) is not None:
            pieces.keep_unnamed(owner, len(known.leases), piece.segment, piece.offset, piece.data)
        elif self._leased(key, owner):
            pieces.keep(key, piece.segment, piece.offset, piece.data)
        pieces.forget(self._leased)

    def _leased(self, key: tuple[int, int, int], runner: str = "") -> bool:
        """Is this lease valid, and held by that runner?"""
        job = self._world.jobs.get(key[0])
        lease = job.lease if job is not None and job.attempt == key[1] else None
        if lease is None or lease.token != key[2] or lease.ended is not None:
            return False
        return not runner or lease.runner == runner

    def _settle_output(self, peer: Peer, ended: list[Finished]) -> list[Finished]:
        """Ends that a node reported, with what was received of their output."""
        if not peer.host:
            return ended
        return [self._settled(each) if each.outcome.out_len or each.outcome.err_len else each for each in ended]

    def _settled(self, each: Finished) -> Finished:
        outcome = self._pieces.settled((each.job, each.attempt, each.token), each.outcome)
        return each if outcome is each.outcome else replace(each, outcome=outcome)

    def parted(self, peer: Peer) -> bool:
        """A connection ended. True if its runner has no other now."""
        if not self._runners.parted(peer):
            return False
        self._tails.gone(peer.runner)
        self._happened(events.RunnerParted(runner=peer.runner))
        return True
