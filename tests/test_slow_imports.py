"""What every start pays for: commands and runners do without modules that take milliseconds to load."""

from __future__ import annotations

import subprocess
import sys

import pytest

_SLOW = ("tempfile", "lzma", "asyncio", "subprocess", "textual")


@pytest.mark.parametrize(
    "modules",
    [
        pytest.param("rota.runner.agent, rota.runner.__main__", id="a runner"),
        pytest.param(
            "rota.cli.main, rota.cli.commands.jobs.run, rota.cli.session.job_output, rota.client.blocking",
            id="rota run",
        ),
    ],
)
def test_a_start_loads_no_slow_module(modules: str) -> None:
    code = f"import sys, {modules}; print([name for name in {_SLOW} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
