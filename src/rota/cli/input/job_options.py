"""The options for fields of jobs: defaults for `add` and `run`, changes for `modify`."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final, TypeVar

import click

from rota.cli.input.selectors import files
from rota.core.fields.field import JobField
from rota.core.fields.table import FIELDS

F = TypeVar("F", bound=Callable[..., Any])

NAMES: Final = tuple(FIELDS)


def job_options(function: F) -> F:
    """Decorator: add the options of all fields."""
    return options_for(NAMES)(function)


def options_for(names: Collection[str], *, hidden: Collection[str] = ()) -> Callable[[F], F]:
    """Decorator: add the options of these fields; `hidden` ones are parsed, to be refused with a good message."""

    def decorate(function: F) -> F:
        for name in reversed(NAMES):
            if name in names or name in hidden:
                function = _option(FIELDS[name], hidden=name not in names)(function)
        return function

    return decorate


def _option(field: JobField, *, hidden: bool) -> Callable[[F], F]:
    words = field.flags or (field.option,)
    metavar = field.metavar or field.kind.metavar
    # None if a flag is not given, so that a default differs from an explicit no.
    attributes: dict[str, Any] = {"metavar": metavar} if metavar else {"is_flag": True, "default": None}
    if field.many:
        attributes["multiple"] = True
    return click.option(*words, field.name, **attributes, help=field.help, hidden=hidden)


def given(options: dict[str, Any]) -> dict[str, object]:
    """Remove the job options from a command's arguments; returns the given ones."""
    found = {name: options.pop(name) for name in NAMES if name in options}
    return {name: value for name, value in found.items() if value is not None and value != ()}


def call_options(function: F) -> F:
    """Decorator: add the options by which the job of `add` or `run` is the call of a Python function."""
    for option in (_check, _python, _kwargs, _args, _call):
        function = option(function)
    return function


_call = click.option(
    "--call",
    "function",
    metavar="FUNCTION",
    help="Call this Python function, module:function or path.py:function.",
)
_args = click.option("--args", metavar="JSON", help="Its arguments, as a JSON list.")
_kwargs = click.option("--kwargs", metavar="JSON", help="Its keyword arguments, as a JSON object.")
_python = click.option(
    "--python",
    metavar="PATH",
    help="The interpreter that runs it, without Rota if need be (default: python3).",
)
_check = click.option(
    "--check",
    "check_call",
    is_flag=True,
    help="Import the function here first, and refuse arguments that it does not take.",
)


def given_call(options: dict[str, Any]) -> dict[str, object]:
    """Remove the options of `call_options` from a command's arguments; returns the given ones."""
    found = {name: options.pop(name) for name in ("args", "kwargs", "python", "check_call")}
    found["call"] = options.pop("function")
    return {name: value for name, value in found.items() if value is not None and value is not False}


#: Of commands that take an input.
script_option: Final = click.option(
    "--script",
    metavar="FILE",
    shell_complete=files,
    help="Run this file ('-': stdin) as one job, with the options in its #ROTA lines; arguments follow after --.",
)
lines_option: Final = click.option(
    "--lines", is_flag=True, help="The input is a list of commands although it looks like a script."
)
input_option: Final = click.option(
    "--input",
    "source",
    metavar="NAME",
    help="Name of this input, instead of its path; adding it again replaces jobs that did not complete.",
)
