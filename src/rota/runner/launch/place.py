"""The place of this runner on its host: its name and directory, and what starts its processes.

A runner whose jobs outlive it takes the place of a dead one of the same kind, if there is one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rota.boot import machine_id
from rota.launcher.inside import InsideLauncher
from rota.runner.identity import RunnerIdentity, host_name, name_of
from rota.runner.launch.launchers import Launchers
from rota.runner.log import say
from rota.runner.loop import Loop
from rota.runner.report.orders import Orders
from rota.runner.report.records import TaskRecords
from rota.runner.task_table import TaskTable

if TYPE_CHECKING:
    from rota.runner.launch.predecessor import Predecessor

#: Each runner of a name numbers its reports in a range of its own, since an acknowledgement may come late.
_REPORTS = 32


class Place:
    """Claimed once, at start."""

    def __init__(self, root: str, loop: Loop, tasks: TaskTable, *, host: str, lasting: bool) -> None:
        """Raises `OSError`."""
        self.predecessor: Predecessor | None = None
        self.epoch = 0
        if not lasting:
            self.identity = RunnerIdentity(root, host=host)
            self.launchers = Launchers(loop.poll, InsideLauncher())
            return
        # Loaded only where it is used: a runner of the local pool must start quickly.
        from rota.runner.launch import predecessor
        from rota.runner.launch.fleet import Fleet

        name = host_name(host)
        found = predecessor.take_place(root, prefix=name_of(name), machine=machine_id(name))
        if found is None:
            self.identity = RunnerIdentity(root, host=host)
            self.epoch = predecessor.next_epoch(self.identity.directory)
        else:
            self.predecessor = found
            self.identity = RunnerIdentity(root, host=host, place=(found.id, found.directory, found.lock))
            self.epoch = found.epoch
        self.launchers = Fleet(loop.poll, self.identity.directory, self.epoch, tasks=tasks)

    @property
    def first_report(self) -> int:
        """The number before that of the first report."""
        return self.epoch << _REPORTS

    def take_over(self, orders: Orders, records: TaskRecords, **components: Any) -> None:
        """Go on with the jobs of the predecessor. `components`: see `Adoption`."""
        from rota.runner.launch.adoption import Adoption
        from rota.runner.launch.fleet import Fleet
        from rota.runner.launch.lost_tasks import LostTasks

        found, launchers = self.predecessor, self.launchers
        assert found is not None
        assert isinstance(launchers, Fleet)
        if found.rules is not None:
            orders.obey(found.rules)
        lost = LostTasks(
            launchers,
            loop=components["loop"],
            tasks=components["tasks"],
            outbox=components["outbox"],
            hooks=components["hooks"],
            finisher=components["finisher"],
            runner=found.id,
        )
        launchers.when_lost = lost.lost
        going_on = Adoption(found, launchers=launchers, **components).adopt()
        lost.settle(found, going_on, scratch_root=components["scratch_root"])
        say(f"takes the place of a dead runner of this name; {len(going_on)} of its attempts go on")
        records.compact()
