"""The SELECTOR argument, with completion from what the manager knows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from rota.cli.command import invocation

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


def _complete(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Groups and states, if a manager answers at once; never an error."""
    from rota.client import connect
    from rota.core.states import State

    words = ["all", "last", *(f"state={state.label}" for state in State)]
    if not incomplete or incomplete.startswith("@"):
        try:
            with connect(invocation(context).home.path, timeout=0.5) as client:
                words += [f"@{group}" for group in client.status().groups]
        except Exception:  # completion must never print
            pass
    return [word for word in words if word.startswith(incomplete)]


def job_id(text: str) -> int:
    """The id of one job. Raises `BadInput`."""
    from rota.errors import BadInput

    if not (text.isascii() and text.isdigit()) or not 0 < len(text) < 19 or int(text) == 0:
        raise BadInput(f"'{text[:40]}' is not a job's id", hint="give a number; list jobs with 'rota jobs'")
    return int(text)
