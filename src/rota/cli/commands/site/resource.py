"""`rota resource`: the cores of the site, host by host, and what is known about them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from rota.cli.command import Group, Invocation

if TYPE_CHECKING:
    from rota.client.calls import SiteChange
    from rota.plan.site.inventory import HostChange, Inventory
    from rota.wire.views import SiteView

KINDS = ("property", "resource", "host", "node", "setting")

_HOSTS = click.option("--hosts", metavar="LIST", help="Hosts: n1,n2 or n[001-100].")
_IDS = click.option("--ids", metavar="LIST", help="Resources by id: 1-8,17.")
_WHERE = click.option("--where", metavar="EXPR", help='Resources whose properties match: "gpu = yes".')


@click.group("resource", cls=Group)
def resource() -> None:
    """The resources of the site: the cores of hosts, with properties."""


def inventory_of(view: SiteView) -> Inventory:
    """The resources that there are."""
    from rota.plan.site.inventory import Inventory

    return Inventory(view.site(), {host: its.ids for host, its in view.hosts.items()})


@resource.command("add")
@click.option("--hosts", metavar="LIST", required=True, help="The new hosts: n1,n2 or n[001-100].")
@click.option("--cpus", type=int, default=1, show_default=True, help="Processors of each host.")
@click.option("--cores", type=int, required=True, help="Cores of each processor; each is one resource.")
@click.option("--gpus", type=click.IntRange(0, 100_000), help="GPUs of each host.")
@click.option("--mem", metavar="SIZE", help="Memory of each host (default: what its runner finds).")
@click.option("--disk", metavar="SIZE", help="Disk space of each host (default: what its runner finds).")
@click.option(
    "--limit", "limits", metavar="NAME:N", multiple=True, help="Units of a limit that each host has; repeat it."
)
@click.option(
    "--set", "values", metavar="NAME=VALUE", multiple=True, help="A property of the new resources; repeat it."
)
@click.option("--create", is_flag=True, help="Create missing properties, with the type of the value.")
@click.option(
    "--state", type=click.Choice(["alive", "absent"]), default="alive", show_default=True,
    help="absent: known, but not to be used yet.",
)  # fmt: skip
def add(
    call: Invocation, hosts: str, cpus: int, cores: int, gpus: int | None, mem: str | None, disk: str | None,
    limits: tuple[str, ...], values: tuple[str, ...], create: bool, state: str,
) -> int:  # fmt: skip
    """Add hosts with their cores. All are added or none; a host that is there already is an error.

    Jobs run on a host once its runner is connected. New ids continue after the largest one.

    \b
    Examples:
      rota resource add --hosts n[001-100] --cpus 2 --cores 8 --mem 64G
      rota resource add --hosts g1,g2 --cores 32 --gpus 4 --set gpu=yes --set switch=sw1 --create
    """
    from rota.cli.commands.site import site_records
    from rota.cli.render.text import count
    from rota.plan.language.hostlist import expand, fold

    names = expand(hosts)
    change = host_change(gpus=gpus, mem=mem, disk=disk, limits=limits, state=state)

    def make(view: SiteView) -> tuple[list[SiteChange], list[int]]:
        inventory = inventory_of(view)
        read, added = inventory.read_values(values, create=create)
        changes = inventory.add(names, cpus=cpus, cores=cores, values=read, host=change)
        return added + changes, sorted(int(name) for kind, name, _ in changes if kind == "resource")

    with call.connect() as client:
        ids = site_records.change(client, KINDS, make, about=f"resource add {fold(names)}")
    from rota.plan.site.bitset import spans_of

    sentence = f"added {count(len(ids), 'resource')} on {count(len(names), 'host')}: {spans_of(ids)}"
    return site_records.tell(call, sentence, added=spans_of(ids), resources=len(ids), hosts=len(names))


@resource.command("set")
@_HOSTS
@_IDS
@_WHERE
@click.argument("values", metavar="[NAME=VALUE]…", nargs=-1)
@click.option("--create", is_flag=True, help="Create missing properties, with the type of the value.")
@click.option("--state", type=click.Choice(["alive", "absent", "dead"]), help="State of whole hosts.")
@click.option("--drain/--no-drain", default=None, help="Start no new jobs on these hosts, or allow them again.")
@click.option(
    "--available-until", metavar="TIME", help="Not used after this time: 2026-11-16T08:00, now+2h, or never."
)
@click.option("--gpus", type=click.IntRange(0, 100_000), help="GPUs of each host.")
@click.option("--mem", metavar="SIZE", help="Memory of each host; none: what its runner finds.")
@click.option("--disk", metavar="SIZE", help="Disk space of each host; none: what its runner finds.")
@click.option(
    "--limit", "limits", metavar="NAME:N", multiple=True,
    help="Units of a limit that each host has; NAME:unlimited takes it away; repeat it.",
)  # fmt: skip
def set_resources(
    call: Invocation, hosts: str | None, ids: str | None, where: str | None, values: tuple[str, ...], create: bool,
    state: str | None, drain: bool | None, available_until: str | None, gpus: int | None, mem: str | None,
    disk: str | None, limits: tuple[str, ...],
) -> int:  # fmt: skip
    """Change resources: their properties (NAME= removes one), or the state and amounts of whole hosts.

    \b
    Examples:
      rota resource set --hosts n[1-8] switch=sw1
      rota resource set --ids 1-4 gpu=yes
      rota resource set --where "switch = 'sw1'" --drain
      rota resource set --hosts n7 --state absent --available-until never
    """
    from rota.cli.commands.site import site_records
    from rota.errors import BadInput

    change = host_change(
        gpus=gpus, mem=mem, disk=disk, limits=limits, state=state, drain=drain, until=available_until
    )
    if not values and not change:
        raise BadInput("say what to change", hint="give NAME=VALUE, or an option such as --drain")
    choose = _chooser(hosts, ids, where)
    without = [word[:-1] for word in values if word.endswith("=") and word.count("=") == 1]
    given = [word for word in values if word[:-1] not in without or not word.endswith("=")]

    def make(view: SiteView) -> tuple[list[SiteChange], tuple[int, int]]:
        inventory = inventory_of(view)
        chosen = choose(inventory)
        if not chosen:
            raise BadInput("no resource is like that", hint="see 'rota resource list'")
        for name in without:
            inventory.require(name)
        read, added = inventory.read_values(given, create=create)
        changes = inventory.set(chosen, values=read, without=without, host=change)
        return added + changes, (len(chosen), len(inventory.by_host(chosen)))

    with call.connect() as client:
        about = f"resource set {_asked(hosts, ids, where)} {' '.join(values)}"
        number, on = site_records.change(client, KINDS, make, about=about)
    from rota.cli.render.text import count

    sentence = f"changed {count(number, 'resource')} on {count(on, 'host')}"
    return site_records.tell(call, sentence, resources=number, hosts=on)


@resource.command("remove")
@_HOSTS
@_IDS
def remove(call: Invocation, hosts: str | None, ids: str | None) -> int:
    """Remove resources; a host without any is forgotten.

    \b
    Examples:
      rota resource remove --hosts n[001-100]
      rota resource remove --ids 17-32
    """
    from rota.cli.commands.site import site_records

    choose = _chooser(hosts, ids, None)

    def make(view: SiteView) -> tuple[list[SiteChange], int]:
        inventory = inventory_of(view)
        chosen = choose(inventory)
        return inventory.remove(chosen), len(chosen)

    with call.connect() as client:
        number = site_records.change(client, KINDS, make, about=f"resource remove {_asked(hosts, ids, None)}")
    from rota.cli.render.text import count

    return site_records.tell(call, f"removed {count(number, 'resource')}", removed=number)


@resource.command("list")
@_HOSTS
@_IDS
@_WHERE
@click.option("--each", is_flag=True, help="One line for each resource.")
def list_resources(call: Invocation, hosts: str | None, ids: str | None, where: str | None, each: bool) -> int:
    """List resources, hosts that are alike on one line.

    \b
    Examples:
      rota resource list
      rota resource list --where "gpu = yes" --each
      rota resource list --hosts n[1-8] --json
    """
    from rota.cli.commands.site import resource_list

    choose = _chooser(hosts, ids, where, needed=False)
    with call.connect_to_read() as client:
        view = client.site(*KINDS)
    inventory = inventory_of(view)
    return resource_list.show(call, view, inventory, choose(inventory), each=each)


# ------------------------------------------------------------------ what is asked for


def _chooser(
    hosts: str | None, ids: str | None, where: str | None, *, needed: bool = True
) -> Callable[[Inventory], list[int]]:
    """Reads the options before anybody is asked; the result chooses from what there is."""
    from rota.errors import BadInput
    from rota.plan.language.hostlist import expand
    from rota.plan.site.bitset import parse_spans

    if needed and hosts is None and ids is None and where is None:
        raise BadInput("say which resources", hint="give --hosts, --ids or --where")
    names = expand(hosts) if hosts is not None else None
    numbers = parse_spans(ids) if ids is not None else None
    return lambda inventory: inventory.select(hosts=names, ids=numbers, where=where)


def _asked(hosts: str | None, ids: str | None, where: str | None) -> str:
    return " ".join(text for text in (hosts, ids and f"ids {ids}", where and f"where {where}") if text)


def host_change(
    *, gpus: int | None, mem: str | None, disk: str | None, limits: tuple[str, ...], state: str | None,
    drain: bool | None = None, reason: str | None = None, until: str | None = None, hours: str | None = None,
) -> HostChange:  # fmt: skip
    from rota.plan.site.availability import ALWAYS, parse_hours
    from rota.plan.site.inventory import HostChange

    given: dict[str, Any] = {"gpus": gpus, "state": state, "drain": drain, "reason": reason}
    change = {name: value for name, value in given.items() if value is not None}
    change |= {name: _size(name, text) for name, text in (("mem", mem), ("disk", disk)) if text is not None}
    if until is not None:
        change["available_until"] = _moment(until)
    if hours is not None:
        change["hours"] = {"none": "", "always": ALWAYS}.get(hours.strip().lower(), hours)
        if change["hours"]:
            parse_hours(change["hours"])
    return HostChange(**change, limits=dict(_units(text) for text in limits))


def _size(name: str, text: str) -> int | None:
    from rota.errors import BadInput
    from rota.units import parse_size

    if text.strip().lower() == "none":
        return None
    try:
        return parse_size(text)
    except BadInput as error:
        raise error.at(field=name, label=f"--{name}") from None


def _moment(text: str) -> float | None:
    import time

    from rota.core.fields.moments import parse_moment
    from rota.errors import BadInput
    from rota.time_zones import local_seconds

    if text.strip().lower() == "never":
        return None
    try:
        return parse_moment(text, now=time.time(), local=local_seconds)
    except BadInput as error:
        raise BadInput(f"--available-until: {error.message}", hint=f"{error.hint}, or never") from None


def _units(text: str) -> tuple[str, int | None]:
    from rota.core.site.limits import parse_limit
    from rota.errors import BadInput

    name, units, withdrawn, window = parse_limit(text)
    if window is not None or (units is None and not withdrawn):
        raise BadInput("a limit of a host needs a number of units", hint=f"write {name}:N")
    return name, units
