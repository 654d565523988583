"""How good expected starts and ends are: a trace is replayed, and what the estimator says on the way is compared
with what then happened. Beside it, in the same run, the plan as it is: with walltimes as they were asked for.

The trace is synthetic and the same every time: users with a few programs each, whose lengths scatter around one of
the program's own, and who ask for a round walltime that is up to ten times too long, or a little too short.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from collections import defaultdict, deque
from heapq import heappop, heappush
from math import exp, log
from typing import NamedTuple

from deployment import print_table, save
from rota.core.learning.durations import usual_s
from rota.core.learning.model import KEPT_TIMES
from rota.plan.ask import Ask
from rota.plan.forecast.planned_jobs import forecast_of, snapshot, with_lengths
from rota.plan.language.request import Alternative, Level, ResourceGroup
from rota.plan.planner.planner import Planner
from rota.plan.policy.policy import Policy, Queue
from rota.plan.schedule.plan_entry import RUNNING, WAITING
from rota.plan.site.resources import Resource, Site

#: What people ask for.
WALLTIMES = [300.0, 900.0, 1800.0, 3600.0, 7200.0, 14400.0, 43200.0, 86400.0]
WHAT = ("start of a waiting job", "end of a waiting job", "end of a running job")


class Job(NamedTuple):
    submit: float
    cores: int
    run: float
    walltime: float
    program: str


def trace(jobs: int, cores: int, *, load: float = 0.9, seed: int = 1) -> list[Job]:
    """Jobs by submission, so many that they keep about this part of the cores busy."""
    rng = random.Random(seed)
    programs = []
    for user in range(40):
        for number in range(rng.randint(1, 5)):
            usual = exp(rng.gauss(log(900), 1.4))
            scatter = rng.choice((0.1, 0.3, 0.8))
            width = min(cores // 2, rng.choice((1, 1, 1, 2, 4, 4, 8, 16, 32)))
            factor = rng.choice((1.3, 2, 4, 10))
            programs.append((f"u{user}p{number}", usual, scatter, width, factor))
    found: list[Job] = []
    work, now = 0.0, 0.0
    while len(found) < jobs:
        name, usual, scatter, width, factor = rng.choice(programs)
        asked = next((each for each in WALLTIMES if each >= usual * factor), WALLTIMES[-1])
        for _ in range(min(jobs - len(found), int(rng.expovariate(1 / 6)) + 1)):  # people submit several at once
            run = max(1.0, min(asked, usual * exp(rng.gauss(0, scatter))))
            if rng.random() < 0.03:
                run = rng.uniform(1, 30)  # it fails soon after its start
            found.append(Job(now, width, run, asked, name))
            work += run * width
        now = work / (cores * load) * rng.uniform(0.97, 1.03)
    found.sort(key=lambda job: job.submit)
    return found


class Asked(NamedTuple):
    """An answer, to be compared when the job has ended."""

    job: int
    what: str
    ours: float | None
    plan: float | None
    at: float


class Replay:
    """A trace through the planner, from event to event, and questions on the way."""

    def __init__(self, jobs: list[Job], cores: int, policy: str, every: int) -> None:
        self.jobs = jobs
        self.every = every
        site = Site([Resource(n, {"core": n}) for n in range(1, cores + 1)], levels=("core",))
        rules = Policy(queues={"default": Queue(order="fifo", backfill=policy)}, depth=1_000_000)
        self.planner = Planner(site, rules, now=0.0)
        self.seen: dict[str, deque[float]] = defaultdict(lambda: deque(maxlen=KEPT_TIMES))
        self.started: dict[int, float] = {}
        self.ended: dict[int, float] = {}
        self.asked: list[Asked] = []
        self.spent: list[float] = []
        self.now = 0.0

    def length(self, id: int) -> float | None:
        job = self.jobs[id]
        return usual_s(self.seen[job.program], limit_s=job.walltime)

    def left(self, id: int) -> float | None:
        job, ran = self.jobs[id], self.now - self.started[id]
        length = usual_s(self.seen[job.program], limit_s=job.walltime, ran_s=ran)
        return None if length is None else max(0.0, length - ran)

    def run(self) -> None:
        planner, jobs = self.planner, self.jobs
        ends: list[tuple[float, int]] = []
        submitted = asked = 0
        while submitted < len(jobs) or ends or planner.next_start() is not None:
            moments = [jobs[submitted].submit] if submitted < len(jobs) else []
            moments += [ends[0][0]] if ends else []
            moments += [start] if (start := planner.next_start()) is not None else []
            self.now = now = min(moments)
            while submitted < len(jobs) and jobs[submitted].submit <= now:
                job = jobs[submitted]
                group = ResourceGroup((Level("core", job.cores),))
                planner.submit(submitted, Ask(alternatives=(Alternative((group,), job.walltime),)), now)
                submitted += 1
            while ends and ends[0][0] <= now:
                id = heappop(ends)[1]
                self.ended[id] = now
                self.seen[jobs[id].program].append(jobs[id].run)
                planner.ended(id, now)
            for begin in planner.begin(now):
                id = begin.entry.id
                self.started[id] = now
                heappush(ends, (now + jobs[id].run, id))
            if submitted >= asked + self.every:
                asked = submitted
                self.ask()

    def ask(self) -> None:
        """Write down what the estimator and the plan say about everybody."""
        now, planner = self.now, self.planner
        begun = time.perf_counter()
        plan = snapshot(planner.plan)
        found = forecast_of(plan, now, left=self.left, limits={})
        firm, lines = with_lengths(plan, self.length)
        placed = found.run(firm, lines)
        ours = {
            id: (start, None if length is None else start + length)
            for id, (start, length) in found.commitments.items()
        }
        for line, stretches in zip(lines, placed, strict=True):
            if stretches:
                start = stretches[0].pace.start(0)
                ours[line.jobs[0]] = (start, None if line.length is None else start + line.length)
        self.spent.append(time.perf_counter() - begun)
        for entry in planner.plan.entries.values():
            if entry.state == WAITING:
                start, end = ours.get(entry.id, (None, None))
                self.asked.append(Asked(entry.id, WHAT[0], start, entry.start, now))
                self.asked.append(Asked(entry.id, WHAT[1], end, entry.end, now))
            elif entry.state == RUNNING:
                left = self.left(entry.id)
                self.asked.append(Asked(entry.id, WHAT[2], None if left is None else now + left, entry.end, now))


def errors(replay: Replay, what: str, which: str) -> dict[str, object]:
    """How far answers were from what happened, in minutes."""
    off, none, waits = [], 0, []
    for each in replay.asked:
        if each.what != what:
            continue
        said = each.ours if which == "estimator" else each.plan
        happened = replay.started[each.job] if what == WHAT[0] else replay.ended[each.job]
        waits.append(happened - each.at)
        if said is None:
            none += 1
        else:
            off.append((max(said, each.at) - happened) / 60)
    size = sorted(map(abs, off)) or [0.0]
    return {
        "what": what,
        "who": which,
        "asked": len(off) + none,
        "median_min": round(statistics.median(size), 1),
        "mean_min": round(statistics.fmean(size), 1),
        "p90_min": round(size[len(size) * 9 // 10], 1),
        "bias_min": round(statistics.fmean(off or [0.0]), 1),
        "no_answer_percent": round(100 * none / max(1, len(off) + none), 2),
        "ahead_min": round(statistics.median(waits) / 60, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=30_000)
    parser.add_argument("--cores", type=int, default=128)
    parser.add_argument("--load", type=float, default=0.85)
    parser.add_argument("--every", type=int, default=150, help="ask after so many submissions")
    parser.add_argument("--policy", nargs="*", default=["conservative", "easy"])
    args = parser.parse_args()
    rows = []
    for policy in args.policy:
        replay = Replay(trace(args.jobs, args.cores, load=args.load), args.cores, policy, args.every)
        begun = time.perf_counter()
        replay.run()
        took = time.perf_counter() - begun
        for what in WHAT:
            for who in ("estimator", "plan as asked"):
                rows.append({"policy": policy, **errors(replay, what, who)})
        spent = sorted(replay.spent)
        print(
            f"{policy}: {args.jobs:,} jobs in {took:.0f} s; {len(spent):,} questions about everybody, "
            f"median {1000 * statistics.median(spent):.1f} ms, longest {1000 * spent[-1]:.1f} ms",
            file=sys.stderr,
        )
    heading = ["policy, question", "who", "asked", "median", "mean", "90 %", "bias", "no answer", "happened after"]
    table = [heading]
    for row in rows:
        numbers = [f"{row[name]} min" for name in ("median_min", "mean_min", "p90_min", "bias_min")]
        about = [f"{row['policy']}, {row['what']}", str(row["who"]), f"{row['asked']:,}"]
        table.append([*about, *numbers, f"{row['no_answer_percent']} %", f"{row['ahead_min']} min"])
    print_table(table)
    save("estimates", {"jobs": args.jobs, "cores": args.cores, "load": args.load, "rows": rows})


if __name__ == "__main__":
    main()
