"""The page for those who come from other tools promises only commands and options that there are."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from rota.cli.main import rota
from rota.core.fields.table import FIELDS

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "coming-from.md").read_text("utf-8")
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


#: What the page says is missing, and the command or option by which it would show that it is not.
MISSING = {
    "mounts of object stores": "--mount",
    "bsub emulation": "bsub",
    "a list of commands as a selector (`-f`)": "-f",
    "composing command lines": "--colsep",
    "`--pipe`": "--pipe",
    "`--halt`": "--halt",
    "steps that are accounted one by one": "step",
    "licences that a server counts": "--licences",
    "federations of several managers": "federation",
    "rules": "--snakefile",
    "wildcards": "--wildcard",
    "reports": "report",
    "conda and containers for each rule": "--image",
}


def everything(command: click.Command) -> Iterator[str]:
    """The names of all commands below this one, and of their options; those of `logs -f` mean something else."""
    for parameter in command.params if command.name != "logs" else []:
        yield from [*parameter.opts, *parameter.secondary_opts]
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            member = command.get_command(context, name)
            assert member is not None
            yield from [name, *everything(member)]


def test_what_the_page_says_is_missing_is() -> None:
    said = [each for line in re.findall(r"^Not in Rota: (.*)\.$", PAGE, re.MULTILINE) for each in line.split(", ")]
    assert sorted(said) == sorted(MISSING)
    assert set(MISSING.values()).isdisjoint(everything(rota))


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.name)
def test_no_page_speaks_of_what_will_come(page: Path) -> None:
    """Such a sentence is not noticed when it has come true."""
    assert (
        re.findall(r"come later|not in this version|in a later version|Not in Rota yet", page.read_text("utf-8"))
        == []
    )
