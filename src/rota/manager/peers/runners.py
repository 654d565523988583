"""The connections of runners: who is behind which, and when one may be told something.

What a runner says becomes an event; what is decided for it is sent by `perform` to `peer_of`.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from rota.core import events
from rota.core.attempts.leases import Finished
from rota.core.machines.nodes import check_facts
from rota.errors import Denied
from rota.manager.loop import clock
from rota.manager.peers import report_checks
from rota.plan.site.node_facts import NodeFacts
from rota.runner.contain import procfs
from rota.runner.identity import name_of
from rota.wire import messages as m

if TYPE_CHECKING:
    from rota.manager.loop.service import Manager
    from rota.manager.peers.peer import Peer


class Runners:
    """All connected runners of a manager."""

    def __init__(self, manager: Manager) -> None:
        self._manager = manager
        self._admitted: dict[str, Peer] = {}  #: whom to send what is meant for a runner
        self._newest: dict[str, Peer] = {}  #: the newest connection of each runner
        self._tasks: set[asyncio.Task[None]] = set()
        self._joining: dict[str, deque[Peer]] = {}  #: joins that have not been answered, in order

    def peer_of(self, runner: str) -> Peer | None:
        """The connection of a runner whose join was answered."""
        return self._admitted.get(runner)

    def clock_moved(self, by: float) -> None:
        """The manager's clock moved, theirs did not."""
        for peer in self._newest.values():
            peer.skew_s += by

    def everyone(self) -> set[Peer]:
        return set(self._admitted.values())

    def received(self, peer: Peer, message: Any) -> None:
        """A message of a runner."""
        happened = self._manager.happened
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
                self._manager.watches.printed(peer.runner, message)
            case m.LiveEnd():
                self._manager.tails.ended(peer.runner, message)
            case m.Full() if peer.runner:
                self._asked(peer.runner, message)
            case m.Idle() if peer.runner:
                happened(events.RunnerIdled(runner=peer.runner))
            case m.Relayed(passed) if peer.runner:
                self._manager.channels.received(peer, passed)
            case m.Join():
                self._join(peer, message)
            case m.Settle(runner, ended, whole, rebooted):
                self._may_speak_for(peer, runner)
                # Said before the runner joins, when it has no name here yet.
                self._admitted[_settling(peer)] = peer
                happened(
                    events.RunnerSettled(
                        runner=runner,
                        by_runner=_settling(peer),
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
        """Only about what it runs, or ran when the manager before this one was there."""
        known = self._manager.world.runners.get(runner)
        job = self._manager.world.jobs.get(full.job)
        if known is not None and full.job in known.leases and job is not None and job.attempt == full.attempt:
            self._manager.tails.asked(runner, full)
        elif full.held:
            task = self._manager.loop.create_task(self._offered(runner, full))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _offered(self, runner: str, full: m.Full) -> None:
        attempts = await self._manager.read(lambda: self._manager.store.attempts(full.job))
        if any(each.number == full.attempt and each.runner == runner for each in attempts):
            self._manager.tails.asked(runner, full)

    def _join(self, peer: Peer, join: m.Join) -> None:
        report_checks.check_join(join)
        made_for = self._manager.connections.made_for(join.ticket) if join.ticket else None
        node = self._node(peer, join)
        if (
            made_for is None
            and node is None
            and (join.host not in self._manager.world.capacity or join.host in self._manager.world.site["node"])
        ):
            raise Denied(f"host {join.host!r} belongs to no pool here", hint="add it as a node")
        if not peer.local and made_for is None and node is None:
            raise Denied("only the agent of a node may join from elsewhere", hint="start it with 'rota node run'")
        if made_for is None and self._manager.world.runner_hosts.get(join.runner, join.host) != join.host:
            raise Denied(f"runner {join.runner} was one of another host")
        known = self._manager.world.runners.get(join.runner)
        process = (join.boot_id, join.pid, join.start_time)
        if known is not None and known.pid and (known.boot_id, known.pid, known.start_time) != process:
            raise Denied(f"runner {join.runner} is another process")
        other = self._newest.get(join.runner)
        if other is not None:
            other.close()
        peer.runner, peer.ticket, peer.tails = join.runner, join.ticket, join.tails
        peer.skew_s = report_checks.skew(join, clock.now())
        self._newest[join.runner] = peer
        # What was decided for the old connection must not reach the new one: its join says what the
        # runner holds, and that decides anew. Nothing is sent before this very join is answered.
        self._admitted.pop(join.runner, None)
        self._joining.setdefault(join.runner, deque()).append(peer)
        self._manager.happened(
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

    def _node(self, peer: Peer, join: m.Join) -> NodeFacts | None:
        """What the agent of a node says about its host; None: it is none. Raises what is wrong with it."""
        if peer.local or not join.node:
            return None
        world = self._manager.world
        if join.host != peer.host:
            raise Denied(f"this is the agent of {peer.host!r}, not of {join.host!r}")
        if not re.fullmatch(rf"{re.escape(name_of(join.host))}-\d+-[0-9a-f]{{8}}", join.runner):
            raise Denied(f"no runner of {join.host!r} is called {join.runner[:100]!r}")
        if join.host in world.capacity and join.host not in world.site["node"]:
            raise Denied(f"the manager's own host is called {join.host!r}", hint="give this node another --name")
        now = world.runners.get(world.runner_at.get(join.host, ""))
        if now is not None and now.id != join.runner and now.connected and now.boot_id == join.boot_id:
            other = self._newest.get(now.id)
            if other is not None and not other.closed:
                # Should the other one be gone and this not have been noticed, its successor says so first.
                raise Denied(
                    f"node {join.host!r} has an agent already", hint="stop it first, or use another --name"
                )
        check_facts(world, join.host, join.node)
        return join.node

    def _may_speak_for(self, peer: Peer, runner: str) -> None:
        """Raise `Denied` unless a runner may say how a dead one ended, whose lock it holds: one of its host."""
        known = self._manager.world.runners.get(runner)
        if runner == peer.runner:
            return  # it leaves, and nothing of it is left
        if peer.local:
            lives = known is not None and procfs.lives(known.pid, known.start_time)
            if runner in self._admitted and lives:  # its death may not have been noticed yet
                raise Denied(f"runner {runner} is alive and speaks for itself")
        elif not peer.host or (known is not None and known.host != peer.host):
            raise Denied("only a runner on the same host may speak for a dead one")
        elif (other := self._newest.get(runner)) is not None:
            other.close()

    def _keep_piece(self, peer: Peer, piece: m.Piece) -> None:
        """Copy output of a node's jobs: of those that it holds leases for, and of no others."""
        key = (piece.job, piece.attempt, piece.token)
        owner = piece.segment.rpartition("-")[0]
        world, pieces = self._manager.world, self._manager.pieces
        if not peer.host or world.runner_hosts.get(owner) != peer.host:
            return
        if not piece.job and (known := world.runners.get(owner)) is not None:
            pieces.keep_unnamed(owner, len(known.leases), piece.segment, piece.offset, piece.data)
        elif self._leased(key, owner):
            pieces.keep(key, piece.segment, piece.offset, piece.data)
        pieces.forget(self._leased)

    def _leased(self, key: tuple[int, int, int], runner: str = "") -> bool:
        """Is this lease valid, and that runner's?"""
        job = self._manager.world.jobs.get(key[0])
        lease = job.lease if job is not None and job.attempt == key[1] else None
        if lease is None or lease.token != key[2] or lease.ended is not None:
            return False
        return not runner or lease.runner == runner

    def _settle_output(self, peer: Peer, ended: list[Finished]) -> list[Finished]:
        """Ends as a node told them, with what became of their output on the way."""
        if not peer.host:
            return ended
        return [self._settled(each) if each.outcome.out_len or each.outcome.err_len else each for each in ended]

    def _settled(self, each: Finished) -> Finished:
        outcome = self._manager.pieces.settled((each.job, each.attempt, each.token), each.outcome)
        return each if outcome is each.outcome else replace(each, outcome=outcome)

    def admit(self, runner: str) -> Peer | None:
        """The oldest unanswered join of a runner is decided: its connection, if it is the newest."""
        waiting = self._joining.get(runner)
        if not waiting:
            return None
        peer = waiting.popleft()
        if waiting or peer.closed:
            return None
        self._admitted[runner] = peer
        return peer

    def parted(self, peer: Peer) -> bool:
        """A connection ended. True if its runner has no other now."""
        self._admitted.pop(_settling(peer), None)
        if not peer.runner or self._newest.get(peer.runner) is not peer:
            return False
        del self._newest[peer.runner]
        self._admitted.pop(peer.runner, None)
        self._manager.tails.gone(peer.runner)
        self._manager.happened(events.RunnerParted(runner=peer.runner))
        return True

    def hold_leases(self, *, unstarted_only: bool) -> bool:
        """Do connected runners hold leases (that have not started)?"""
        world = self._manager.world
        for name in self._admitted:
            runner = world.runners.get(name)
            for job in runner.leases if runner else ():
                lease = world.jobs[job].lease
                if not unstarted_only or (lease is not None and lease.started_at is None):
                    return True
        return False


def _settling(peer: Peer) -> str:
    """What a runner is called between settling its dead predecessors and joining: no name of a real one."""
    return f".settling-{peer.id}"
