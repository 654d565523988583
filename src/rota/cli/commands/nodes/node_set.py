"""`rota node set`: change hosts, and the condition of machines."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any, Final

import click

from rota.cli.command import Command, Invocation
from rota.cli.render.printing import print_err

if TYPE_CHECKING:
    from rota.client.blocking import Client
    from rota.client.calls import SiteChange
    from rota.plan.site.inventory import HostChange
    from rota.wire.views import AttentionView, SiteView

_KINDS: Final = ("property", "resource", "host", "node")
_LIST: Final = "list them with 'rota node list'"
#: The word that takes a value away.
_NONE: Final = "none"


@click.command("set", cls=Command)
@click.argument("hosts", metavar="HOST…", nargs=-1, required=True)
@click.option(
    "--condition", type=click.Choice(["automated", "manual", "broken", "removed"]),
    help="Condition of the machine: gets jobs, is used by hand, needs repair, or has left the site.",
)  # fmt: skip
@click.option("--now", is_flag=True, help="Abort the jobs that run there.")
@click.option("--owner", metavar="USER", help="Owner of the machine; none: no owner.")
@click.option(
    "--machine-group",
    "groups",
    metavar="G",
    multiple=True,
    help="Machine group of the machine; may be repeated; none: no group.",
)
@click.option(
    "--provision-cmd",
    metavar="CMD",
    help="Command on the manager's host that installs the machine for a job; none: no command.",
)
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
    limits: tuple[str, ...], **machine: Any,
) -> int:  # fmt: skip
    """Change hosts: their condition, state, hours, resources, limits, owner and groups.

    A condition changes at once, and a running job goes on unless --now aborts it.

    \b
    Examples:
      rota node set n[1-8] --drain --reason "new disks on Monday"
      rota node set n3 --state alive
      rota node set alpha --condition broken --reason "no fan"
      rota node set alpha --owner ann --machine-group lab1
      rota node set node7 --limit bigmem:3
      rota node set desk4 --hours "20:00-07:00 mon-fri, * sat,sun"
    """
    from rota.cli.commands.site import site_records
    from rota.cli.commands.site.resource import host_change
    from rota.cli.render.text import count, harmless
    from rota.errors import BadInput, NotFound
    from rota.plan.language.hostlist import expand, fold

    names = expand(",".join(hosts))
    fields = _machine_fields(machine)
    if "condition" in fields and reason is not None:
        fields["reason"] = reason
        reason = reason if state is not None or drain is not None else None
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
    if not change and not limits and not fields:
        raise BadInput("say what to change", hint="give an option such as --drain or --condition manual")
    risks: list[AttentionView] = []
    with call.connect() as client:
        try:
            if change:
                _change_records(client, names, change)
                risks = [each for each in client.manager_status().attention if each.kind == "reservation"]
            for text in limits:
                for name in names:
                    client.set_limit(text, host=name)
        except NotFound as error:
            raise NotFound(error.message, hint=_LIST, code=error.code) from None
        if fields:
            client.set_machines(*names, **fields)
    said = [
        *limits,
        *([f"state {state}"] if state else []),
        *([] if drain is None else ["drained" if drain else "not drained"]),
        *([str(fields["condition"])] if "condition" in fields else []),
    ]
    sentence = f"{fold(names)}: {', '.join(said)}" if said else f"changed {count(len(names), 'node')}"
    if isinstance(change.available_until, float) and change.available_until <= time.time():
        sentence += f"; {fold(names)} may not be used any more, since that time is over"
    told = site_records.tell(call, sentence, hosts=names)
    for each in risks:
        if any(re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-]|\.\w)", each.message) for name in names):
            print_err(f"rota: note: the reservation of job {each.jobs[0]} is in danger: {harmless(each.message)}")
    return told


def _change_records(client: Client, names: list[str], change: HostChange) -> None:
    from rota.cli.commands.site import site_records
    from rota.cli.commands.site.resource import inventory_of
    from rota.plan.language.hostlist import fold

    def make(view: SiteView) -> tuple[list[SiteChange], None]:
        inventory = inventory_of(view)
        chosen = inventory.select(hosts=names)
        return list(inventory.set(chosen, values={}, without=(), host=change)), None

    site_records.change(client, _KINDS, make, about=f"node set {fold(names)}")


def _machine_fields(options: dict[str, Any]) -> dict[str, Any]:
    """The options about the machine as fields of `Client.set_machines`."""
    fields: dict[str, Any] = {}
    if options["condition"] is not None:
        fields["condition"] = options["condition"]
    if options["groups"]:
        fields["groups"] = [group for group in dict.fromkeys(options["groups"]) if group != _NONE]
    for name in ("owner", "provision_cmd"):
        if (text := options[name]) is not None:
            fields[name] = "" if text == _NONE else text
    if options["now"]:
        fields["now"] = True
    return fields
