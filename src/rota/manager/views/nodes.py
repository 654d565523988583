"""Nodes as clients see them. The loop takes a snapshot; a worker thread makes the views."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import chain
from typing import Any, NamedTuple

from rota.core.attempts.held_resources import cores_held, holders, provisioned_for
from rota.core.machines.closed_hosts import closed_hosts
from rota.core.machines.hold_records import KeptMachines, kept_machines
from rota.core.machines.hosts import agents, away_word, counted_cores
from rota.core.machines.machine_now import machine_now, since_of
from rota.core.machines.machine_states import Condition, MachineState, NodeState, Usage, machine_state
from rota.core.machines.provisioned_machines import waits_for_deploy_hosts
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
#: A host of which only the cores are written down.
_ABSENT = machine_state(Condition.AUTOMATED, Usage.IDLE, NodeState.AWAY)


class NodeUse:
    """What jobs hold of a host."""

    __slots__ = ("cpus", "jobs", "kept_by", "kept_until", "mem")

    def __init__(self) -> None:
        self.cpus = self.mem = 0
        self.jobs: list[int] = []
        self.kept_by: int | None = None
        self.kept_until = 0.0

    def add(self, job: int, cpus: int, mem: int) -> None:
        self.jobs.append(job)
        self.cpus += cpus
        self.mem += mem

    def keep(self, kept: KeptMachines, cpus: int) -> None:
        """A job that has ended keeps it; of several, the one that does so for the longest time is told."""
        self.cpus += cpus
        self.mem += kept.given.size.mem
        if kept.until > self.kept_until:
            self.kept_by, self.kept_until = kept.job, kept.until


class NodeSnapshot(NamedTuple):
    """The data of all node views."""

    capacity: dict[str, Capacity]
    runners: dict[str, tuple[str, int, bool, str]]  #: host → id, pid, connected, why it may get no work
    uses: dict[str, NodeUse]
    records: dict[str, dict[str, Any]]
    limits: list[LimitView]
    closed: frozenset[str] = frozenset()  #: hosts that may not be used at this time
    machines: Mapping[str, tuple[MachineState, int | None]] = {}  #: host → what it is, and since when
    deployers: Mapping[str, str] = {}  #: machines that wait to be provisioned → the deploy host that is away


def snapshot(world: World) -> NodeSnapshot:
    """Nodes as they are now. Belongs to the loop."""
    runners = {
        host: (runner.id, runner.pid, runner.connected, away_word(runner))
        for host, runner in agents(world).items()
    }
    uses: dict[str, NodeUse] = {}
    for job, first in chain(holders(world), provisioned_for(world)):
        for host, cpus in cores_held(job, first).items():
            uses.setdefault(host, NodeUse()).add(job.id, cpus, job.size.mem)
    for kept in kept_machines(world):
        for host, cores in kept.given.nodes or ((kept.host, kept.need.size.cpus // CORE),):
            uses.setdefault(host, NodeUse()).keep(kept, CORE * cores)
    known = {*world.capacity, *runners, *world.site["host"]}
    return NodeSnapshot(
        dict(world.capacity),
        runners,
        uses,
        world.site,
        limits_view(world),
        frozenset(closed_hosts(world)),
        {host: (machine_now(world, host), since_of(world, host)) for host in known},
        waits_for_deploy_hosts(world),
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
    wanted = f"reserved by {record.wanted_by} as soon as it is free" if record.wanted_by else ""
    asleep = found.records["energy"].get(host, {}).get("why")
    deployer = found.deployers.get(host)
    waits = f"waits for the deploy host {deployer}, which has no living agent" if deployer else ""
    said = (record.condition_reason, wanted, waits, record.reason, record.why, asleep)
    machine, since = found.machines.get(host, (_ABSENT, None))
    if cores is None:
        cores = capacity.cpus // CORE if capacity is not None else 0
    usable = (
        state == "alive"
        and not record.drain
        and host not in found.closed
        and machine.condition == Condition.AUTOMATED
        and not record.wanted_by
    )
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
        available_until=None if until is None else _moment(until),
        limits={each.name: each.hosts[host] for each in found.limits if host in each.hosts},
        properties=properties or (registered.properties if registered is not None else {}),
        hours=hours_of(found.records, host, record),
        why="; ".join(filter(None, said)),
        closed=host in found.closed,
        condition=machine.condition,
        usage=machine.usage,
        since=None if since is None else datetime.fromtimestamp(since / 1e6, UTC),
        owner=record.owner,
        groups=list(record.groups),
        manual_user=record.manual_user,
        manual_until=None if not record.manual_until else _moment(record.manual_until),
        kept_by=use.kept_by,
        kept_until=None if use.kept_by is None else _moment(use.kept_until),
    )


def _moment(at: float) -> datetime:
    return datetime.fromtimestamp(min(at, _FAR_S), UTC)
