"""How fast the planner is: many jobs at once, mixed requests with quotas, single events on a long plan, traces.

Everything goes through the same calls as in production. Seconds are processor time, wall time beside it, as
the machine may be shared. Whole-node plans are compared with those of the simplest planner that there is.
"""

from __future__ import annotations

import argparse
import gc
import math
import random
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from deployment import print_table, save
from rota.plan.ask import Ask
from rota.plan.language.request import Alternative, Level, ResourceGroup
from rota.plan.planner.planner import Planner
from rota.plan.policy.policy import Policy
from rota.plan.policy.quotas import Quotas
from rota.plan.site.resources import Resource, Site
from rota.sim.replay import replay
from rota.sim.swf import SwfTrace, parse_swf

PARTS = ("nodes", "mixed", "events", "traces")
#: A pass is paused after so many.
STEPS = 8
CORES, NODES_A_SWITCH, USERS = 10, 20, 50
QUOTAS = {"*,*,*,/": [3000, 400, -1], "*,*,*,*": [-1, 5000, -1], "*,/,*,*": [6000, -1, -1]}

Row = dict[str, float]


class Timed:
    """Seconds of processor and of wall time."""

    cpu = wall = 0.0

    def row(self) -> Row:
        return {"cpu_s": self.cpu, "wall_s": self.wall}


@contextmanager
def timed() -> Iterator[Timed]:
    gc.collect()
    found = Timed()
    wall, cpu = time.perf_counter(), time.process_time()
    yield found
    found.cpu, found.wall = time.process_time() - cpu, time.perf_counter() - wall


def make_site(nodes: int) -> Site:
    return Site(
        [
            Resource(id, {"switch": f"s{node // NODES_A_SWITCH}", "host": f"n{node}", "core": id})
            for node in range(nodes)
            for id in range(node * CORES + 1, (node + 1) * CORES + 1)
        ],
        levels=("switch", "host", "core"),
    )


def make_planner(nodes: int, *, quotas: bool = False) -> Planner:
    site = make_site(nodes)
    return Planner(
        site, Policy(depth=1_000_000), quotas=Quotas(QUOTAS, total=site.count) if quotas else None, now=0.0
    )


def alternative(walltime: float, *levels: tuple[str, int]) -> Alternative:
    return Alternative((ResourceGroup(tuple(Level(*level) for level in levels)),), float(walltime))


# ------------------------------------------------------------------ whole nodes


