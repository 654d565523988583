"""The fence around one attempt on this host: everything that holds its processes, as one object.

A fence has one control group in each hierarchy that serves a purpose (hold, cores, memory). Where the host has
none for `hold` it follows the processes by session, ancestry and what it has seen, and promises less.
It knows (job, attempt) and no task:

    share = containment.give((job, attempt, token), cpu_list)   # of the planner; `take_back` at the end
    fence = containment.fences.make(job, attempt, cores=share.cores, token=token)
    paths = fence.paths              # `StartOrder.cgroups`: inside from the first moment
    fence.add(pid)                   # or right after: and in any case, so that it is followed
    fence.keep_to({4, 5})            # other cores from now on
    fence.freeze(True); fence.freeze(False)
    fence.kill_all()                 # KILL until nothing is left; False: something cannot be ended yet
    fence.empty()                    # is nothing of it alive?
    fence.remove()                   # False while something is inside; `remove_patiently` waits a second
    record = fence.record()          # for the journal; `fences.recorded` finds it again
    share.bound                      # `StartOrder.cores`: bound to them from the first moment

A running task has its fence in `task.fence` (None while it is young: see `Sampling`). To stop and continue a
task use `Containment.freeze(task, on)`, which makes a fence if there is none yet.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Collection, Iterable

from rota.launcher import procfs
from rota.runner.contain import signals
from rota.runner.contain.cgroup import ControlGroup
from rota.runner.contain.hierarchies import CORES, HOLD, MEMORY
from rota.runner.contain.process_trail import ProcessTrail

_SWEEPS = 20
_PATIENCE_S = 10.0


class Fence:
    """What holds the processes of one attempt together here."""

    __slots__ = ("_trail", "attempt", "by_purpose", "frozen", "job", "name")

    def __init__(
        self,
        job: int,
        attempt: int,
        groups: dict[str, ControlGroup],
        trail: ProcessTrail | None = None,
        *,
        name: str = "",
    ) -> None:
        self.job = job
        self.attempt = attempt
        self.name = name or f"{job}.{attempt}"  #: of its groups
        self.frozen = False
        self.by_purpose = groups  #: one may serve several
        self._trail = trail  #: None: its processes are known elsewhere

    @property
    def groups(self) -> list[ControlGroup]:
        """The distinct control groups."""
        return list(dict.fromkeys(self.by_purpose.values()))

    @property
    def paths(self) -> list[str]:
        """The directories of the groups that a process must join."""
        return [group.path for group in self.groups]

    @property
    def exists(self) -> bool:
        """Is it more than a list of processes?"""
        return bool(self.by_purpose)

    @property
    def holds(self) -> bool:
        """Can no process leave it?"""
        return HOLD in self.by_purpose

    @property
    def keeps(self) -> bool:
        """Does it confine its processes to some cores?"""
        return CORES in self.by_purpose

    @property
    def limited(self) -> bool:
        """Does it limit memory?"""
        return MEMORY in self.by_purpose

    # -------------------------------------------------------------- what is inside

    def add(self, pid: int) -> bool:
        """Move a process in; False if it is gone or must not be moved."""
        if self._trail is not None and HOLD not in self.by_purpose:
            self._trail.add(pid)
        done = [group.add(pid) for group in self.groups]
        return all(done)

    def pids(self) -> set[int]:
        """The pids in any of its groups, perhaps including zombies."""
        return set().union(*(group.pids() for group in self.groups))

    def outside(self, pids: Iterable[int]) -> list[int]:
        """Which of these processes are not inside, or not in all its groups."""
        inside = [group.pids() for group in self.groups]
        return [pid for pid in pids if not all(pid in group for group in inside)]

    def living(self) -> list[procfs.Process]:
        """All its living processes."""
        if self._trail is not None and HOLD not in self.by_purpose:
            return self._trail.living(self.pids())
        group = self.by_purpose.get(HOLD)
        found = (procfs.process(pid) for pid in (self.pids() if group is None else group.pids()))
        return [seen for seen in found if seen is not None and seen.alive]

    def empty(self) -> bool:
        group = self.by_purpose.get(HOLD)
        return (group is not None and group.deserted()) or not self.living()

    # -------------------------------------------------------------- what is done to it

    def keep_to(self, cores: Collection[int]) -> bool:
        """Confine it to these cores; False where no group can do that."""
        group = self.by_purpose.get(CORES)
        return group is not None and group.keep_to(cores)

    def freeze(self, on: bool) -> bool:
        """Freeze or thaw everything. False: not all could be frozen, so nothing is."""
        done = self._freeze(on)
        if on and not done:
            self._freeze(False)
        self.frozen = on and done
        return done

    def _freeze(self, on: bool) -> bool:
        if (group := self.by_purpose.get(HOLD)) is not None:
            return group.freeze(on)
        return signal_all(self.living, signal.SIGSTOP if on else signal.SIGCONT)

    def kill(self) -> None:
        """KILL everything that is in it now."""
        if (group := self.by_purpose.get(HOLD)) is not None:
            group.kill()
            if self.frozen:
                group.freeze(False)
        else:
            signal_all(self.living, signal.SIGKILL)
        self.frozen = False

    def kill_all(self, patience_s: float = _PATIENCE_S) -> bool:
        """KILL repeatedly until no process is alive. Blocks, mostly for a moment."""
        give_up = time.monotonic() + patience_s
        while True:
            self.kill()
            if self.empty():
                return True
            if time.monotonic() > give_up:
                return False
            time.sleep(0.005)

    def memory_peak(self) -> int:
        """Bytes, cached files included, or 0 where the kernel does not say."""
        group = self.by_purpose.get(MEMORY)
        return 0 if group is None else group.memory_peak()

    def oom_kills(self) -> int | None:
        """How many processes inside the kernel killed for lack of memory, or None where it does not say."""
        counts = [kills for group in self.groups if (kills := group.oom_kills()) is not None]
        return max(counts, default=None)

    # -------------------------------------------------------------- its end, and its memory

    def remove(self) -> bool:
        """False while something is still inside."""
        done = [group.remove() for group in self.groups]
        return all(done)

    def remove_patiently(self) -> bool:
        done = [group.remove_patiently() for group in self.groups]
        return all(done)

    def record(self) -> str:
        """The text by which `fences.recorded` finds it again."""
        return "\n".join(self.paths)


def signal_all(living: Callable[[], list[procfs.Process]], number: int) -> bool:
    """Signal all living processes, and what they forked meanwhile; False if new ones kept appearing."""
    signalled: set[tuple[int, int]] = set()
    for _ in range(_SWEEPS):
        fresh = [seen for seen in living() if (seen.pid, seen.start_time) not in signalled]
        if not fresh:
            return True
        for seen in fresh:
            signals.send(seen.pid, seen.start_time, number)
            signalled.add((seen.pid, seen.start_time))
    return False
