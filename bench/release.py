"""How fast dependents are released: diamonds (one root, n in the middle, one sink) and chains of diamonds.

First the engine alone: steps as they come from a runner that reports many ends at a time. Dependents
released a second, and the longest single step: nobody is answered meanwhile. A root that releases all at
once is one step by nature; its cost per dependent must not grow. Then end to end, with real `true` jobs
in a real deployment, beside as many jobs that wait for nothing, in turns.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bare_engine import BareEngine, spec
from deployment import Deployment, cpu_s, print_table, save

#: Middle jobs of each diamond in a chain.
WIDTH = 100
#: Ends that a runner reports at a time.
REPORTED = 50

Edges = list[tuple[int, int]]


def diamond(jobs: int) -> Edges:
    """(entry, entry that it waits for) of one diamond."""
    middle = range(1, jobs - 1)
    return [*((entry, 0) for entry in middle), *((jobs - 1, entry) for entry in middle)]


def chain(jobs: int) -> Edges:
    """Diamonds in a row: the sink of each is the root of the next."""
    return list(_chain(jobs))


def _chain(jobs: int) -> Iterator[tuple[int, int]]:
    root = 0
    while root + 2 < jobs:
        sink = min(root + WIDTH + 1, jobs - 1)
        for entry in range(root + 1, sink):
            yield entry, root
            yield sink, entry
        root = sink


SHAPES = {"diamond": diamond, "chain of diamonds": chain}


def engine_only(jobs: int, edges: Edges) -> dict[str, float]:
    """Processor seconds of the engine's steps, from the first lease to the last end."""
    engine = BareEngine()
    commands = [f"true {number}" for number in range(jobs)]
    sealed = engine.add(commands, [spec()], None, edges)
    engine.join()
    engine.steps.clear()
    while engine.held:
        engine.end(REPORTED)
    if engine.world.live:
        raise SystemExit(f"{engine.world.live} jobs were never released")
    released = len({entry for entry, _parent in edges})
    return {
        "released_per_s": released / sum(engine.steps),
        "longest_step_s": max(engine.steps),
        "seal_s": sealed,
        "edges": len(edges),
    }


def end_to_end(jobs: int, *, rounds: int) -> dict[str, dict[str, float]]:
    """Jobs a second and CPU of the manager for each job, with and without dependencies."""
    found: dict[str, list[tuple[float, float]]] = {}
    with Deployment() as deployment:
        deployment.start()
        deployment.run("run", "--", "true")
        for number in range(rounds):
            for name in ("independent", *SHAPES):
                directory = deployment.work / f"{number}-{name.split()[0]}"
                directory.mkdir()
                lines = deployment.top / "lines"
                _write(lines, jobs, SHAPES[name](jobs) if name in SHAPES else [])
                pid = deployment.manager_pid()
                before, begun = cpu_s(pid), time.perf_counter()
                deployment.run("run", str(lines), cwd=directory, stdout=subprocess.DEVNULL)
                took = time.perf_counter() - begun
                found.setdefault(name, []).append((jobs / took, (cpu_s(pid) - before) * 1e6 / jobs))
    return {
        name: {
            "jobs_per_s": statistics.median(rate for rate, _ in samples),
            "manager_us_per_job": statistics.median(cpu for _, cpu in samples),
        }
        for name, samples in found.items()
    }


def _write(path: Path, jobs: int, edges: Edges) -> None:
    waits: dict[int, list[str]] = {}
    for entry, parent in edges:
        waits.setdefault(entry, []).append(f"line:{parent + 1}")
    with path.open("w") as file:
        for number in range(jobs):
            line: dict[str, Any] = {"cmd": ["true", str(number)]}
            if number in waits:
                line["after"] = waits[number]
            file.write(json.dumps(line) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", default="1000,10000,100000", help="comma-separated; default: %(default)s")
    parser.add_argument("--real", default="1000,10000", help="the same, end to end; default: %(default)s")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=["engine", "real"])
    options = parser.parse_args()
    result: dict[str, Any] = {"width": WIDTH, "reported": REPORTED}
    if options.only != "real":
        table = [["engine alone", "released/s", "µs each", "longest step ms", "last chunk ms", "edges"]]
        for name, shape in SHAPES.items():
            for jobs in map(int, options.jobs.split(",")):
                one = engine_only(jobs, shape(jobs))
                result[f"{name} {jobs}"] = one
                table.append(
                    [
                        f"{name}, {jobs} jobs",
                        f"{one['released_per_s']:.0f}",
                        f"{1e6 / one['released_per_s']:.0f}",
                        f"{one['longest_step_s'] * 1e3:.1f}",
                        f"{one['seal_s'] * 1e3:.0f}",
                        str(one["edges"]),
                    ]
                )
        print_table(table)
        print()
    if options.only != "engine":
        table = [["end to end, `true`", "jobs/s", "manager CPU µs/job"]]
        for jobs in map(int, options.real.split(",")):
            for name, rates in end_to_end(jobs, rounds=options.rounds).items():
                result[f"real {name} {jobs}"] = rates
                rate, cpu = rates["jobs_per_s"], rates["manager_us_per_job"]
                table.append([f"{name}, {jobs} jobs", f"{rate:.0f}", f"{cpu:.0f}"])
        print_table(table)
    print(f"\nwritten to {save('release', result)}")


if __name__ == "__main__":
    main()
