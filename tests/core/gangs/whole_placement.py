"""The simplest placement that knows gangs: first come, first served, and a gang begins when all members have a
core on a host of their own."""

from __future__ import annotations

from rota.plan.placement.decisions import Decision, Placed
from rota.plan.placement.queue import GangOffer
from tests.plan.first_come import FirstCome


class WholePlacement(FirstCome):
    """First come, first served, with gangs before all others."""

    def __init__(self, *, first_seat: int = 1) -> None:
        super().__init__(first_seat=first_seat)
        self.gangs: dict[int, GangOffer] = {}

    def offer_gang(self, offer: GangOffer) -> None:
        assert offer.gang not in self.gangs
        assert offer.gang == min(offer.jobs)
        self.gangs[offer.gang] = offer

    def withdraw_gang(self, gang: int) -> None:
        del self.gangs[gang]

    def place(self, now: float, wall: float) -> list[Decision]:
        decided: list[Decision] = []
        for gang, offer in sorted(self.gangs.items(), key=lambda each: (each[1].rank, each[0])):
            free = [host for host in sorted(self._usable) if self._free(host)]
            if len(free) < len(offer.members):
                continue
            del self.gangs[gang]
            decided.append(
                tuple(
                    Placed(member.jobs[0], host, self._open(host, member.need.size))
                    for member, host in zip(offer.members, free, strict=False)
                )
            )
        return decided + super().place(now, wall)
