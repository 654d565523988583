"""What the documentation tells people to paste works when it is pasted: pages about nodes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.system.tours import LONGEST_S, paste


@pytest.mark.parametrize(
    ("page", "begin", "expected"),
    [
        (
            "docs/nodes.md", "# Nodes: from one machine to a cluster",
            ["n1    alive", "job 6 ran", "only where it is fast", "two nodes:\n", "drained", "removed 2 nodes"],
        ),
        (
            "docs/energy.md", "# Energy",
            ["n1    asleep", "n2    asleep", "awake: n1 n2", "n1 is woken", "n2 is put to sleep", "ASLEEP"],
        ),
        (
            "docs/lab.md", "# A lab that schedules itself",
            [
                "arm: beta", "in the west: gamma", "unknown property 'colour'", "beta works again", "ann, bob",
                "manual     running", "client=", "the server is up", "members one and two", "gamma has no network",
                "installed and run on alpha", "what went wrong", "keeps beta for 1h", '"condition":"broken"',
            ],
        ),
        ("docs/hooks.md", "# Hooks: scripts of the site", ["is suspected", "it ran"]),
    ],
)  # fmt: skip
@pytest.mark.timeout(LONGEST_S + 10)
def test_a_tour_works_when_pasted(tmp_path: Path, page: str, begin: str, expected: list[str]) -> None:
    paste(tmp_path, page=page, begin=begin, expected=expected)
