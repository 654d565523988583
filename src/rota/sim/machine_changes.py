"""Carries out the events of a simulated site: conditions, added machines, use by hand, and cancelled jobs."""

from __future__ import annotations

from collections.abc import Sequence

from rota.core.machines.machine_states import Condition
from rota.sim import running
from rota.sim.run_state import RunState
from rota.sim.site_events import ConditionSet, Event, JobCancelled, MachineAdded, MachineReserved


class MachineChanges:
    """The coming events, and those that were refused."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._coming = list(events)[::-1]  #: the last first
        self.refused: list[dict[str, object]] = []

    def next(self, state: RunState) -> float | None:
        """When the next event happens, or a machine is returned."""
        moments = [self._coming[-1].at] if self._coming else []
        if (returned := state.lab.next_return()) is not None:
            moments.append(returned)
        return min(moments, default=None)

    def happen(self, state: RunState, now: float) -> None:
        """Carry out all events up to now, in the order of the document."""
        changed = state.lab.return_due(now)
        while self._coming and self._coming[-1].at <= now:
            changed += self._event(state, self._coming.pop(), now)
        for host in changed:
            state.usage.changed(host, now)
            state.site_changed = True
        state.tell_site(now)

    def _event(self, state: RunState, event: Event, now: float) -> list[str]:
        """Carry out one event. Returns the machines that it changed."""
        match event:
            case ConditionSet(_, machine, condition):
                state.lab.set_condition(machine, condition)
                state.faults.pop(machine, None)
                if condition is Condition.REMOVED:
                    running.removed(state, machine, now)
                return [machine]
            case MachineAdded(_, units):
                state.lab.add(units)
                return units.hosts
            case MachineReserved():
                return self._reserve(state, event)
            case JobCancelled(_, job):
                running.cancel(state, state.records[job], now)
                return []

    def _reserve(self, state: RunState, event: MachineReserved) -> list[str]:
        """Give a machine to a user, unless `rota node reserve` would refuse it."""
        machine = event.machine
        condition = state.lab.conditions[machine]
        if not state.lab.may_use(machine, event.user):
            why = f"{event.user} may not use it"
        elif state.usage.is_busy(machine):
            why = "a job has it"
        elif machine in state.lab.manual:
            why = f"{state.lab.manual[machine].user or 'somebody'} has it"
        elif condition in (Condition.BROKEN, Condition.REMOVED):
            why = f"it is {condition}"
        else:
            state.lab.reserve(machine, event.user, event.until)
            return [machine]
        self.refused.append({"at": event.at, "manual": machine, "message": f"{machine} was not reserved: {why}"})
        return []
