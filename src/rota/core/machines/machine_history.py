"""The history of machines: one row for each change, written in the transaction of the event that made it.

Each machine has exactly one open row, its last one. Its rows never go back in time, even if the clock does.
"""

from __future__ import annotations

from typing import Final

from rota.core.accounts.accounting import micros
from rota.core.feature import Feature
from rota.core.machines.machine_now import answering, machine_now
from rota.core.machines.machine_states import GONE, Condition, MachineState, NodeState, Usage
from rota.core.machines.machine_use import MachineUse, index_as_leased, rebuild
from rota.core.machines.usage_sums import state_of
from rota.core.restart import Restart
from rota.core.rows import MachineRow
from rota.core.site.manager_pause import starts_nothing
from rota.core.turn import Turn
from rota.core.world import World

#: Grace after a restart, in which a host without a runner is not yet away: its runner may be reconnecting.
RETURN_S: Final = 60.0


def restore_history(world: World, restart: Restart) -> None:
    """Go on with the open rows. Hosts whose runners answered, or were not observed, are awaited."""
    use = world.use(MachineUse)
    use.open = dict(restart.snapshot.machines)
    use.awaited = {host for host, row in use.open.items() if row.state != NodeState.AWAY}


def record_changes(world: World, turn: Turn) -> None:
    """Write a row for each machine that differs from its last row."""
    use = world.use(MachineUse)
    if not use.built:
        rebuild(world, use)
    if use.pending or not use.passed:
        _follow_pass(world, use)
    if not use.changed or use.stopped:
        return
    changed, use.changed = use.changed, set()
    for host in sorted(changed):
        known = use.open.get(host)
        if host not in world.capacity:
            if known is not None:
                _write(use, turn, host, GONE)
                _forget(use, host)
            continue
        if host in use.awaited and answering(world, host) is not None:
            use.awaited.discard(host)
        what = machine_now(world, host)
        if what.usage == Usage.IDLE and what.condition == Condition.AUTOMATED and _is_pending(world, use, known):
            use.pending.add(host)
            what = what._replace(usage=Usage.PENDING)
        if known is None or state_of(known) != what:
            _write(use, turn, host, what)


def _follow_pass(world: World, use: MachineUse) -> None:
    """Once the placement has decided about all hosts, free ones are idle."""
    if _decided(world):
        use.passed = True
        use.changed |= use.pending
        use.pending.clear()
    else:
        # a machine with a job, or no longer automated, is not pending
        use.changed |= use.pending
        use.pending -= {host for host in use.pending if use.held.get(host)}


def _decided(world: World) -> bool:
    """Has the placement, in this step, decided about every free host?"""
    planner = world.placement.planner
    return not starts_nothing(world) and (planner is None or not planner.unsettled)


def _is_pending(world: World, use: MachineUse, known: MachineRow | None) -> bool:
    """Is it undecided whether a queued job fits this free host? A host that was idle stays idle."""
    if _decided(world):
        return False
    return not use.passed or known is None or (known.condition, known.usage) != (Condition.AUTOMATED, Usage.IDLE)


def stop_history(world: World, turn: Turn) -> None:
    """The manager stops observing: node states become unknown, except those that a record sets."""
    use = world.use(MachineUse)
    for host, row in sorted(use.open.items()):
        what = state_of(row)
        seen = what.state == NodeState.ALIVE or what.usage not in (Usage.IDLE, Usage.PENDING)
        if seen and what.condition != Condition.REMOVED and what.state not in (NodeState.AWAY, NodeState.UNKNOWN):
            _write(use, turn, host, what._replace(state=NodeState.UNKNOWN))
    use.stopped = True


def await_runners(world: World, turn: Turn) -> None:
    """Stop waiting for runners when the grace after a restart is over."""
    use = world.use(MachineUse)
    if not use.awaited:
        return
    if use.awaited_until is None:
        use.awaited_until = turn.mono + RETURN_S
    if turn.mono >= use.awaited_until:
        use.changed |= use.awaited
        use.awaited.clear()


def _forget(use: MachineUse, host: str) -> None:
    del use.open[host]
    use.awaited.discard(host)
    use.pending.discard(host)
    for index in (use.held, use.begun, use.kept):
        index.pop(host, None)


def _write(use: MachineUse, turn: Turn, host: str, what: MachineState) -> None:
    before, at = use.open.get(host), micros(turn.wall)
    if before is not None:
        at = max(at, before.at + 1)  # the clock may have been set back
    use.open[host] = row = MachineRow(host, at, *what)
    turn.changes.machines.append(row)


FEATURE = Feature(
    name="machine history",
    state=MachineUse,
    always=True,
    restore=restore_history,
    on_timer=await_runners,
    step_over=record_changes,
    stopping=stop_history,
    invariant=index_as_leased,
)
