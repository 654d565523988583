"""Who may do what with a machine: operators, its owner, the members of its machine groups, and outsiders."""

from __future__ import annotations

from rota.core.world import World
from rota.errors import Denied
from rota.plan.policy.priority_caps import Cap
from rota.plan.site.records import Records
from rota.plan.site.site_builder import host_record


def may_use(records: Records, host: str, user: str) -> bool:
    """Is this user the owner of the machine, or a member of one of its groups?"""
    record = host_record(records, host)
    if record.owner and record.owner == user:
        return True
    groups = records.get("machine_group", {})
    return any(user in groups.get(group, {}).get("users", ()) for group in record.groups)


def check_may_use(world: World, host: str, user: str, *, operator: bool) -> None:
    """Raise `Denied` unless this user may change the condition of a machine or reserve it."""
    if operator or may_use(world.site, host, user):
        return
    record = host_record(world.site, host)
    whose = f"belongs to {record.owner}" if record.owner else "is not yours"
    raise Denied(
        f"machine '{host}' {whose}",
        hint="ask its owner, a member of its machine group or an administrator; see 'rota node show'",
    )


def caps_of(records: Records) -> tuple[Cap, ...]:
    """The highest priorities that outsiders have on machines of groups. The owner of a machine is no outsider."""
    capped = {name: its for name, its in records.get("machine_group", {}).items() if its.get("cap") is not None}
    if not capped:
        return ()
    hosts: dict[tuple[str, str], set[str]] = {}  #: (group, owner) → machines
    for host, its in records.get("host", {}).items():
        for group in its.get("groups", ()):
            if group in capped:
                hosts.setdefault((group, its.get("owner", "")), set()).add(host)
    return tuple(
        Cap(
            frozenset(machines),
            capped[group]["cap"],
            frozenset({*capped[group].get("users", ()), owner} - {""}),
            group,
        )
        for (group, owner), machines in sorted(hosts.items())
    )
