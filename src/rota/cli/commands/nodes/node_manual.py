"""`rota node reserve` and `rota node return`: machines for use by hand."""

from __future__ import annotations

from datetime import datetime

import click

from rota.cli.command import Command, Invocation


@click.command("reserve", cls=Command)
@click.argument("host", metavar="HOST")
@click.option(
    "--for", "duration", metavar="TIME", required=True, help="How long you need the machine, such as 2h or 3d."
)
@click.option("--when-free", is_flag=True, help="If it is busy, get it as soon as it is free.")
def reserve(call: Invocation, host: str, duration: str, when_free: bool) -> int:
    """Reserve a machine for use by hand: it gets no jobs until you return it or the time is over.

    For its owner, the members of its machine groups and administrators. Refused while the machine is busy.

    \b
    Examples:
      rota node reserve alpha --for 2h
      rota node reserve beta --for 1d --when-free
    """
    from rota.cli.commands.site import site_records
    from rota.errors import BadInput
    from rota.units import parse_duration

    try:
        seconds = parse_duration(duration)
    except BadInput as error:
        raise error.at(field="for", label="--for") from None
    with call.connect() as client:
        until = client.reserve_machine(host, seconds=seconds, when_free=when_free)
    if until is None:
        return site_records.tell(call, f"{host}: yours as soon as it is free", host=host, until=None)
    at = datetime.fromtimestamp(until).astimezone()
    return site_records.tell(call, f"{host}: yours until {at:%Y-%m-%d %H:%M:%S}", host=host, until=at)


@click.command("return", cls=Command)
@click.argument("host", metavar="HOST")
def return_(call: Invocation, host: str) -> int:
    """Return a machine that was reserved by hand, or give up waiting for it.

    \b
    Examples:
      rota node return alpha
    """
    from rota.cli.commands.site import site_records

    with call.connect() as client:
        client.return_machine(host)
    return site_records.tell(call, f"{host}: returned", host=host)
