"""Evidence that a job was killed for lack of memory, where the kernel counts only for the whole machine."""

from __future__ import annotations

import os
import sys
import time

import pytest

from rota.launcher.inside import InsideLauncher
from rota.launcher.own_peak import OwnPeak
from rota.runner.end import measure
from rota.runner.end.measure import Sampler
from rota.runner.task import Task

_MIB = 1 << 20


def _ended(command: list[str]) -> Task:
    """A task of which all is known that the verdict asks for."""
    begun = time.monotonic()
    pid = os.posix_spawn(command[0], command, {"PATH": os.environ["PATH"]})
    _pid, status, usage = os.wait4(pid, 0)
    task = Task.__new__(Task)
    task.launcher = InsideLauncher()
    task.status, task.usage, task.began = status, usage, begun
    return task


@pytest.mark.parametrize("large", [False, True])
def test_only_a_large_job_is_taken_for_the_one_that_the_kernel_killed(
    monkeypatch: pytest.MonkeyPatch, large: bool
) -> None:
    """Somebody on this machine was killed for memory while it ran; it was itself killed, by whomever."""
    monkeypatch.setattr(measure.host_room, "memory_at_most", lambda: 20_000 * _MIB)
    monkeypatch.setattr(measure, "oom_kills", lambda: 7)
    sampler = Sampler()
    mib = OwnPeak(os.getpid()).read() // _MIB + 300 if large else 1
    task = _ended([sys.executable, "-c", f"x = bytearray({mib} << 20); import os; os.kill(os.getpid(), 9)"])
    assert not sampler.out_of_memory(task), "nobody was killed for memory"
    monkeypatch.setattr(measure, "oom_kills", lambda: 8)
    assert sampler.out_of_memory(task) is large


def test_a_job_that_was_dead_when_it_was_first_looked_at_is_taken_for_it_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(measure.host_room, "memory_at_most", lambda: 20_000 * _MIB)
    monkeypatch.setattr(measure, "oom_kills", lambda: 7)
    sampler = Sampler()
    sampler.begin(time.monotonic())
    large = OwnPeak(os.getpid()).read() // _MIB + 300
    task = _ended([sys.executable, "-c", f"x = bytearray({large} << 20); import os; os.kill(os.getpid(), 9)"])
    monkeypatch.setattr(measure, "oom_kills", lambda: 8)
    sampler.begin(time.monotonic())
    sampler.sample(task, [], time.monotonic())
    assert sampler.out_of_memory(task)
    later = _ended([sys.executable, "-c", f"x = bytearray({large} << 20); import os; os.kill(os.getpid(), 9)"])
    assert not sampler.out_of_memory(later), "nobody was killed while it ran"
