"""`rota node ready`: a machine that is being provisioned is ready."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from rota.cli.command import Command, Invocation, print_json
from rota.cli.render.printing import print_out

if TYPE_CHECKING:
    from rota.client.blocking import Client


@click.command("ready", cls=Command)
@click.argument("host", metavar="[HOST]", required=False)
@click.option(
    "--ticket", "ticket_file", metavar="FILE",
    help="The ticket that its provision command was given (default: that of $ROTA_TICKET).",
)  # fmt: skip
def ready(call: Invocation, host: str | None, ticket_file: str | None) -> int:
    """Say that a machine that is being provisioned for a job is ready: it may join again, also as a new machine.

    The machine itself needs nothing but its ticket, which is for one use. Administrators name the machine instead.

    \b
    Examples:
      rota node ready --ticket /root/rota.ticket
      rota node ready n7
    """
    from rota.errors import BadInput

    if host and ticket_file:
        raise BadInput("a ticket is for one machine already", hint="leave out the name of the machine")
    ticket_file = ticket_file or (None if host else os.environ.get("ROTA_TICKET"))
    if ticket_file:
        with _by_ticket(ticket_file) as client:
            name = client.node_ready()
    elif host or (host := os.environ.get("ROTA_HOST")):
        with call.connect() as client:
            name = client.node_ready(host)
    else:
        raise BadInput("say which machine is ready", hint="give its ticket with --ticket FILE, or its name")
    if call.json:
        print_json({"host": name})
    elif call.quiet:
        print_out(name)
    else:
        print_out(f"node {name} is ready")
    return 0


def _by_ticket(file: str) -> Client:
    """A connection to the manager that the ticket names, and to no other. Raises `RotaError`."""
    import tempfile
    from pathlib import Path

    from rota.client.blocking import Client
    from rota.client.endpoint import Endpoint
    from rota.wire import ticket_file
    from rota.wire.permissions import MACHINE

    ticket = ticket_file.read(Path(file))
    address, port = ticket_file.address(ticket.manager)
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as authority:
        authority.write(ticket.authority)
        authority.flush()
        endpoint = Endpoint(host=address, port=port, ca=Path(authority.name), role=MACHINE, token=ticket.secret)
        return Client(lambda: endpoint)
