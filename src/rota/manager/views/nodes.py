"""Nodes as clients see them. The loop takes a snapshot; a worker thread makes the views."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, NamedTuple

from rota.core.attempts.held_resources import cores_held, holders
from rota.core.machines.closed_hosts import closed_hosts
from rota.core.machines.hosts import agents, away_word, counted_cores
from rota.core.machines.sleep_and_wake import WORDS
from rota.core.world import World
from rota.manager.views.limits import view as limits_view
from rota.plan.language.hostlist import natural
from rota.plan.site.resources import ABSENT
from rota.plan.site.site_builder import host_record, hours_of, node_record
from rota.plan.size import CORE, Capacity
from rota.wire.sums import NodeView
from rota.wire.views import LimitView

#: Values of a resource that are its place, and no property of its host.
_PLACES = frozenset({"host", "cpu", "core"})
_FAR_S = 253_402_300_799.0


class NodeUse:
    """What jobs hold of a host."""

    __slots__ = ("cpus", "jobs", "mem")

    def __init__(self) -> None:
        self.cpus = self.mem = 0
        self.jobs: list[int] = []

    def add(self, job: int, cpus: int, mem: int) -> None:
        self.jobs.append(job)
        self.cpus += cpus
        self.mem += mem


class NodeSnapshot(NamedTuple):
    """The data of all node views."""

    capacity: dict[str, Capacity]
    runners: dict[str, tuple[str, int, bool, str]]  #: host → id, pid, connected, why it may get no work
    uses: dict[str, NodeUse]
    records: dict[str, dict[str, Any]]
    limits: list[LimitView]
    closed: frozenset[str] = frozenset()  #: hosts that may not be used at this time


def snapshot(world: World) -> NodeSnapshot:
    """Nodes as they are now. Belongs to the loop."""
    runners = {
        host: (runner.id, runner.pid, runner.connected, away_word(runner))
        for host, runner in agents(world).items()
    }
    uses: dict[str, NodeUse] = {}
    for job, first in holders(world):
        for host, cpus in cores_held(job, first).items():
            uses.setdefault(host, NodeUse()).add(job.id, cpus, job.size.mem)
    return NodeSnapshot(
        dict(world.capacity), runners, uses, world.site, limits_view(world), frozenset(closed_hosts(world))
    )


def view(found: NodeSnapshot) -> list[NodeView]:
    """All nodes, by name."""
    cores: dict[str, int] = {}
    shared: dict[str, dict[str, Any]] = {}
    for values in found.records["resource"].values():
        host = values["host"]
        cores[host] = cores.get(host, 0) + 1
        its = {name: value for name, value in values.items() if name not in _PLACES}
        known = shared.setdefault(host, its)
        if known != its:
            shared[host] = {name: value for name, value in known.items() if its.get(name) == value}
    hosts = {*found.capacity, *found.runners, *cores, *found.records["host"]}
    return [_node(found, host, cores.get(host), shared.get(host, {})) for host in sorted(hosts, key=natural)]


def _node(found: NodeSnapshot, host: str, cores: int | None, properties: dict[str, Any]) -> NodeView:
    record, capacity = host_record(found.records, host), found.capacity.get(host)
    registered = node_record(found.records, host)
    runner, pid, connected, away = found.runners.get(host, (None, None, False, ABSENT))
    state: str = record.state
    if state == "alive":
        state = away or "alive"
        energy = found.records["energy"].get(host)
        state = state if energy is None else WORDS[energy["state"]]
    use = found.uses.get(host) or NodeUse()
    until = record.available_until
    if cores is None:
        cores = capacity.cpus // CORE if capacity is not None else 0
    usable = state == "alive" and not record.drain and host not in found.closed
    return NodeView(
        host=host,
        state=state,
        connected=connected,
        drain=record.drain,
        usable=usable,
        cores=cores,
        cores_in_use=use.cpus / CORE,
        capacity_cores=counted_cores(cores, use.cpus / CORE, usable=usable),
        mem_bytes=record.mem if record.mem is not None else capacity.mem if capacity is not None else 0,
        mem_in_use=use.mem,
        disk_bytes=record.disk if record.disk is not None else capacity.disk if capacity is not None else 0,
        gpus=record.gpus or (capacity.gpus if capacity is not None else 0),
        jobs=sorted(use.jobs),
        runner=runner,
        pid=pid,
        available_until=None if until is None else datetime.fromtimestamp(min(until, _FAR_S), UTC),
        limits={each.name: each.hosts[host] for each in found.limits if host in each.hosts},
        properties=properties or (registered.properties if registered is not None else {}),
        hours=hours_of(found.records, host, record),
        why="; ".join(filter(None, (record.reason, record.why, found.records["energy"].get(host, {}).get("why")))),
        closed=host in found.closed,
    )
