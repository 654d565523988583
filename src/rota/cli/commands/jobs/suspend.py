"""`rota suspend`, `resume`, `signal`, `checkpoint`: act on jobs that run."""

from __future__ import annotations

import click

from rota.cli.command import Invocation, command
from rota.cli.commands.jobs.kill_retry_hold import tell
from rota.cli.input.selectors import selectors


@command("suspend")
@selectors(required=True)
@click.option("--keep", is_flag=True, help="Keep the cores too: no other job gets them.")
def suspend(call: Invocation, selectors: tuple[str, ...], keep: bool) -> int:
    """Stop all processes of running jobs; other jobs may use their cores until they are resumed.

    They keep their memory, disk, GPUs and limits. The time of a suspension does not count as walltime.

    \b
    Examples:
      rota suspend 12
      rota suspend --keep @work
    """
    with call.connect() as client:
        acted = client.suspend(*selectors, keep=keep)
    return tell(call, acted, done="to be suspended")


@command("resume")
@selectors(required=True)
def resume(call: Invocation, selectors: tuple[str, ...]) -> int:
    """Continue suspended jobs as soon as the cores that they had are free.

    Until then they are suspended with the reason 'resuming'.

    \b
    Examples:
      rota resume 12
      rota resume state=suspended
    """
    with call.connect() as client:
        acted = client.resume(*selectors)
    return tell(call, acted, done="to be resumed")


def _signals(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    from signal import Signals

    names = [each.name.removeprefix("SIG") for each in Signals]
    typed = incomplete.upper().removeprefix("SIG")
    return [name for name in names if name.startswith(typed)]


@command("signal")
@selectors(required=True)
@click.argument("name", metavar="SIGNAL", shell_complete=_signals)
def signal(call: Invocation, selectors: tuple[str, ...], name: str) -> int:
    """Send a signal to all processes of running jobs, on all their nodes.

    \b
    Examples:
      rota signal 12 USR1
      rota signal @work,state=running HUP
    """
    with call.connect() as client:
        acted = client.signal(*selectors, signal=name)
    return tell(call, acted, done=f"sent {name.upper().removeprefix('SIG')}")


@command("checkpoint")
@selectors(required=True)
def checkpoint(call: Invocation, selectors: tuple[str, ...]) -> int:
    """Ask running jobs for a checkpoint now: send each the signal from its option --signal (default: USR2).

    It goes to the process group of the command on the first node.

    \b
    Examples:
      rota checkpoint 12
    """
    with call.connect() as client:
        acted = client.checkpoint(*selectors)
    return tell(call, acted, done="asked for a checkpoint")
