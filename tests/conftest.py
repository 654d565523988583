"""Settings that all tests share."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import is_hypothesis_test, settings

from tests.dose import PATIENCE
from tests.leftovers import pytest_configure, pytest_runtest_logreport, pytest_sessionfinish  # noqa: F401 - hooks

settings.load_profile("rota")

_HERE = Path(__file__).parent

# Real deployments start thousands of processes: without bytecode each of them would compile all of Rota again.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

#: Files that take long, mostly because they wait: they begin first, and none is left for the end.
LONGEST = (
    "core/test_parts_properties.py", "core/test_suspending.py", "cluster/test_campaign.py",
    "system/test_docs_of_nodes.py", "cluster/test_partitions.py", "cluster/test_crashes.py",
    "system/test_energy.py", "system/test_types.py", "cluster/test_hooks.py", "system/test_suspend.py",
    "system/test_docs.py", "cli/test_contract.py", "system/test_docs_of_sites.py", "system/test_running.py",
    "system/test_docs_for_users.py", "faults/test_lost.py", "web/test_jobs.py", "cli/test_top.py",
    "web/test_everywhere.py", "faults/test_kills.py", "web/test_job.py", "system/test_pause_and_backup.py",
    "system/test_why.py", "system/test_planned_jobs.py", "api/test_stream.py", "web/test_gantt.py",
    "web/test_groups.py", "pools/test_demand.py", "core/test_planned_properties.py", "cli/test_run.py",
    "system/test_refusals.py", "system/test_limits.py", "faults/test_one_manager.py", "web/test_accounting.py",
    "faults/test_clock_steps.py", "core/test_clock_steps.py",
    "golden/test_homes.py", "web/test_overview.py", "web/test_login.py", "web/test_machines.py",
    "web/test_policy.py",
)  # fmt: skip


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """What is made here stays to the end: the collector of garbage need not look at it again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        drawn = isinstance(item, pytest.Function) and is_hypothesis_test(item.obj)
        if drawn or item.get_closest_marker("hypothesis"):
            item.add_marker(pytest.mark.timeout(PATIENCE))
    places = {str(_HERE / name): place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(str(item.path), len(places)))
