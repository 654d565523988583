"""The page for those who come from other tools promises only commands and options that there are."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from rota.cli.main import rota
from rota.client.fields import FIELDS

PAGE = (Path(__file__).parents[2] / "docs" / "coming-from.md").read_text("utf-8")
SPANS = re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```$", "", PAGE, flags=re.MULTILINE | re.DOTALL))


def found(pattern: str) -> list[str]:
    """What a pattern finds in the code spans of the page's text and tables, each once."""
    return list(dict.fromkeys(match for span in SPANS for match in re.findall(pattern, span.replace("\\|", "|"))))


@pytest.mark.parametrize("typed", found(r"rota [a-z][^|]*"))
def test_every_command_on_the_page_is_one(typed: str) -> None:
    words = shlex.split(typed.removesuffix("…"))[1:]
    command: click.Command = rota
    while isinstance(command, click.Group):
        name = words.pop(0)
        member = command.get_command(click.Context(command), name)
        assert member is not None, f"there is no '{name}'"
        command = member
    options = {option for parameter in command.params for option in [*parameter.opts, *parameter.secondary_opts]}
    if "--" in words:
        words = words[: words.index("--")]
    for word in words:
        assert not word.startswith("-") or word == "-" or word in options, f"'{word}' is no option of it"


@pytest.mark.parametrize("name", found(r'"([a-z_]+)": '))
def test_every_field_on_the_page_is_one(name: str) -> None:
    assert name in FIELDS
