"""Keeps events that met a bug from being decided again, and sets entries of reports aside."""

from __future__ import annotations

import msgspec

from rota.core.attempts.attempt import end_attempt, leased_job
from rota.core.bugs.identity import taken_apart
from rota.core.bugs.ledger import BUGS, internal_error, is_quarantined, ledger_from
from rota.core.effects import AcknowledgeReport, Refuse
from rota.core.events import Asker, EntrySetAside, Event, RunnerReported, RunnerSettled
from rota.core.jobs.outcome import Outcome
from rota.core.restart import Restart
from rota.core.turn import Turn
from rota.core.world import World

#: Entries after which nothing of the attempt is left.
_ENDS = ("ended", "returned")


def restore_bugs(world: World, restart: Restart) -> None:
    """What is left out because of bugs. Comes first: frozen jobs are not even loaded."""
    world.bugs = ledger_from(restart.snapshot.meta.get(BUGS) or "", version=restart.version)


def screened(world: World, turn: Turn, happened: list[Event]) -> list[Event]:
    """The events that may be decided: all but quarantined ones, which are answered here, and reports of some
    runners entry by entry."""
    ledger = world.bugs
    admitted: list[Event] = []
    for event in happened:
        apart = [event]
        if isinstance(event, RunnerReported | RunnerSettled) and event.runner in ledger.runners:
            apart = list(taken_apart(event, ledger.entries))
        for each in apart:
            if isinstance(each, EntrySetAside) and each.job in ledger.frozen:
                continue  # it was stored when its job was frozen
            if is_quarantined(ledger, each):
                _refuse(turn, each)
            else:
                admitted.append(each)
    return admitted


def _refuse(turn: Turn, event: Event) -> None:
    by = getattr(event, "by", None)
    if isinstance(by, Asker):
        turn.effects.append(Refuse(by, internal_error(event)))
    if isinstance(event, RunnerReported) and event.seq:
        turn.effects.append(AcknowledgeReport(event.runner, event.seq))


def on_entry_set_aside(world: World, turn: Turn, event: EntrySetAside) -> None:
    """Store an entry of a report that could not be decided. If it says that an attempt is over, the attempt ends
    as lost: nothing of it is left, and what it did is not judged."""
    id, attempt, _token = msgspec.structs.astuple(event.lease)
    if id:
        turn.note(id, attempt, "bug", f"a report that the manager could not decide ({event.field}): {event.said}")
    runner = world.runners.get(event.runner)
    job = None if runner is None else leased_job(world, runner, event.lease)
    if job is None or event.field not in _ENDS:
        return
    why = "it has ended, and a bug keeps the manager from deciding what that means"
    outcome = event.outcome or Outcome(ended_at=turn.wall)
    end_attempt(world, turn, job, msgspec.structs.replace(outcome, reason="lost", message=why, permanent=False))
