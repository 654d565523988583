"""A pipeline of 10,000 elements and five stages of which three are up to date, beside programs that build graphs.

Rounds are interleaved, because a machine's speed drifts. `rota` has a manager that runs already, `rota (cold)`
starts one; both load the file, and end when all is recorded. Figures are per (element, stage), those that are
skipped included; CPU is that of a program with all that it started, which says more where the machine is busy.
Snakemake needs half an hour for what the others do in half a minute, so it gets fewer elements.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pipeline_graph as graph
from deployment import Deployment, cpu_s, describe_machine, family_cpu_s, print_table, save
from pipeline_peers import PEERS, Times, missing, timed
from ratios import ratio

WARM, COLD = "rota", "rota (cold)"
FEWER = {"snakemake": 100}
_FIGURES = ("us", "seconds", "first_build_s", "all_cpu_us")
#: Of the time per (element, stage), warm, to that of make.
GOAL = 1.3


def rota(deployment: Deployment, elements: int, directory: Path) -> Times:
    graph.write_done(directory, elements)
    (directory / "pipeline.yaml").write_text(graph.as_rota(elements))
    return timed([deployment.rota, "pipeline", "run", "pipeline.yaml", "--json"], directory, deployment.env)


def measure(
    names: list[str], *, sizes: dict[str, int], rounds: int, slots: int
) -> dict[str, list[dict[str, Any]]]:
    """name → one a round."""
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    with tempfile.TemporaryDirectory(prefix="rota-bench.") as top, Deployment() as warm:
        if WARM in names:
            warm.start()
            warm.run("run", "--", "true")  # the runner is there, too
        for number in range(rounds):
            for name in names:
                directory = Path(top, f"{number}-{name.split()[0]}-{len(name)}")
                directory.mkdir()
                one = _one(name, warm, sizes[name], slots, directory)
                found[name].append(one)
                print(f"round {number + 1}/{rounds}  {name:<12} {_told(one)}", flush=True)
    return found


def _one(name: str, warm: Deployment, elements: int, slots: int, directory: Path) -> dict[str, Any]:
    cpu: dict[str, float] = {}
    if name == WARM:
        before, all_before = _cpu(warm, cpu_s), _cpu_sum(warm)
        times = rota(warm, elements, directory)
        cpu = {part: seconds - before[part] for part, seconds in _cpu(warm, cpu_s).items()}
        times = times._replace(cpu_s=times.cpu_s + _cpu_sum(warm) - all_before)
    elif name == COLD:
        with Deployment() as deployment:
            times = rota(deployment, elements, directory)
            cpu = _cpu(deployment, cpu_s)
            times = times._replace(cpu_s=times.cpu_s + _cpu_sum(deployment))
    else:
        times = PEERS[name](elements, slots, directory)
    each = 1e6 / (elements * len(graph.STAGES))
    return {
        "elements": elements,
        "seconds": times.seconds,
        "first_build_s": times.first_build_s,
        "us": times.seconds * each,
        "all_cpu_us": times.cpu_s * each,
        "cpu_us": {part: seconds * each for part, seconds in cpu.items()},
    }


def _cpu(deployment: Deployment, of: Callable[[int], float]) -> dict[str, float]:
    """Of the manager and of its runners, so far."""
    return {part: sum(map(of, pids)) for part, pids in deployment.pids().items()}


def _cpu_sum(deployment: Deployment) -> float:
    return sum(_cpu(deployment, family_cpu_s).values())


def _told(one: dict[str, Any]) -> str:
    spent = "".join(f"  {part} {us:.0f} µs" for part, us in one["cpu_us"].items())
    return f"{one['us']:7.0f} µs a stage  {one['seconds']:7.1f} s  first build {one['first_build_s']:.2f} s{spent}"


def summary(found: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Medians, fastest first. The ratio to make is that of pairs of rounds."""
    rows = []
    for name, rounds in found.items():
        row: dict[str, Any] = {"name": name, "elements": rounds[0]["elements"]}
        row |= {key: statistics.median(one[key] for one in rounds) for key in _FIGURES}
        parts = rounds[0]["cpu_us"]
        row["cpu_us"] = {part: statistics.median(one["cpu_us"][part] for one in rounds) for part in parts}
        if "make" in found:
            pairs = list(zip(rounds, found["make"], strict=True))
            to_make = ratio([(one["us"], other["us"]) for one, other in pairs])
            row["to_make"] = to_make.value
            row["cpu_to_make"] = ratio([(one["all_cpu_us"], other["all_cpu_us"]) for one, other in pairs]).value
            row["interval"] = [to_make.low, to_make.high]
        rows.append(row)
    return sorted(rows, key=lambda row: float(row["us"]))


def show(rows: list[dict[str, Any]], absent: dict[str, str]) -> None:
    table = [
        ["", "elements", "µs a stage", "of make", "first build s", "CPU µs", "of make", "manager µs", "runner µs"]
    ]
    for row in rows:
        cpu = row["cpu_us"]
        table.append(
            [
                row["name"],
                f"{row['elements']:,}",
                f"{row['us']:.0f}",
                f"{row['to_make']:.2f}" if "to_make" in row else "",
                f"{row['first_build_s']:.2f}",
                f"{row['all_cpu_us']:.0f}",
                f"{row['cpu_to_make']:.2f}" if "cpu_to_make" in row else "",
                *(f"{cpu[part]:.0f}" if part in cpu else "" for part in ("manager", "runner")),
            ]
        )
    print()
    print_table(table)
    for name, how in absent.items():
        print(f"{name}: missing ({how})")


def judge(rows: list[dict[str, Any]]) -> None:
    by_name = {row["name"]: row for row in rows}
    if WARM not in by_name:
        return
    mine = by_name[WARM]
    behind = [row["name"] for row in rows if row["us"] < mine["us"] and row["name"] not in ("make", "ninja", COLD)]
    print(f"\nbehind: {', '.join(behind) or 'none but perhaps make and ninja'}")
    if "to_make" in mine:
        word = "reached" if mine["to_make"] <= GOAL else "missed"
        print(f"goal of at most {GOAL} × make: {word} ({mine['to_make']:.2f})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--elements", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peers", default=",".join(PEERS), help="comma-separated; default: %(default)s")
    parser.add_argument("--without-rota", action="store_true", help="only the peers")
    parser.add_argument("--fewer", default="", metavar="NAME=N,…", help="elements for a peer that is too slow")
    options = parser.parse_args()
    wanted = [name for name in options.peers.split(",") if name]
    if unknown := set(wanted) - set(PEERS):
        parser.error(f"no such peer: {', '.join(sorted(unknown))}")
    given = (one.partition("=") for one in options.fewer.split(",") if one)
    fewer = FEWER | {name: int(n) for name, _, n in given}
    absent = {name: how for name in wanted if (how := missing(name))}
    names = [*([] if options.without_rota else [WARM, COLD]), *(name for name in wanted if name not in absent)]
    sizes = {name: min(options.elements, fewer.get(name, options.elements)) for name in names}
    slots = len(os.sched_getaffinity(0))
    head = f"{options.elements:,} elements × {len(graph.STAGES)} stages, {len(graph.SKIPPED)} of them up to date"
    print(f"{head}; {slots} at a time, {options.rounds} rounds: {describe_machine()['cpu']}")
    found = measure(names, sizes=sizes, rounds=options.rounds, slots=slots)
    rows = summary(found)
    show(rows, absent)
    judge(rows)
    kept = {"elements": options.elements, "slots": slots, "summary": rows, "rounds": found, "missing": absent}
    print(f"\nwritten to {save('pipeline', kept)}")


if __name__ == "__main__":
    main()
