"""A machine with several one-core hosts, and gangs on it."""

from __future__ import annotations

from typing import Any

from rota.core.jobs.job import Condition, Parent
from rota.core.states import State
from tests.core.gangs.whole_placement import WholePlacement
from tests.core.machine import Entry, Machine, spec


def lab(hosts: int = 2, *, simple: bool = False, **fields: Any) -> Machine:
    """So many hosts with one core each, and their runners. `simple`: placed by `WholePlacement`, not by a plan."""
    if simple:
        fields.setdefault("placement", lambda first_seat: WholePlacement(first_seat=first_seat))
    m = Machine(cpus=100, hosts=hosts, **fields)
    for host in m.capacity:
        m.join(m.start_runner(host))
    m.pump()
    return m


def send(m: Machine, *names: str, gang: str = "g", entries: list[Entry] | None = None, **fields: Any) -> int:
    """Add a gang whose members have these names; the number of the request."""
    flags = {name: fields.pop(name) for name in ("allow_unsatisfiable", "check", "input") if name in fields}
    flags.setdefault("fresh", True)
    made = [Entry(f"run {gang} {name}", spec(gang=gang, name=name, **fields)) for name in names]
    return m.send_chunk(made + (entries or []), **flags)


def add(m: Machine, *names: str, **fields: Any) -> list[int]:
    """The same, and the ids of the members."""
    added: list[int] = m.answer(send(m, *names, **fields)).added
    return added


def waits_for(job: int, condition: Condition = Condition.OK) -> tuple[tuple[Parent, Condition, bool], ...]:
    return ((job, condition, False),)


def reason(m: Machine, job: int) -> str:
    """The code of the reason of a job, also of one that has left memory."""
    found = m.world.jobs.get(job)
    if found is not None:
        return found.reason.code if found.reason is not None else ""
    (row,) = m.store.jobs([job])
    return row.reason_code or ""


RUNNING, READY, FAILED = State.RUNNING, State.READY, State.FAILED
