"""Which connection belongs to which runner, and since when it may be used."""

from __future__ import annotations

from collections import deque

from rota.core.world import World
from rota.manager.peers.peer import Peer


class Runners:
    """The connections of all runners."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._admitted: dict[str, Peer] = {}  #: runners whose join was answered: effects are sent there
        self._newest: dict[str, Peer] = {}  #: the newest connection of each runner
        self._epochs: dict[str, int] = {}
        self._joining: dict[str, deque[Peer]] = {}  #: joins that have not been answered, in order

    def epoch_of(self, runner: str) -> int:
        """The highest epoch under which a process has joined as this runner; 0: it cannot be replaced."""
        return self._epochs.get(runner, 0)

    def peer_of(self, runner: str) -> Peer | None:
        """The connection of a runner whose join was answered."""
        return self._admitted.get(runner)

    def newest(self, runner: str) -> Peer | None:
        """The newest connection of a runner, whether its join was answered or not."""
        return self._newest.get(runner)

    def connected(self) -> set[Peer]:
        return set(self._admitted.values())

    def clock_moved(self, by: float) -> None:
        """The manager's clock moved, those of the runners did not."""
        for peer in self._newest.values():
            peer.skew_s += by

    def settling(self, peer: Peer) -> str:
        """A name under which to answer a runner that settles its dead predecessors before it joins."""
        name = _settling(peer)
        self._admitted[name] = peer
        return name

    def joining(self, runner: str, peer: Peer, epoch: int = 0) -> None:
        """A runner asks to join.

        What was decided for its old connection must not reach the new one: the join lists what the runner holds,
        and that is decided about anew. Nothing is sent before this very join is answered.
        """
        self._newest[runner] = peer
        if epoch:
            self._epochs[runner] = epoch
        self._admitted.pop(runner, None)
        self._joining.setdefault(runner, deque()).append(peer)

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
        return True

    def hold_leases(self, *, unstarted_only: bool) -> bool:
        """Do connected runners hold leases (that have not started)?"""
        world = self._world
        for name in self._admitted:
            runner = world.runners.get(name)
            for job in runner.leases if runner else ():
                lease = world.jobs[job].lease
                if not unstarted_only or (lease is not None and lease.started_at is None and not lease.stays):
                    return True
        return False


def _settling(peer: Peer) -> str:
    """No name of a real runner begins with a dot."""
    return f".settling-{peer.id}"
