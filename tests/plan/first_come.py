"""The simplest placement: first come, first served, one job a core. It plans nothing and explains little."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import count

from rota.plan.ask import Ask, unplanned
from rota.plan.need import LimitUse, Need
from rota.plan.packing.job_classes import JobClass
from rota.plan.placement.decisions import Decision, News, Opened, Placed
from rota.plan.placement.explanation import Outlook, Planned, Waiting
from rota.plan.placement.facts import Lacks, Rules
from rota.plan.placement.hosts import Condition
from rota.plan.placement.leases import Away, Held, Reserved
from rota.plan.placement.queue import Entrant, GangOffer, LearnedSizes, Offer, RankKey, Ready
from rota.plan.planner.planner import Planner
from rota.plan.policy.limits import Limits
from rota.plan.reasons import Waits
from rota.plan.size import CORE, Capacity, Size


class FirstCome:
    """A `Placement` in a hundred lines."""

    def __init__(self, *, first_seat: int = 1) -> None:
        self.limits = Limits()
        self.entrants: Mapping[int, Entrant] = {}
        self.provision_s: Mapping[str, float] = {}
        self.ahead = False
        self.resized: dict[int, Size] = {}
        self._waits: dict[int, tuple[RankKey, Need]] = {}
        self._gangs: dict[int, GangOffer] = {}
        self._capacities: dict[str, Capacity] = {}
        self._only: dict[str, Need] = {}
        self._usable: set[str] = set()
        self._seats: dict[int, str] = {}
        self._ids = count(first_seat)
        self._rules: Rules | None = None
        self._resumed: list[int] = []

    # -- queue

    def offer(self, offer: Offer) -> None:
        self._waits.update(dict.fromkeys(offer.jobs, (offer.rank, offer.need)))

    def withdraw(self, need: Need, rank: RankKey, job: int) -> None:
        assert self._waits.pop(job) == (rank, need)

    def offer_gang(self, offer: GangOffer) -> None:
        self._gangs[offer.gang] = offer

    def withdraw_gang(self, gang: int) -> None:
        del self._gangs[gang]

    def learned(self, group: str, sizes: LearnedSizes | None) -> None:
        """Sizes do not matter here."""

    def limit_changed(self, name: str) -> None:
        """Limits are looked at when a job begins."""

    def hold(self, job: int, uses: tuple[LimitUse, ...]) -> tuple[LimitUse, ...]:
        return self.limits.hold(job, uses)

    def let_go(self, job: int) -> None:
        self.limits.let_go(job)

    def shut(self, name: str, job: int) -> None:
        self.limits.shut(name, job)

    def reopen(self, name: str, job: int) -> None:
        self.limits.reopen(name, job)

    def wanting(self) -> dict[str, int]:
        uses = [use.name for _rank, need in self._waits.values() for use in need.limits]
        return {name: uses.count(name) for name in uses}

    def ready(self) -> list[Ready]:
        return [
            Ready(rank, need, 1, job, self.entrants[job].spec)
            for job, (rank, need) in sorted(self._waits.items(), key=lambda item: (item[1][0], item[0]))
        ]

    def demand(self) -> dict[Need, int]:
        needs = [need for _rank, need in self._waits.values() if self.limits.stopped(need.limits) is None]
        return {need: needs.count(need) for need in needs}

    # -- hosts

    def host_known(self, host: str, capacity: Capacity, only: Need | None = None) -> None:
        self._capacities[host] = capacity
        if only is not None:
            self._only[host] = only

    def host_gone(self, host: str) -> None:
        del self._capacities[host]
        self._only.pop(host, None)
        self._usable.discard(host)

    def host_condition(self, host: str, condition: Condition) -> None:
        (self._usable.add if condition.schedulable else self._usable.discard)(host)

    def host_provisioned(self, hosts: Collection[str], on: bool) -> None:
        """A job has its host to itself here."""

    def refusal(self, size: Size, pool: str = "") -> str | None:
        most = max((capacity.cpus for capacity in self._capacities.values()), default=size.cpus)
        return f"never fits: asked {size.cpus / CORE:g} cpus" if size.cpus > most else None

    def usable_in(self, pools: Collection[str]) -> bool:
        return any(self._capacities[host].pool in pools for host in self._usable)

    def capacities(self) -> list[Capacity]:
        return [self._capacities[host] for host in sorted(self._usable)]

    def _free(self, host: str) -> bool:
        taken = sum(1 for each in self._seats.values() if each == host)
        return host in self._usable and taken < self._capacities[host].cpus // CORE

    def seat(self, host: str, size: Size, now: float, *, kept: bool = False) -> Opened | None:
        return self._open(host, size) if kept or self._free(host) else None

    def _open(self, host: str, size: Size) -> Opened:
        seat = next(self._ids)
        self._seats[seat] = host
        return Opened(seat, host, size)

    def started(self, seat: int, now: float) -> None:
        """It does not matter for how long a job has run."""

    def released(self, host: str, need: Need, *, job: int, ended_at: float | None) -> None:
        self.limits.give(need.limits, host)

    def kept(self, host: str, need: Need, *, ended_at: float) -> None:
        self.limits.give(need.limits, host)

    def adopt(self, seat: int, host: str, size: Size) -> None:
        self._seats.setdefault(seat, host)

    def adopt_lease(self, host: str, need: Need) -> None:
        self.limits.take(need.limits, host)

    def close(self, seat: int) -> None:
        self._seats.pop(seat, None)

    def suspended(self, job: int, away: Away) -> None:
        """A suspended job keeps its core."""

    def resumes(self, job: int, away: Away) -> None:
        self._resumed.append(job)

    def move_end(self, job: int, end: float, wall: float, *, force: bool = False) -> float:
        return end

    # -- decisions

    def site_changed(self) -> None:
        """The site has no rules here."""

    def lacks(self, wall: float, *, anew: bool = False) -> Lacks:
        return Lacks.RULES if anew and self._rules is None else Lacks.NOTHING

    def tell_verdict(self, plan: bool) -> None:
        """There is never a plan."""

    def tell_rules(self, rules: Rules) -> None:
        self._rules = rules

    def tell_leases(self, leases: list[Held]) -> None:
        """Seats tell enough."""

    def tell_reservations(self, granted: Mapping[int, Reserved]) -> None:
        """None is ever granted."""

    def clock_moved(self, wall: float) -> None:
        self._rules = None

    def place(self, now: float, wall: float) -> list[Decision]:
        decided: list[Decision] = []
        for gang, offer in sorted(self._gangs.items()):
            hosts = [host for host in sorted(self._usable) if self._free(host)]
            if len(hosts) >= len(offer.members):
                del self._gangs[gang]
                pairs = list(zip(offer.members, hosts, strict=False))
                for each, host in pairs:
                    self.limits.take(each.need.limits, host)
                decided.append(
                    tuple(Placed(each.jobs[0], host, self._open(host, each.need.size)) for each, host in pairs)
                )
        for job, (_rank, need) in sorted(self._waits.items(), key=lambda item: (item[1][0], item[0])):
            for host in sorted(self._usable):
                if (
                    self._free(host)
                    and self._only.get(host, need.group) == need.group
                    and need.pool in ("", self._capacities[host].pool)
                    and (host not in self._only or unplanned(self.entrants[job].spec))
                    and self.limits.stopped(need.limits) is None
                    and not self.limits.missing(need.limits, host)
                ):
                    del self._waits[job]
                    self.limits.take(need.limits, host)
                    decided.append((Placed(job, host, self._open(host, need.size)),))
                    break
        return decided

    def take_resized(self) -> dict[int, Size]:
        return {}

    def rejection(self, ask: Ask, wall: float) -> str | None:
        return "rejected: nothing is ever reserved here"

    @property
    def has_news(self) -> bool:
        return bool(self._resumed)

    def take_news(self) -> News:
        resumed, self._resumed = self._resumed, []
        return News([], [], [], {}, {}, resumed)

    def next_event(self) -> float | None:
        return None

    # -- explanation

    def why(self, need: Need, rank: RankKey, job: int) -> list[Waits]:
        return [Waits("resources", "those that came before it go first")]

    def never_fit(self) -> Iterator[tuple[JobClass, str]]:
        return iter(())

    def planned(self, job: int) -> Planned | None:
        return None

    def waiting(self) -> list[Waiting]:
        single = [(rank, need, [job]) for job, (rank, need) in self._waits.items()]
        gangs = [(each.rank, each.members[0].need, each.jobs) for each in self._gangs.values()]
        return [Waiting(rank.priority, need, jobs, frozenset(), 0) for rank, need, jobs in (*single, *gangs)]

    def next_starts(self, hosts: Collection[str]) -> dict[str, float]:
        return {}

    @property
    def planner(self) -> Planner | None:
        return None

    def outlook(self, wall: float) -> Outlook:
        assert self._rules is not None
        return Outlook(Planner(self._rules.site, self._rules.policy, now=wall), len(self._waits))

    def broken(self, leases: list[Held]) -> list[str]:
        known = self._capacities
        return [
            f"seat {seat} is at {host}, which is gone" for seat, host in self._seats.items() if host not in known
        ]
