"""Every command and every setting is documented, and the pages are current."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from rota.cli.main import COMMANDS
from rota.cli.reference import commands, pages
from rota.config import all_settings
from rota.core.fields.table import FIELDS
from rota.plan.policy.policy import DEFAULT_QUEUES

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", ["cli.md", "configuration.md"])
def test_the_page_is_current(name: str) -> None:
    assert (DOCS / name).read_text("utf-8") == pages()[name], "write it with: python -m rota.cli.reference"


def test_every_command_is_documented_with_an_example() -> None:
    page = (DOCS / "cli.md").read_text("utf-8")
    found = dict(commands())
    assert {path.split()[1] for path in found} == set(COMMANDS)
    for path, command in found.items():
        assert f"## `{path}`" in page
        assert command.help, path
        if not isinstance(command, click.Group) and path != "rota version":
            assert "Examples:" in command.help, path
        for option in command.params:
            if isinstance(option, click.Option) and not option.hidden:
                assert option.help, f"{path} {option.name}"


def test_every_field_of_an_input_is_documented() -> None:
    table = (DOCS / "cli.md").read_text("utf-8").partition("## Input")[2].partition("## Exit status")[0]
    first = "\n".join(line.split("|")[1] for line in table.splitlines() if line.startswith("| `"))
    assert set(re.findall(r"`([a-z_]+)`", first)) == {"cmd", *FIELDS}


def test_every_queue_that_is_always_there_is_documented() -> None:
    for page, line in (("cli.md", "| `queue` | name of a queue"), ("policy.md", "are always there")):
        (said,) = [each for each in (DOCS / page).read_text("utf-8").splitlines() if line in each]
        assert set(re.findall(r"`([a-z]+)`", said)) - {"queue"} == set(DEFAULT_QUEUES)


def test_every_setting_is_documented() -> None:
    page = (DOCS / "configuration.md").read_text("utf-8")
    for name, setting in all_settings().items():
        assert f"`{name}`" in page
        assert f"`{setting.variable}`" in page


def test_the_index_lists_every_page_and_every_decision_once() -> None:
    index = (DOCS / "index.md").read_text("utf-8")
    for page in [*DOCS.glob("*.md"), *DOCS.glob("adr/*.md")]:
        if page.name != "index.md":
            assert index.count(f"({page.relative_to(DOCS)})") == 1, page.name


def test_every_decision_has_a_number_of_its_own() -> None:
    numbers = [page.name[:4] for page in sorted(DOCS.glob("adr/*.md"))]
    assert sorted(set(numbers)) == numbers
    for page in DOCS.glob("adr/*.md"):
        assert page.read_text("utf-8").startswith(f"# {int(page.name[:4])}. "), page.name
