"""Change records of the site: all requested changes or none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from rota.core.admission.rule_records import rules_of
from rota.core.effects import SendReply
from rota.core.events import SiteChanged
from rota.core.jobs.actions import kill_on_hosts
from rota.core.machines.hosts import own_resources
from rota.core.machines.nodes import follow_records, refuse_used_nodes
from rota.core.site.policy import refuse_used_queues
from rota.core.site.record_checks import check_record
from rota.core.turn import NO_JOB_ID, Turn
from rota.core.world import World
from rota.errors import BadInput, NotFound
from rota.plan.language import expression
from rota.plan.language.expression import Kind
from rota.plan.site.records import MOST_RESOURCES, check_value, kinds_of, levels_of

Records = dict[str, dict[str, Any]]
Change = tuple[str, str, Any]


def on_site_changed(world: World, turn: Turn, event: SiteChanged) -> None:
    """Check each change and the result as a whole, then apply them."""
    if event.base is not None and event.base != world.site_version:
        raise BadInput("the site was changed meanwhile", hint="look again, and repeat it", code="changed")
    changes = [_without_old_author(world.site, change) for change in event.changes]
    after = changed(world.site, changes)
    refuse_used_queues(world, world.site, after)
    refuse_used_nodes(world, changes)
    if changes:
        for kind, name, value in changes:
            text = None if value is None else msgspec.json.encode(value).decode()
            turn.changes.site[kind, name] = text
        world.site = after
        world.site_version += 1
        by = event.by.user if event.by is not None else "rota"
        turn.note(NO_JOB_ID, 0, "site", f"{by}: {event.about or summary(changes)}")
        own_resources(world)
        follow_records(world, turn, changes, by=by)
        for site_changed in world.points.site_changed:
            site_changed(world, turn, changes)
        _kill_on_lost_hosts(world, turn, changes, by)
        if world.on_site is not None:
            world.on_site()
    if event.by is not None:
        turn.effects.append(SendReply(event.by, world.site_version))


def _without_old_author(site: Records, change: Change) -> Change:
    """When the state of a host changes, drop the author and reason of the old state."""
    kind, name, value = change
    if kind != "host" or not isinstance(value, dict) or not {"by", "why"} & value.keys():
        return change
    if value.get("state", "alive") == site["host"].get(name, {}).get("state", "alive"):
        return change
    return kind, name, {field: its for field, its in value.items() if field not in ("by", "why")}


def _kill_on_lost_hosts(world: World, turn: Turn, changes: Iterable[Change], by: str) -> None:
    """Kill what executes on hosts declared absent or dead."""
    for kind, name, value in changes:
        if kind == "host" and value is not None and value.get("state") in ("absent", "dead"):
            kill_on_hosts(world, turn, {name}, why=f"host {name} was declared {value['state']} by {by}")


def changed(site: Records, changes: list[Change]) -> Records:
    """Return the site after these changes; `site` itself is not changed. Raises if one is invalid."""
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
    """Check that levels and resources use only existing properties, with values of the right type."""
    kinds = kinds_of(after)
    if missing := [level for level in levels_of(after) if level not in kinds]:
        raise BadInput(f"level '{missing[0]}' is not a property", hint=f"add it: rota property add {missing[0]}")
    old = kinds_of(before)
    whole = any(kinds.get(name) != kind for name, kind in old.items())  # a property is gone or has another type
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
    if whole or any(kind == "rule" for kind, _, _ in changes):
        _check_rules(after, kinds)


def _check_rules(after: Records, kinds: Mapping[str, Kind]) -> None:
    """Check that rules refer only to existing properties."""
    for rule in rules_of(after):
        where = rule.values.get("where")
        if isinstance(where, str):
            try:
                expression.check(expression.parse(where), kinds)
            except BadInput as error:
                raise BadInput(f"rule '{rule.name}': field 'where': {error.message}", hint=error.hint) from None


def summary(changes: list[Change]) -> str:
    """Summarise the changes for the log."""
    counts: dict[str, int] = {}
    for kind, _, value in changes:
        words = f"{kind} {'removed' if value is None else 'set'}"
        counts[words] = counts.get(words, 0) + 1
    if len(changes) == 1:
        kind, name, value = changes[0]
        return f"{kind} '{name}' {'removed' if value is None else 'set'}"
    return ", ".join(f"{words}: {n}" for words, n in counts.items())
