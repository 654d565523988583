"""Energy: put idle nodes to sleep, and wake them in time for what is planned there.

A node's state is on disk before its command runs, so a restart forgets no sleeping node. Commands are run by
`manager.host.energy`, which reports how they ended.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from rota.core.attempts.parts import all_leased, jobs_with_part
from rota.core.effects import SleepNodes, WakeNodes
from rota.core.events import PowerCommandEnded, RunnerJoined
from rota.core.feature import Feature
from rota.core.machines.closed_hosts import closed_hosts
from rota.core.machines.hosts import site_now
from rota.core.machines.node_energy import NodeEnergy
from rota.core.machines.nodes import effective, update_usable
from rota.core.restart import Restart
from rota.core.site.manager_pause import starts_nothing
from rota.core.turn import NO_JOB_ID, Turn
from rota.core.world import Runner, World
from rota.errors import BadInput
from rota.plan.need import Need
from rota.plan.packing.hosts import amounts, fits
from rota.plan.site.records import EnergyRecord, EnergyState
from rota.plan.site.resources import Site
from rota.plan.site.site_builder import energy_of, host_record
from rota.units import about_duration

#: Energy state of a record → word shown to people.
WORDS = {"falling": "falling asleep", "asleep": "asleep", "waking": "waking", "failed": "suspected"}
#: Words for nodes that a job can wake.
SLEEPING = frozenset(word for state, word in WORDS.items() if state != "failed")


# ------------------------------------------------------------------ observing


def manage_energy(world: World, turn: Turn) -> None:
    """Follow what nodes do, wake those needed, and put others to sleep."""
    if not world.site["energy"] and not world.use(NodeEnergy).rules.sleeps:
        return
    for host in list(world.site["energy"]):
        follow_node(world, turn, host)
    _note_idle(world, turn)
    planner = world.placement.planner
    if starts_nothing(world) or (planner is not None and planner.unsettled):
        return  # after a restart the plan is not known yet
    site = planner.plan.site if planner is not None else site_now(world)
    _wake_needed(world, turn, site)
    rules = world.use(NodeEnergy).rules
    if rules.sleeps and rules.wakes:
        _put_idle_to_sleep(world, turn, site)


def follow_node(world: World, turn: Turn, host: str) -> None:
    """Update the energy state of a node from what can be seen of it."""
    found = world.site["energy"].get(host)
    if found is None:
        return
    if host not in world.site["node"]:
        _set(world, turn, host, None, "is no node any more")
        return
    energy, state, up = world.use(NodeEnergy), found["state"], is_up(world, host)
    rules = energy.rules
    first_seen = host not in energy.since
    since = energy.since.setdefault(host, turn.mono)
    late = turn.mono - since > rules.wake_timeout_s
    if state == "falling":
        if not up:
            _set(world, turn, host, "asleep", "sleeps")
        elif late:
            _set(world, turn, host, None, "did not fall asleep")
    elif up:
        _set(world, turn, host, None, "is awake")
    elif state == "waking" and first_seen:
        turn.effects.append(WakeNodes([host]))  # its command may not have run before the restart
    elif state == "waking" and late:
        _set(world, turn, host, "failed", f"did not wake within {about_duration(rules.wake_timeout_s)}")


def is_up(world: World, host: str) -> bool:
    """Does a runner on this host answer?"""
    runner = world.runners.get(world.runner_at.get(host, ""))
    return runner is not None and runner.connected and not runner.silent


def on_power_command_ended(world: World, turn: Turn, event: PowerCommandEnded) -> None:
    """A power command ended. Only its failure matters: success shows when the node joins or leaves."""
    found = world.site["energy"].get(event.host)
    if found is None or not event.error:
        return
    if event.wake and found["state"] == "waking" and not is_up(world, event.host):
        _set(world, turn, event.host, "failed", f"could not be woken: {event.error}")
    elif not event.wake and found["state"] == "falling" and is_up(world, event.host):
        _set(world, turn, event.host, None, f"could not be put to sleep: {event.error}")


def _allow_waking_again(world: World, turn: Turn, changes: list[tuple[str, str, Any]]) -> None:
    """If an administrator declares a host alive that could not be woken, it may be tried again."""
    for kind, host, _value in changes:
        found = world.site["energy"].get(host) if kind == "host" else None
        if found is not None and found["state"] == "failed" and host_record(world.site, host).state == "alive":
            _set(world, turn, host, "asleep", "may be woken again")


def _note_idle(world: World, turn: Turn) -> None:
    idle = set(_idle_nodes(world))
    since = world.use(NodeEnergy).idle_since
    for host in since.keys() - idle:
        del since[host]
    for host in idle:
        since.setdefault(host, turn.mono)


def _idle_nodes(world: World) -> list[str]:
    """Nodes that are awake, usable and without work. The manager's host is no node."""
    busy = {host for host in world.site["node"] if jobs_with_part(world, host)} | world.site["energy"].keys()
    for job, host in all_leased(world):
        busy.add(host)
        if job.lease is not None and job.lease.given is not None:
            # held resources count, wherever the job executes
            busy.update(node for node, _cores in job.lease.given.nodes)
    there = [host for host in world.site["node"] if host not in busy]
    return [host for host in there if is_up(world, host) and _may_be_used(world, host)]


