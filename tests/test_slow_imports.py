"""What every start pays for: commands and runners do without modules that take milliseconds to load."""

from __future__ import annotations

import subprocess
import sys

import pytest

_SLOW = ("tempfile", "lzma", "asyncio", "subprocess", "textual")
#: What only a manager needs of Rota, and what that brings with it.
_OF_MANAGERS = (
    "dataclasses",
    "rota.core.jobs.job",
    "rota.core.world",
    "rota.plan.ask",
    "rota.plan.language.request_parser",
    "rota.plan.placement",
)
#: What a runner needs only for launchers that are processes of their own, for calls, or when something is wrong.
_OF_LAUNCHERS = (
    "rota.launcher.forks",
    "rota.launcher.client",
    "rota.launcher.messages",
    "rota.launcher.journal",
    "hashlib",
    "traceback",
)
#: What a manager needs only where it asks another engine for runners.
_OF_DELEGATED_POOLS = ("rota.pools.engines", "rota.pools.command")
#: What runners and the manager tell each other.
_OF_RUNNERS = ("rota.core.attempts.leases", "rota.wire.orders", "rota.wire.reports")


@pytest.mark.parametrize(
    ("modules", "unwanted"),
    [
        pytest.param("rota.runner.startup", _SLOW + _OF_MANAGERS + _OF_LAUNCHERS, id="a runner"),
        pytest.param(
            "rota.manager.loop.startup",
            ("rota.store.memory", "rota.api", "rota.client", *_OF_DELEGATED_POOLS),
            id="a manager",
        ),
        pytest.param(
            "rota.cli.main, rota.cli.commands.jobs.run, rota.cli.session.submission, rota.cli.session.waiting, "
            "rota.cli.session.job_output, rota.client.blocking, rota.config",
            _SLOW + _OF_MANAGERS + _OF_RUNNERS,
            id="rota run",
        ),
    ],
)
def test_a_start_loads_no_slow_module(modules: str, unwanted: tuple[str, ...]) -> None:
    code = f"import sys, {modules}; print([name for name in {unwanted} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
