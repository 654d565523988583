"""Nodes: hosts registered by their agents, and whether new work may go there.

An agent's report about its host is stored as a record of the site, so an absent node keeps its resources over a
restart. An administrator's record of the host takes precedence.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from rota.core.attempts.parts import all_leased, jobs_with_part
from rota.core.effects import DismissRunner
from rota.core.learning.estimate import largest_of
from rota.core.machines.hold_records import hold_at
from rota.core.machines.hosts import own_resources
from rota.core.machines.machine_now import answering
from rota.core.machines.machine_use import mark
from rota.core.restart import Restart
from rota.core.site.record_checks import check_record
from rota.core.turn import NO_JOB_ID, Turn
from rota.core.world import Runner, World
from rota.errors import BadInput
from rota.plan.language.expression_tree import Kind
from rota.plan.language.hostlist import check_name
from rota.plan.placement.hosts import Condition
from rota.plan.site.node_facts import NodeFacts
from rota.plan.site.records import BUILT_IN, PLACE, NodeRecord, check_value, kinds_of
from rota.plan.site.site_builder import host_record, node_record
from rota.plan.size import CORE, Capacity
from rota.pool_names import NODES

#: Properties that one node may announce, and that a site may have in all.
_MOST_PROPERTIES = 64
_MOST_OF_ALL = 1000


# ------------------------------------------------------------------ registering


def check_facts(world: World, host: str, facts: NodeFacts) -> None:
    """Raise `BadInput` unless a host may report this about itself."""
    check_name(host)
    check_record("node", host, msgspec.to_builtins(_record(facts)))
    if len(facts.properties) > _MOST_PROPERTIES:
        raise BadInput(f"node '{host}' has more than {_MOST_PROPERTIES} properties", hint="announce fewer")
    known = node_record(world.site, host)
    if known is not None and known.machine and facts.machine and known.machine != facts.machine:
        raise BadInput(
            f"another machine was known as node '{host}'",
            hint=f"give this one another --name, or remove the old one: rota node remove {host}",
        )
    kinds = kinds_of(world.site)
    if len(kinds.keys() | facts.properties.keys()) > _MOST_OF_ALL:
        raise BadInput(f"there are {_MOST_OF_ALL} properties already", hint="remove some: rota property remove")
    for name, value in facts.properties.items():
        if name in PLACE:
            raise BadInput(f"property '{name}' is built in and cannot be set", hint="use another name")
        if name not in BUILT_IN:
            check_record("property", name, {"type": kinds.get(name, _kind(value))})
        check_value(name, value, kinds.get(name, _kind(value)))


def register_node(world: World, turn: Turn, host: str, facts: NodeFacts) -> None:
    """Register a node, or update its record."""
    known = node_record(world.site, host)
    record = _record(facts, known=known)
    before = world.capacity.get(host)
    world.capacity[host] = _capacity(record)
    mark(world, host)
    record = msgspec.structs.replace(record, ids=own_resources(world).get(host, []))
    if record != known:
        for name, value in facts.properties.items():
            if name not in kinds_of(world.site):
                _write(world, turn, "property", name, {"type": _kind(value)})
        _write(world, turn, "node", host, msgspec.to_builtins(record))
        sizes = f"{facts.cores} cores, {facts.gpus} GPUs" if facts.gpus else f"{facts.cores} cores"
        turn.note(NO_JOB_ID, 0, "node", f"{host} {'joined' if known is None else 'changed'}: {sizes}")
        if world.on_site is not None:
            world.on_site()
    if world.capacity[host] != before:
        world.placement.host_known(host, effective(world, host))
        world.largest = largest_of(list(world.capacity.values()))


def restore_nodes(world: World, _restart: Restart) -> None:
    """After a restart, make known nodes known to the placement. Their agents may or may not come back."""
    for host in world.site["node"]:
        record = node_record(world.site, host)
        if record is not None and host not in world.capacity:
            world.capacity[host] = _capacity(record)
            world.placement.host_known(host, effective(world, host))
    own_resources(world)
    world.largest = largest_of(list(world.capacity.values()))


def _record(facts: NodeFacts, *, known: NodeRecord | None = None) -> NodeRecord:
    """A record for these facts. Small changes of free disk are ignored: they happen all the time."""
    disk = facts.disk
    if known is not None and abs(known.disk - disk) < max(known.disk, disk) // 10:
        disk = known.disk
    return NodeRecord(
        cores=facts.cores,
        mem=facts.mem,
        disk=disk,
        gpus=facts.gpus,
        machine=facts.machine,
        properties=facts.properties,
        hours=facts.hours,
    )


def _capacity(record: NodeRecord) -> Capacity:
    return Capacity(cpus=record.cores * CORE, mem=record.mem, disk=record.disk, gpus=record.gpus, pool=NODES)


def _kind(value: Any) -> Kind:
    return "yesno" if isinstance(value, bool) else "integer" if isinstance(value, int) else "text"


def _write(world: World, turn: Turn, kind: str, name: str, value: dict[str, Any]) -> None:
    world.site[kind] = {**world.site[kind], name: value}
    world.site_version += 1
    turn.changes.site[kind, name] = msgspec.json.encode(value).decode()


# ------------------------------------------------------------------ usability


def effective(world: World, host: str) -> Capacity:
    """The capacity of a host for jobs: what it has, unless an administrator set other figures."""
    capacity, record = world.capacity[host], host_record(world.site, host)
    return Capacity(
        cpus=capacity.cpus,
        mem=capacity.mem if record.mem is None else record.mem,
        disk=capacity.disk if record.disk is None else record.disk,
        gpus=record.gpus or capacity.gpus,
        pool=capacity.pool,
    )


def update_usable(world: World, host: str) -> None:
    """Tell the placement the condition of this host. Call it after any change of that."""
    mark(world, host)
    if host not in world.capacity:
        return
    runner = answering(world, host)
    record = host_record(world.site, host)
    closed = any(closes(world, host) for closes in world.points.closes_host)
    # A removed or reserved machine does not exist even for jobs that name it.
    there = record.condition != "removed" and not record.manual_user
    alive = runner is not None and not runner.leaving and record.state == "alive" and not closed and there
    automated = record.condition == "automated"
    draining = record.drain or bool(record.wanted_by)
    world.placement.host_condition(host, Condition(alive=alive, automated=automated, draining=draining))


def follow_records(world: World, turn: Turn, changes: Iterable[tuple[str, str, Any]], *, by: str) -> None:
    """Apply changed records of hosts and nodes to the placement."""
    for kind, name, value in changes:
        if kind == "host" and name in world.capacity:
            world.placement.host_known(name, effective(world, name))
            update_usable(world, name)
        elif kind == "node" and value is None:
            _forget(world, turn, name, by=by)


def refuse_used_nodes(world: World, changes: Iterable[tuple[str, str, Any]]) -> None:
    """Raise `BadInput` if a node to be removed has jobs."""
    for kind, name, value in changes:
        if kind == "node" and value is None:
            jobs = {job.id for job, host in all_leased(world) if host == name} | jobs_with_part(world, name)
            # What is only being prepared there ends with the node.
            running = {id for id in jobs if (lease := world.jobs[id].lease) is None or not lease.stays}
            if (kept := hold_at(world, name)) is not None:
                raise BadInput(
                    f"job {kept.job} keeps node '{name}' after its run",
                    hint=f"return it first: rota node return {name}",
                )
            if running:
                raise BadInput(
                    f"job {min(running)} is on node '{name}'",
                    hint=f"drain it first, or end its jobs: rota kill host={name}",
                )


def _runners_at(world: World, host: str) -> list[Runner]:
    return [runner for runner in world.runners.values() if runner.host == host]


def _forget(world: World, turn: Turn, host: str, *, by: str) -> None:
    """Remove a node and send its agent away."""
    for removed in world.points.node_removed:
        removed(world, turn, host)
    for runner in _runners_at(world, host):
        turn.effects.append(DismissRunner(runner.id, f"node '{host}' was removed by {by}"))
        del world.runners[runner.id]
    world.runner_at.pop(host, None)
    mark(world, host)
    if world.capacity.pop(host, None) is not None:
        world.placement.host_gone(host)
    own_resources(world)
    world.largest = largest_of(list(world.capacity.values()))
