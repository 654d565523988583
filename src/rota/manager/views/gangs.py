"""`rota gang show`: the members of a gang, from memory and from the store."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from rota.core.gangs.gang_state import find_gang
from rota.core.gangs.missing import missing_members
from rota.core.gangs.roles import role
from rota.core.gangs.starting import hosts_of
from rota.core.jobs.element import Element
from rota.core.jobs.job import Spec
from rota.core.states import TERMINAL, State
from rota.core.stored import StoredJob
from rota.core.world import World
from rota.errors import NotFound
from rota.manager.views import rows
from rota.store.base import Clause, Store
from rota.wire.gang_views import GangMemberView, GangView

#: The state of a gang is the first of these that a member is in.
_DECIDES: Final = (
    State.LOST, State.FINISHING, State.RUNNING, State.SUSPENDED, State.STARTING, State.SCHEDULED, State.BLOCKED,
    State.HELD, State.DELAYED, State.DEPENDENT, State.READY, State.FAILED, State.CANCELLED, State.COMPLETE,
)  # fmt: skip


def find_members(store: Store, name: str, user: str) -> list[StoredJob]:
    """The members of the newest gang of this name: of this user, if there is one. Raises `NotFound`."""
    found = store.jobs(store.find([Clause(gang=name)], above=0, limit=1 << 40))
    found = [row for row in found if row.replaced_by is None] or found
    mine = [row for row in found if row.user == user] or found
    if not mine:
        raise NotFound(f"there is no gang '{name[:64]}'", hint="jobs with a gang: rota jobs gang=NAME")
    newest = mine[-1]
    return [row for row in mine if (row.submission, row.user) == (newest.submission, newest.user)]


def view(world: World, specs: Mapping[int, Spec], name: str, members: list[StoredJob]) -> GangView:
    """The gang with these members."""
    views = [_member(world, specs, row, place) for place, row in enumerate(members)]
    states = set(_states(world, members))
    gang = next((found for row in members if (found := find_gang(world, row.id)) is not None), None)
    planned = world.placement.planned(gang.offered) if gang is not None and gang.offered else None
    start = planned.start if planned is not None else None
    return GangView(
        gang=name,
        state=next(state.label for state in _DECIDES if state in states),
        members=views,
        missing=[] if gang is None else missing_members(world, gang),
        reserved_at=None if start is None else datetime.fromtimestamp(start, UTC),
    )


def _states(world: World, members: list[StoredJob]) -> list[State]:
    return [_state(world, row) for row in members]


def _state(world: World, row: StoredJob) -> State:
    """The state of a member now: it may have ended, and left memory, after its row was read."""
    job = world.jobs.get(row.id)
    if job is not None:
        return job.state
    outcome = world.outcome(row.id)
    return State(outcome) if outcome in TERMINAL else State(row.state)


def _member(world: World, specs: Mapping[int, Spec], row: StoredJob, place: int) -> GangMemberView:
    job = world.jobs.get(row.id)
    element = None if row.array is None or row.index is None else Element(row.array, row.index)
    hosts: list[str] = []
    if job is not None and job.lease is not None:
        hosts = hosts_of(world, job)
    elif job is None and row.newest is not None and row.newest.started_at is not None:
        hosts = list(rows.hosts_of(row.newest.host, row.newest.given))
    return GangMemberView(
        id=row.id, name=role(specs[row.spec_id].name, place, element), state=_state(world, row).label, hosts=hosts
    )
