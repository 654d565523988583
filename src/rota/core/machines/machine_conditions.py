"""Conditions that people set, and machines that they reserve for use by hand.

A condition changes at once. Leases that have not started are recalled; running jobs go on unless the user asked to
abort them.
"""

from __future__ import annotations

from typing import Any

from rota.core.effects import SendReply
from rota.core.feature import Feature
from rota.core.jobs.actions import kill_on_hosts
from rota.core.machines.faulty_runs import FaultyRuns, reset_faults
from rota.core.machines.hold_records import hold_at
from rota.core.machines.holds import end_hold
from rota.core.machines.host_fields import recall_unstarted, set_fields
from rota.core.machines.machine_access import check_may_use, may_use
from rota.core.machines.machine_events import MachineReserved, MachineReturned, MachineSet
from rota.core.machines.machine_states import Condition
from rota.core.machines.machine_use import MachineUse
from rota.core.restart import Restart
from rota.core.site.record_checks import check_record
from rota.core.turn import NO_JOB_ID, Turn
from rota.core.world import World
from rota.errors import BadInput, Denied, NotFound
from rota.plan.site.records import HostRecord, check_group_name, check_user_name
from rota.plan.site.site_builder import host_record
from rota.units import about_duration

#: No machine is reserved for longer.
MOST_S = 10 * 366 * 86_400.0


class ManualUse:
    """State of the feature `machine conditions`: an index of what the records say."""

    __slots__ = ("until", "wanted")

    def __init__(self) -> None:
        self.until: dict[str, float] = {}  #: host reserved by hand → wall time at which that ends
        self.wanted: set[str] = set()  #: hosts that a user waits for


# ------------------------------------------------------------------ set


def on_machine_set(world: World, turn: Turn, event: MachineSet) -> None:
    """Change machines: all of them or none."""
    changes = {host: _checked(world, host, event) for host in dict.fromkeys(event.hosts)}
    by = event.by.user
    for host, fields in changes.items():
        set_fields(world, turn, host, by=by, **fields)
        said = [f"{name} {value or 'none'}" for name, value in fields.items() if name in _TOLD]
        why = f": {event.reason}" if event.reason else ""
        turn.note(NO_JOB_ID, 0, "node", f"{host}: {', '.join(said)}, by {by}{why}")
        if event.condition is not None:
            reset_faults(world, turn, host)
            if event.condition != Condition.AUTOMATED:
                recall_unstarted(world, turn, host)
        if event.now:
            kill_on_hosts(world, turn, {host}, why=f"machine {host} was taken by {by}{why}")
    follow(world, changes)
    turn.effects.append(SendReply(event.by, sorted(changes)))


_TOLD = ("condition", "owner", "groups", "provision_cmd")


def _checked(world: World, host: str, event: MachineSet) -> dict[str, Any]:
    """The fields to set on this host. Raises `BadInput`, `Denied` or `NotFound`."""
    _check_known(world, host)
    check_may_use(world, host, event.by.user, operator=event.operator)
    if not event.operator and (event.owner, event.groups, event.provision_cmd) != (None, None, None):
        raise Denied(
            f"only an administrator may change the owner, groups or provision command of '{host}'",
            hint="leave out --owner, --machine-group and --provision-cmd",
        )
    for group in event.groups or ():
        check_group_name(group)
        _check_known_group(world, group)
    if event.owner:
        check_user_name(event.owner)
    given = {"owner": event.owner, "groups": event.groups, "provision_cmd": event.provision_cmd}
    fields: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if event.condition is not None:
        if event.condition not in list(Condition):
            raise BadInput(f"there is no condition '{event.condition}'", hint=f"use one of {', '.join(Condition)}")
        fields |= {"condition": event.condition, "condition_reason": event.reason or "", **_UNRESERVED}
    elif event.reason is not None:
        fields["condition_reason"] = event.reason
    if not fields and not event.now:
        raise BadInput("say what to change", hint="give an option such as --condition manual")
    check_record("host", host, {**world.site["host"].get(host, {}), **fields})
    return fields


