"""How well the size of the next job is guessed: too little memory fails it, too much is wasted.

Jobs of one learning group come one after another. Each is given what the rule recommends; a job that needs
more is killed there and tried again with what Rota asks for after a failure, until it fits; then its peak is
seen. Every rule starts from 1G and its recommendations are rounded as Rota rounds them. The rules:

  rota      the model in `rota.core.learning.model`
  wr        up to 100 distinct values (in MB) the top five are dropped and the next is recommended, above that
            the top 5 % of the distinct values; with five or fewer, the largest
  maximum   the largest peak seen
  oracle    knows the peak, rounded

`under` is the part of the jobs that had to be tried again, `unused` the mean of (given - needed) / needed over
the attempts that fitted, `cost` the memory given to all attempts, the failed ones too, over what was needed
(as if all took equally long).
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

from deployment import print_table, save
from rota.core.learning.model import Model
from rota.core.learning.next_attempt_size import after_failure, decide, round_mem
from rota.core.learning.observation import Observation
from rota.plan.size import Size

G = 1 << 30
M = 1 << 20
ASKED = Size(mem=G)


class Need(NamedTuple):
    mem: int
    input_bytes: int | None = None


class Rule(Protocol):
    def give(self, need: Need) -> int: ...
    def failed(self, need: Need, given: int) -> None: ...
    def fitted(self, need: Need, given: int) -> None: ...


class Rota:
    def __init__(self) -> None:
        self.model = Model()
        self.now = 0.0

    def give(self, need: Need) -> int:
        return decide(ASKED, model=self.model, input_bytes=need.input_bytes).used.mem

    def failed(self, need: Need, given: int) -> None:
        self._see(Observation(self.now, given, 0, 60.0, "memory", need.input_bytes, given))

    def fitted(self, need: Need, given: int) -> None:
        self._see(Observation(self.now, need.mem, 0, 60.0, "complete", need.input_bytes, given))

    def _see(self, seen: Observation) -> None:
        self.now += 1.0
        self.model.observe(seen)


class Wr:
    def __init__(self) -> None:
        self.seen: set[int] = set()

    def give(self, need: Need) -> int:
        if not self.seen:
            return ASKED.mem
        values = sorted(self.seen, reverse=True)
        drop = 5 if len(values) <= 100 else math.ceil(len(values) * 0.05)
        return round_mem(values[drop if len(values) > 5 else 0] * M)

    def failed(self, need: Need, given: int) -> None:
        pass

    def fitted(self, need: Need, given: int) -> None:
        self.seen.add(-(-need.mem // M))


class Maximum:
    def __init__(self) -> None:
        self.most = 0

    def give(self, need: Need) -> int:
        return round_mem(self.most) if self.most else ASKED.mem

    def failed(self, need: Need, given: int) -> None:
        pass

    def fitted(self, need: Need, given: int) -> None:
        self.most = max(self.most, need.mem)


class Oracle:
    def give(self, need: Need) -> int:
        return round_mem(need.mem)

    def failed(self, need: Need, given: int) -> None:
        raise AssertionError("the oracle was wrong")

    def fitted(self, need: Need, given: int) -> None:
        pass


RULES: dict[str, Callable[[], Rule]] = {"rota": Rota, "wr": Wr, "maximum": Maximum, "oracle": Oracle}


def _bytes(gigabytes: float) -> int:
    return max(M, int(gigabytes * G))


def normal(rng: random.Random, jobs: int) -> Iterator[Need]:
    """4 G, give or take 0.5 G."""
    return (Need(_bytes(rng.gauss(4, 0.5))) for _ in range(jobs))


def lognormal(rng: random.Random, jobs: int) -> Iterator[Need]:
    """A median of 2 G and a sigma of 0.7: one in a hundred needs 10 G."""
    return (Need(_bytes(rng.lognormvariate(math.log(2), 0.7))) for _ in range(jobs))


def pareto(rng: random.Random, jobs: int) -> Iterator[Need]:
    """At least 1 G, with a tail of exponent 2: one in a hundred needs 10 G, one in ten thousand 100 G."""
    return (Need(_bytes(rng.paretovariate(2))) for _ in range(jobs))


def bimodal(rng: random.Random, jobs: int) -> Iterator[Need]:
    """1 G or, one in five, 8 G."""
    return (Need(_bytes(rng.gauss(8, 0.4) if rng.random() < 0.2 else rng.gauss(1, 0.1))) for _ in range(jobs))


def rare(rng: random.Random, jobs: int) -> Iterator[Need]:
    """1 G or, two in a hundred, 16 G."""
    return (Need(_bytes(rng.gauss(16, 0.8) if rng.random() < 0.02 else rng.gauss(1, 0.1))) for _ in range(jobs))


def linear(rng: random.Random, jobs: int) -> Iterator[Need]:
    """0.5 G and three times the input, which is log-uniform from 0.1 to 10 G, with 5 % of noise."""
    for _ in range(jobs):
        size = 10 ** rng.uniform(-1, 1)
        yield Need(_bytes((0.5 + 3 * size) * rng.gauss(1, 0.05)), int(size * G))


def linear_off(rng: random.Random, jobs: int) -> Iterator[Need]:
    """The same with a noise of 0.3 G, and one in fifty takes three times as much."""
    for _ in range(jobs):
        size = 10 ** rng.uniform(-1, 1)
        need = (0.5 + 3 * size + rng.gauss(0, 0.3)) * (3 if rng.random() < 0.02 else 1)
        yield Need(_bytes(need), int(size * G))


def rising(rng: random.Random, jobs: int) -> Iterator[Need]:
    """From 2 G to 8 G, evenly, give or take a tenth."""
    return (Need(_bytes((2 + 6 * n / jobs) * rng.gauss(1, 0.1))) for n in range(jobs))


def falling(rng: random.Random, jobs: int) -> Iterator[Need]:
    """From 8 G to 2 G, evenly, give or take a tenth."""
    return (Need(_bytes((8 - 6 * n / jobs) * rng.gauss(1, 0.1))) for n in range(jobs))


def stepping(rng: random.Random, jobs: int) -> Iterator[Need]:
    """2 G, from a third on 6 G, from two thirds on 3 G, give or take a tenth."""
    levels = (2, 6, 3)
    return (Need(_bytes(levels[3 * n // jobs] * rng.gauss(1, 0.1))) for n in range(jobs))


NEEDS = (normal, lognormal, pareto, bimodal, rare, linear, linear_off, rising, falling, stepping)


class Result(NamedTuple):
    under: float
    unused: float
    cost: float


def play(rule: Rule, needs: list[Need]) -> Result:
    """Run these jobs one after another by this rule."""
    under, unused, cost = 0, 0.0, 0
    for need in needs:
        given = rule.give(need)
        under += given < need.mem
        cost += given
        while given < need.mem:
            rule.failed(need, given)
            floor = after_failure("memory", peak_mem=given, elapsed_s=60.0, peak_disk=0, size=Size(mem=given))
            assert floor is not None
            given = round_mem(floor.mem)
            cost += given
        rule.fitted(need, given)
        unused += (given - need.mem) / need.mem
    return Result(under / len(needs), unused / len(needs), cost / sum(need.mem for need in needs))


def microseconds(rounds: int, *, inputs: bool) -> dict[str, float]:
    """What observing and deciding cost, in processor time: many of one kind in a row, and by turns."""
    rng = random.Random(1)
    seen = [
        Observation(
            float(n), _bytes(rng.lognormvariate(1, 0.7)), 0, rng.expovariate(0.01), "complete", n % 997 * M
        )
        for n in range(rounds)
    ]
    given = 5 * G if inputs else None

    model = Model()
    begun = time.process_time()
    for one in seen:
        model.observe(one)
    decide(ASKED, model=model, input_bytes=given)
    observed = time.process_time()
    for _ in seen:
        decide(ASKED, model=model, input_bytes=given)
    decided = time.process_time()
    for one in seen:
        model.observe(one)
        decide(ASKED, model=model, input_bytes=given)
    both = time.process_time()
    return {
        "observe": (observed - begun) / rounds * 1e6,
        "decide": (decided - observed) / rounds * 1e6,
        "by turns": (both - decided) / rounds * 1e6,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=2000, help="of each kind and seed")
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    if options.jobs < 1 or options.seeds < 1:
        parser.error("--jobs and --seeds must be at least 1")

    rows = [["memory needed", *(f"{column} {name}" for column in Result._fields for name in RULES)]]
    results: dict[str, dict[str, dict[str, float]]] = {}
    for kind in NEEDS:
        # Each seed gives every rule the same jobs.
        played = {name: [] for name in RULES}  # type: dict[str, list[Result]]
        for seed in range(options.seeds):
            needs = list(kind(random.Random(f"{kind.__name__} {seed}"), options.jobs))
            for name, rule in RULES.items():
                played[name].append(play(rule(), needs))
        means = {
            name: Result(*(statistics.fmean(column) for column in zip(*each, strict=True)))
            for name, each in played.items()
        }
        rows.append(
            [
                kind.__name__,
                *(f"{result.under:.1%}" for result in means.values()),
                *(f"{result.unused:.0%}" for result in means.values()),
                *(f"{result.cost:.2f}" for result in means.values()),
            ]
        )
        results[kind.__name__] = {name: result._asdict() for name, result in means.items()}
    print_table(rows)
    print(f"\nmeans over {options.seeds} seeds of {options.jobs} jobs each\n")
    for kind in NEEDS:
        print(f"  {kind.__name__:<11} {kind.__doc__}")

    costs = {"no input": microseconds(20_000, inputs=False), "with input": microseconds(20_000, inputs=True)}
    print()
    print_table(
        [
            ["microseconds a job", "observe, in a row", "decide, in a row", "observe + decide by turns"],
            *([name, *(f"{value:.1f}" for value in cost.values())] for name, cost in costs.items()),
        ]
    )
    written = save(
        "learning", {"jobs": options.jobs, "seeds": options.seeds, "results": results, "microseconds": costs}
    )
    print(f"\nwritten to {written}")


if __name__ == "__main__":
    main()
