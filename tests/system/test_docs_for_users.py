"""What the pages for users tell people to paste works when it is pasted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.system.tours import LONGEST_S, paste


@pytest.mark.parametrize(
    ("page", "begin", "expected"),
    [
        (
            "README.md", "## Five minutes",
            ["exit status 1", "there is no tea", "exit status 0", "poured", "hello from a", "all mine: 0", "one"],
        ),
        (
            "docs/coming-from.md", "# Coming from another tool",
            ["field 'cloud_os'", "already complete", "exit status 1", "exit status 0", "task 4", "all three are"],
        ),
        (
            "docs/planning.md", "# Reading the plan",
            ["job 2 is ready", "until job 1 ends", '"blockers":', "(expected)", "|1=", "|2-", "alternative 2"],
        ),
    ],
)  # fmt: skip
@pytest.mark.timeout(LONGEST_S + 10)
def test_a_tour_works_when_pasted(tmp_path: Path, page: str, begin: str, expected: list[str]) -> None:
    paste(tmp_path, page=page, begin=begin, expected=expected)
