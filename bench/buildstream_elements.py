"""BuildStream's scheduler over elements that only look at a file or run `true`; run by BuildStream's own Python.

Its scheduler, queues, jobs with their log files, state and messenger are the real ones. Elements, projects, the
cache and the display are left out: what they cost is not what is measured. Every build and every push starts a
process of its own, `true` without a shell, from a thread of the scheduler's process, as BuildStream runs its jobs.
"""

from __future__ import annotations

import datetime
import os
import subprocess
import sys
from types import SimpleNamespace
from typing import Any, ClassVar

from buildstream._messenger import Messenger  # type: ignore[import-not-found]
from buildstream._scheduler.queues.queue import Queue, QueueStatus  # type: ignore[import-not-found]
from buildstream._scheduler.resources import ResourceType  # type: ignore[import-not-found]
from buildstream._scheduler.scheduler import SchedStatus, Scheduler  # type: ignore[import-not-found]
from buildstream._state import State  # type: ignore[import-not-found]

from pipeline_graph import SKIPPED, build, depends

_PROJECT = SimpleNamespace(name="bench")


class Element:
    """What queues and jobs ask of an element."""

    def __init__(self, number: int, before: list[Element]) -> None:
        self.number = number
        self.before = before
        self.dependents: list[Element] = []
        self.unbuilt = len(before)
        self.wake: Any = None
        self.normal_name = f"e{number}"
        self._unique_id = number
        self._depth = max((each._depth + 1 for each in before), default=0)
        self._key = SimpleNamespace(full=f"{number:064x}", brief=f"{number:08x}", strict=True)
        for each in before:
            each.dependents.append(self)

    def _get_full_name(self) -> str:
        return self.normal_name

    def _get_project(self) -> Any:
        return _PROJECT

    def _get_display_key(self) -> Any:
        return self._key

    def _get_workspace(self) -> None:
        return None


class Work(Queue):  # type: ignore[misc]
    """A stage. All stages share the slots."""

    resources: ClassVar[list[int]] = [ResourceType.PROCESS]

    def get_process_func(self) -> Any:
        return self.work

    def work(self, element: Element) -> None:
        raise NotImplementedError


class Present(Work):
    def status(self, element: Element) -> Any:
        there = os.path.exists(f"done/e{element.number}.{self.action_name}")
        return QueueStatus.SKIP if there else QueueStatus.READY


class Build(Work):
    action_name, complete_name = "build", "built"

    def status(self, element: Element) -> Any:
        return QueueStatus.PENDING if element.unbuilt else QueueStatus.READY

    def register_pending_element(self, element: Element) -> None:
        element.wake = self._enqueue_element

    def work(self, element: Element) -> None:
        subprocess.run(build(element.number).split(), check=True)

    def done(self, job: Any, element: Element, result: Any, status: Any) -> None:
        for each in element.dependents:
            each.unbuilt -= 1
            if not each.unbuilt and each.wake is not None:
                each.wake(each)


class Push(Work):
    action_name, complete_name = "push", "pushed"

    def work(self, element: Element) -> None:
        subprocess.run(["true"], check=True)


def main() -> None:
    count, slots = int(sys.argv[1]), int(sys.argv[2])
    elements: list[Element] = []
    for number in range(count):
        elements.append(Element(number, [elements[each] for each in depends(number)]))
    started = datetime.datetime.now()
    state, messenger = State(started), Messenger()
    messenger.set_state(state)
    messenger.set_message_handler(lambda *_args, **_kw: None)
    context = SimpleNamespace(
        sched_builders=slots, sched_fetchers=slots, sched_pushers=slots, sched_network_retries=0,
        messenger=messenger, logdir=os.path.abspath("logs"),
    )  # fmt: skip
    scheduler = Scheduler(context, started, state, lambda: None, lambda: None)
    present = [type(name, (Present,), {"action_name": name, "complete_name": name}) for name in SKIPPED]
    queues = [kind(scheduler) for kind in (*present, Build, Push)]
    queues[0].enqueue(elements)
    if scheduler.run(queues, SimpleNamespace(process=None)) != SchedStatus.SUCCESS:
        raise SystemExit("the scheduler says that something failed")
    if len(state.task_groups["push"].failed_tasks) or state.task_groups["push"].processed_tasks != count:
        raise SystemExit("not all elements were pushed")


if __name__ == "__main__":
    main()
