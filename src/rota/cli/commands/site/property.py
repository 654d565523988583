"""`rota property`: the properties of resources, and the levels of their hierarchy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from rota.cli.command import Group, Invocation

if TYPE_CHECKING:
    from rota.client.calls import SiteChange
    from rota.wire.views import SiteView

_KINDS = ("property", "resource", "setting")


@click.group("property", cls=Group)
def property_() -> None:
    """Manage the properties of resources, and the levels of their hierarchy."""


@property_.command("add")
@click.argument("name")
@click.option(
    "--type", "kind", type=click.Choice(["text", "integer", "yesno"]), default=None,
    help="What its values are (default: text).",
)  # fmt: skip
@click.option("--level", is_flag=True, help="It is a level of the hierarchy: equal values form a block.")
@click.option("--above", metavar="LEVEL", help="The level stands above this one (default: above all).")
def add(call: Invocation, name: str, kind: str | None, level: bool, above: str | None) -> int:
    """Add a property. Resources get values of it with 'rota resource add --set' and 'rota resource set'.

    Jobs ask for resources by properties, -p "gpu = yes", and by levels, -l /switch=1/nodes=4. For a property
    that is there already, --level and --above change its place in the hierarchy.

    \b
    Examples:
      rota property add gpu --type yesno
      rota property add memory_speed --type integer
      rota property add rack --level --above host
    """
    from rota.cli.commands.site import site_records

    def make(site: SiteView) -> tuple[list[SiteChange], tuple[str, tuple[str, ...]]]:
        return _added(site.site(), name, kind, level=level or above is not None, above=above)

    with call.connect() as client:
        its, levels = site_records.change(client, _KINDS, make, about=f"property add {name}")
    place = f", a level of {' / '.join(levels)}" if name in levels else ""
    return site_records.tell(call, f"property {name} ({its}){place}", property=name, type=its, levels=levels)


def _added(
    site: dict[str, dict[str, Any]], name: str, kind: str | None, *, level: bool, above: str | None
) -> tuple[list[SiteChange], tuple[str, tuple[str, ...]]]:
    from rota.errors import BadInput
    from rota.plan.site.records import LEVELS_SETTING, kinds_of, levels_of

    kinds, levels = kinds_of(site), levels_of(site)
    changes: list[SiteChange] = []
    if name not in kinds:
        changes.append(("property", name, {"type": kind or "text"}))
    elif (name not in levels and not level) or (kind is not None and kind != kinds[name]):
        raise BadInput(
            f"property '{name}' is there already, of type {kinds[name]}", hint="see 'rota property list'"
        )
    if level:
        if above is not None and above not in levels:
            raise BadInput(f"'{above}' is not a level", hint=f"use one of {', '.join(levels)}")
        if name in ("host", "core") or above == name:
            raise BadInput(f"level '{name}' cannot be moved", hint="place others above it")
        rest = [other for other in levels if other != name]
        rest.insert(rest.index(above) if above is not None else 0, name)
        levels = tuple(rest)
        changes.append(("setting", LEVELS_SETTING, rest))
    return changes, (kinds.get(name, kind or "text"), levels)


@property_.command("list")
def list_properties(call: Invocation) -> int:
    """List the properties with their types, their levels, and how many resources have them.

    \b
    Examples:
      rota property list
    """
    from rota.cli.commands.site import site_records
    from rota.plan.site.inventory import Inventory
    from rota.plan.site.records import BUILT_IN, levels_of

    with call.connect_to_read() as client:
        view = client.site(*_KINDS, "node")  # agents announce properties of what their hosts bring
    site = view.site()
    inventory = Inventory(site, {host: its.ids for host, its in view.hosts.items()})
    levels = levels_of(site)
    used = dict.fromkeys(inventory.kinds, 0)
    for values in inventory.rows.values():
        for name in values.keys() & used.keys():  # one that was removed may still be announced
            used[name] += 1
    names = [*levels, *sorted(inventory.kinds.keys() - set(levels))]
    found = [
        {
            "property": name,
            "type": inventory.kinds[name],
            "level": levels.index(name) + 1 if name in levels else None,
            "built_in": name in BUILT_IN,
            "resources": used[name],
        }
        for name in names
    ]
    rows = [
        [name, inventory.kinds[name], str(levels.index(name) + 1) if name in levels else "", f"{used[name]:,}"]
        for name in names
    ]
    return site_records.show(
        call,
        {"properties": found, "levels": levels},
        head=["PROPERTY", "TYPE", "LEVEL", "RESOURCES"],
        rows=rows,
        empty="no properties",
        right="llrr",
    )


@property_.command("remove")
@click.argument("name")
@click.option("--force", is_flag=True, help="Also remove it from resources that have it.")
def remove(call: Invocation, name: str, force: bool) -> int:
    """Remove a property, unless resources have it.

    \b
    Examples:
      rota property remove gpu
      rota property remove switch --force
    """
    from rota.cli.commands.site import site_records

    def make(site: SiteView) -> tuple[list[SiteChange], int]:
        return _removed(site.site(), name, force=force)

    with call.connect() as client:
        number = site_records.change(client, _KINDS, make, about=f"property remove {name}")
    from rota.cli.render.text import count, harmless

    taken = f", taken from {count(number, 'resource')}" if number else ""
    return site_records.tell(call, f"removed property {harmless(name)}{taken}", removed=name, resources=number)


def _removed(site: dict[str, dict[str, Any]], name: str, *, force: bool) -> tuple[list[SiteChange], int]:
    from rota.errors import BadInput, NotFound
    from rota.plan.site.records import BUILT_IN, LEVELS_SETTING, levels_of

    if name in BUILT_IN:
        raise BadInput(f"property '{name}' is built in", hint="it cannot be removed")
    if name not in site.get("property", {}):
        raise NotFound(f"there is no property '{name}'", hint="list them with 'rota property list'")
    having = {id: values for id, values in site.get("resource", {}).items() if name in values}
    if having and not force:
        first = min(having, key=int)
        raise BadInput(
            f"property '{name}' is in use by {len(having):,} resources, such as {first}",
            hint="take it away from them with --force",
        )
    changes: list[SiteChange] = [("property", name, None)]
    levels = levels_of(site)
    if name in levels:
        changes.append(("setting", LEVELS_SETTING, [level for level in levels if level != name]))
    for id, values in having.items():
        changes.append(("resource", id, {key: value for key, value in values.items() if key != name}))
    return changes, len(having)
