"""What waiting jobs ask of the planner, made from their requests and sizes, and kept for equal jobs."""

from __future__ import annotations

from collections.abc import Mapping

from rota.plan.ask import Ask, ask_of, size_asked
from rota.plan.need import Need
from rota.plan.placement.facts import Vacating
from rota.plan.placement.queue import Entrant
from rota.plan.size import Size

_MOST = 10_000


class Asks:
    """The asks of all jobs that were offered."""

    def __init__(self) -> None:
        self.entrants: Mapping[int, Entrant] = {}
        self._vacating: Vacating | None = None
        self._made: dict[tuple[int, Size], Ask] = {}

    def follow(self, vacating: Vacating) -> None:
        """From now on jobs may take so long to make room for others."""
        if vacating is not self._vacating:
            self._vacating = vacating
            self._made.clear()

    def waiting(self, job: int, need: Need) -> Ask:
        """What this waiting job asks for."""
        entrant = self.entrants[job]
        size = size_asked(entrant.spec, need.size)
        ask = self._made.get((entrant.spec_id, size))
        if ask is None:
            if len(self._made) >= _MOST:
                self._made.clear()
            leave_s = self._vacating.leave_s(entrant.spec) if self._vacating is not None else 0.0
            ask = self._made[entrant.spec_id, size] = ask_of(entrant.spec, size, leave_s=leave_s)
        return ask

    def submitted(self, job: int) -> float:
        """When it was submitted."""
        return self.entrants[job].submitted_at

    def group(self, job: int) -> int:
        """Waiting jobs of one group and need ask for the same."""
        return self.entrants[job].spec_id

    def types(self, job: int) -> tuple[str, ...]:
        return self.entrants[job].spec.types
