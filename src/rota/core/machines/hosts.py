"""The hosts and resources of a deployment now, from records and connected runners together."""

from __future__ import annotations

import msgspec

from rota.core.attempts.noop_jobs import is_noop_runner
from rota.core.events import HostAppeared
from rota.core.learning.estimate import largest_of
from rota.core.machines.machine_use import mark
from rota.core.machines.node_energy import NodeEnergy
from rota.core.restart import Restart
from rota.core.turn import Turn
from rota.core.world import Runner, World
from rota.plan.site.clock import Clock
from rota.plan.site.records import KINDS
from rota.plan.site.resources import ABSENT, DEAD, LEAVING, SUSPECTED, Site
from rota.plan.site.site_builder import own_ids, site_of
from rota.plan.size import Capacity


def on_host_appeared(world: World, _turn: Turn, event: HostAppeared) -> None:
    """A pool reported the capacity of a host."""
    world.capacity[event.host] = event.capacity
    mark(world, event.host)
    world.placement.host_known(event.host, event.capacity)
    world.largest = largest_of(list(world.capacity.values()))


def site_now(world: World) -> Site:
    """Return the resources as they are now. Those of a host are usable if its runner answers."""
    runners = (each for each in world.runners.values() if each.connected and not each.silent)
    connected = {runner.host for runner in runners if not runner.leaving}
    energy = world.find(NodeEnergy)
    return site_of(
        world.site,
        shared_hosts(world),
        connected=connected,
        words={host: word for host, runner in agents(world).items() if (word := away_word(runner))},
        own=own_resources(world),
        clock=Clock(world.zone),
        wake_s=energy.rules.wake_s if energy is not None and energy.rules.wakes else None,
    )


def agents(world: World) -> dict[str, Runner]:
    """Host → the runner that represents it."""
    found: dict[str, Runner] = {}
    for runner in world.runners.values():
        if not is_noop_runner(runner.id) and (
            runner.host not in found or world.runner_at.get(runner.host) == runner.id
        ):
            found[runner.host] = runner
    return found


def away_word(runner: Runner) -> str:
    """The word for a host whose runner gets no new work; empty: it does."""
    if runner.silent:
        return DEAD if runner.dead else SUSPECTED
    if runner.leaving:
        return LEAVING
    return "" if runner.connected else ABSENT


def shared_hosts(world: World) -> dict[str, Capacity]:
    """Hosts for any job, with their capacity; not allocations made for jobs of one need."""
    made = {runner.host for runner in world.runners.values() if runner.made_for is not None}
    return {host: capacity for host, capacity in world.capacity.items() if host not in made}


def own_resources(world: World) -> dict[str, list[int]]:
    """Ids of resources that come from hosts without records. Stable while the manager runs."""
    world.own_resources = own_ids(world.site, shared_hosts(world), world.own_resources)
    return world.own_resources


def restore_hosts(world: World, restart: Restart) -> None:
    """Make the hosts of the pool known to the placement."""
    for host, capacity in restart.hosts.items():
        world.capacity[host] = capacity
        world.placement.host_known(host, capacity)
    world.largest = largest_of(list(world.capacity.values()))


def restore_site(world: World, restart: Restart) -> None:
    """Load the records of the site. Kinds of a later version are ignored."""
    world.site = {kind: {} for kind in KINDS}
    for (kind, name), text in restart.snapshot.site.items():
        if kind in world.site:
            world.site[kind][name] = msgspec.json.decode(text)
    own_resources(world)


def counted_cores(cpus: float, taken: float, *, usable: bool) -> float:
    """The cores of a host that count as capacity: all, or only those in use where nothing may begin."""
    return cpus if usable else min(cpus, taken)
