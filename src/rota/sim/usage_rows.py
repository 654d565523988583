"""What each machine of a simulation was used for: its condition and usage, from when to when.

A row begins when one of them changes, as in the history that the manager keeps.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from rota.core.machines.machine_states import UNKNOWN, NodeState, Usage, furthest, machine_state
from rota.sim.lab import Lab
from rota.sim.metrics import plain


class Row(NamedTuple):
    """A machine from one moment on."""

    condition: str
    usage: str
    since: float


class UsageRows:
    """The rows of all machines. It must be told of every change, when it happens."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._rows: dict[str, list[Row]] = {}
        self._jobs: dict[str, dict[int, Usage]] = {}  #: host → the jobs there, and how far each is
        for host in lab.conditions:
            self.changed(host, 0.0)

    def job(self, id: int, hosts: Iterable[str], usage: Usage | None, now: float) -> None:
        """A job on these hosts is so far now; None: it has left them."""
        for host in hosts:
            its = self._jobs.setdefault(host, {})
            if usage is None:
                its.pop(id, None)
            else:
                its[id] = usage
            self.changed(host, now)

    def is_busy(self, host: str) -> bool:
        """Has a job, or a hold after one, something of this host?"""
        return bool(self._jobs.get(host))

    def changed(self, host: str, now: float) -> None:
        """Something about this machine may have changed."""
        rows = self._rows.setdefault(host, [Row(UNKNOWN.condition, UNKNOWN.usage, 0.0)])
        what = machine_state(self._lab.conditions[host], self._usage(host), NodeState.ALIVE)
        row = Row(str(what.condition), str(what.usage), max(now, 0.0))
        if rows[-1].since == row.since:
            rows.pop()  # it lasted no time
        if not rows or rows[-1][:2] != row[:2]:
            rows.append(row)

    def _usage(self, host: str) -> Usage:
        its = self._jobs.get(host)
        if its:
            return furthest(its.values())
        return Usage.RUNNING if host in self._lab.manual else Usage.IDLE

    def as_json(self, until: float) -> dict[str, list[list[object]]]:
        """Host → condition, usage, from and to, without gaps from 0 up to `until`."""
        found: dict[str, list[list[object]]] = {}
        for host, rows in self._rows.items():
            ends = [row.since for row in rows[1:]] + [until]
            found[host] = [
                [row.condition, row.usage, plain(row.since), plain(min(end, until))]
                for row, end in zip(rows, ends, strict=True)
                if row.since < min(end, until)
            ]
        return found
