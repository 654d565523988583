"""Builds a `Site` from records and from the hosts that have a runner.

A host without recorded resources, such as the machine that a deployment runs on, contributes its own cores.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC
from itertools import count
from typing import Any

import msgspec

from rota.plan.language.expression import Value
from rota.plan.site.clock import Clock
from rota.plan.site.records import PREFER_SETTING, HostRecord, NodeRecord, Records, kinds_of, levels_of
from rota.plan.site.resources import ABSENT, ASLEEP, DRAINED, SUSPECTED, HostFigures, Resource, Site
from rota.plan.size import Capacity
from rota.pool_names import NODES


def site_of(
    records: Records,
    capacity: Mapping[str, Capacity],
    *,
    connected: Collection[str] | None = None,
    words: Mapping[str, str] | None = None,
    own: Mapping[str, list[int]] | None = None,
    clock: Clock | None = None,
    wake_s: float | None = None,
) -> Site:
    """The site made of records and known hosts.

    `connected`: hosts whose runner answers (default: all known hosts); only these may be used, if they are alive
    and not draining. `words`: the state of other agents (default: absent). `own`: earlier ids of hosts without
    records (`own_ids`). `clock`: the clock of the hosts' hours. `wake_s`: how long it takes to wake a host; None:
    hosts cannot be woken.
    """
    answering = capacity.keys() if connected is None else set(connected)
    rows = values_by_id(records, own_ids(records, capacity, own or {}))
    hosts = {host: host_record(records, host) for host in {str(values["host"]) for values in rows.values()}}
    asleep = sleepers(records) if wake_s is not None else {}
    there = {host for host in hosts if host in asleep or (host in answering and host not in energy_of(records))}
    away = {host: why for host, its in hosts.items() if (why := _away(its))}
    silent: dict[str, bool] = {}
    ours = records.get("node", {}).keys() | recorded_hosts(records)
    for host in sorted(hosts.keys() - away.keys() - there):
        if (energy := energy_of(records).get(host)) is not None:
            away[host] = SUSPECTED if energy["state"] == "failed" else ASLEEP
        else:
            away[host], silent[host] = (words or {}).get(host, ABSENT), host in ours
    forceable = {host for host, its in hosts.items() if host in there and _is_forceable(its)}
    automated = {host for host, its in hosts.items() if its.condition != "removed"}
    until = {host: its.available_until for host, its in hosts.items() if its.available_until is not None}
    return Site(
        [Resource(id, values) for id, values in rows.items()],
        levels=levels_of(records),
        hosts={host: _figures(its, capacity.get(host)) for host, its in hosts.items()},
        kinds=kinds_of(records),
        usable=[id for id, values in rows.items() if values["host"] not in away],
        until={id: until[str(values["host"])] for id, values in rows.items() if values["host"] in until},
        prefer=records.get("setting", {}).get(PREFER_SETTING, ()),
        away=away,
        reasons={host: text for host, its in hosts.items() if (text := _reason(records, host, its))},
        silent=silent,
        hours={host: text for host, its in hosts.items() if (text := hours_of(records, host, its))},
        clock=clock or Clock(UTC),
        asleep={host: since for host, since in asleep.items() if host in hosts and host not in away},
        wake_s=wake_s or 0.0,
        forceable=[id for id, values in rows.items() if values["host"] in forceable],
        automated=[id for id, values in rows.items() if values["host"] in automated],
    )


def _is_forceable(record: HostRecord) -> bool:
    """May a job that forces this host run there? Its condition does not matter, but it waits for a manual user."""
    if record.state != "alive" or record.drain or record.wanted_by or record.manual_user:
        return False
    return record.condition != "removed"


def _away(record: HostRecord) -> str:
    """Why the record of a host forbids jobs there; empty if it does not."""
    if record.state != "alive":
        return record.state
    if record.condition != "automated":
        return record.condition
    return DRAINED if record.drain or record.wanted_by else ""


def _reason(records: Records, host: str, record: HostRecord) -> str:
    """The reason that an administrator or a hook gave for a host's state."""
    energy = energy_of(records).get(host, {}).get("why")
    return "; ".join(filter(None, (record.condition_reason, record.reason, record.why, energy)))


