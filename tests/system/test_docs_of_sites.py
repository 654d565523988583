"""What the pages about sites and requests tell people to paste works when it is pasted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.system.tours import LONGEST_S, paste


@pytest.mark.parametrize(
    ("page", "begin", "expected"),
    [
        (
            "docs/resources.md", "# Resources of a site",
            ["added 64 resources on 4 hosts", "switch / rack / host / cpu / core", "removed property rack"],
        ),
        (
            "docs/policy.md", "# Sharing a site",
            ["in the night", "0.5*ALL", "19:00  day", "cap walltime=12h", "ask us first", "exit status 2"],
        ),
        (
            "docs/requests.md", "# What a job can ask for",
            ["(after 2h00m)", "alternative 2", "inside the box", "postponed", "whole machine", "exit status 2"],
        ),
    ],
)  # fmt: skip
@pytest.mark.timeout(LONGEST_S + 10)
def test_a_tour_works_when_pasted(tmp_path: Path, page: str, begin: str, expected: list[str]) -> None:
    paste(tmp_path, page=page, begin=begin, expected=expected)
