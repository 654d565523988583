"""The SELECTOR argument, with completion from what the manager knows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from rota.client import Client

F = TypeVar("F", bound=Callable[..., Any])


def selectors(*, required: bool) -> Callable[[F], F]:
    """Decorator: the argument SELECTOR…"""
    return click.argument(
        "selectors",
        nargs=-1,
        required=required,
        metavar="SELECTOR…" if required else "[SELECTOR…]",
        shell_complete=_complete,
    )


def files(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem[Any]]:
    """Completion by the shell's own file names."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="file")]


def _complete(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Complete groups and states, also after a comma."""
    from rota.cli.command import connect_briefly
    from rota.cli.input.completions import from_manager
    from rota.core.states import State

    before, comma, part = incomplete.rpartition(",")
    words = [
        "all",
        "last",
        "name=",
        "cmd~",
        "exit=",
        "older=",
        "pool=",
        *(f"state={state.label}" for state in State),
    ]
    if not part or part.startswith("@"):
        words += from_manager(
            lambda: connect_briefly(context),
            lambda client: [group_selector(group) for group in client.status().groups],
        )
    return [f"{before}{comma}{word}" for word in words if word.startswith(part)]


def group_selector(group: str) -> str:
    """The selector of one group, whatever its name. Commas would join conditions, an asterisk at the end would
    mean all groups that begin so."""
    from rota.core.fields.values import with_commas

    named = with_commas(group)
    return f"@{named[:-1]}\\*" if named.endswith("*") else f"@{named}"


def one_job(client: Client, text: str) -> int:
    """The job meant by an id, or by a selector that only one job matches. Raises `NotFound`, `BadInput`."""
    from rota.errors import BadInput, NotFound

    if text.isascii() and text.isdigit() and 0 < len(text) < 19 and int(text):
        return int(text)
    page = client.jobs(text, limit=2)
    if not page.jobs:
        raise NotFound(f"no job matches '{text[:40]}'", hint="list them with 'rota jobs'")
    if len(page.jobs) > 1:
        hint = "give the id of one; list them with 'rota jobs'"
        raise BadInput(f"{page.total} jobs match '{text[:40]}'", hint=hint)
    return page.jobs[0].id
