"""Tests that compute and tests that wait have workers of their own, so that no core is idle and none is crowded.

A test that computes keeps a core busy. Tests of real deployments mostly wait, so several of them share the other
cores. A worker whose group has nothing left helps the other group. Tests of one file share a deployment and stay
together.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.pace import name_of

if TYPE_CHECKING:
    from xdist.remote import Producer
    from xdist.scheduler import LoadFileScheduling

#: Folders whose tests start few processes or none.
COMPUTING = {"client", "core", "manager", "plan", "sim", "store", "wire"}


def computes(path: str) -> bool:
    folder, _, name = name_of(path).partition("/")
    return not name or folder in COMPUTING


def size_of_computing(workers: int) -> int:
    """How many workers begin with what computes: half of the cores, and never all."""
    return min(max(1, len(os.sched_getaffinity(0)) // 2), workers - 1)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadFileScheduling | None:
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling
    from xdist.workermanage import WorkerController

    class GroupScheduling(LoadFileScheduling):
        def _assign_work_unit(self, node: WorkerController) -> None:
            wanted = int(node.gateway.id.removeprefix("gw")) < size_of_computing(self.numnodes)
            found = next((path for path in self.workqueue if computes(path) == wanted), None)
            if found is not None:
                self.workqueue.move_to_end(found, last=False)
            super()._assign_work_unit(node)

    return GroupScheduling(config, log)
