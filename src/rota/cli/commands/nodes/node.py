"""`rota node`: the hosts of this deployment, their agents, and whether jobs may run there."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from rota.cli.command import Group, Invocation, print_json
from rota.cli.commands.nodes.node_add import add
from rota.cli.commands.nodes.node_manual import reserve, return_
from rota.cli.commands.nodes.node_ready import ready
from rota.cli.commands.nodes.node_run import run
from rota.cli.commands.nodes.node_set import set_node
from rota.cli.commands.reports.usage import usage
from rota.cli.render.node_text import node_details, node_table
from rota.cli.render.printing import print_out

if TYPE_CHECKING:
    from rota.client.calls import SiteChange
    from rota.wire.views import SiteView

_KINDS = ("property", "resource", "host", "node")
_LIST = "list them with 'rota node list'"


@click.group("node", cls=Group)
def node() -> None:
    """Manage the hosts of this deployment: start agents, list hosts, set their condition, drain them."""


for _command in (run, add, ready, set_node, reserve, return_):
    node.add_command(_command)
node.add_command(usage, "usage")


@node.command("list")
def list_nodes(call: Invocation) -> int:
    """List all hosts, with their resources and jobs.

    \b
    Examples:
      rota node list
      rota node list --json
    """
    with call.connect_to_read() as client:
        nodes = client.nodes()
    if call.json:
        print_json({"nodes": nodes})
    elif call.quiet:
        print_out(*(each.host for each in nodes))
    else:
        print_out(
            node_table(nodes)
            if nodes
            else "there is no node yet; add one with 'rota node add', or see 'rota node run'"
        )
    return 0


@node.command("show")
@click.argument("host", metavar="HOST")
def show_node(call: Invocation, host: str) -> int:
    """Show one host: its resources, its jobs and its recent history.

    \b
    Examples:
      rota node show n1
    """
    with call.connect_to_read() as client:
        found = client.node(host)
    if call.json:
        print_json(found)
    elif call.quiet:
        print_out(found.host)
    else:
        print_out(node_details(found))
    return 0


@node.command("remove")
@click.argument("hosts", metavar="HOST…", nargs=-1, required=True)
def remove_node(call: Invocation, hosts: tuple[str, ...]) -> int:
    """Remove idle nodes: disconnect their agents and revoke their tokens.

    \b
    Examples:
      rota node remove n7
    """
    from rota.cli.commands.site import site_records
    from rota.cli.render.text import count
    from rota.errors import BadInput, NotFound
    from rota.plan.language.hostlist import expand, fold

    names = expand(",".join(hosts))

    def make(view: SiteView, *, again: bool = False) -> tuple[list[SiteChange], None]:
        known = {kind: view.of(kind) for kind in _KINDS}
        changes: list[SiteChange] = []
        for name in names:
            if name not in known["node"]:
                if again:
                    continue
                raise NotFound(f"there is no node '{name}'", hint=_LIST)
            if name in returning and not again:
                raise BadInput(
                    f"the agent of {name} is connected with a token that is good for any node, "
                    "and would come back",
                    hint="stop it first",
                )
            changes.append(("node", name, None))
            if name in known["host"]:
                changes.append(("host", name, None))
            changes += [("resource", id, None) for id, its in known["resource"].items() if its["host"] == name]
        return changes, None

    with call.connect() as client:
        bound = {token.host for token in client.tokens() if token.role == "runner"}
        returning = {each.host for each in client.nodes() if each.connected and each.host not in bound}
        site_records.change(client, _KINDS, make, about=f"node remove {fold(names)}")
        # Not before, since the removal may be refused. An agent may have come back in between.
        for token in client.tokens():
            if token.role == "runner" and token.host in names:
                client.remove_token(token.name)
                site_records.change(client, _KINDS, partial(make, again=True), about=f"node remove {fold(names)}")
    return site_records.tell(call, f"removed {count(len(names), 'node')}", removed=names)
