"""The condition of a machine, its usage and the state of its node: the one table of them.

The condition is set by people or by broken detection, the usage follows the jobs of the machine, and the state is
what the manager observes. `docs/machines.md` is generated from this table (`make docs`).
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final, NamedTuple


class Condition(StrEnum):
    """What a machine may be used for. The words are stored and shown: never change them."""

    AUTOMATED = "automated"  #: it gets jobs
    MANUAL = "manual"  #: people use it by hand
    BROKEN = "broken"  #: it must be repaired
    REMOVED = "removed"  #: it has left this deployment


class Usage(StrEnum):
    """What a machine is used for now."""

    IDLE = "idle"  #: it holds no job, and no queued job fits
    PENDING = "pending"  #: free, and whether a queued job fits is undecided
    SCHEDULED = "scheduled"  #: a job has it and has not begun
    WAITING = "waiting"  #: it was asked to provision itself for a job
    INSTALLING = "installing"  #: it provisions itself
    RUNNING = "running"  #: a job executes, or a user has it


class NodeState(StrEnum):
    """What the manager sees of a machine."""

    ALIVE = "alive"
    DRAINED = "drained"  #: an administrator keeps new jobs away
    SUSPECTED = "suspected"  #: a hook or an administrator found it unfit
    CLOSED = "closed"  #: outside its hours, or past `available_until`
    ASLEEP = "asleep"  #: put to sleep; it can be woken
    AWAY = "away"  #: no agent answers
    UNKNOWN = "unknown"  #: no manager observed it


_C, _U, _N = Condition, Usage, NodeState

#: The usages that a machine of each condition can have. A running job outlives a change of condition, so a manual
#: machine may have one; broken and removed machines count as idle, even with a job.
USAGES: Final[dict[Condition, frozenset[Usage]]] = {
    _C.AUTOMATED: frozenset(Usage),
    _C.MANUAL: frozenset(Usage) - {_U.PENDING},
    _C.BROKEN: frozenset({_U.IDLE}),
    _C.REMOVED: frozenset({_U.IDLE}),
}

#: Which usage may follow which by a single event. A row of the history sums up all events of one commit, so a row
#: may follow another over several of these steps.
NEXT_USAGE: Final[dict[Usage, frozenset[Usage]]] = {
    _U.IDLE: frozenset({_U.PENDING, _U.SCHEDULED, _U.RUNNING}),
    _U.PENDING: frozenset({_U.IDLE, _U.SCHEDULED, _U.RUNNING}),
    _U.SCHEDULED: frozenset({_U.WAITING, _U.INSTALLING, _U.RUNNING, _U.PENDING}),
    _U.WAITING: frozenset({_U.SCHEDULED, _U.INSTALLING, _U.RUNNING, _U.PENDING}),
    _U.INSTALLING: frozenset({_U.SCHEDULED, _U.RUNNING, _U.PENDING}),
    _U.RUNNING: frozenset({_U.SCHEDULED, _U.PENDING}),
}

#: Of several jobs on a machine the furthest counts: the last of these.
FURTHEST: Final = (_U.SCHEDULED, _U.WAITING, _U.INSTALLING, _U.RUNNING)


def furthest(usages: Iterable[Usage]) -> Usage:
    """The usage of a machine with jobs that are this far."""
    return max(usages, key=FURTHEST.index)


class MachineState(NamedTuple):
    """A machine at one moment."""

    condition: str
    usage: str
    state: str


#: Before the first row of a machine.
UNKNOWN: Final = MachineState("unknown", "unknown", "unknown")
#: No longer a machine of this deployment.
GONE: Final = MachineState(_C.REMOVED, _U.IDLE, _N.UNKNOWN)


def machine_state(condition: Condition, usage: Usage, state: NodeState) -> MachineState:
    """A combination of the table. A usage that the condition cannot have counts as idle."""
    allowed = USAGES[condition]
    return MachineState(condition, usage if usage in allowed else _U.IDLE, state)


def schedulable(condition: Condition, state: NodeState) -> bool:
    """May new jobs be placed there? Alive, automated, and not draining."""
    return condition is _C.AUTOMATED and state is _N.ALIVE


# ------------------------------------------------------------------ one word for all three

BUSY: Final = "busy"
DRAINING: Final = "draining"  #: busy, and no new job may begin
UNSEEN: Final = "unseen"  #: no manager was running
WORD_GONE: Final = "gone"
#: Every word that `word` returns.
WORDS: Final = (
    BUSY, DRAINING, "idle", "drained", "suspected", "closed", "asleep", "away", UNSEEN, WORD_GONE,
    "manual", "broken", "removed",
)  # fmt: skip


def word(it: MachineState) -> str:
    """Condition, usage and state in one word, for charts and lists."""
    condition, usage, state = it
    if it == GONE:
        return WORD_GONE
    if state == _N.UNKNOWN:
        return UNSEEN
    busy = usage not in (_U.IDLE, _U.PENDING)
    if condition != _C.AUTOMATED and not (condition == _C.MANUAL and busy):
        return condition
    if state in (_N.ALIVE, _N.CLOSED) and busy:
        return BUSY
    if state == _N.ALIVE:
        return "idle"
    return DRAINING if busy and state in (_N.DRAINED, _N.SUSPECTED) else state


# ------------------------------------------------------------------ the diagram


def as_mermaid() -> str:
    """Return the table as a Mermaid state diagram: the usages of each condition."""
    lines = ["stateDiagram-v2", f"    [*] --> {_C.AUTOMATED}"]
    for condition, usages in USAGES.items():
        lines.append(f"    state {condition} {{")
        for old in Usage:
            if old not in usages:
                continue
            lines.append(f'        state "{old}" as {condition}_{old}')
            followers = [new for new in Usage if new in NEXT_USAGE[old]]
            if condition is _C.MANUAL:  # without `pending`, what ends is followed by `idle`
                followers = [_U.IDLE if new is _U.PENDING else new for new in followers]
            lines += [
                f"        {condition}_{old} --> {condition}_{new}"
                for new in dict.fromkeys(followers)
                if new in usages and new is not old
            ]
        lines.append("    }")
    lines += [f"    {old} --> {new}" for old in Condition for new in Condition if new is not old]
    return "\n".join(lines)


def as_table() -> str:
    """Return, as a Markdown table, which machines may get jobs."""
    lines = ["| condition | " + " | ".join(NodeState) + " | usage |", "|---" * (len(NodeState) + 2) + "|"]
    for condition in Condition:
        cells = ["jobs" if schedulable(condition, state) else "-" for state in NodeState]
        usages = ", ".join(usage for usage in Usage if usage in USAGES[condition])
        lines.append(f"| {condition} | " + " | ".join(cells) + f" | {usages} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(as_table() + "\n\n```mermaid\n" + as_mermaid() + "\n```")
