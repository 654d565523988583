"""`rota kill`, `retry`, `remove`, `hold`, `release`, `confirm-dead`: act on jobs, say how many changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from rota.cli.command import Invocation, command, print_json
from rota.cli.printing import aside, say
from rota.cli.selecting import selectors

if TYPE_CHECKING:
    from rota.core.answers import Acted

#: So many ranges of ids are asked about to explain why nothing changed.
_ASKED_MAX: Final = 500


@command("kill")
@selectors(required=True)
def kill(call: Invocation, selectors: tuple[str, ...]) -> int:
    """Cancel jobs; those that run are ended, with all their processes.

    \b
    Examples:
      rota kill 12 15-17
      rota kill @work,state=running
      rota kill last
    """
    return _act(call, "kill", selectors, done="killed")


@command("retry")
@selectors(required=True)
def retry(call: Invocation, selectors: tuple[str, ...]) -> int:
    """Run failed or cancelled jobs again, with all their retries.

    \b
    Examples:
      rota retry 12
      rota retry state=failed
    """
    return _act(call, "retry", selectors, done="to be run again")


@command("remove")
@selectors(required=True)
@click.option("--cascade", is_flag=True, help="Also remove everything that depends on them.")
def remove(call: Invocation, selectors: tuple[str, ...], cascade: bool) -> int:
    """Forget jobs that have ended, with their output.

    \b
    Examples:
      rota remove @work,state=complete
      rota remove --cascade 12
    """
    return _act(call, "remove", selectors, done="removed", cascade=cascade)


@command("hold")
@selectors(required=True)
def hold(call: Invocation, selectors: tuple[str, ...]) -> int:
    """Keep waiting jobs from starting, until they are released.

    \b
    Examples:
      rota hold @work
    """
    return _act(call, "hold", selectors, done="held")


@command("release")
@selectors(required=True)
def release(call: Invocation, selectors: tuple[str, ...]) -> int:
    """Let held jobs start again.

    \b
    Examples:
      rota release state=held
    """
    return _act(call, "release", selectors, done="released")


@command("confirm-dead")
@selectors(required=True)
def confirm_dead(call: Invocation, selectors: tuple[str, ...]) -> int:
    """Declare lost jobs dead, when you know that nothing of them runs any more.

    Their retries then decide whether they run again.

    \b
    Examples:
      rota confirm-dead 12
    """
    return _act(call, "confirm-dead", selectors, done="declared dead")


def _act(call: Invocation, verb: str, words: tuple[str, ...], *, done: str, cascade: bool = False) -> int:
    with call.connect() as client:
        acted = client.remove(*words, cascade=cascade) if verb == "remove" else client.act(verb, *words)
    return tell(call, acted, done=done)


def tell(call: Invocation, acted: Acted, *, done: str) -> int:
    """Say how many jobs changed; the exit status."""
    if call.json:
        body = {"changed": acted.changed, "unchanged": acted.unchanged, "missing": acted.missing}
        print_json(body)
    elif call.quiet:
        say(*map(str, acted.changed))
    else:
        from rota.cli.terminal import count, few_ranges

        ids = f": {few_ranges(acted.changed)}" if acted.changed else ""
        same = f"; {len(acted.unchanged):,} unchanged" if acted.unchanged else ""
        if acted.unchanged and not acted.changed:
            same += _states(call, acted.unchanged)
        say(f"{count(len(acted.changed), 'job')} {done}{ids}{same}")
    if acted.missing:
        if not call.json:
            from rota.cli.terminal import few_ranges

            aside(f"rota: there is no job {few_ranges(acted.missing)}; list them with 'rota jobs'")
        return 3
    return 0


def _states(call: Invocation, jobs: list[int]) -> str:
    """Why nothing changed, in a word or two: the states that these jobs are in."""
    from rota.cli.terminal import ranges
    from rota.errors import RotaError

    words = ranges(jobs).split(",")
    if len(words) > _ASKED_MAX:
        return ""
    try:
        with call.connect() as client:
            counts = client.status(*words).counts
    except RotaError:  # what was asked for has been told; this only explains it
        return ""
    if len(counts) == 1:
        return f" ({next(iter(counts))})"
    return f" ({', '.join(f'{number:,} {state}' for state, number in counts.items())})" if counts else ""
