"""Time that machines spent in each state, from the rows of their history. Exact: whole microseconds."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import groupby
from typing import NamedTuple

from rota.core.machines.machine_states import UNKNOWN, MachineState
from rota.core.rows import MachineRow

#: State → microseconds.
Sums = dict[MachineState, int]


class MachineSpan(NamedTuple):
    """A machine's state over a span of time, in microseconds since 1970."""

    host: str
    at: int
    until: int
    what: MachineState


def state_of(row: MachineRow) -> MachineState:
    """The machine state of a row."""
    return MachineState(row.condition, row.usage, row.state)


def spans(
    rows: Iterable[MachineRow], *, since: int, until: int, hosts: Collection[str] = ()
) -> Iterator[MachineSpan]:
    """Split the window from `since` up to `until` for each machine, without gaps: `unknown` before its first row.

    `rows` are ordered by host and time, and for each host begin with the row that was open at `since`, as
    `Store.machine_rows` returns them. `hosts`: machines that are `unknown` all the time if they have no row.
    """
    seen = set()
    for host, its in groupby(rows, key=lambda row: row.host):
        seen.add(host)
        at, what = since, UNKNOWN
        for row in its:
            if row.at >= until:
                break
            if row.at > at:
                yield MachineSpan(host, at, row.at, what)
                at = row.at
            what = state_of(row)
        if until > at:
            yield MachineSpan(host, at, until, what)
    if until > since:
        for host in hosts:
            if host not in seen:
                yield MachineSpan(host, since, until, UNKNOWN)


def sums(rows: Iterable[MachineRow], *, since: int, until: int, hosts: Collection[str] = ()) -> dict[str, Sums]:
    """Host → state → microseconds. For each host they add up to exactly `until - since`."""
    found: dict[str, Sums] = {}
    for span in spans(rows, since=since, until=until, hosts=hosts):
        its = found.setdefault(span.host, {})
        its[span.what] = its.get(span.what, 0) + span.until - span.at
    return found


def total(many: Iterable[Sums]) -> Sums:
    """The sums of several machines together."""
    found: Sums = {}
    for each in many:
        for what, micros in each.items():
            found[what] = found.get(what, 0) + micros
    return found
