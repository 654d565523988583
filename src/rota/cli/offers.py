"""The words that a shell is offered for the values of options and arguments; never an error."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

import click
from click.shell_completion import CompletionItem

from rota.cli.command import invocation

if TYPE_CHECKING:
    from rota.client import Client

#: A prompt must not hang.
_PATIENCE_S: Final = 0.5

#: Parameters whose values are names of files or directories.
_PATHS: Final = {
    "array_file": "file",
    "cwd": "dir",
    "home": "dir",
    "input_file": "file",
    "stderr": "file",
    "stdout": "file",
}


def offers(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem[Any]]:
    """What there is for this parameter; of a `NAME:N` the name."""
    name = parameter.name or ""
    if name in _PATHS:
        return [CompletionItem(incomplete, type=_PATHS[name])]
    words: Iterable[str] = ()
    if name == "override":
        words = ("no", "higher", "always")
    elif name == "limits":
        words = from_manager(context, lambda client: [limit.name for limit in client.limits()])
    elif name == "learn" or (name == "name" and context.command.name == "learn"):
        words = from_manager(context, lambda client: [group.name for group in client.learned()])
    return [CompletionItem(word) for word in words if word.startswith(incomplete)]


def from_manager(context: click.Context, ask: Callable[[Client], list[str]]) -> list[str]:
    """What a manager that answers at once says; else nothing."""
    from rota.client import connect

    given = invocation(context)
    try:
        with connect(given.home.path, address=given.address, timeout=_PATIENCE_S) as client:
            return ask(client)
    except Exception:  # whatever it is, a prompt is no place to tell it
        return []
