"""`rota resource list`: a line for each group of equal hosts, or for each resource."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from rota.cli.commands.site import site_records
from rota.cli.render.printing import print_out
from rota.plan.language.hostlist import fold
from rota.plan.site.bitset import spans_of
from rota.plan.site.records import PLACE, show_value
from rota.plan.site.site_builder import host_record
from rota.units import about_size

if TYPE_CHECKING:
    from rota.cli.command import Invocation
    from rota.plan.site.inventory import Inventory
    from rota.wire.views import SiteView


def show(call: Invocation, view: SiteView, inventory: Inventory, chosen: list[int], *, each: bool) -> int:
    """Print these resources as asked."""
    hosts = [_host(view, inventory, host, ids) for host, ids in inventory.by_host(chosen).items()]
    value = {"hosts": hosts, "resources": [{"id": id, **inventory.rows[id]} for id in chosen]}
    empty = "no resources like that" if inventory.rows else "no resources; add some with 'rota resource add'"
    if each:
        return _each(call, value, inventory, chosen, empty)
    if call.quiet and not call.json:
        print_out(*(host["host"] for host in hosts))
        return 0
    alike: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for host in hosts:
        alike.setdefault(_line(host), []).append(host)
    rows = [
        [fold(host["host"] for host in same), f"{sum(host['cores'] for host in same):,}", *line[1:]]
        for line, same in alike.items()
    ]
    head = ["HOSTS", "CORES", "MEMORY", "DISK", "GPUS", "STATE", "PROPERTIES"]
    return site_records.show(call, value, head=head, rows=rows, empty=empty, right="lrrrr")


def _each(call: Invocation, value: Any, inventory: Inventory, chosen: list[int], empty: str) -> int:
    states = {host["host"]: _state(host) for host in value["hosts"]}
    rows = []
    for id in chosen:
        values = inventory.rows[id]
        host = str(values["host"])
        rows.append([str(id), host, show_value(values.get("cpu", "")), states[host], _words(_others(values))])
    return site_records.show(
        call, value, head=["ID", "HOST", "CPU", "STATE", "PROPERTIES"], rows=rows, empty=empty, right="rlr"
    )


def _host(view: SiteView, inventory: Inventory, host: str, ids: list[int]) -> dict[str, Any]:
    """A host as in JSON. Amounts without a configured value are as its runner measured them."""
    record = host_record(inventory.records, host)
    found = view.hosts.get(host)
    connected = found is not None and found.connected
    until = record.available_until
    return {
        "host": host,
        "ids": spans_of(ids),
        "cores": len(ids),
        "mem_bytes": record.mem if record.mem is not None or found is None else found.mem_bytes,
        "disk_bytes": record.disk if record.disk is not None or found is None else found.disk_bytes,
        "gpus": record.gpus or (found.gpus if found is not None else 0),
        "limits": record.limits,
        "state": record.state,
        "drain": record.drain,
        "available_until": datetime.fromtimestamp(until, UTC) if until is not None else None,
        "connected": connected,
        "usable": connected and record.state == "alive" and not record.drain,
        "own": host in inventory.own,
        "properties": _common(inventory, ids),
    }


def _common(inventory: Inventory, ids: list[int]) -> dict[str, list[Any]]:
    """Property → its different values on a host."""
    found: dict[str, list[Any]] = {}
    for id in ids:
        for name, value in _others(inventory.rows[id]).items():
            values = found.setdefault(name, [])
            if value not in values:
                values.append(value)
    return found


def _others(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in PLACE}


def _line(host: dict[str, Any]) -> tuple[str, ...]:
    """Hosts with equal cells share a line."""
    mem, disk = host["mem_bytes"], host["disk_bytes"]
    properties = {name: "|".join(map(show_value, values)) for name, values in host["properties"].items()}
    properties |= {f"{name}:{units}": "" for name, units in host["limits"].items()}
    return (
        str(host["cores"]),
        about_size(mem) if mem is not None else "any",
        about_size(disk) if disk is not None else "any",
        str(host["gpus"] or ""),
        _state(host),
        _words(properties),
    )


def _state(host: dict[str, Any]) -> str:
    state = host["state"] if host["state"] != "alive" or host["connected"] else "no runner"
    if host["drain"]:
        state += ", draining"
    if host["available_until"] is not None:
        state += f", until {host['available_until'].astimezone():%Y-%m-%dT%H:%M:%S}"
    return str(state)


def _words(values: dict[str, Any]) -> str:
    return " ".join(
        f"{name}={show_value(value)}" if value != "" else name for name, value in sorted(values.items())
    )
