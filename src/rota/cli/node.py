"""`rota node`: the hosts of this deployment, and the limits that each of them has."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from rota.cli.command import Group, Invocation, print_json

if TYPE_CHECKING:
    from rota.wire.views import LimitView, RunnerView


@click.group("node", cls=Group)
def node() -> None:
    """The hosts of this deployment and their limits."""


@node.command("list")
def list_nodes(call: Invocation) -> int:
    """List the hosts whose runners are connected, with what they have and what runs there.

    \b
    Examples:
      rota node list
    """
    with call.connect() as client:
        runners, limits = client.manager_status().runners, client.limits()
    if call.json:
        import msgspec

        nodes = [{**msgspec.to_builtins(each), "limits": _limits_of(each.host, limits)} for each in runners]
        print_json({"nodes": nodes})
    elif call.quiet:
        sys.stdout.write("".join(f"{each.host}\n" for each in runners))
    else:
        print(_table(runners, limits) if runners else "no runner is connected yet")
    return 0


@node.command("set")
@click.argument("host", metavar="HOST")
@click.option(
    "--limit", "limits", metavar="NAME:N", multiple=True, required=True,
    help="Units of a limit that this host has, e.g. one for every 32 GB of memory; NAME:unlimited takes it away.",
)  # fmt: skip
def set_node(call: Invocation, host: str, limits: tuple[str, ...]) -> int:
    """Give a host units of limits that count there only.

    \b
    Examples:
      rota node set node7 --limit bigmem:3
    """
    with call.connect() as client:
        for text in limits:
            client.set_limit(text, host=host)
    if not call.json and not call.quiet:
        print(f"{host}: {', '.join(limits)}")
    return 0


def _limits_of(host: str, limits: list[LimitView]) -> dict[str, dict[str, int]]:
    return {each.name: each.hosts[host] for each in limits if host in each.hosts}


def _table(runners: list[RunnerView], limits: list[LimitView]) -> str:
    from rota.cli.terminal import harmless, table
    from rota.units import about_size

    rows = []
    for each in runners:
        own = _limits_of(each.host, limits)
        shown = ", ".join(f"{name} {part['used']}/{part['capacity']}" for name, part in sorted(own.items()))
        state = "connected" if each.connected else "silent"
        size = [str(each.cores), about_size(each.mem_bytes), str(each.running)]
        rows.append([harmless(each.host), state, *size, harmless(shown)])
    return table(["HOST", "STATE", "CORES", "MEMORY", "RUNNING", "LIMITS"], rows, right="llrrr")
