"""Memory and disk use of jobs: sampled while they run, and what can be proven at the end.

Only measures; no job is ended here.
"""

from __future__ import annotations

from math import inf

from rota.launcher import procfs
from rota.runner.end import host_room
from rota.runner.task import Task

#: The OOM killer takes the largest: a job with less than this share of all memory was not its victim.
_LEAST_VICTIM = 0.01
#: Changes of the kernel's count that are remembered.
_REMEMBERED = 16


class Sampler:
    """Peaks of running tasks, and evidence of the kernel's out-of-memory killer."""

    def __init__(self) -> None:
        #: The kernel's count of kills, and when it was first seen; the newest last.
        self._kills = [(-inf, oom_kills())]

    def begin(self, now: float) -> None:
        """A pass over all tasks begins."""
        kills = oom_kills()
        if kills != self._kills[-1][1]:
            self._kills = [*self._kills[-_REMEMBERED:], (now, kills)]

    def _kills_before(self, task: Task) -> int:
        """The kernel's count when this task began; when it is first looked at it may be dead already."""
        known = (kills for at, kills in reversed(self._kills) if at <= task.began)
        return next(known, self._kills[0][1])

    def sample(self, task: Task, processes: list[procfs.Process], now: float) -> None:
        """Take the present use of a task into its peaks."""
        if not task.sampled:
            task.sampled = True
            task.plain = False
        task.peak_mem = max(task.peak_mem, memory_of(processes))
        if task.scratch is not None:
            task.peak_disk = max(task.peak_disk, task.scratch.measure(now))

    def out_of_memory(self, task: Task) -> bool:
        """Is there evidence that the kernel killed something of this task for memory?

        Its groups know for certain, if they count memory. Otherwise the kernel's counter is for the whole
        machine, where others are killed too; it counts as evidence only together with a SIGKILL that this
        runner did not send, and against a job that was large.
        """
        if task.fence is not None and (kills := task.fence.oom_kills()) is not None:
            return kills > 0
        if oom_kills() <= self._kills_before(task):
            return False
        return peak(task)[0] >= host_room.memory_at_most() * _LEAST_VICTIM


def memory_of(processes: list[procfs.Process]) -> int:
    """Bytes that these processes have in memory, together."""
    private = shared = 0
    for seen in processes:
        resident, of_files = procfs.memory(seen.pid)
        private += resident - of_files
        # Processes of one job mostly share the same files: counting the largest share once is nearer
        # to the truth than the sum, and much cheaper than the kernel's proportional count.
        shared = max(shared, of_files)
    return private + shared


def about_size(size: int) -> str:
    """A size for a message. (Loaded when first needed: a runner must start quickly.)"""
    from rota import units

    return units.about_size(size)


def peak(task: Task) -> tuple[int, int]:
    """Peak memory from samples and from the kernel's own record, or 0; then the most it can have been.

    A child begins its life in the launcher's memory, so the record is at least the launcher's own peak:
    below or at that it proves nothing, and is only an upper bound of what the child used.
    """
    sampled_peak = task.peak_mem
    assert task.usage is not None
    recorded = task.usage.ru_maxrss * 1024
    if task.launcher.is_own(recorded):
        return (sampled_peak, 0) if sampled_peak else (0, recorded)
    return max(sampled_peak, recorded), 0


def oom_kills() -> int:
    """How many processes the kernel has killed for memory since boot."""
    try:
        with open("/proc/vmstat", "rb") as file:
            for line in file:
                if line.startswith(b"oom_kill "):
                    return int(line.split()[1])
    except (OSError, ValueError):
        pass
    return 0
