"""How long a lab takes to decide: a machine becomes free, a job is added, a machine is repaired.

Machines have 50 properties. Every queued job asks for one machine by an expression of its own; some are gangs of 2
to 8 members with different expressions. Everything goes through the placement, as in the engine. Seconds are
processor time, from the event until it is decided who begins because of it (until the plan is settled if nobody
does). Next to it the same by a plain loop over all pairs of jobs and machines.
"""

from __future__ import annotations

import argparse
import gc
import math
import random
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

from bare_engine import spec
from deployment import print_table, save
from rota.core.attempts.vacate_times import VacateTimes
from rota.core.jobs.job import Spec
from rota.plan.dispatch.planning import Planning
from rota.plan.language.expression import Value, matches, parse
from rota.plan.need import Need
from rota.plan.placement.decisions import Placed
from rota.plan.placement.facts import Lacks, Rules
from rota.plan.placement.hosts import Condition
from rota.plan.placement.queue import GangOffer, Offer, RankKey, rank_of
from rota.plan.policy.decay import Usage
from rota.plan.policy.policy import Policy
from rota.plan.site.resources import Resource, Site
from rota.plan.size import CORE, Capacity, Floor, Size

PROPERTIES, VALUES = 50, "abc"
ONE_CORE = Capacity(cpus=CORE, mem=1 << 34, disk=1 << 34)
LEAST_S, MOST_S = 3600, 36_000
#: Of the plain loop, which takes seconds.
PLAIN_SAMPLES = 2

Row = dict[str, float]
#: Expressions of the machines that a job or the members of a gang ask for.
Wanted = tuple[str, ...]


@dataclass(frozen=True)
class Entrant:
    """One job, to the placement."""

    spec: Spec
    spec_id: int
    submitted_at: float = 0.0
    learning_group: str = ""
    floor: Floor | None = None
    input_bytes: int | None = None
    avoid: tuple[str, ...] = ()

    @property
    def rank_key(self) -> RankKey:
        return rank_of(self.spec.priority)

    @property
    def need(self) -> Need:
        return self.spec.need(self.spec.size, self.spec_id)


