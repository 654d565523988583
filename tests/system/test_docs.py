"""What the documentation tells people to paste works when it is pasted: the tutorial and two short pages."""

from __future__ import annotations

from pathlib import Path

import pytest

from rota.core.machines import machine_states
from rota.core.states import as_mermaid
from tests.system.tours import LONGEST_S, TOP, paste


@pytest.mark.parametrize(
    ("page", "begin", "expected"),
    [
        (
            "docs/tutorial.md", "# Tutorial",
            ["exit status 5", "55\t10", "I was not disturbed", "rota: 8 complete", "never fits"],
        ),
        (
            "docs/simulate.md", "# Simulating a site",
            ["easy             3      1.33", "conservative", "3 jobs · average wait 33s"],
        ),
        (
            "docs/calls.md", "# Calling Python functions",
            [
                "1.5\n", "0.8\n", '"result":0.8', "failed (ValueError: there are no melons)", "\n16\n", "5.0 0.5",
                "\n27\n[0, 1, 4, 9, 16]\n249500250000\n512\n", "no: there are no melons",
            ],
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
@pytest.mark.timeout(LONGEST_S + 10)
def test_a_tour_works_when_pasted(tmp_path: Path, page: str, begin: str, expected: list[str]) -> None:
    paste(tmp_path, page=page, begin=begin, expected=expected)


def test_the_diagram_of_states_is_that_of_the_table() -> None:
    assert as_mermaid() in (TOP / "docs" / "states.md").read_text()


def test_the_diagram_of_machines_is_that_of_the_table() -> None:
    page = (TOP / "docs" / "machines.md").read_text()
    assert machine_states.as_mermaid() in page
    assert machine_states.as_table() in page