#: The fields of a reservation, all empty.
_UNRESERVED: dict[str, Any] = {
    "manual_user": "", "manual_until": None, "wanted_by": "", "wanted_s": 0.0, "returns_to": "automated",
}  # fmt: skip


def _check_known(world: World, host: str) -> None:
    resources = (values["host"] for values in world.site["resource"].values())
    if host not in world.capacity and host not in world.site["host"] and host not in resources:
        raise NotFound(f"there is no node '{host}'", hint="list them with 'rota node list'")


def _check_known_group(world: World, group: str) -> None:
    """A machine may join a group that was made, or that a machine is in already."""
    used = (name for record in world.site["host"].values() for name in record.get("groups", ()))
    if group not in world.site["machine_group"] and group not in used:
        raise NotFound(
            f"there is no machine group '{group}'", hint=f"make it first: rota machine-group set {group}"
        )


# ------------------------------------------------------------------ reserved by hand


def on_machine_reserved(world: World, turn: Turn, event: MachineReserved) -> None:
    """Give a machine to a user, now or when it is free."""
    host, user = event.host, event.by.user
    _check_known(world, host)
    check_may_use(world, host, user, operator=event.operator)
    if not 0 < event.seconds <= MOST_S:
        raise BadInput(f"field 'for': {event.seconds:g} s is out of range", hint="write it like 2h or 3d")
    record = host_record(world.site, host)
    if record.condition in (Condition.BROKEN, Condition.REMOVED):
        raise BadInput(
            f"machine '{host}' is {record.condition}",
            hint=f"once it is repaired: rota node set {host} --condition manual",
        )
    if record.manual_user and record.manual_user != user:
        raise BadInput(
            f"machine '{host}' is reserved by {record.manual_user}",
            hint="wait for its return, or choose another machine",
        )
    if record.wanted_by and record.wanted_by != user:
        raise BadInput(f"machine '{host}' goes to {record.wanted_by} next", hint="choose another machine")
    if _is_busy(world, host) and not record.manual_user:
        if not event.when_free:
            jobs = ", ".join(map(str, sorted(_users(world, host))))
            raise BadInput(f"machine '{host}' is busy: job {jobs}", hint="give --when-free to get it afterwards")
        set_fields(world, turn, host, by=user, wanted_by=user, wanted_s=event.seconds)
        recall_unstarted(world, turn, host)
        turn.note(NO_JOB_ID, 0, "node", f"{host} is reserved for {user} as soon as it is free")
    else:
        _hand_over(world, turn, host, user, event.seconds)
    follow(world, [host])
    until = world.use(ManualUse).until.get(host)
    turn.effects.append(SendReply(event.by, until))


def on_machine_returned(world: World, turn: Turn, event: MachineReturned) -> None:
    """Take back a machine that was reserved by hand, or drop the wish for it."""
    host, user = event.host, event.by.user
    _check_known(world, host)
    record = host_record(world.site, host)
    if (kept := hold_at(world, host)) is not None:
        if user != kept.user and not event.operator and not may_use(world.site, host, user):
            raise Denied(
                f"machine '{host}' is kept by job {kept.job} of {kept.user}", hint="ask them to return it"
            )
        end_hold(world, turn, kept, f"returned by {user}")
        turn.effects.append(SendReply(event.by, host))
        return
    if not record.manual_user and not record.wanted_by:
        raise BadInput(f"machine '{host}' is not reserved", hint="see 'rota node show'")
    theirs = user in (record.manual_user, record.wanted_by)
    if not theirs and not event.operator and not may_use(world.site, host, user):
        who = record.manual_user or record.wanted_by
        raise Denied(f"machine '{host}' is reserved by {who}", hint="ask them to return it")
    _take_back(world, turn, host, f"returned by {user}")
    follow(world, [host])
    turn.effects.append(SendReply(event.by, host))


