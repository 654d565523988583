"""The hosts and resources of a deployment as they are now: what records and runners say together."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from rota.core.world import World
from rota.plan.building import own_ids, site_of
from rota.plan.clock import Clock
from rota.plan.placement import Capacity
from rota.plan.records import KINDS
from rota.plan.resources import Site


def site_now(world: World) -> Site:
    """The resources as they are now: what is on hosts whose runner answers may be used."""
    runners = (each for each in world.runners.values() if each.connected and not each.silent)
    connected = {runner.host for runner in runners if not runner.leaving}
    return site_of(
        world.site,
        shared_hosts(world),
        connected=connected,
        own=own_resources(world),
        clock=Clock(world.zone),
        wake_s=world.energy.wake_s if world.energy.wakes else None,
    )


def shared_hosts(world: World) -> dict[str, Capacity]:
    """Hosts that are there for any job, with what they have; not those made for jobs of one need."""
    made = {runner.host for runner in world.runners.values() if runner.made_for is not None}
    return {host: capacity for host, capacity in world.capacity.items() if host not in made}


def own_resources(world: World) -> dict[str, list[int]]:
    """Ids of what hosts bring themselves; they stay the same while the manager runs."""
    world.own_resources = own_ids(world.site, shared_hosts(world), world.own_resources)
    return world.own_resources


def restore_site(world: World, stored: Mapping[tuple[str, str], str]) -> None:
    """The records as they were when the last batch was committed. A kind of a later version is left alone."""
    world.site = {kind: {} for kind in KINDS}
    for (kind, name), text in stored.items():
        if kind in world.site:
            world.site[kind][name] = msgspec.json.decode(text)
    own_resources(world)
