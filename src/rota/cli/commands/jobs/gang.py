"""`rota gang`: the members of a gang, and points at which they wait for each other."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import click

from rota.cli.command import Group, Invocation, print_json
from rota.cli.render.printing import print_err, print_out
from rota.errors import BadInput, RotaError, TimedOut

if TYPE_CHECKING:
    from rota.client.live_channel import LiveChannel
    from rota.wire.gang_views import GangView

_HINT: Final = "it is meant for the commands of jobs that were added with --gang"
#: Seconds between attempts to reach the runner again.
_PAUSE_S: Final = 0.5
_REFUSED: Final = 2


@click.group("gang", cls=Group)
def gang() -> None:
    """Gangs: jobs that begin together, or not at all."""


@gang.command("show")
@click.argument("name")
def show(call: Invocation, name: str) -> int:
    """Show the members of the newest gang of this name: their states and hosts, and who is missing.

    \b
    Examples:
      rota gang show web-and-db
      rota gang show web-and-db --json
    """
    with call.connect_to_read() as client:
        view = client.gang(name)
    if call.json:
        print_json(view)
    elif call.quiet:
        print_out(*(str(member.id) for member in view.members))
    else:
        _print(view)
    return 0


def _print(view: GangView) -> None:
    from rota.cli.render.text import harmless, table

    rows = []
    for member in view.members:
        note = "missing" if member.id in view.missing else ""
        rows.append([str(member.id), harmless(member.name), member.state, harmless(",".join(member.hosts)), note])
    print_out(f"gang {harmless(view.gang)} is {view.state}")
    print_out(table(["ID", "NAME", "STATE", "HOSTS", ""], rows, right="rllll"))
    if view.reserved_at is not None:
        print_out(f"planned to begin at {view.reserved_at.astimezone():%Y-%m-%d %H:%M:%S}")


@gang.command("wait")
@click.argument("point")
@click.option("--timeout", metavar="TIME", help="Give up after this time, with exit status 6 (default: never).")
def wait(_call: Invocation, point: str, timeout: str | None) -> int:
    """Inside a member of a gang: wait until all members have come to this point.

    Exit status 1 if a member has ended, 6 if the time is over. A point may be used again: then all wait for each
    other again.

    \b
    Examples:
      rota gang wait ready
      rota gang wait ready --timeout 5m
    """
    from rota.units import parse_duration

    seconds = None if timeout is None else parse_duration(timeout)
    job = os.environ.get("ROTA_JOB_ID", "")
    if not job.isascii() or not job.isdigit() or not os.environ.get("ROTA_GANG"):
        raise BadInput("this is not inside a member of a gang: ROTA_GANG is not set", hint=_HINT)
    exit_code, message = _meet(int(job), point, seconds)
    if message:
        print_err(f"rota: {message}")
    return exit_code


def _meet(job: int, point: str, timeout: float | None) -> tuple[int, str]:
    """Wait at the point; the exit code, and a sentence if it is not 0. Raises `TimedOut`."""
    from time import monotonic, sleep
    from uuid import uuid4

    from rota.cli.rsh import call_runner
    from rota.client.channels import Opening
    from rota.client.live_channel import LiveChannel
    from rota.client.session import Disconnected

    what = Opening(job=job, meet=point, wait=uuid4().hex)
    until = None if timeout is None else monotonic() + timeout
    while True:
        try:
            with call_runner() as client:
                found = _await(LiveChannel(client, what), until, point)
        except (Disconnected, OSError):
            found = None
        except RotaError as error:
            if error.code not in ("no_manager", "environment"):
                raise
            found = None
        if found is not None:
            return found
        # The manager or the runner is starting anew: it is asked again, and knows this wait by its id.
        if until is not None and monotonic() >= until:
            raise _timed_out(point)
        sleep(_PAUSE_S)


def _await(channel: LiveChannel, until: float | None, point: str) -> tuple[int, str] | None:
    """The end of the wait; None: the connection was lost."""
    from time import monotonic

    from rota.wire.client_messages import ChannelEnd, Failure

    while True:
        left = 3600.0 if until is None else until - monotonic()
        message = channel.poll(max(0.0, left))
        if message is None:
            if until is not None and monotonic() >= until:
                channel.end()
                raise _timed_out(point)
            continue
        if isinstance(message, Failure):
            if message.code == "no_manager":
                return None
            return _REFUSED, message.message
        if isinstance(message, ChannelEnd):
            if message.lost:
                return None
            return (_REFUSED if message.exit_code is None else message.exit_code), message.message


def _timed_out(point: str) -> TimedOut:
    return TimedOut(
        f"not all members of the gang came to point '{point}' in time", hint="see 'rota gang show $ROTA_GANG'"
    )