class Lab:
    """Machines that are all busy, and a queue of jobs and gangs."""

    def __init__(self, machines: int, jobs: int, gangs: int) -> None:
        self.rng = random.Random(1)
        self.now = 1000.0
        self.machines: dict[str, dict[str, Value]] = {
            f"m{number}": {f"p{each}": self.rng.choice(VALUES) for each in range(PROPERTIES)}
            for number in range(machines)
        }
        rows = enumerate(self.machines.items(), 1)
        self.site = Site([Resource(id, {"host": host, "core": id, **values}) for id, (host, values) in rows])
        self.broken: set[str] = set()
        self.jobs: dict[int, Entrant] = {}
        self.queue: dict[int, Wanted] = {}  #: what waits, by the lowest id of each gang
        self.running: dict[int, Placed] = {}
        self.placement = Planning()
        self.placement.entrants = self.jobs
        for host in self.machines:
            self.placement.host_known(host, ONE_CORE)
            self.placement.host_condition(host, Condition())
        self._last = 0
        for host in self.machines:  # so that all are busy
            self.add((f"host='{host}'",))
        self.decide()
        sizes = [self.rng.randint(2, 8) for _ in range(gangs)]
        singles = max(0, jobs - sum(sizes))
        waiting = [1] * singles + sizes
        self.rng.shuffle(waiting)
        for members in waiting:
            self.add(tuple(self._expression() for _ in range(members)))
        self.decide()

    def _expression(self) -> str:
        """What one machine in nine matches."""
        one, other = self.rng.sample(range(PROPERTIES), 2)
        return f"p{one}='{self.rng.choice(VALUES)}' and p{other}='{self.rng.choice(VALUES)}'"

    def add(self, wanted: Wanted) -> int:
        """A job, or a gang, waits."""
        offers = []
        for where in wanted:
            self._last += 1
            asked = spec(where=where, walltime_s=float(self.rng.randint(LEAST_S, MOST_S)), size=Size(cpus=CORE))
            entrant = self.jobs[self._last] = Entrant(asked, self._last, submitted_at=self.now)
            offers.append(Offer(asked, entrant.need, rank_of(0), [self._last]))
        first = offers[0].jobs[0]
        self.queue[first] = wanted
        if len(offers) == 1:
            self.placement.offer(offers[0])
        else:
            self.placement.offer_gang(GangOffer(first, tuple(offers)))
        return first

    def decide(self, until: Callable[[Placed], bool] | None = None) -> float:
        """Decide what begins. Seconds until this begins or, if it does not, until the plan is settled."""
        self.now += 1.0
        spent, found = 0.0, None
        while True:
            begun = time.process_time()
            self._tell()
            decided = self.placement.place(self.now, self.now)
            spent += time.process_time() - begun
            for placed in (each for decision in decided for each in decision):
                self.running[placed.job] = placed
                self.queue.pop(placed.job, None)
                if until is not None and found is None and until(placed):
                    found = spent
            planner = self.placement.planner
            if planner is None or not planner.working:
                return spent if found is None else found

    def _tell(self) -> None:
        while lacks := self.placement.lacks(self.now):
            if lacks & Lacks.VERDICT:
                self.placement.tell_verdict(False)
            if lacks & Lacks.RULES:
                usable = self.site.everything & ~sum(self.site.hosts[host] for host in self.broken)
                site = self.site.using(usable)
                self.placement.tell_rules(Rules(site, Policy(), Usage(1.0), None, 300.0, {}, VacateTimes()))
            if lacks & Lacks.LEASES:
                self.placement.tell_leases([])

    # -- events

    def free(self) -> float:
        """A machine becomes free."""
        job = self.rng.choice(list(self.running))
        placed, entrant = self.running.pop(job), self.jobs.pop(job)
        begun = time.process_time()
        self.placement.released(placed.host, entrant.need, job=job, ended_at=None)
        if placed.seat is not None:
            self.placement.close(placed.seat.seat)
        return time.process_time() - begun + self.decide(lambda each: each.host == placed.host)

    def submit(self) -> float:
        """A job is added."""
        wanted = (self._expression(),)
        begun = time.process_time()
        job = self.add(wanted)
        return time.process_time() - begun + self.decide(lambda each: each.job == job)

    def repair(self) -> float:
        """A machine breaks when its job ends, which is not measured, and is repaired."""
        host = self.rng.choice([placed.host for placed in self.running.values()])
        self.broken.add(host)
        self.placement.host_condition(host, Condition(automated=False))
        self.placement.site_changed()
        for job in [job for job, placed in self.running.items() if placed.host == host]:
            placed, entrant = self.running.pop(job), self.jobs.pop(job)
            self.placement.released(host, entrant.need, job=job, ended_at=None)
            if placed.seat is not None:
                self.placement.close(placed.seat.seat)
        self.decide()
        begun = time.process_time()
        self.broken.discard(host)
        self.placement.host_condition(host, Condition())
        self.placement.site_changed()
        return time.process_time() - begun + self.decide(lambda each: each.host == host)

    # -- the same by a plain loop

    def plain(self) -> float:
        """Who could begin, by looking at every job and every machine: the first in the queue that fits."""
        free = set(self.machines) - {placed.host for placed in self.running.values()} - self.broken
        free.add(self.rng.choice(list(self.machines)))  # the one that the event is about
        begun = time.process_time()
        for wanted in self.queue.values():
            seats = []
            for where in wanted:
                expression = parse(where)
                seats.append([host for host, values in self.machines.items() if matches(expression, values)])
            taken = _seat([[host for host in seat if host in free] for seat in seats])
            free -= taken
        return time.process_time() - begun


def _seat(seats: list[list[str]]) -> set[str]:
    """Different hosts for all, or none: each in turn makes room for the next."""
    holders: dict[str, int] = {}

    def fill(seat: int, seen: set[str]) -> bool:
        for host in seats[seat]:
            if host not in seen:
                seen.add(host)
                if host not in holders or fill(holders[host], seen):
                    holders[host] = seat
                    return True
        return False

    return set(holders) if all(fill(seat, set()) for seat in range(len(seats))) else set()


