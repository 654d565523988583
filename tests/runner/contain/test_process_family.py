"""Processes are found below every launcher of a runner."""

from __future__ import annotations

import select

from rota.launcher.inside import InsideLauncher
from rota.launcher.procfs import Process
from rota.runner.contain.process_family import ProcessFamily
from rota.runner.launch.launchers import Launchers
from rota.runner.task import Task

#: More than the kernel gives out.
ABOVE = 1 << 23


class Elsewhere(InsideLauncher):
    """As if it were the launcher in another process."""

    def __init__(self, pid: int) -> None:
        super().__init__()
        self.pid = pid


def _task(job: int, pid: int) -> Task:
    task = Task.__new__(Task)
    task.key, task.pid, task.start_time = (job, 1, job), pid, 100
    return task


def _process(pid: int, parent: int, session: int) -> Process:
    return Process(pid, "S", parent, session, cpu_ticks=0, start_time=100)


def test_each_task_has_its_processes_and_orphans_below_its_launcher() -> None:
    one, two = ABOVE, ABOVE + 1
    launchers = Launchers(select.epoll(), Elsewhere(one))
    launchers.add(Elsewhere(two))
    first, second = _task(1, ABOVE + 10), _task(2, ABOVE + 20)
    seen = [
        _process(one, 1, one),
        _process(two, 1, two),
        _process(first.pid, one, first.pid),
        _process(ABOVE + 11, first.pid, first.pid),
        _process(second.pid, two, second.pid),
        _process(ABOVE + 21, two, second.pid),  # an orphan in the session of the second
        _process(ABOVE + 30, 1, ABOVE + 30),  # a stranger
    ]
    table = {each.pid: each for each in seen}
    family = ProcessFamily(launchers, others={})
    members = family.sort(table, [first, second])
    assert [each.pid for each in members[first]] == [ABOVE + 10, ABOVE + 11]
    assert [each.pid for each in members[second]] == [ABOVE + 20, ABOVE + 21]
    launchers.remove(launchers.all[1])
    assert family.sort(table, [first]) == {first: members[first]}
