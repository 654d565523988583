"""What runners send: checked, and turned into events. What is decided for them is sent by `loop.perform`."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from rota.core import events
from rota.core.attempts.leases import Finished
from rota.core.events import TicketClaim
from rota.core.machines.nodes import check_facts
from rota.core.machines.provisioned_machines import is_errand, is_provisioning
from rota.core.machines.runners import SETTLED_ACK
from rota.core.world import Runner, World
from rota.errors import Denied
from rota.manager.loop import clock
from rota.manager.loop.readers import Readers
from rota.manager.output.segment_copies import SegmentCopies
from rota.manager.peers import report_checks
from rota.manager.peers.channels import ChannelRouter
from rota.manager.peers.peer import Peer
from rota.manager.peers.runners import Runners
from rota.manager.peers.tickets import Tickets
from rota.manager.watch.tails import OutputTails
from rota.manager.watch.watches import Watches
from rota.plan.site.node_facts import NodeFacts
from rota.runner import identity
from rota.runner.identity import name_of, node_of
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
        tickets: Tickets,
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
        self._tickets = tickets
        self._readers = readers
        self._happened = happened
        self._tasks: set[asyncio.Task[None]] = set()

    def received(self, peer: Peer, message: Any) -> None:
        """A message of a runner."""
        happened = self._happened
        if peer.claim is not None and not self._may_say(peer, peer.claim, message):
            return
        match message:
            case m.Report() if peer.runner:
                report = report_checks.sane_report(message, runner=peer.runner, by=peer.behind_s)
                happened(
                    events.RunnerReported(
                        runner=peer.runner, seq=report.seq, started=report.started,
                        ended=self._settle_output(peer, report.ended),
                        returned=report.returned, closed=report.closed, phases=report.phases,
                        faults=report.faults, opened=report.opened, shut=report.shut, paused=report.paused,
                        leaving=report.leaving, unfit=report.unfit,
                    )
                )  # fmt: skip
                if message.progress:
                    told = report_checks.sane_told(message.progress)
                    happened(events.JobsProgressed(runner=peer.runner, told=told))
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
                        ticket=peer.host if peer.claim is not None and runner == peer.runner else "",
                    )
                )
            case m.Piece():
                self._keep_piece(peer, message)
            case _:
                raise Denied("a runner must join before it reports")

    def _may_say(self, peer: Peer, claim: TicketClaim, message: Any) -> bool:
        """May a peer with a ticket say this now? False: it was answered, or is ignored.

        Every holder of a ticket that was not used yet gets this far. Only the one whose join was answered speaks
        for the runner; or, before it joins again, for the runner that was in its place before.
        """
        if self._runners.peer_of(peer.runner) is peer or isinstance(message, m.Join):
            return True
        if not isinstance(message, m.Settle | m.Piece):
            raise Denied("a runner must join before it reports")
        if self._tickets.is_bound(claim):
            return True
        if isinstance(message, m.Settle):
            peer.send(m.Ack(SETTLED_ACK))  # no runner has joined with this ticket, so there is nothing to settle
        return False

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
        granted = peer.claim is not None
        if granted:
            self._check_granted(peer, join)
        node = None if granted else self._node(peer, join)
        if not granted and node is None:
            if join.host not in self._world.capacity or join.host in self._world.site["node"]:
                raise Denied(f"host {join.host!r} belongs to no pool here", hint="add it as a node")
            if not peer.local:
                raise Denied(
                    "only the agent of a node may join from elsewhere", hint="start it with 'rota node run'"
                )
        if self._world.runner_hosts.get(join.runner, join.host) != join.host:
            raise Denied(f"runner {join.runner} was one of another host")
        known = self._world.runners.get(join.runner)
        process = (join.boot_id, join.pid, join.start_time)
        if join.epoch < self._runners.epoch_of(join.runner):
            raise Denied(f"another process has taken the place of runner {join.runner}")
        if known is not None and known.pid and (known.boot_id, known.pid, known.start_time) != process:
            self._check_successor(peer, join, known)
        if peer.claim is not None:
            self._tickets.claim(peer.claim)
        other = self._runners.newest(join.runner)
        if other is not None:
            other.close()
        peer.runner, peer.tails = join.runner, join.tails
        peer.skew_s = report_checks.skew(join, clock.now())
        self._runners.joining(join.runner, peer, join.epoch)
        self._happened(
            events.RunnerJoined(
                runner=join.runner,
                host=join.host,
                boot_id=join.boot_id,
                pid=join.pid,
                start_time=join.start_time,
                held=report_checks.sane_held(join.held, peer.behind_s),
                seats=join.seats,
                node=node,
                parts=[] if granted else join.parts,
                leaving=join.leaving,
                claim=peer.claim,
                left_s=join.left_s,
                machine=report_checks.sane_name(join.machine),
                unfit=join.unfit,
            )
        )

    def _check_successor(self, peer: Peer, join: m.Join, known: Runner) -> None:
        """Raise `Denied` unless this process may take the place of the one that was this runner: it holds the lock
        of that runner's directory on the same boot of the host, so the other is dead."""
        higher = join.epoch > self._runners.epoch_of(join.runner)
        lives = peer.local and identity.lives(known.pid, known.start_time)
        if not higher or lives or known.boot_id != join.boot_id:
            raise Denied(f"runner {join.runner} is another process")

    def _check_granted(self, peer: Peer, join: m.Join) -> None:
        """Raise `Denied` unless a runner with a ticket may join under this name."""
        world = self._world
        self._check_name(peer, join)
        its = join.host in world.capacity and any(runner.host == join.host for runner in world.runners.values())
        if join.host in world.site["node"] or (join.host in world.capacity and not its):
            raise Denied(f"another host is called {join.host!r}")
        self._refuse_second(join)

    def _check_name(self, peer: Peer, join: m.Join) -> None:
        """Raise `Denied` unless this runner is called like one of the host that the peer speaks for."""
        if join.host != peer.host:
            raise Denied(f"this is the agent of {peer.host!r}, not of {join.host!r}")
        if not re.fullmatch(rf"{re.escape(name_of(join.host))}-\d+-[0-9a-f]{{8}}", join.runner):
            raise Denied(f"no runner of {join.host!r} is called {join.runner[:100]!r}")

    def _refuse_second(self, join: m.Join) -> None:
        """Raise `Denied` if another runner of this host is connected."""
        world = self._world
        now = world.runners.get(world.runner_at.get(join.host, ""))
        if now is not None and now.id != join.runner and now.connected and now.boot_id == join.boot_id:
            other = self._runners.newest(now.id)
            if other is not None and not other.closed:
                # If the other agent died unnoticed, its successor settles it first.
                raise Denied(
                    f"node {join.host!r} has an agent already", hint="stop it first, or use another --name"
                )

    def _node(self, peer: Peer, join: m.Join) -> NodeFacts | None:
        """The facts that the agent of a node reports about its host; None: it is no agent. Raises `RotaError`."""
        if peer.local or not join.node:
            return None
        world = self._world
        self._check_name(peer, join)
        if self._tickets.is_granted(join.host):
            raise Denied(f"a runner of a pool is called {join.host!r}", hint="give this node another --name")
        if join.host in world.capacity and join.host not in world.site["node"]:
            raise Denied(f"the manager's own host is called {join.host!r}", hint="give this node another --name")
        self._refuse_second(join)
        check_facts(world, join.host, join.node)
        return join.node

    def _may_speak_for(self, peer: Peer, runner: str) -> None:
        """Raise `Denied` unless this peer may settle a dead runner: it must be on the same host."""
        known = self._world.runners.get(runner)
        if runner == peer.runner:
            return  # it leaves, and has settled its own jobs
        if peer.local:
            lives = known is not None and identity.lives(known.pid, known.start_time)
            if self._runners.peer_of(runner) is not None and lives:  # its death may not have been noticed yet
                raise Denied(f"runner {runner} is alive and speaks for itself")
        elif (
            not peer.host
            or (known is not None and known.host != peer.host)
            or (peer.claim is not None and node_of(runner) != peer.host)
        ):
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
        if is_errand(self._world, key):
            return True
        job = self._world.jobs.get(key[0])
        lease = job.lease if job is not None and job.attempt == key[1] else None
        if job is not None and lease is not None and is_provisioning(job, key[1], key[2]):
            return True
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
