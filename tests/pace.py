"""How long each file of tests takes: a run names its ten slowest, and the next run begins with what took longest.

A file is known by its folder below `tests` and its name, so it may move into a package of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pytest

#: Files that take long, for a checkout that has not run them yet.
LONGEST = (
    "web/test_everywhere.py", "cli/test_top.py", "system/test_energy.py", "system/test_docs.py",
    "system/test_docs_for_users.py", "system/test_docs_of_nodes.py", "cluster/test_campaign.py",
    "cluster/test_partitions.py", "cluster/test_crashes.py", "faults/test_lost.py", "system/test_types.py",
    "system/test_pause_and_backup.py", "core/test_parts_properties.py", "core/test_suspension.py",
    "system/test_interactive.py", "api/test_stream.py", "cluster/test_parts.py", "cluster/test_hooks.py",
    "cli/test_contract.py", "cluster/test_channels.py", "system/test_running.py", "system/test_planned_jobs.py",
    "system/test_suspend.py", "pools/test_demand.py", "cli/test_node.py", "system/test_docs_of_sites.py",
    "golden/test_homes.py", "store/test_backup.py", "plan/test_malformed.py", "web/test_policy.py",
    "web/test_jobs.py", "web/test_job.py", "cli/test_calendar.py", "runner/test_crashes.py", "cli/test_run.py",
    "runner/test_enforcement.py", "system/test_hooks.py", "system/test_attached_output.py", "system/test_why.py",
    "web/test_login.py", "web/test_gantt.py", "web/test_groups.py", "web/test_overview.py", "web/test_machines.py",
    "web/test_accounting.py", "faults/test_kills.py", "faults/test_one_manager.py", "faults/test_clock_steps.py",
    "core/test_planned_properties.py", "core/test_clock_steps.py", "core/test_flapping.py", "plan/test_whatif.py",
    "plan/test_causes.py", "sim/test_policies.py", "sim/test_bad_jobs.py",
)  # fmt: skip

_MANY = 10
_CACHED = "rota/seconds"
_seconds: Counter[str] = Counter()  #: by path; of this run, in the process that prints


def name_of(path: str) -> str:
    """The folder below `tests` and the file's name; of `tests/core/jobs/test_x.py`, `core/test_x.py`."""
    parts = path.partition("::")[0].split("/")
    below = parts[parts.index("tests") + 1 :] if "tests" in parts else parts
    return "/".join(dict.fromkeys((below[0], below[-1])))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _seconds[report.nodeid.partition("::")[0]] += report.duration


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if len(_seconds) > 1:
        terminalreporter.write_sep("=", f"the {min(_MANY, len(_seconds))} slowest files")
        for path, seconds in _seconds.most_common(_MANY):
            terminalreporter.write_line(f"{seconds:6.1f}s {path}")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Remember the pace, unless only a part was run."""
    config = session.config
    partly = config.args_source is not config.ArgsSource.TESTPATHS or config.getoption("keyword")
    if _seconds and not partly and not hasattr(config, "workerinput") and hasattr(config, "cache"):
        config.cache.set(_CACHED, {name_of(path): round(seconds, 1) for path, seconds in _seconds.items()})


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Sort tests by the time that their files take: nothing long is left for the end."""
    recorded = config.cache.get(_CACHED, {}) if hasattr(config, "cache") else {}
    places = _places(recorded)
    items.sort(key=lambda item: places.get(name_of(item.nodeid), len(places)))


def _places(recorded: Mapping[str, float]) -> dict[str, int]:
    """Files whose time is not known come first if they are known to be slow, else last."""
    known = sorted(recorded, key=lambda name: -recorded[name])
    unknown = [name for name in LONGEST if name not in recorded]
    return {name: place for place, name in enumerate([*unknown, *known])}
