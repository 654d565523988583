"""Records of the site change, all that are asked for or none, and whoever plans is told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from rota.core.acting import kill_on_hosts
from rota.core.effects import Reply
from rota.core.events import SiteChanged
from rota.core.policing import refuse_used_queues
from rota.core.turn import Turn
from rota.core.world import World
from rota.errors import BadInput, NotFound
from rota.plan.building import own_ids, site_of
from rota.plan.placement import Capacity
from rota.plan.records import KINDS, MOST_RESOURCES, check_record, check_value, kinds_of, levels_of
from rota.plan.resources import Site

Records = dict[str, dict[str, Any]]
Change = tuple[str, str, Any]

#: In the story of events: what happens to the deployment and to no job.
NO_JOB_ID = 0


def on_site_changed(world: World, turn: Turn, event: SiteChanged) -> None:
    """Check the changes one by one and their result as a whole; then make them."""
    if event.base is not None and event.base != world.site_version:
        raise BadInput("the site was changed meanwhile", hint="look again, and repeat it", code="changed")
    after = changed(world.site, event.changes)
    refuse_used_queues(world, world.site, after)
    if event.changes:
        for kind, name, value in event.changes:
            text = None if value is None else msgspec.json.encode(value).decode()
            turn.changes.site[kind, name] = text
        world.site = after
        world.site_version += 1
        who = event.by.user if event.by is not None else "rota"
        turn.note(NO_JOB_ID, 0, "site", f"{who}: {event.about or summary(event.changes)}")
        own_resources(world)
        _end_what_runs_on_the_gone(world, turn, event.changes, who)
        if world.on_site is not None:
            world.on_site()
    if event.by is not None:
        turn.effects.append(Reply(event.by, world.site_version))


def _end_what_runs_on_the_gone(world: World, turn: Turn, changes: Iterable[Change], who: str) -> None:
    """A host that is said to be absent or dead runs nothing any more."""
    for kind, name, value in changes:
        if kind == "host" and value is not None and value.get("state") in ("absent", "dead"):
            kill_on_hosts(world, turn, {name}, why=f"{who} said that host {name} is {value['state']}")


def changed(site: Records, changes: list[Change]) -> Records:
    """The site after these changes; `site` stays as it is. Raises what is wrong with them."""
    after = dict(site)
    for kind in {kind for kind, _, _ in changes}:
        after[kind] = dict(site.get(kind, {}))
    for kind, name, value in changes:
        check_record(kind, name, value)
        if value is not None:
            after[kind][name] = value
        elif after[kind].pop(name, None) is None:
            raise NotFound(f"there is no {kind} '{name}'", hint=f"list them with 'rota {kind} list'")
    if len(after.get("resource", {})) > MOST_RESOURCES:
        raise BadInput(f"there would be more than {MOST_RESOURCES:,} resources", hint="add fewer")
    _check_properties(site, after, changes)
    return after


def _check_properties(before: Records, after: Records, changes: Iterable[Change]) -> None:
    """Resources have only properties that there are, of the right type; so have levels."""
    kinds = kinds_of(after)
    if missing := [level for level in levels_of(after) if level not in kinds]:
        raise BadInput(f"level '{missing[0]}' is not a property", hint=f"add it: rota property add {missing[0]}")
    old = kinds_of(before)
    whole = any(kinds.get(name) != kind for name, kind in old.items())  # gone, or of another type
    resources = after.get("resource", {})
    looked_at = resources if whole else {name for kind, name, _ in changes if kind == "resource"}
    for id in looked_at:
        for name, value in resources.get(id, {}).items():
            kind = kinds.get(name)
            if kind is None:
                raise BadInput(
                    f"resource {id} has a value of '{name}', which is not a property",
                    hint=f"add it: rota property add {name}",
                )
            check_value(name, value, kind)


def summary(changes: list[Change]) -> str:
    """What changed, in short: for the log."""
    counts: dict[str, int] = {}
    for kind, _, value in changes:
        words = f"{kind} {'removed' if value is None else 'set'}"
        counts[words] = counts.get(words, 0) + 1
    if len(changes) == 1:
        kind, name, value = changes[0]
        return f"{kind} '{name}' {'removed' if value is None else 'set'}"
    return ", ".join(f"{words}: {n}" for words, n in counts.items())


def site_now(world: World) -> Site:
    """The resources as they are now: what is on hosts whose runner answers may be used."""
    connected = {runner.host for runner in world.runners.values() if runner.connected}
    return site_of(world.site, shared_hosts(world), connected=connected, own=own_resources(world))


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