def _may_be_used(world: World, host: str) -> bool:
    record = host_record(world.site, host)
    return record.state == "alive" and not record.drain and record.condition == "automated"


# ------------------------------------------------------------------ deciding


def _wake_needed(world: World, turn: Turn, site: Site) -> None:
    rules = world.use(NodeEnergy).rules
    if not rules.wakes:
        return
    energy = energy_of(world.site)
    asleep = [host for host, its in energy.items() if its["state"] == "asleep" and _may_be_used(world, host)]
    if not asleep:
        return
    starts = world.placement.next_starts(asleep)
    wanted = [host for host, start in starts.items() if start - rules.wake_s <= turn.wall]
    wanted += _spares_to_wake(world, turn, site, [host for host in sorted(asleep) if host not in wanted])
    wanted += _to_wake_for_unplanned(world, [host for host in sorted(asleep) if host not in wanted], wanted)
    for host in wanted:
        _set(world, turn, host, "waking", "is woken")
    if wanted:
        turn.effects.append(WakeNodes(wanted))


def _spares_to_wake(world: World, turn: Turn, site: Site, asleep: list[str]) -> list[str]:
    """Choose sleeping nodes to wake so that `keep_alive` holds."""
    state = world.use(NodeEnergy)
    if not state.rules.keep_alive:
        return []
    energy, closed = energy_of(world.site), closed_hosts(world)
    coming = [host for host, its in energy.items() if its["state"] == "waking"]
    taken = world.placement.next_starts(coming)
    spare = [host for host in (*state.idle_since, *coming) if host not in taken and host not in closed]
    chosen: list[str] = []
    for rule in state.rules.keep_alive:
        missing = rule.number - len(_matching(world, turn, site, rule.where, [*spare, *chosen]))
        able = [host for host in asleep if host not in chosen and host not in closed]
        chosen += _matching(world, turn, site, rule.where, able)[: max(0, missing)]
    return chosen


def _to_wake_for_unplanned(world: World, asleep: list[str], woken: list[str]) -> list[str]:
    """Choose a sleeping node for each job without cores, which is in no plan, if no other host can run it."""
    energy = energy_of(world.site)
    chosen: list[str] = []
    needs = [
        each.need
        for each in world.placement.ready()
        if not each.need.size.cpus and world.placement.limits.stopped(each.need.limits) is None
    ]
    there = [host for host in world.capacity if host not in energy and is_up(world, host)] if needs else []
    there += [host for host, its in energy.items() if its["state"] == "waking"]
    for need in needs:
        if not any(_could_run(world, host, need) for host in (*there, *woken, *chosen)):
            chosen += [host for host in asleep if _could_run(world, host, need)][:1]
    return chosen


