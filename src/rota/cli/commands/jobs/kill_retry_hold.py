"""`rota kill`, `retry`, `remove`, `hold`, `release`, `confirm-dead`: act on jobs and print how many changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from rota.cli.command import Invocation, command, print_json
from rota.cli.input.selectors import selectors
from rota.cli.render.printing import confirmed, print_err, print_out

if TYPE_CHECKING:
    from rota.client import Client
    from rota.core.answers import Acted

#: Up to this many ranges of ids are looked up to explain why nothing changed.
_ASKED_MAX: Final = 500
_AGAIN: Final = "to be run again"
MODIFIED: Final = "modified"
#: Above this many jobs, kill and remove ask for confirmation.
_UNASKED: Final = 100


@command("kill")
@selectors(required=True)
@click.option("-y", "--yes", is_flag=True, help="Do not ask, however many jobs there are.")
def kill(call: Invocation, selectors: tuple[str, ...], yes: bool) -> int:
    """Cancel jobs; running ones are killed, with all their processes.

    On a terminal, asks before it kills more than 100 jobs.

    \b
    Examples:
      rota kill 12 15-17
      rota kill @work,state=running
      rota kill last
    """
    with call.connect() as client:
        if not yes and not _sure(client, "kill", selectors):
            return _nothing()
        acted = client.kill(*selectors)
    return tell(call, acted, done="killed")


@command("retry")
@selectors(required=True)
def retry(call: Invocation, selectors: tuple[str, ...]) -> int:
    """Run failed or cancelled jobs again, with all their retries.

    \b
    Examples:
      rota retry 12
      rota retry state=failed
    """
    return _act(call, "retry", selectors, done=_AGAIN)


@command("remove")
@selectors(required=True)
@click.option("--cascade", is_flag=True, help="Also remove all jobs that depend on them.")
@click.option("--waiting", is_flag=True, help="Also remove waiting jobs, which then never run.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask, however many jobs there are.")
def remove(call: Invocation, selectors: tuple[str, ...], cascade: bool, waiting: bool, yes: bool) -> int:
    """Remove jobs that have ended, with their output.

    Selected jobs that have not ended, or that other jobs wait for, are kept and counted. If such a job is named
    by its id, the command is refused. On a terminal, asks before it removes more than 100 jobs.

    \b
    Examples:
      rota remove all
      rota remove @work,state=complete
      rota remove --waiting @work
      rota remove --cascade 12
    """
    with call.connect() as client:
        if not yes and not _sure(client, "remove", selectors, cascade=cascade, waiting=waiting):
            return _nothing()
        acted = client.remove(*selectors, cascade=cascade, waiting=waiting)
    return tell(call, acted, done="removed", removing=True)


def _sure(client: Client, verb: str, words: tuple[str, ...], **how: bool) -> bool:
    """Ask for confirmation before acting on many jobs; without a terminal, yes."""
    import sys

    from rota.cli.render.text import count, is_terminal
    from rota.errors import EnvironmentFault

    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        return True
    try:
        number = len(client.would(verb, *words, **how).changed)
    except EnvironmentFault:
        number = client.jobs(*words, limit=1).total  # an older manager: how many are named is all that it can say
    return number <= _UNASKED or confirmed(f"{verb.capitalize()} {count(number, 'job')}?")


def _nothing() -> int:
    print_err("rota: nothing was changed")
    return 1


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
    """Declare lost jobs dead, when you know that none of their processes runs any more.

    Their retries then decide whether they run again.

    \b
    Examples:
      rota confirm-dead 12
    """
    return _act(call, "confirm-dead", selectors, done="declared dead")


def _act(call: Invocation, verb: str, words: tuple[str, ...], *, done: str) -> int:
    with call.connect() as client:
        acted = client.act(verb, *words)
    return tell(call, acted, done=done)


def tell(call: Invocation, acted: Acted, *, done: str, removing: bool = False) -> int:
    """Print how many jobs changed, and how many were kept by `remove`; returns the exit status."""
    for warning in acted.warnings:
        print_err(f"rota: warning: {warning}")
    if call.json:
        body: dict[str, object] = {
            "changed": acted.changed,
            "unchanged": acted.unchanged,
            "missing": acted.missing,
        }
        if done == MODIFIED:
            body |= {"warnings": acted.warnings}
        if removing:
            body |= {"removed": len(acted.changed), "kept": acted.kept}
        print_json(body)
    elif call.quiet:
        print_out(*map(str, acted.changed))
    else:
        from rota.cli.render.text import count, few_ranges

        ids = f": {few_ranges(acted.changed)}" if acted.changed else ""
        same = f"; {len(acted.unchanged):,} {'kept' if acted.kept else 'unchanged'}" if acted.unchanged else ""
        if acted.unchanged and (acted.kept or not acted.changed):
            same += _states(call, acted.unchanged, again=done == _AGAIN)
        print_out(f"{count(len(acted.changed), 'job')} {done}{ids}{same}")
    if acted.missing:
        if not call.json:
            from rota.cli.render.text import few_ranges

            print_err(f"rota: there is no job {few_ranges(acted.missing)}; list them with 'rota jobs'")
        return 3
    return 0


def _states(call: Invocation, jobs: list[int], *, again: bool) -> str:
    """Why nothing changed: the states that these jobs are in. `again`: they were to be retried."""
    from rota.cli.render.text import ranges
    from rota.errors import RotaError

    words = ranges(jobs).split(",")
    if len(words) > _ASKED_MAX:
        return ""
    try:
        with call.connect() as client:
            counts = client.status(*words).counts
            found = client.jobs(*words).jobs
    except RotaError:  # what was asked for has been told; this only explains it
        return ""
    why = _replaced([job.replaced_by for job in found if job.replaced_by is not None])
    if again and any(job.at is not None and job.state in ("failed", "cancelled") for job in found):
        why += ", a reservation whose time is over"
    if len(counts) == 1:
        return f" ({next(iter(counts))}{why})"
    states = ", ".join(f"{number:,} {state}" for state, number in counts.items())
    return f" ({states}{why})" if counts else ""


def _replaced(heirs: list[int]) -> str:
    """The jobs that replaced these ones, as the end of a sentence."""
    if not heirs:
        return ""
    from rota.cli.render.text import few_ranges

    others = sorted({heir for heir in heirs if heir})
    return f", replaced by {few_ranges(others)}" if others else ", replaced: the input has no such line any more"