def _hand_over(world: World, turn: Turn, host: str, user: str, seconds: float) -> None:
    record = host_record(world.site, host)
    back = record.returns_to if record.manual_user else record.condition
    set_fields(
        world, turn, host, by=user, condition="manual", manual_user=user, manual_until=turn.wall + seconds,
        wanted_by="", wanted_s=0.0, returns_to=back,
    )  # fmt: skip
    recall_unstarted(world, turn, host)
    turn.note(NO_JOB_ID, 0, "node", f"{host} is reserved by {user} for {about_duration(seconds)}")


def _take_back(world: World, turn: Turn, host: str, why: str) -> None:
    record = host_record(world.site, host)
    condition = record.returns_to if record.manual_user else record.condition
    fields = {**_UNRESERVED, "condition": condition}
    if condition == "automated":
        fields["condition_reason"] = ""
    set_fields(world, turn, host, by=record.manual_user or record.wanted_by, **fields)
    turn.note(NO_JOB_ID, 0, "node", f"{host} is {condition} again: {why}")


def _is_busy(world: World, host: str) -> bool:
    use = world.use(MachineUse)
    return bool(use.held.get(host) or use.kept.get(host))


def _users(world: World, host: str) -> set[int]:
    use = world.use(MachineUse)
    return use.held.get(host, set()) | use.kept.get(host, set())


def _end_overdue(world: World, turn: Turn) -> None:
    """Take back machines whose reservation is over."""
    manual = world.use(ManualUse)
    over = [host for host, until in manual.until.items() if until <= turn.wall]
    for host in sorted(over):
        _take_back(world, turn, host, "its time is over")
    if over:
        follow(world, over)


def _next_end(world: World) -> float | None:
    return min(world.use(ManualUse).until.values(), default=None)


def _hand_over_free(world: World, turn: Turn) -> None:
    """Give machines that became free to the users who wait for them."""
    manual = world.use(ManualUse)
    for host in sorted(manual.wanted):
        record = host_record(world.site, host)
        if not record.wanted_by:
            manual.wanted.discard(host)
        elif not _is_busy(world, host):
            _hand_over(world, turn, host, record.wanted_by, record.wanted_s)
            follow(world, [host])


# ------------------------------------------------------------------ index


def follow(world: World, hosts: Any) -> None:
    """Update the index from the records of these hosts, and count faults on those with an owner or a group."""
    manual = world.use(ManualUse)
    for host in hosts:
        record = host_record(world.site, host)
        manual.until.pop(host, None)
        manual.wanted.discard(host)
        if record.manual_user and record.manual_until is not None:
            manual.until[host] = record.manual_until
        if record.wanted_by:
            manual.wanted.add(host)
        if is_individual(record):
            world.use(FaultyRuns)


def is_individual(record: HostRecord) -> bool:
    """Has this machine an owner, a group or a provision command?"""
    return bool(record.owner or record.groups or record.provision_cmd)


def _restore(world: World, _restart: Restart) -> None:
    fields = ("manual_user", "wanted_by", "owner", "groups", "provision_cmd")
    hosts = [host for host, record in world.site["host"].items() if any(record.get(name) for name in fields)]
    if hosts:
        follow(world, hosts)


def _follow_site(world: World, _turn: Turn, changes: list[tuple[str, str, Any]]) -> None:
    follow(world, [name for kind, name, _value in changes if kind == "host"])


def _follow_clock(world: World, turn: Turn, by: float) -> None:
    """The clock was set: move the ends of reservations with it."""
    for host, until in list(world.use(ManualUse).until.items()):
        set_fields(world, turn, host, by="clock", manual_until=until + by)
        follow(world, [host])


FEATURE = Feature(
    name="machine conditions",
    state=ManualUse,
    always=True,  # any record of a host may say that a user has reserved it
    handlers={
        MachineSet: on_machine_set,
        MachineReserved: on_machine_reserved,
        MachineReturned: on_machine_returned,
    },
    restore=_restore,
    on_timer=_end_overdue,
    next_due=_next_end,
    after_step=_hand_over_free,
    site_changed=_follow_site,
    clock_moved=_follow_clock,
)