def sizes(jobs: int, nodes: int) -> list[tuple[int, int]]:
    """Nodes and seconds of each job."""
    rng = random.Random(1)
    return [(rng.randint(1, nodes // 5), rng.randint(60, 36000)) for _ in range(jobs)]


def naive(jobs: list[tuple[int, int]], nodes: int) -> list[tuple[float, int]]:
    """Start and node set of each job: from every beginning of a span, `&` over the window until it fits."""
    times, free = [0.0, math.inf], [(1 << nodes) - 1]
    found = []
    for number, length in jobs:
        for first in range(len(free)):
            common, at, end = free[first], first + 1, times[first] + length
            while at < len(free) and times[at] < end and common.bit_count() >= number:
                common &= free[at]
                at += 1
            if common.bit_count() >= number:
                break
        taken = 0
        for _ in range(number):
            taken |= common & -common
            common &= common - 1
        if end not in times:
            at = next(at for at, moment in enumerate(times) if moment > end)
            times.insert(at, end)
            free.insert(at, free[at - 1])
        for at in range(first, times.index(end)):
            free[at] ^= taken
        found.append((times[first], taken))
    return found


def whole_nodes(counts: list[int], nodes: int, compared: int) -> list[Row]:
    rows = []
    for number in counts:
        jobs = sizes(number, nodes)
        asks = [Ask(alternatives=(alternative(length, ("nodes", size)),)) for size, length in jobs]
        planner = make_planner(nodes)
        with timed() as spent:
            for id, ask in enumerate(asks):
                planner.submit(id, ask, 0.0)
        row = {"jobs": float(number)} | spent.row()
        if number <= compared:
            with timed() as other:
                expected = naive(jobs, nodes)
            for id, (start, taken) in enumerate(expected):
                entry = planner.plan.entries[id]
                if entry.start != start or entry.resources != spread(taken):
                    raise SystemExit(f"job {id} is planned for {entry.start}, the naive planner says {start}")
            row |= {"naive_cpu_s": other.cpu, "ratio": other.cpu / spent.cpu if spent.cpu else math.inf}
        rows.append(row)
        said = f", naive {row['naive_cpu_s']:.3f} s, same plan" if "ratio" in row else ""
        print(f"{number} whole-node jobs: {spent.cpu:.3f} s ({spent.wall:.3f} s wall){said}", flush=True)
    return rows


def spread(nodes: int) -> int:
    """The cores of a set of nodes."""
    return int(f"{nodes:b}".replace("1", "1" * CORES).replace("0", "0" * CORES), 2)


# ------------------------------------------------------------------ mixed requests


def mixed_ask(rng: random.Random, nodes: int) -> Ask:
    length = rng.randint(60, 36000)
    kind = rng.randrange(5)
    if kind == 0:
        found = [alternative(length, ("nodes", rng.randint(1, max(1, nodes // 5))))]
    elif kind == 1:
        found = [alternative(length, ("core", rng.randint(1, max(1, nodes * CORES // 5))))]
    elif kind == 2:
        found = [alternative(length, ("switch", 1), ("nodes", rng.randint(1, NODES_A_SWITCH)))]
    elif kind == 3:
        found = [
            alternative(length, ("nodes", rng.randint(1, max(1, nodes // 10))), ("core", rng.randint(1, CORES)))
        ]
    else:
        size = rng.randint(1, max(1, nodes // 10))
        found = [
            alternative(length, ("nodes", size)),
            alternative(length * 1.8, ("nodes", max(1, size // 2))),
            alternative(length * 0.6, ("nodes", 2 * size)),
        ]
    user = rng.randrange(USERS)
    return Ask(alternatives=tuple(found), user=f"u{user}", project=f"p{user % 10}")


def mixed(counts: list[int], nodes: int) -> list[Row]:
    rows = []
    for number in counts:
        rng = random.Random(1)
        asks = [mixed_ask(rng, nodes) for _ in range(number)]
        planner = make_planner(nodes, quotas=True)
        with timed() as spent:
            for id, ask in enumerate(asks):
                planner.submit(id, ask, 0.0)
        if any(entry.start is None for entry in planner.plan.entries.values()):
            raise SystemExit("a mixed request was not planned")
        rows.append({"jobs": float(number)} | spent.row())
        print(f"{number} mixed requests: {spent.cpu:.3f} s ({spent.wall:.3f} s wall)", flush=True)
    return rows


def exponent(rows: list[Row]) -> float:
    """Of the power of the number of jobs that fits the seconds best."""
    if len(rows) < 2:
        return math.nan
    x = [math.log(row["jobs"]) for row in rows]
    y = [math.log(max(row["cpu_s"], 1e-6)) for row in rows]
    return statistics.linear_regression(x, y).slope


# ------------------------------------------------------------------ one event


def events(jobs: int, nodes: int, *, kind: str, most: int, seconds: float) -> dict[str, Row]:
    """Milliseconds of one event on a plan of so many jobs; long passes are paused, as in production.

    Each kind happens at most so often, and not again once all the work took so long.
    """
    rng = random.Random(2)
    planner = make_planner(nodes, quotas=kind == "mixed")
    now = 0.0
    plan = sizes(jobs, nodes)
    for id in range(jobs):
        if kind == "mixed":
            ask = mixed_ask(rng, nodes)
        else:
            ask = Ask(alternatives=(alternative(plan[id][1], ("nodes", plan[id][0])),))
        planner.submit(id, ask, now)
    planner.begin(now)
    planner.plan.pause_after = STEPS
    last = [jobs]
    lost: list[str] = []
    leaving: list[int] = []
    full = planner.plan.site

    def new_ask(priority: int = 0) -> Ask:
        ask = mixed_ask(rng, nodes)
        return Ask(alternatives=ask.alternatives, user=ask.user, project=ask.project, priority=priority)

    def submit() -> None:
        last[0] += 1
        planner.submit(last[0], new_ask(), now)

    def end_early() -> None:
        planner.ended(rng.choice(list(planner.plan.running)), now)

    def lose_node() -> None:
        """A node that nobody runs on is lost, and comes back the next time."""
        if lost:
            lost.clear()
        else:
            busy = 0
            for entry in planner.plan.running.values():
                busy |= entry.resources
            idle = [host for host, mask in full.hosts.items() if not mask & busy]
            lost.append(rng.choice(idle or list(full.hosts)))
        gone = sum(full.hosts[host] for host in lost)
        planner.change_site(full.using(full.everything & ~gone), now)

    def change_priority() -> None:
        waiting = [entry for entry in planner.plan.entries.values() if entry.state == "waiting"]
        entry = rng.choice(waiting)
        ask = new_ask(rng.choice([-1, 1]))
        if leaving:  # it left, and comes again
            planner.submit(leaving.pop(), ask, now)
        else:
            planner.ended(entry.id, now, again=True)
            leaving.append(entry.id)

    def end_late() -> None:
        nonlocal now
        moment = planner.next_event()
        if moment is not None:
            now = max(now, moment)
        planner.tick(now)

    kinds: dict[str, Callable[[], None]] = {
        "submit": submit,
        "early end": end_early,
        "node lost or back": lose_node,
        "priority change": change_priority,
        "late end": end_late,
    }
    found: dict[str, list[tuple[float, float, float]]] = {}
    gc.collect()
    for name, happen in kinds.items():
        took = found[name] = []
        # In pairs: what is lost comes back.
        while len(took) < most and (len(took) % 2 or sum(whole for *_, whole in took) < seconds * 1e3):
            now += 1.0
            begin = time.process_time()
            happen()
            slices = [(time.process_time() - begin) * 1e3]
            more = True
            while more:
                begin = time.process_time()
                more = planner.work(STEPS)
                slices.append((time.process_time() - begin) * 1e3)
            planner.begin(now)
            took.append((slices[0], max(slices), sum(slices)))
    found["all but late ends"] = [each for name in kinds if name != "late end" for each in found[name]]
    return {name: _summary(took) for name, took in found.items()}


def _summary(took: list[tuple[float, float, float]]) -> Row:
    """Of the call, of the longest that anybody else has to wait, and of all the work."""
    row: Row = {"times": float(len(took))}
    for name, samples in zip(("call", "slice", "pass"), zip(*took, strict=True), strict=True):
        ordered = sorted(samples)
        row[f"{name}_median_ms"] = statistics.median(ordered)
        row[f"{name}_p99_ms"] = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
    return row


# ------------------------------------------------------------------ traces


def make_trace(jobs: int, processors: int, factor: float) -> SwfTrace:
    rng = random.Random(1)
    lines = [f"; MaxProcs: {processors}"]
    moment = 0.0
    for id in range(1, jobs + 1):
        wide = rng.choice([1, 1, 2, 2, 4, 4, 8, 8, 16, 16, 32, 64, rng.randint(1, 100)])
        run = min(int(rng.lognormvariate(6.5, 1.5)) + 1, 86400)
        asked = int(run * rng.choice([1, 1.5, 2, 5, 10])) + 60
        moment += rng.expovariate(1 / (600.0 * factor))
        lines.append(f"{id} {int(moment)} -1 {run} {wide} -1 -1 {wide} {asked} -1 1 1 1 1 1 1 -1 -1")
    return parse_swf("\n".join(lines).encode(), "bench.swf")


def traces(jobs: int, factors: list[float]) -> dict[str, Row]:
    rows: dict[str, Row] = {}
    for factor in factors:
        trace = make_trace(jobs, 100, factor)
        for policy in ("easy", "conservative"):
            with timed() as spent:
                replayed = replay(trace, processors=100, policy=policy)
            name = f"{policy}, arrivals × {factor:g}"
            rows[name] = spent.row() | {"ran": float(len(replayed.ran))}
            print(f"{jobs} jobs, {name}: {spent.cpu:.2f} s ({spent.wall:.2f} s wall)", flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a small dose of everything")
    parser.add_argument("--parts", default=",".join(PARTS), help="comma-separated; default: %(default)s")
    parser.add_argument("--dry", action="store_true", help="write no file")
    parser.add_argument("--events", type=int, default=50, help="of each kind at most; default: %(default)s")
    parser.add_argument(
        "--seconds",
        type=float,
        default=5.0,
        help="work of a kind of event that is enough; default: %(default)s",
    )
    options = parser.parse_args()
    parts = options.parts.split(",")
    nodes = 100 if options.quick else 1000
    found: dict[str, object] = {}
    if "nodes" in parts:
        counts = [50, 200] if options.quick else [500, 2000, 10_000]
        found["whole nodes"] = rows = whole_nodes(counts, nodes, 2000)
        print_table(
            [["whole-node jobs", "cpu s", "wall s", "naive s", "ratio"]]
            + [
                [
                    f"{row['jobs']:.0f}",
                    f"{row['cpu_s']:.3f}",
                    f"{row['wall_s']:.3f}",
                    f"{row['naive_cpu_s']:.3f}" if "naive_cpu_s" in row else "",
                    f"{row['ratio']:.1f}" if "ratio" in row else "",
                ]
                for row in rows
            ]
        )
    if "mixed" in parts:
        rows = mixed([50, 100] if options.quick else [1000, 2000, 5000, 10_000], nodes)
        found["mixed"], found["exponent"] = rows, exponent(rows)
        print(f"exponent {found['exponent']:.2f}\n")
    if "events" in parts:
        for kind, many in (("nodes", 10_000), ("mixed", 3000)):
            jobs, most = (200, 6) if options.quick else (many, options.events)
            found[f"events, {kind}"] = summary = events(jobs, nodes, kind=kind, most=most, seconds=options.seconds)
            titles = ["times", "call", "p99", "slice", "p99", "whole pass", "p99"]
            print_table(
                [[f"one event on {jobs} jobs ({kind}), ms", *titles]]
                + [
                    [name, f"{times:.0f}", *(f"{value:.2f}" for value in values)]
                    for name, (times, *values) in ((name, row.values()) for name, row in summary.items())
                ]
            )
            print()
    if "traces" in parts:
        found["traces"] = traces(300 if options.quick else 30_000, [1.0] if options.quick else [1.0, 0.6])
    if not options.dry:
        print(f"\nwritten to {save('plan', found)}")


if __name__ == "__main__":
    main()
