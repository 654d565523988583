"""The options `--from`, `--to` and `--last` of reports."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import click


def options(since: str, until: str) -> Callable[[Any], Any]:
    """Decorator: add the three options, with the defaults that their help names."""

    def add(command: Any) -> Any:
        command = click.option("--last", metavar="TIME", help="Short for --from -TIME, such as 36h.")(command)
        command = click.option("--to", "until", metavar="WHEN", help=f"Until then (default: {until}).")(command)
        return click.option("--from", "since", metavar="WHEN", help=f"From then on (default: {since}).")(command)

    return add


def moments(since: str | None, until: str | None, last: str | None = None) -> tuple[float | None, float | None]:
    """Start and end in Unix seconds, None if not given; `-2d` is two days ago. Raises `BadInput`."""
    from rota.errors import BadInput

    if last is not None:
        if since is not None:
            raise BadInput("--last and --from both set the start", hint="give one of them")
        since = _ago(last)
    first, end = _moment("--from", since), _moment("--to", until)
    if first is not None and end is not None and end <= first:
        raise BadInput("--to: the time is not after --from", hint="give a later one, or leave it out")
    return first, end


def _ago(text: str) -> str:
    from rota.errors import BadInput
    from rota.units import parse_duration

    try:
        seconds = parse_duration(text.strip())
    except BadInput as error:
        raise BadInput(f"--last: {error.message}", hint="write it like 36h or 2d") from None
    if not seconds:
        raise BadInput(f"--last: '{text[:40]}' is no time at all", hint="write it like 36h or 2d")
    return f"-{text.strip()}"


def _moment(option: str, text: str | None) -> float | None:
    if text is None:
        return None
    from rota.core.fields.moments import parse_moment
    from rota.errors import BadInput
    from rota.time_zones import local_seconds
    from rota.units import parse_duration

    word = text.strip()
    try:
        if word.startswith(("-", "now-")):
            return time.time() - parse_duration(word.removeprefix("now")[1:])
        return parse_moment(word, now=time.time(), local=local_seconds)
    except BadInput as error:
        hint = "write it like 2026-11-16, 2026-11-16T08:00, -2d or @1700000000"
        raise BadInput(f"{option}: {error.message}", hint=hint) from None