def energy_of(records: Records) -> Mapping[str, Any]:
    """The records of nodes that Rota has put to sleep."""
    return records.get("energy", {})


def sleepers(records: Records) -> dict[str, float | None]:
    """Sleeping nodes that can be woken → since when each is being woken, or None."""
    return {
        host: its["since"] if its["state"] == "waking" else None
        for host, its in energy_of(records).items()
        if its["state"] != "failed"
    }


def hours_of(records: Records, host: str, record: HostRecord) -> str:
    """When a host may be used; empty: always. The host's record overrides its agent."""
    return record.hours or str(records.get("node", {}).get(host, {}).get("hours", ""))


def host_record(records: Records, host: str) -> HostRecord:
    """The record of a host; defaults if it has none."""
    return msgspec.convert(records.get("host", {}).get(host, {}), HostRecord)


def node_record(records: Records, host: str) -> NodeRecord | None:
    """What the agent of a host registered; None if it never did."""
    found = records.get("node", {}).get(host)
    return None if found is None else msgspec.convert(found, NodeRecord)


def _figures(record: HostRecord, found: Capacity | None) -> HostFigures:
    """The host's record overrides what its runner found."""
    return HostFigures(
        mem=record.mem if record.mem is not None or found is None else found.mem,
        disk=record.disk if record.disk is not None or found is None else found.disk,
        gpus=record.gpus or (found.gpus if found is not None else 0),
        limits=record.limits,
        pool=found.pool if found is not None else NODES,
    )


def values_by_id(records: Records, own: Mapping[str, list[int]]) -> dict[int, dict[str, Value]]:
    """Resource id → its values; `core` is the id itself."""
    found: dict[int, dict[str, Value]] = {
        int(name): {**values, "core": int(name)} for name, values in records.get("resource", {}).items()
    }
    nodes = records.get("node", {})
    for host, ids in own.items():
        properties = nodes.get(host, {}).get("properties", {})
        found |= {id: {**properties, "host": host, "cpu": ids[0], "core": id} for id in ids}
    return dict(sorted(found.items()))


def recorded_hosts(records: Records) -> set[str]:
    """Hosts whose resources are recorded."""
    return {value["host"] for value in records.get("resource", {}).values()}


def own_ids(
    records: Records, capacity: Mapping[str, Capacity], known: Mapping[str, list[int]]
) -> dict[str, list[int]]:
    """Ids of the cores of hosts without recorded resources: their earlier ids, else the lowest free ones.

    Ids of nodes are in their records. With a single other host, its ids are the same after every restart.
    """
    recorded = recorded_hosts(records)
    taken = taken_ids(records)
    found: dict[str, list[int]] = {}
    hosts = {host: max(1, its.cpus // 100) for host, its in capacity.items() if host not in recorded}
    nodes = records.get("node", {})
    for host, cores in hosts.items():
        before = known.get(host) or nodes.get(host, {}).get("ids", [])
        if len(before) == cores and taken.isdisjoint(before):
            found[host] = before
            taken.update(before)
    for host in sorted(hosts.keys() - found.keys()):
        found[host] = _lowest_free(hosts[host], taken)
        taken.update(found[host])
    return found


def taken_ids(records: Records) -> set[int]:
    """Ids in use. A processor keeps the id of its first core even if that core was removed."""
    resources = records.get("resource", {})
    return {int(name) for name in resources} | {value["cpu"] for value in resources.values() if "cpu" in value}


def _lowest_free(number: int, taken: Iterable[int]) -> list[int]:
    used = set(taken)
    ids = (id for id in count(1) if id not in used)
    return [next(ids) for _ in range(number)]
