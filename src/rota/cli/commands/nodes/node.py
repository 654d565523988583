"""`rota node`: the hosts of this deployment, their agents, and whether jobs may run there."""

from __future__ import annotations

import re
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from rota.cli.command import Group, Invocation, print_json
from rota.cli.commands.nodes.node_add import add
from rota.cli.commands.nodes.node_run import run
from rota.cli.commands.reports.usage import usage
from rota.cli.render.printing import print_err, print_out

if TYPE_CHECKING:
    from datetime import datetime

    from rota.cli.render.text import SafeText
    from rota.client.calls import SiteChange
    from rota.wire.sums import NodeDetailView, NodeView
    from rota.wire.views import SiteView

_KINDS = ("property", "resource", "host", "node")
_LIST = "list them with 'rota node list'"


@click.group("node", cls=Group)
def node() -> None:
    """Manage the hosts of this deployment: start agents, list hosts, drain them."""


for _command in (run, add):
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
            _table(nodes)
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
        print_out(_details(found))
    return 0


@node.command("set")
@click.argument("hosts", metavar="HOST…", nargs=-1, required=True)
@click.option(
    "--state", type=click.Choice(["alive", "absent", "suspected", "dead"]),
    help="State of the host; absent and dead also end its jobs.",
)  # fmt: skip
@click.option("--drain/--no-drain", default=None, help="Start no new jobs there, or allow them again.")
@click.option("--reason", metavar="TEXT", help="Reason, shown with the node and to waiting jobs.")
@click.option(
    "--available-until", metavar="TIME", help="Not used after this time: 2026-11-16T08:00, now+2h, or never."
)
@click.option(
    "--hours", metavar="HOURS",
    help="When it may be used, like '20:00-07:00 mon-fri'; always: at any time; none: as its agent says.",
)  # fmt: skip
@click.option("--gpus", type=click.IntRange(0, 100_000), help="GPUs of the host.")
@click.option("--mem", metavar="SIZE", help="Memory of the host; none: what its agent finds.")
@click.option("--disk", metavar="SIZE", help="Disk space of the host; none: what its agent finds.")
@click.option(
    "--limit", "limits", metavar="NAME:N", multiple=True,
    help="Units of a limit that this host has, e.g. one for every 32 GB of memory; NAME:unlimited takes it away.",
)  # fmt: skip
def set_node(
    call: Invocation, hosts: tuple[str, ...], state: str | None, drain: bool | None, reason: str | None,
    available_until: str | None, hours: str | None, gpus: int | None, mem: str | None, disk: str | None,
    limits: tuple[str, ...],
) -> int:  # fmt: skip
    """Change hosts: their state, hours, resources and limits.

    \b
    Examples:
      rota node set n[1-8] --drain --reason "new disks on Monday"
      rota node set n3 --state alive
      rota node set node7 --limit bigmem:3
      rota node set desk4 --hours "20:00-07:00 mon-fri, * sat,sun"
    """
    from rota.cli.commands.site import site_records
    from rota.cli.commands.site.resource import host_change, inventory_of
    from rota.cli.render.text import count, harmless
    from rota.errors import BadInput, NotFound
    from rota.plan.language.hostlist import expand, fold

    names = expand(",".join(hosts))
    change = host_change(
        gpus=gpus,
        mem=mem,
        disk=disk,
        limits=(),
        state=state,
        drain=drain,
        reason=reason,
        until=available_until,
        hours=hours,
    )
    if not change and not limits:
        raise BadInput("say what to change", hint="give an option such as --drain or --state alive")

    def make(view: SiteView) -> tuple[list[SiteChange], None]:
        inventory = inventory_of(view)
        chosen = inventory.select(hosts=names)
        return list(inventory.set(chosen, values={}, without=(), host=change)), None

    with call.connect() as client:
        try:
            if change:
                site_records.change(client, _KINDS, make, about=f"node set {fold(names)}")
            for text in limits:
                for name in names:
                    client.set_limit(text, host=name)
            risks = (
                [each for each in client.manager_status().attention if each.kind == "reservation"]
                if change
                else []
            )
        except NotFound as error:
            raise NotFound(error.message, hint=_LIST, code=error.code) from None
    said = [
        *limits,
        *([f"state {state}"] if state else []),
        *([] if drain is None else ["drained" if drain else "not drained"]),
    ]
    sentence = f"{fold(names)}: {', '.join(said)}" if said else f"changed {count(len(names), 'node')}"
    if isinstance(change.available_until, float) and change.available_until <= time.time():
        sentence += f"; {fold(names)} may not be used any more, since that time is over"
    told = site_records.tell(call, sentence, hosts=names)
    for each in risks:
        if any(re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-]|\.\w)", each.message) for name in names):
            print_err(f"rota: note: the reservation of job {each.jobs[0]} is in danger: {harmless(each.message)}")
    return told


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


# ------------------------------------------------------------------ what is shown


def _state(each: NodeView) -> str:
    """Its state, and what else keeps new jobs away from it."""
    return ", ".join([each.state, *(["drained"] if each.drain else []), *(["closed"] if each.closed else [])])


def _table(nodes: list[NodeView]) -> SafeText:
    from rota.cli.render.text import harmless, table
    from rota.units import about_size

    rows = []
    for each in nodes:
        own = ", ".join(f"{name} {part['used']}/{part['capacity']}" for name, part in sorted(each.limits.items()))
        mem = about_size(each.mem_bytes) if each.mem_bytes else "?"
        cores = f"{each.cores_in_use:g}/{each.cores}"
        rows.append(
            [harmless(each.host), _state(each), cores, mem, str(each.gpus), str(len(each.jobs)), harmless(own),
             harmless(_note(each))]
        )  # fmt: skip
    return table(["HOST", "STATE", "CORES", "MEMORY", "GPUS", "JOBS", "LIMITS", "NOTE"], rows, right="llrrrr")


def _note(each: NodeView) -> str:
    """Why it may not be used, or when."""
    until = _moment(each.available_until)
    said = (each.why, each.hours and f"only {each.hours}", until and f"until {until}")
    return "; ".join(filter(None, said))


def _moment(at: datetime | None) -> str:
    return "" if at is None else at.astimezone().strftime("%Y-%m-%d %H:%M")


def _details(found: NodeDetailView) -> SafeText:
    from rota.cli.render.text import block, harmless
    from rota.plan.site.bitset import spans_of
    from rota.plan.site.records import show_value
    from rota.units import about_size

    facts: list[tuple[str, Any]] = [
        ("state", _state(found)),
        ("because", found.why),
        ("agent", f"{found.runner}, pid {found.pid}" if found.connected else "not connected"),
        ("cores", f"{found.cores_in_use:g} of {found.cores} in use"),
        ("memory", f"{about_size(found.mem_in_use)} of {about_size(found.mem_bytes)} in use"),
        ("disk", about_size(found.disk_bytes)),
        ("gpus", found.gpus or ""),
        ("hours", found.hours),
        ("until", _moment(found.available_until)),
        ("properties", ", ".join(f"{name}={show_value(value)}" for name, value in found.properties.items())),
        ("limits", ", ".join(f"{name} {its['used']}/{its['capacity']}" for name, its in found.limits.items())),
        ("jobs", spans_of(found.jobs)),
    ]
    lines: list[str] = [found.host]
    lines += [f"  {name:<11} {harmless(str(value))}" for name, value in facts if value != ""]
    if found.history:
        lines.append("  lately")
        lines += [f"    {each.at.astimezone():%Y-%m-%d %H:%M:%S}  {each.state}" for each in found.history[:10]]
    return block(lines)
