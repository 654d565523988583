"""What the documentation tells people to paste works when it is pasted."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from rota.core.states import as_mermaid

_TOP = Path(__file__).parents[2]
_BLOCK = re.compile(r"^```\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_WRONG = ("Traceback", "Usage:", "not understood", "no such option", "command not found", "no manager is running")


def _blocks(page: str, *, begin: str) -> str:
    """The commands in one section of a page."""
    text = (_TOP / page).read_text()
    section = text[text.index(begin) :].partition("\n## How it compares")[0]
    return "".join(_BLOCK.findall(section))


@pytest.mark.parametrize(
    ("page", "begin", "expected"),
    [
        (
            "README.md", "## Five minutes",
            ["exit status 1", "there is no tea", "exit status 0", "poured", "hello from a", "all mine: 0", "one"],
        ),
        (
            "docs/tutorial.md", "# Tutorial",
            ["exit status 5", "55\t10", "I was not disturbed", "never fits"],
        ),
        (
            "docs/resources.md", "# Resources of a site",
            ["added 64 resources on 4 hosts", "switch / rack / host / cpu / core", "removed property rack"],
        ),
        (
            "docs/coming-from.md", "# Coming from another tool",
            ["field 'cloud_os'", "already complete", "exit status 1", "exit status 0", "task 4", "all three are"],
        ),
        (
            "docs/policy.md", "# Sharing a site",
            ["in the night", "0.5*ALL", "19:00  day", "cap walltime=12h", "ask us first", "exit status 2"],
        ),
        (
            "docs/planning.md", "# Reading the plan",
            ["job 2 is ready", "until job 1 ends", '"blockers":', "(planned)", "|1=", "|2-", "alternative 2"],
        ),
        (
            "docs/requests.md", "# What a job can ask for",
            ["(after 2h00m)", "alternative 2", "inside the box", "postponed", "whole machine", "exit status 2"],
        ),
        (
            "docs/simulate.md", "# Simulating a site",
            ["easy             3      1.33", "conservative", "3 jobs · average wait 33s"],
        ),
        (
            "docs/api.md", "# The HTTP API",
            [
                '"added":[1,2]', '"next":"1-1"', '"id":2', '"exit_code":4', '"text":"hello\\n"', '"changed":1',
                "event: change",
                '"code":"not_found"', "there is no parameter 'colour'", '{"ok":true,"manager":true}',
                'rota_jobs{state="complete"}',
            ],
        ),
    ],
)  # fmt: skip
def test_a_tour_works_when_pasted(tmp_path: Path, page: str, begin: str, expected: list[str]) -> None:
    script = _blocks(page, begin=begin)
    env = {key: value for key, value in os.environ.items() if not key.startswith("ROTA_")}
    env |= {"PATH": f"{Path(sys.executable).parent}:{env['PATH']}", "HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        ["bash", "-c", script], env=env, cwd=tmp_path, capture_output=True, text=True, timeout=170, check=False
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    for words in expected:
        assert words in said, said
    for words in _WRONG:
        assert words not in said, said


def test_the_diagram_of_states_is_that_of_the_table() -> None:
    assert as_mermaid() in (_TOP / "docs" / "states.md").read_text()
