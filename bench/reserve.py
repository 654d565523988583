"""How long one step of the engine takes (a job ends, the next is leased) as the queue and its groups grow.

Reservation groups differ in size, in a limit that has room, in a limit that is used up (all but one group
are parked at theirs), in a limit that is stopped, or in a limit beside one that all share and that is used
up. The median of many steps is processor time; it must
depend neither on the number of jobs that wait nor, much, on the number of groups.
"""

from __future__ import annotations

import argparse
import gc
import statistics

from bare_engine import BareEngine, spec
from deployment import print_table, save
from rota.core.events import LimitsDeclared
from rota.core.jobs.job import Spec
from rota.plan.need import LimitUse
from rota.plan.policy.limits import Limit
from rota.plan.size import Size

KINDS = ("size", "limit", "parked", "stopped", "shared")
_MIB = 1 << 20


def group_specs(kind: str, groups: int) -> tuple[list[Spec], list[Limit]]:
    """As many reservation groups, and the limits that they need."""
    if groups == 1:
        return [spec()], []
    if kind == "size":
        return [spec(size=Size(mem=(1 + number) * _MIB), override="always") for number in range(groups)], []
    if kind == "shared":
        limits = [Limit("all", 2), *(Limit(f"l{number}", 5) for number in range(groups))]
        return [spec(limits=(LimitUse("all"), LimitUse(each.name))) for each in limits[1:]], limits
    capacity = {"limit": groups, "parked": 1, "stopped": 0}[kind]
    # The first group always has room, so that there is something to lease.
    limits = [Limit(f"l{number}", capacity if number else None) for number in range(groups)]
    return [spec(limits=(LimitUse(each.name),)) for each in limits], limits


def measure(jobs: int, groups: int, kind: str, *, steps: int) -> dict[str, float]:
    """Microseconds of a step."""
    engine = BareEngine()
    specs, limits = group_specs(kind, groups)
    if limits:
        engine.step(LimitsDeclared(limits=limits))
    if kind == "parked" and groups > 1:
        for limit in limits[1:]:  # somebody else has the unit, for ever
            engine.world.placement.limits.take((LimitUse(limit.name),), "bench")
    if kind in ("parked", "stopped") and groups > 1:
        # Half the jobs are of the first group, so that it lasts.
        spec_of = [number // 2 % groups if number % 2 else 0 for number in range(jobs)]
    else:
        spec_of = [number % groups for number in range(jobs)]
    sealed = engine.add([f"true {number}" for number in range(jobs)], specs, spec_of)
    engine.join()
    gc.collect()
    gc.disable()
    for _ in range(20):
        engine.end_one()
    samples = [engine.end_one() for _ in range(min(steps, jobs // 2 - 400))]
    gc.enable()
    return {
        "median_us": statistics.median(samples) * 1e6,
        "p99_us": sorted(samples)[int(len(samples) * 0.99)] * 1e6,
        "seal_s": sealed,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", default="1000,10000,100000,200000", help="comma-separated; default: %(default)s")
    parser.add_argument("--groups", default="1,100,1000", help="comma-separated; default: %(default)s")
    parser.add_argument("--kinds", default=",".join(KINDS), help="comma-separated; default: %(default)s")
    parser.add_argument("--steps", type=int, default=1000)
    options = parser.parse_args()
    jobs = [int(word) for word in options.jobs.split(",")]
    found: dict[str, dict[int, dict[str, float]]] = {}
    for groups in map(int, options.groups.split(",")):
        for kind in options.kinds.split(",") if groups > 1 else ["size"]:
            name = f"{groups} groups by {kind}" if groups > 1 else "1 group"
            found[name] = {number: measure(number, groups, kind, steps=options.steps) for number in jobs}
            shown = "  ".join(f"{one['median_us']:.0f}" for one in found[name].values())
            print(f"{name:<24} {shown}", flush=True)
    print()
    print_table(
        [["median µs of a step, jobs that wait:", *map(str, jobs)]]
        + [[name, *(f"{one['median_us']:.0f}" for one in row.values())] for name, row in found.items()]
    )
    print()
    print_table(
        [["99th percentile, µs", *map(str, jobs)]]
        + [[name, *(f"{one['p99_us']:.0f}" for one in row.values())] for name, row in found.items()]
    )
    print(f"\nwritten to {save('reserve', {'steps': options.steps, 'rows': found})}")


if __name__ == "__main__":
    main()
