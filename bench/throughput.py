"""Jobs a second of `rota run -` beside other programs that run a list of commands.

Rounds are interleaved, because a machine's speed drifts; the medians are compared. Rota is timed
twice: `rota` from nothing (a new deployment, the manager started and its certificates made), and `rota
(warm)` with a manager that is already there. Rota alone syncs every job to disk.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from deployment import Deployment, cpu_s, describe_machine, print_table, save
from peers import PEERS, missing

COLD, WARM = "rota", "rota (warm)"


class Cost:
    """CPU of manager and runner in one round."""

    def __init__(self, deployment: Deployment, before: dict[int, float] | None = None) -> None:
        self._deployment = deployment
        self._before = before or {}

    def us_per_job(self, jobs: int) -> dict[str, float]:
        return {
            name: sum(cpu_s(pid) - self._before.get(pid, 0.0) for pid in pids) * 1e6 / jobs
            for name, pids in self._deployment.pids().items()
        }


def rota_run(deployment: Deployment, commands: Path, directory: Path) -> float:
    with commands.open("rb") as stdin:
        begun = time.perf_counter()
        deployment.run("run", "-", stdin=stdin, cwd=directory, stdout=subprocess.DEVNULL)
        return time.perf_counter() - begun


def cold_round(commands: Path, jobs: int, directory: Path) -> tuple[float, dict[str, float]]:
    with Deployment() as deployment:
        seconds = rota_run(deployment, commands, directory)
        return seconds, Cost(deployment).us_per_job(jobs)


def warm_round(
    deployment: Deployment, commands: Path, jobs: int, directory: Path
) -> tuple[float, dict[str, float]]:
    """The directory is new each time, so that the jobs are new ones."""
    before = {pid: cpu_s(pid) for pids in deployment.pids().values() for pid in pids}
    seconds = rota_run(deployment, commands, directory)
    return seconds, Cost(deployment, before).us_per_job(jobs)


def measure(names: list[str], *, jobs: int, rounds: int, slots: int) -> dict[str, dict[str, Any]]:
    """name → {"seconds": one a round, "cpu_us": one a round}"""
    found: dict[str, dict[str, Any]] = {name: {"seconds": [], "cpu_us": []} for name in names}
    with tempfile.TemporaryDirectory(prefix="rota-bench.") as top, Deployment() as warm:
        commands = Path(top, "commands")
        commands.write_text("true\n" * jobs)
        if WARM in names:
            warm.start()
            warm.run("run", "--", "true")  # the runner is there, too
        for number in range(rounds):
            for name in names:
                directory = Path(top, f"{number}-{name.split()[0]}-{len(name)}")
                directory.mkdir()
                cpu: dict[str, float] = {}
                if name == COLD:
                    seconds, cpu = cold_round(commands, jobs, directory)
                elif name == WARM:
                    seconds, cpu = warm_round(warm, commands, jobs, directory)
                else:
                    seconds = PEERS[name](commands, slots, directory)
                found[name]["seconds"].append(seconds)
                found[name]["cpu_us"].append(cpu)
                spent = "".join(f"  {part} {us:.0f} µs" for part, us in cpu.items())
                print(f"round {number + 1}/{rounds}  {name:<14} {jobs / seconds:7.0f} jobs/s{spent}", flush=True)
    return found


def summary(found: dict[str, dict[str, Any]], jobs: int) -> list[dict[str, Any]]:
    """Medians, fastest first, with the ratio to xargs and the CPU that Rota's processes took."""
    rates = {name: jobs / statistics.median(one["seconds"]) for name, one in found.items()}
    rows = []
    for name in sorted(rates, key=lambda name: -rates[name]):
        cpu = [one for one in found[name]["cpu_us"] if one]
        rows.append(
            {
                "name": name,
                "jobs_per_s": rates[name],
                "to_xargs": rates[name] / rates["xargs"] if "xargs" in rates else None,
                "cpu_us": {part: statistics.median(one[part] for one in cpu) for part in (cpu[0] if cpu else {})},
            }
        )
    return rows


def show(rows: list[dict[str, Any]], absent: dict[str, str]) -> None:
    table = [["", "jobs/s", "of xargs", "manager µs/job", "runner µs/job", "together"]]
    for row in rows:
        cpu = row["cpu_us"]
        table.append(
            [
                row["name"],
                f"{row['jobs_per_s']:.0f}",
                f"{row['to_xargs']:.2f}" if row["to_xargs"] else "",
                *(f"{cpu[part]:.0f}" if part in cpu else "" for part in ("manager", "runner")),
                f"{sum(cpu.values()):.0f}" if cpu else "",
            ]
        )
    print()
    print_table(table)
    for name, how in absent.items():
        print(f"{name}: missing ({how})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peers", default=",".join(PEERS), help="comma-separated; default: %(default)s")
    parser.add_argument("--without-rota", action="store_true", help="only the peers")
    options = parser.parse_args()
    wanted = [name for name in options.peers.split(",") if name]
    if unknown := set(wanted) - set(PEERS):
        parser.error(f"no such peer: {', '.join(sorted(unknown))}")
    absent = {name: how for name in wanted if (how := missing(name))}
    names = [
        *([] if options.without_rota else [COLD, WARM]),
        *(name for name in wanted if name not in absent),
    ]
    slots = len(os.sched_getaffinity(0))
    print(f"{options.jobs} × `true`, {slots} at a time, {options.rounds} rounds: {describe_machine()['cpu']}")
    found = measure(names, jobs=options.jobs, rounds=options.rounds, slots=slots)
    rows = summary(found, options.jobs)
    show(rows, absent)
    kept = {"jobs": options.jobs, "slots": slots, "summary": rows, "rounds": found, "missing": absent}
    print(f"\nwritten to {save('throughput', kept)}")


if __name__ == "__main__":
    main()
