"""Rows of the history of machines, from one word each, and what holds of every history."""

from __future__ import annotations

from itertools import pairwise

from rota.core.machines.machine_now import machine_now
from rota.core.machines.machine_states import GONE, MachineState
from rota.core.machines.machine_use import MachineUse
from rota.core.machines.usage_sums import state_of, sums, total
from rota.core.rows import MachineRow
from tests.core.machine import Machine

STATES = {
    "busy": MachineState("automated", "running", "alive"),
    "draining": MachineState("automated", "running", "drained"),
    "idle": MachineState("automated", "idle", "alive"),
    "unseen": MachineState("automated", "idle", "unknown"),
    "gone": GONE,
    "manual": MachineState("manual", "idle", "alive"),
    "broken": MachineState("broken", "idle", "alive"),
    "removed": MachineState("removed", "idle", "alive"),
}


def machine_row(host: str, at: int, word: str) -> MachineRow:
    """A machine that is this, in one word, from then on."""
    return MachineRow(host, at, *STATES.get(word, ("automated", "idle", word)))


def check_history(m: Machine) -> None:
    """Every machine has exactly one open row, which says what it is, and its rows follow each other in time."""
    use = m.world.use(MachineUse)
    if use.built:
        assert {host: state_of(row) for host, row in use.open.items()} == {
            host: machine_now(m.world, host) for host in m.world.capacity
        }
    unwritten = [row for batch in (m.committing, m.open) if batch is not None for row in batch.changes.machines]
    for host in m.world.capacity:
        rows = m.store.machine_rows(host=host, since=-1, until=1 << 62)
        rows += [row for row in unwritten if row.host == host]
        assert all(one.at < other.at and state_of(one) != state_of(other) for one, other in pairwise(rows))
        if rows:
            assert rows[-1] == use.open[host]
            whole = sums(rows, since=0, until=1 << 60)[host]
            cut = sum(row.at for row in rows) // len(rows)
            assert sum(whole.values()) == 1 << 60
            assert whole == total(
                [sums(rows, since=0, until=cut)[host], sums(rows, since=cut, until=1 << 60)[host]]
            )