EVENTS: dict[str, Callable[[Lab], float]] = {
    "a machine becomes free": Lab.free,
    "a job is added": Lab.submit,
    "a machine is repaired": Lab.repair,
}


def measure(machines: int, jobs: int, gangs: int, *, events: int, seconds: float) -> dict[str, Row]:
    """Milliseconds of each kind of event."""
    begun = time.process_time()
    lab = Lab(machines, jobs, gangs)
    print(
        f"{machines} machines, {jobs} jobs, {gangs} gangs: planned in {time.process_time() - begun:.1f} s",
        flush=True,
    )
    found: dict[str, Row] = {}
    gc.collect()
    gc.freeze()
    for name, happen in EVENTS.items():
        samples: list[float] = []
        since = time.process_time()  # what settles the plan after a decision counts here
        while len(samples) < events and (len(samples) < 3 or time.process_time() - since < seconds):
            samples.append(happen(lab))
        ordered = sorted(samples)
        found[name] = {
            "times": float(len(samples)),
            "median_ms": statistics.median(ordered) * 1e3,
            "p99_ms": ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))] * 1e3,
        }
    found["plain loop"] = {"median_ms": statistics.median(lab.plain() for _ in range(PLAIN_SAMPLES)) * 1e3}
    gc.unfreeze()
    return found


def exponent(sizes: list[int], values: list[float]) -> float:
    """The slope of a straight line through the logarithms."""
    return statistics.linear_regression(
        [math.log(each) for each in sizes], [math.log(each) for each in values]
    ).slope


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a small dose of everything")
    parser.add_argument("--dry", action="store_true", help="write no file")
    parser.add_argument("--machines", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--gangs", type=int, default=500)
    parser.add_argument("--events", type=int, default=200, help="of each kind at most; default: %(default)s")
    parser.add_argument("--seconds", type=float, default=100.0, help="of a kind are enough; default: %(default)s")
    options = parser.parse_args()
    if options.quick:
        options.machines, options.jobs, options.gangs, options.events = 40, 200, 10, 6
    whole = (options.machines, options.jobs, options.gangs)
    parts = (4, 2)
    sizes = [(options.machines, options.jobs // part, options.gangs // part) for part in parts]
    sizes += [(options.machines // part, options.jobs, options.gangs) for part in parts]
    found = {
        size: measure(*size, events=options.events, seconds=options.seconds / (1 if size == whole else 4))
        for size in [*sizes, whole]
    }
    plain = found[whole]["plain loop"]["median_ms"]
    by_jobs, by_machines = [*sizes[:2], whole], [*sizes[2:], whole]
    rows, result = [], {}
    for name in EVENTS:
        row = found[whole][name]
        growth_jobs = exponent([jobs for _, jobs, _ in by_jobs], [found[at][name]["median_ms"] for at in by_jobs])
        growth = exponent(
            [number for number, *_ in by_machines], [found[at][name]["median_ms"] for at in by_machines]
        )
        result[name] = row | {
            "exponent_jobs": growth_jobs,
            "exponent_machines": growth,
            "plain_ms": plain,
            "ratio": plain / row["median_ms"],
        }
        cells = (row["median_ms"], row["p99_ms"], growth_jobs, growth, plain, plain / row["median_ms"])
        rows.append([name, f"{row['times']:.0f}", *(f"{each:.2f}" for each in cells)])
    titles = ["times", "median ms", "p99 ms", "exponent jobs", "machines", "plain loop ms", "ratio"]
    print()
    print_table([["{} machines, {} jobs, {} gangs".format(*whole), *titles], *rows])
    if not options.dry:
        details = {"{} machines, {} jobs, {} gangs".format(*size): each for size, each in found.items()}
        print(f"\nwritten to {save('machines', {'events': result, 'sizes': details})}")


if __name__ == "__main__":
    main()
