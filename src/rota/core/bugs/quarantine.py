"""Keeps events that met a bug from being decided again, and takes reports apart."""

from __future__ import annotations

from rota.core.bugs.identity import Report, taken_apart
from rota.core.bugs.ledger import BUGS, internal_error, is_quarantined, ledger_from
from rota.core.effects import AcknowledgeReport, Refuse
from rota.core.events import Asker, EntrySetAside, Event, RunnerReported
from rota.core.restart import Restart
from rota.core.turn import Turn
from rota.core.world import World


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
        if isinstance(event, Report) and event.runner in ledger.runners:
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
