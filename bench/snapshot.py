"""How long a snapshot of the plan takes, beside what copying could take at best, and a whole what-if with it.

The limit is a copy of nothing but the entries, by C code, into a new list. `pickle` is the copy that needs no
thought. A what-if is a snapshot, the search in it, why the job would wait, and freeing the snapshot. All are of
the same plans, in the same run, in turns; seconds are processor time, the best of several. Garbage is collected
as in a manager.
"""

from __future__ import annotations

import argparse
import gc
import pickle
import random
import time
from collections.abc import Callable

from deployment import print_table, save
from plan import alternative, make_planner, mixed_ask, sizes
from rota.manager.loop.startup import COLLECTED_AFTER
from rota.plan.ask import Ask
from rota.plan.explain.whatif import ask_snapshot
from rota.plan.explain.why_waiting import why
from rota.plan.planner.planner import Planner
from rota.plan.schedule.plan_entry import PlanEntry

Row = dict[str, float]


def planned(kind: str, jobs: int, nodes: int) -> Planner:
    """A plan of so many jobs: whole nodes, or mixed requests with quotas."""
    planner = make_planner(nodes, quotas=kind == "mixed")
    rng = random.Random(1)
    plain = sizes(jobs, nodes)
    for id, (size, length) in enumerate(plain):
        whole = Ask(alternatives=(alternative(length, ("nodes", size)),))
        planner.submit(id, mixed_ask(rng, nodes) if kind == "mixed" else whole, 0.0)
    return planner


def best_ms(times: int, *calls: Callable[[], object]) -> list[float]:
    """The shortest time of each call, all of them in turns."""
    found = [float("inf")] * len(calls)
    for _ in range(times):
        for at, call in enumerate(calls):
            gc.collect()
            begun = time.process_time()
            made = call()
            found[at] = min(found[at], (time.process_time() - begun) * 1e3)
            del made
    return found


def answer_ms(times: int, planner: Planner, question: Ask) -> tuple[float, float]:
    """The shortest time of the search in a snapshot, and of why the job waits."""
    searched = explained = float("inf")
    for _ in range(times):
        taken = planner.snapshot()
        gc.collect()
        begun = time.process_time()
        entry = taken.submit(max(taken.plan.entries) + 1, question, 0.0)
        found = time.process_time()
        why(taken.plan, entry)
        ended = time.process_time()
        searched, explained = min(searched, (found - begun) * 1e3), min(explained, (ended - found) * 1e3)
    return searched, explained


def measure(kind: str, jobs: int, nodes: int, times: int) -> Row:
    planner = planned(kind, jobs, nodes)
    entries = list(planner.plan.entries.values())
    numbers = [(entry.id, entry.start, entry.end, entry.resources, entry.rank) for entry in entries]
    question = mixed_ask(random.Random(2), nodes)
    taken, bare, pickled = best_ms(
        times,
        planner.snapshot,
        lambda: list(map(PlanEntry.__copy__, entries)),
        lambda: pickle.loads(pickle.dumps(numbers)),
    )
    (asked,) = best_ms(times, lambda: ask_snapshot(planner.snapshot(), question, 0.0))
    searched, explained = answer_ms(times, planner, question)
    return {
        "jobs": float(jobs),
        "snapshot_ms": taken,
        "entries_ms": bare,
        "ratio": taken / bare if bare else 0.0,
        "pickle_of_places_ms": pickled,
        "whatif_ms": asked,
        "search_ms": searched,
        "why_ms": explained,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a small dose of everything")
    parser.add_argument("--dry", action="store_true", help="write no file")
    options = parser.parse_args()
    gc.set_threshold(*COLLECTED_AFTER)
    counts, nodes, times = ([100], 100, 2) if options.quick else ([1000, 10_000], 1000, 15)
    rows = {f"{kind} {jobs}": measure(kind, jobs, nodes, times) for kind in ("nodes", "mixed") for jobs in counts}
    titles = [
        "snapshot ms",
        "entries alone ms",
        "ratio",
        "pickle of places ms",
        "what-if ms",
        "of it search ms",
        "why ms",
    ]
    print_table(
        [["plan", *titles]]
        + [[name, *(f"{value:.2f}" for value in list(row.values())[1:])] for name, row in rows.items()]
    )
    if not options.dry:
        save("snapshot", rows)


if __name__ == "__main__":
    main()
