"""Broken detection in a simulation, by the engine's own rules."""

from __future__ import annotations

from collections.abc import Iterable

from rota.core.machines.fault_rules import Verdict, another, verdict
from rota.core.machines.machine_states import Condition
from rota.sim.run_record import RunRecord
from rota.sim.run_state import RunState


def judge(state: RunState, record: RunRecord, hosts: Iterable[str], code: str, now: float) -> None:
    """Count the end of a run on these machines. `code`: why it failed; empty: it succeeded."""
    for host in hosts:
        watched = bool(record.job.terms.provision_s) or state.lab.belongs(host)
        match verdict(code, executed=record.executing is not None, watched=watched):
            case Verdict.GOOD:
                state.faults.pop(host, None)
            case Verdict.FAULTY:
                _count(state, record, host, code, now)


def _count(state: RunState, record: RunRecord, host: str, code: str, now: float) -> None:
    why = f"job {record.job.id}: {code}"
    found = another(state.faults.get(host), job=record.job.id, leased_at=record.taken, why=why, now=now)
    if found is None:
        return
    state.faults[host] = found
    if found.is_broken:
        del state.faults[host]
        if state.lab.conditions[host] is Condition.AUTOMATED:
            state.lab.set_condition(host, Condition.BROKEN)
            state.usage.changed(host, now)
            state.site_changed = True
