"""`rota machine-group`: machines that belong together, the group's members, and its cap on outsiders."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from rota.cli.command import Group, Invocation

if TYPE_CHECKING:
    from rota.client.calls import SiteChange
    from rota.wire.views import SiteView

_KINDS: Final = ("machine_group", "host")
_NONE: Final = "none"


@click.group("machine-group", cls=Group)
def machine_group() -> None:
    """Groups of machines, with their members and a cap on the priority of others."""


@machine_group.command("set")
@click.argument("name", metavar="G")
@click.option("--cap", metavar="N", help="Highest priority of outsiders' jobs on its machines; none: no cap.")
@click.option(
    "--user",
    "users",
    metavar="U",
    multiple=True,
    help="A member; may be repeated. Replaces all members; none: no members.",
)
def set_group(call: Invocation, name: str, cap: str | None, users: tuple[str, ...]) -> int:
    """Make or change a machine group; what is not given stays as it is.

    Machines join it with 'rota node set HOST --machine-group G'.

    \b
    Examples:
      rota machine-group set lab1 --cap 10 --user ann --user bob
    """
    from rota.cli.commands.site import site_records

    given = _given(cap, users)

    def make(view: SiteView) -> tuple[list[SiteChange], dict[str, Any]]:
        record = {**view.of("machine_group").get(name, {}), **given}
        record = {field: value for field, value in record.items() if value not in (None, [])}
        return [("machine_group", name, record)], record

    with call.connect() as client:
        made = site_records.change(client, _KINDS, make, about=f"machine-group set {name}")
    return site_records.tell(call, f"{name}: {_sentence(made)}", group=_body(name, made, {}))


@machine_group.command("list")
def list_groups(call: Invocation) -> int:
    """List the machine groups, with their machines and members.

    \b
    Examples:
      rota machine-group list
    """
    from rota.cli.commands.site import site_records

    with call.connect_to_read() as client:
        view = client.site(*_KINDS)
    records, hosts = dict(view.of("machine_group")), view.of("host")
    for host in hosts.values():
        for group in host.get("groups", ()):
            records.setdefault(group, {})  # a machine may be in a group that has neither cap nor members
    found = [_body(name, record, hosts) for name, record in sorted(records.items())]
    return site_records.show(
        call,
        {"groups": found},
        head=["GROUP", "CAP", "MACHINES", "MEMBERS"],
        rows=[
            [
                each["group"],
                "" if each["cap"] is None else str(each["cap"]),
                ", ".join(each["machines"]),
                ", ".join(each["users"]),
            ]
            for each in found
        ],
        empty="there is no machine group yet; make one with 'rota machine-group set'",
        right="lr",
    )


@machine_group.command("remove")
@click.argument("name", metavar="G")
def remove_group(call: Invocation, name: str) -> int:
    """Remove a machine group. Its machines leave it.

    \b
    Examples:
      rota machine-group remove lab1
    """
    from rota.cli.commands.site import site_records
    from rota.errors import NotFound

    def make(view: SiteView) -> tuple[list[SiteChange], None]:
        changes: list[SiteChange] = []
        if name in view.of("machine_group"):
            changes.append(("machine_group", name, None))
        for host, record in view.of("host").items():
            if name in record.get("groups", ()):
                groups = [each for each in record["groups"] if each != name]
                left = {**record, "groups": groups} if groups else {**record}
                if not groups:
                    del left["groups"]
                changes.append(("host", host, left or None))
        if not changes:
            raise NotFound(f"there is no machine group '{name}'", hint="list them with 'rota machine-group list'")
        return changes, None

    with call.connect() as client:
        site_records.change(client, _KINDS, make, about=f"machine-group remove {name}")
    return site_records.tell(call, f"removed: {name}", removed=name)


def _given(cap: str | None, users: tuple[str, ...]) -> dict[str, Any]:
    """The given options as fields of the record. Raises `BadInput`."""
    from rota.errors import BadInput

    given: dict[str, Any] = {}
    if cap is not None:
        try:
            given["cap"] = None if cap == _NONE else int(cap)
        except ValueError:
            raise BadInput(
                f"--cap: '{cap[:40]}' is not a number", hint="give a priority such as 10, or none"
            ) from None
    if users:
        given["users"] = [user for user in dict.fromkeys(users) if user != _NONE]
    return given


def _sentence(record: dict[str, Any]) -> str:
    cap = record.get("cap")
    members = ", ".join(record.get("users", ()))
    return "; ".join(
        [
            f"members {members}" if members else "no members",
            "no cap" if cap is None else f"others up to priority {cap}",
        ]
    )


def _body(name: str, record: dict[str, Any], hosts: dict[str, Any]) -> dict[str, Any]:
    from rota.plan.language.hostlist import natural

    machines = sorted((host for host, its in hosts.items() if name in its.get("groups", ())), key=natural)
    return {"group": name, "cap": record.get("cap"), "users": record.get("users", []), "machines": machines}
