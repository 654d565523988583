"""The pages that guide through the code name files that exist, and nothing outside the project."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

_TOP = Path(__file__).parents[1]
_SOURCE = _TOP / "src" / "rota"
#: The map and the decisions; other pages are for users and name no modules.
_PAGES = [_TOP / "CONTRIBUTING.md", _TOP / "docs/architecture.md", _TOP / "docs/words.md", _TOP / "docs/rules.md"]
_PAGES += sorted((_TOP / "docs/adr").glob("*.md"))
_FILE = re.compile(r"`([a-z][a-z_0-9/]*(?:\.py|/))`")


def _rooms() -> set[str]:
    return {entry.name for entry in _SOURCE.iterdir() if entry.is_dir()}


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: page.name)
def test_every_file_that_a_page_names_exists(page: Path) -> None:
    text = page.read_text().partition("\n## Renamed\n")[0]
    named = [name for name in _FILE.findall(text) if name.partition("/")[0] in _rooms()]
    missing = [name for name in named if not (_SOURCE / name).exists()]
    assert not missing, f"{page.name} names {missing}; has it moved?"


def test_the_walk_of_a_job_has_its_25_stops_and_there_are_20_likely_changes() -> None:
    text = _PAGES[1].read_text()
    walk = text.partition("## The walk of one job")[2].partition("\n## ")[0]
    changes = text.partition("## To change …, open …")[2].partition("\n## ")[0]
    assert len(re.findall(r"^\| \d+ \|.*`[\w/]+\.py`", walk, re.M)) == 25
    assert len(re.findall(r"^\|.*`[\w/.]+`", changes, re.M)) >= 20


def test_every_package_says_what_it_is_for() -> None:
    for init in _SOURCE.rglob("__init__.py"):
        assert init.read_text().lstrip().startswith('"""'), f"{init} has no docstring"
