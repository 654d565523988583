"""What waiting jobs ask of the planner, made from their requests and sizes, and kept for equal jobs."""

from __future__ import annotations

from collections.abc import Mapping, Set

from msgspec.structs import replace

from rota.plan.ask import Ask, Member, ask_of, both, elsewhere, gang_ask, size_asked
from rota.plan.need import Need
from rota.plan.placement.facts import Vacating
from rota.plan.placement.queue import Entrant, GangOffer
from rota.plan.policy.policy import Queue
from rota.plan.size import Size

_MOST = 10_000


class Asks:
    """The asks of all jobs that were offered."""

    def __init__(self, coreless: Set[str] = frozenset()) -> None:
        """`coreless`: hosts with jobs that take no core, kept up to date by the caller."""
        self._coreless = coreless
        self.entrants: Mapping[int, Entrant] = {}
        self._vacating: Vacating | None = None
        self.provision_s: Mapping[str, float] = {}
        self._made: dict[tuple[int, Size, tuple[str, ...], float, tuple[str, ...]], Ask] = {}

    def follow(self, vacating: Vacating) -> None:
        """From now on jobs may take so long to make room for others."""
        if vacating is not self._vacating:
            self._vacating = vacating
            self._made.clear()

    def waiting(self, job: int, need: Need) -> Ask:
        """What this waiting job asks for."""
        entrant = self.entrants[job]
        size = size_asked(entrant.spec, need.size)
        spec, avoid = entrant.spec, entrant.avoid
        provision_s = self.provision_s.get(spec.provision, 0.0) if spec.provision else 0.0
        others = tuple(sorted(self._coreless)) if spec.provision and self._coreless else ()
        key = (entrant.spec_id, size, avoid, provision_s, others)
        ask = self._made.get(key)
        if ask is None:
            if len(self._made) >= _MOST:
                self._made.clear()
            leave_s = self._vacating.leave_s(spec) if self._vacating is not None else 0.0
            ask = ask_of(spec, size, leave_s=leave_s, avoid=avoid, provision_s=provision_s)
            if others:  # it would wait until they have left
                ask = replace(ask, prefer=both(ask.prefer, elsewhere(others)))
            self._made[key] = ask
        return ask

    def gang(self, offer: GangOffer, queues: Mapping[str, Queue]) -> Ask:
        """What the members of this waiting gang ask for together."""
        names = offer.names or ("",) * len(offer.members)
        members = [
            Member(each.jobs[0], self.waiting(each.jobs[0], each.need), name)
            for each, name in zip(offer.members, names, strict=True)
        ]
        priorities = {name: queue.priority for name, queue in queues.items()}
        return gang_ask(members, queues=priorities, same=offer.same, share=offer.share)

    def provisions(self, job: int) -> bool:
        """Does it have its machines provisioned?"""
        return bool(self.entrants[job].spec.provision)

    def submitted(self, job: int) -> float:
        """When it was submitted."""
        return self.entrants[job].submitted_at

    def session_place(self, job: int) -> tuple[int, ...]:
        """Its place among the jobs of its session of a pipeline; empty: it is in none."""
        key = self.entrants[job].rank_key
        return key[1:] if key.session else ()

    def alone(self, job: int) -> bool:
        """Does it ask for something that no other job of its specification asks for?"""
        return bool(self.entrants[job].avoid)

    def group(self, job: int) -> int:
        """Waiting jobs of one group and need ask for the same."""
        return self.entrants[job].spec_id

    def types(self, job: int) -> tuple[str, ...]:
        return self.entrants[job].spec.types
