"""Changes to a host's record made by the engine itself, with the effects of an administrator's change."""

from __future__ import annotations

from typing import Any

import msgspec

from rota.core.effects import RecallLeases
from rota.core.machines.nodes import follow_records
from rota.core.site.manager_pause import unstarted
from rota.core.turn import Turn
from rota.core.world import World
from rota.plan.site.records import HostRecord


def set_fields(world: World, turn: Turn, host: str, *, by: str, **fields: Any) -> None:
    """Set these fields of the host's record. A field with its default value is left out of it."""
    before: dict[str, Any] = world.site["host"].get(host, {})
    record = msgspec.structs.replace(msgspec.convert(before, HostRecord), **fields)
    value = msgspec.to_builtins(record) or None
    if value == (before or None):
        return
    hosts = {name: each for name, each in world.site["host"].items() if name != host}
    world.site["host"] = hosts if value is None else {**hosts, host: value}
    world.site_version += 1
    turn.changes.site["host", host] = None if value is None else msgspec.json.encode(value).decode()
    follow_records(world, turn, [("host", host, value)], by=by)
    if world.on_site is not None:
        world.on_site()


def recall_unstarted(world: World, turn: Turn, host: str) -> None:
    """Recall leases of this host that have not started."""
    for runner in world.runners.values():
        if runner.host == host and (leases := unstarted(world, runner)):
            turn.effects.append(RecallLeases(runner.id, leases))
