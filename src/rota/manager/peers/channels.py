"""Channels between clients and processes inside running jobs: access checks and routing.

The manager only forwards messages. Credits bound the bytes in flight. They are counted here as well, so that no
peer can make the manager buffer more than one window in each direction.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from rota.core import events
from rota.core.fields.request import is_role
from rota.core.jobs.job import Job
from rota.core.states import State
from rota.core.world import NO_JOB, World
from rota.errors import BadInput, Denied, EnvironmentFault, NotFound, RotaError
from rota.manager.peers.peer import Peer
from rota.wire import messages as m
from rota.wire.job_keys import KEY, fits

#: Channels that one client may have open at once; a runner, for all its jobs together.
_MOST: Final = 64
_MOST_RELAYED: Final = 1024
_MOST_WORDS: Final = 1 << 20
#: So many bytes may wait to be sent to a peer before a channel to it is broken.
_MOST_UNSENT: Final = 16 << 20
_LONGEST_CWD: Final = 4096

NOT_RUNNING: Final = "not_running"


class ChannelSide:
    """One side of a channel: its connection, its number there, and the bytes that it may still send."""

    __slots__ = ("n", "other", "peer", "room")

    other: ChannelSide

    def __init__(self, peer: Peer, n: int, room: int) -> None:
        self.peer = peer
        self.n = n
        self.room = room


class ChannelRouter:
    """All open channels of a manager."""

    def __init__(
        self,
        world: World,
        *,
        peer_of: Callable[[str], Peer | None],
        happened: Callable[[events.Event], None] = lambda _event: None,
    ) -> None:
        self._world = world
        self._happened = happened
        self._meetings: dict[tuple[int, int], m.OpenChannel] = {}  #: (connection, number)
        self._peer_of = peer_of  #: the connection of a runner
        self._ends: dict[tuple[int, int], ChannelSide] = {}  #: (connection, number)
        self._last = 0

    def received(self, peer: Peer, message: m.OpenChannel | m.InChannel) -> None:
        """A message about a channel, from either side."""
        if isinstance(message, m.OpenChannel):
            try:
                self._open(peer, message)
            except RotaError as error:
                if peer.role == "runner":
                    peer.send(m.ChannelEnd(message.n, message=str(error)))
                else:
                    peer.fail(message.n, error)
            return
        end = self._ends.get((peer.id, message.n))
        if end is None:
            if self._meetings and isinstance(message, m.ChannelEnd):
                self._left(peer, message.n, lost=False)
            return  # it ended while this was on its way
        match message:
            case m.ChannelData(_, _, data):
                end.room -= len(data)
                if end.room < 0:
                    self._break(end, "more was sent than there was room for")
                    return
            case m.ChannelCredit(_, size):
                end.other.room += size
                if size < 0 or end.other.room > m.WINDOW:
                    self._break(end, "more room was given than there is")
                    return
            case m.ChannelEnd():
                self._forget(end)
        if end.other.peer.unsent > _MOST_UNSENT and not isinstance(message, m.ChannelEnd):
            # Messages without credits are bounded as well: a peer must not be cut off because of one channel.
            self._break(end, "the other end does not take what it is sent")
            return
        end.other.peer.send(msgspec.structs.replace(message, n=end.other.n))

    def opens(self, key: str) -> bool:
        """Does this key fit a running job?"""
        world = self._world
        leased = (world.jobs.get(job) for runner in world.runners.values() for job in runner.leases)
        return any(job is not None and fits(key, job.spec) for job in leased)

    def gone(self, peer: Peer) -> None:
        """A connection was closed: so are its channels."""
        for connection, n in list(self._meetings):
            if connection == peer.id:
                self._left(peer, n, lost=True)
        for end in [end for (connection, _), end in self._ends.items() if connection == peer.id]:
            self._forget(end)
            who = f"node {self._host(peer)}" if peer.runner else "the client"
            what = f"the connection to {who} was lost"
            end.other.peer.send(m.ChannelEnd(end.other.n, message=what, lost=True))

    def _break(self, end: ChannelSide, why: str) -> None:
        self._forget(end)
        for each in (end, end.other):
            each.peer.send(m.ChannelEnd(each.n, message=why))

    def _forget(self, end: ChannelSide) -> None:
        for each in (end, end.other):
            self._ends.pop((each.peer.id, each.n), None)

    def _host(self, peer: Peer) -> str:
        runner = self._world.runners.get(peer.runner)
        return runner.host if runner is not None else peer.runner

    # -------------------------------------------------------------- opening

    def _open(self, peer: Peer, ask: m.OpenChannel) -> None:
        relayed = peer.role == "runner"
        if (peer.id, ask.n) in self._ends or (peer.id, ask.n) in self._meetings or (ask.n < 0) is not relayed:
            raise BadInput("a channel needs a number of its own")
        most = _MOST_RELAYED if relayed else _MOST
        if sum(1 for connection, _ in (*self._ends, *self._meetings) if connection == peer.id) >= most:
            raise BadInput(f"more than {most} channels are open", hint="close one first")
        if sum(map(len, [*ask.cmd, *ask.env, ask.term])) > _MOST_WORDS or len(ask.cwd) > _LONGEST_CWD:
            raise BadInput("the command or its environment is too long", hint="put it into a script")
        job = self._job(peer, ask)
        if ask.meet:
            self._meet(peer, job, ask)
            return
        lease = job.lease
        assert lease is not None
        host = self._meant(job, ask.node)
        target = self._runner(job, host)
        self._last += 1
        near, far = ChannelSide(peer, ask.n, 0), ChannelSide(target, self._last, m.WINDOW)
        near.other, far.other = far, near
        self._ends[peer.id, near.n] = near
        self._ends[target.id, far.n] = far
        target.send(
            m.StartChannel(
                n=far.n,
                job=job.id,
                attempt=job.attempt,
                token=lease.token,
                cmd=ask.cmd,
                tty=ask.tty,
                rows=ask.rows,
                cols=ask.cols,
                term=ask.term,
                env=ask.env,
                cwd=ask.cwd,
                attach=ask.attach,
                seen=ask.seen,
            )
        )

    def _meet(self, peer: Peer, job: Job, ask: m.OpenChannel) -> None:
        """A process of a member of a gang waits for the others."""
        if not job.spec.gang:
            raise BadInput(f"job {job.id} is not a member of a gang", hint="add it with --gang NAME")
        if not is_role(ask.meet) or not is_role(ask.wait):
            raise BadInput("a point has letters, digits and . _ -", hint="give a name such as ready")
        self._meetings[peer.id, ask.n] = ask
        self._happened(events.MemberArrived(by=peer.asker(ask.n), job=job.id, point=ask.meet, wait=ask.wait))

    def _left(self, peer: Peer, n: int, *, lost: bool) -> None:
        ask = self._meetings.pop((peer.id, n), None)
        if ask is not None:
            by = peer.asker(n)
            self._happened(events.MemberLeft(by=by, job=ask.job, point=ask.meet, wait=ask.wait, lost=lost))

    def met(self, peer: Peer, n: int, exit_code: int, message: str) -> None:
        """The others are there, or one of them never will be."""
        if self._meetings.pop((peer.id, n), None) is not None:
            peer.send(m.ChannelEnd(n, exit_code, None, message))

    def _job(self, peer: Peer, ask: m.OpenChannel) -> Job:
        """The running job with this id. Raises `RotaError` unless this peer may enter it."""
        job = self._world.jobs.get(ask.job)
        if job is None or not self._may_enter(peer, job, ask.key):
            # A peer that may not enter a job does not learn whether it exists.
            known = self._world.outcome(ask.job) != NO_JOB
            if peer.role in ("user", "admin") and not ask.key and known:
                if job is not None:
                    raise Denied(f"job {ask.job} belongs to another user", hint="only its owner may enter it")
                raise BadInput(f"job {ask.job} has ended", hint=f"see 'rota show {ask.job}'", code=NOT_RUNNING)
            raise NotFound(f"there is no job {ask.job} that you may enter", hint="list yours with 'rota jobs'")
        fit = (State.RUNNING, State.SUSPENDED) if ask.attach else (State.RUNNING,)
        if ask.meet:
            fit = (State.SCHEDULED, State.STARTING, *fit)  # its start may not have been reported yet
        if job.lease is None or job.state not in fit:
            label = State(job.state).label
            raise BadInput(
                f"job {job.id} does not run, it is {label}", hint=f"see 'rota why {job.id}'", code=NOT_RUNNING
            )
        return job

    def _may_enter(self, peer: Peer, job: Job, key: str) -> bool:
        if key or peer.role == KEY:
            return fits(key, job.spec)
        if peer.role == "runner":
            # It acts for a process of this job, so it must run on one of its hosts.
            runner = self._world.runners.get(peer.runner)
            return runner is not None and job.lease is not None and runner.host in self._hosts(job)
        return peer.role == "admin" or peer.user == job.spec.user

    def _hosts(self, job: Job) -> list[str]:
        """The hosts of a running job, the one with its command first."""
        assert job.lease is not None
        runner = self._world.runners.get(job.lease.runner)
        first = [runner.host] if runner is not None else []
        given = [host for host, _ in job.lease.given.nodes] if job.lease.given is not None else []
        return list(dict.fromkeys([*first, *given]))

    def _meant(self, job: Job, node: str) -> str:
        hosts = self._hosts(job)
        if not node and hosts:
            return hosts[0]
        given = job.lease.given if job.lease is not None else None
        listed = [host for host, _ in given.nodes] if given is not None and given.nodes else hosts
        if node in hosts:
            return node
        if node.isascii() and node.isdigit() and int(node[:6]) < len(listed):
            return listed[int(node[:6])]
        short = [host for host in hosts if host.partition(".")[0] == node.partition(".")[0]]
        if len(short) == 1:
            return short[0]
        if node in ("localhost", "127.0.0.1") and len(hosts) == 1:
            return hosts[0]
        raise NotFound(f"job {job.id} has no node '{node[:64]}'", hint=f"it runs on {', '.join(hosts[:16])}")

    def _runner(self, job: Job, host: str) -> Peer:
        runners = self._world.runners
        assert job.lease is not None
        holder = runners.get(job.lease.runner)
        if holder is not None and holder.host == host:
            found = self._peer_of(holder.id)
        else:
            connected = (self._peer_of(each.id) for each in runners.values() if each.host == host)
            found = next((peer for peer in connected if peer is not None), None)
        if found is None:
            raise EnvironmentFault(f"node {host} does not answer", hint="see 'rota node list'")
        return found
