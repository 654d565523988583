"""Commands, settings, codes and all other names that users write down are those that `external.json` lists.

No rename inside the program changes them. What is new is added to the list; nothing in it is ever changed.
"""

from __future__ import annotations

import ast
import inspect
import json
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import click
import pytest

import rota
from rota import errors
from rota.cli.reference import commands
from rota.config import all_settings
from rota.core.fields.table import FIELDS
from rota.core.jobs.reason_texts import _SENTENCES
from tests.core.jobs.test_reason_texts import given_codes

_KNOWN = json.loads(Path(__file__).with_name("external.json").read_bytes())


def _command_line() -> dict[str, str]:
    """Every command with its options, and with its arguments as the help calls them."""
    return {
        path: " ".join(sorted(word for each in made.params for word in _words(each))) for path, made in commands()
    }


def _words(parameter: click.Parameter) -> list[str]:
    if isinstance(parameter, click.Option):
        return [*parameter.opts, *parameter.secondary_opts]
    return [parameter.human_readable_name]


def _methods(kind: type) -> list[str]:
    return sorted(name for name, each in inspect.getmembers(kind) if name[0] != "_" and callable(each))


def _calls(function: str) -> Iterator[ast.Call]:
    for path in Path(rota.__file__).parent.rglob("*.py"):
        text = path.read_bytes()
        if function.encode() not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == function:
                yield node


@cache
def names() -> dict[str, Any]:
    return {
        "commands": _command_line(),
        "settings": {name: setting.variable for name, setting in all_settings().items()},
        "fields of inputs": sorted(FIELDS),
        "errors": {code: errors.from_code(code, "").exit_status for code in sorted(errors._BY_CODE)},
        "reasons": sorted({*_SENTENCES, *given_codes()}),
        "loggers": sorted({ast.unparse(call.args[0]).strip("'") for call in _calls("logging.getLogger")}),
        "Python": {
            "rota": sorted(rota.__all__),
            "Client": _methods(rota.Client),
            "AsyncClient": _methods(rota.AsyncClient),
        },
    }


@pytest.mark.parametrize("title", _KNOWN)
def test_names_are_what_they_always_were(title: str) -> None:
    assert names()[title] == _KNOWN[title]


def test_every_kind_of_name_is_listed() -> None:
    assert names().keys() == _KNOWN.keys()


@pytest.mark.parametrize("module", ["rota.manager", "rota.runner", "rota.api"])
def test_processes_are_started_as_always(module: str) -> None:
    """A manager that runs while the package is upgraded starts runners and the gateway of the new one by name."""
    told = subprocess.run(
        [sys.executable, "-P", "-m", module, "--help"], capture_output=True, text=True, check=False
    )
    assert (told.stdout + told.stderr).split()[:4] == ["usage:", "python", "-m", module]