def _could_run(world: World, host: str, need: Need) -> bool:
    has = effective(world, host)
    return _may_be_used(world, host) and fits(need.size, amounts(has)) and (not need.pool or need.pool == has.pool)


def _put_idle_to_sleep(world: World, turn: Turn, site: Site) -> None:
    state = world.use(NodeEnergy)
    rules, idle = state.rules, dict(state.idle_since)
    candidates = [host for host, since in idle.items() if turn.mono - since >= rules.sleep_after_s]
    if not candidates:
        return
    starts, soon = world.placement.next_starts(candidates), turn.wall + rules.sleep_gap_s
    candidates = [host for host in candidates if starts.get(host, soon) >= soon]
    ready = [host for host in idle if host not in closed_hosts(world)]
    kept = [(rule.number, set(_matching(world, turn, site, rule.where, ready))) for rule in rules.keep_alive]
    chosen: list[str] = []
    for host in sorted(candidates, key=lambda host: (idle[host], host)):
        if all(host not in awake or len(awake) > number for number, awake in kept):
            for _number, awake in kept:
                awake.discard(host)
            chosen.append(host)
    for host in chosen:
        _set(world, turn, host, "falling", f"is put to sleep: idle for {about_duration(turn.mono - idle[host])}")
    if chosen:
        turn.effects.append(SleepNodes(chosen))


def _matching(world: World, turn: Turn, site: Site, where: str, hosts: Iterable[str]) -> list[str]:
    """Select the hosts that match an expression of `keep_alive`; all, if it does not fit the site."""
    try:
        mask = site.matching(where)
    except BadInput as error:
        mask = site.everything
        state = world.use(NodeEnergy)
        if state.doubt != error.message:
            state.doubt = error.message
            turn.note(NO_JOB_ID, 0, "energy", f"keep_alive is taken to mean every node: {error.message}")
    return [host for host in hosts if site.hosts.get(host, 0) & mask]


def _set(world: World, turn: Turn, host: str, state: EnergyState | None, what: str) -> None:
    """Write a node's energy state (None: awake) and inform the planner."""
    after, energy = dict(world.site["energy"]), world.use(NodeEnergy)
    if state is None:
        del after[host]
        turn.changes.site["energy", host] = None
        energy.since.pop(host, None)
        energy.idle_since.pop(host, None)
    else:
        why = what if state == "failed" else ""
        after[host] = msgspec.to_builtins(EnergyRecord(state=state, since=turn.wall, why=why))
        turn.changes.site["energy", host] = msgspec.json.encode(after[host]).decode()
        energy.since[host] = turn.mono
    world.site["energy"] = after
    turn.note(NO_JOB_ID, 0, "energy", f"{host} {what}")
    update_usable(world, host)
    world.placement.site_changed()


# ------------------------------------------------------------------ registration


def _follow_joined(world: World, turn: Turn, runner: Runner, _event: RunnerJoined) -> None:
    follow_node(world, turn, runner.host)


def _is_asleep(world: World, host: str) -> bool:
    return host in world.site["energy"]


def _needs_plan(world: World) -> bool:
    return bool(world.site["energy"]) or (world.use(NodeEnergy).rules.sleeps and bool(world.site["node"]))


def _restore(world: World, _restart: Restart) -> None:
    if world.site["energy"]:
        world.use(NodeEnergy)


FEATURE = Feature(
    name="energy",
    state=NodeEnergy,
    handlers={PowerCommandEnded: on_power_command_ended},
    restore=_restore,
    after_timer=manage_energy,  # only now: jobs that wait have been planned
    site_changed=_allow_waking_again,
    needs_plan=_needs_plan,
    closes_host=_is_asleep,
    runner_joined=_follow_joined,
    runner_parted=follow_node,
)
