"""A full queue: 200,000 jobs in 1,000 groups with limits, and how long people wait for an answer about it.

A real manager, asked by the real `rota`, while the jobs wait (each would run for a quarter of an hour, so
a few run and the rest stay). `rota version`, which asks nobody, is the floor of every figure: what the
command itself takes to start. Beside the time that passed stands the CPU that the manager took, which a
busy machine does not change. At the end kill -9, and the time until the manager answers again.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sqlite3
import statistics
import subprocess
from typing import Any

from deployment import Deployment, cpu_s, is_alive, print_table, resident_bytes, save
from million import peak_bytes, seconds

#: What an answer may take.
GOAL_S = 1.0
CHANGED = 10_000


class Stopwatch:
    """Times commands of one deployment, and what they cost its manager."""

    def __init__(self, deployment: Deployment, *, rounds: int) -> None:
        self._deployment = deployment
        self._rounds = rounds
        self.found: dict[str, dict[str, float]] = {}

    def ask(self, name: str, *args: str, rounds: int = 0) -> None:
        """The median of a few rounds; `{n}` in an argument is the number of the round."""
        pid = self._deployment.manager_pid()
        took, cpu = [], []
        for number in range(rounds or self._rounds):
            words = [arg.replace("{n}", str(number)) for arg in args]
            before = cpu_s(pid)
            took.append(seconds(lambda words=words: self._deployment.run(*words)))  # type: ignore[misc]
            cpu.append(cpu_s(pid) - before)
        one = self.found[name] = {"seconds": statistics.median(took), "manager_s": statistics.median(cpu)}
        print(f"{name:<44} {one['seconds']:7.2f} s  manager {one['manager_s']:6.2f} s", flush=True)


def write_jobs(deployment: Deployment, jobs: int, groups: int, sizes: int) -> str:
    """The input: groups in turns, each with a limit of its own, half of which are closed; a few sizes."""
    path = deployment.top / "jobs"
    with path.open("w") as file:
        for number in range(jobs):
            group = number % groups
            line = {
                "cmd": f"sleep 900.{number:07d}",
                "group": f"g{group}",
                "limits": [f"l{group}", "all"],
                "mem": f"{1 + group % sizes}M",
            }
            file.write(json.dumps(line) + "\n")
    return str(path)


def questions(watch: Stopwatch, jobs: int, groups: int) -> None:
    watch.ask("rota version (the floor)", "version")
    watch.ask("rota status", "status")
    watch.ask("rota status @g7", "status", "@g7")
    watch.ask("rota status state=ready", "status", "state=ready")
    watch.ask("rota why, of the last job", "why", str(jobs))
    watch.ask("rota why, of a job whose limit is 0", "why", str(jobs - groups + 2))
    watch.ask("rota jobs", "jobs")
    watch.ask("rota jobs state=ready --limit 100", "jobs", "state=ready", "--limit", "100")
    watch.ask("rota jobs @g7 --limit 100", "jobs", "@g7", "--limit", "100")
    watch.ask("rota limit (all of them)", "limit")


def changes(watch: Stopwatch, jobs: int, groups: int) -> None:
    some = [f"@g{number}" for number in range(max(1, CHANGED * groups // jobs))]
    watch.ask(f"rota modify 1-{CHANGED} --priority", "modify", f"1-{CHANGED}", "--priority", "1{n}")
    watch.ask(f"rota modify {len(some)} groups --mem", "modify", *some, "--mem", "10{n}M")
    watch.ask(f"rota modify {len(some)} groups --limit", "modify", *some, "--limit", "all,l5{n}")
    watch.ask("rota limit l8:N (down and up)", "limit", "l8:{n}")
    watch.ask("rota limit all:0 (all jobs use it)", "limit", "all:0")
    watch.ask("rota limit all:N (all jobs use it)", "limit", "all:5{n}")
    watch.ask(f"rota hold {len(some)} groups", "hold", *some, rounds=1)
    watch.ask(f"rota release {len(some)} groups", "release", *some, rounds=1)


def count_in_sqlite(deployment: Deployment) -> float:
    """What it takes SQLite alone to count the jobs by state, as a peer for `status`."""
    store = sqlite3.connect(f"file:{deployment.home / 'rota.db'}?mode=ro", uri=True)
    try:
        return seconds(lambda: store.execute("SELECT state, count(*) FROM jobs GROUP BY state").fetchall())
    finally:
        store.close()


def measure(jobs: int, groups: int, sizes: int, *, rounds: int) -> dict[str, Any]:
    with Deployment() as deployment:
        path = write_jobs(deployment, jobs, groups, sizes)
        deployment.start()
        watch = Stopwatch(deployment, rounds=rounds)
        limits = ["all:50", *(f"l{number}:{number % 2 * 5}" for number in range(groups))]
        watch.ask(f"rota limit, {len(limits)} at once", "limit", *limits, rounds=1)
        watch.ask(f"rota add, {jobs} jobs", "add", "--quiet", path, rounds=1)
        questions(watch, jobs, groups)
        changes(watch, jobs, groups)
        pid = deployment.manager_pid()
        memory = {"resident_bytes": resident_bytes(pid), "peak_bytes": peak_bytes(pid)}
        counted = count_in_sqlite(deployment)
        os.kill(pid, signal.SIGKILL)
        deployment.wait_for(lambda: not is_alive(pid), seconds=30, what="the end of the manager")

        def recover() -> None:
            deployment.start()
            deployment.run("status", stdout=subprocess.DEVNULL)

        again = seconds(recover)
        there = sum(deployment.json("status")["counts"].values())
        if there != jobs:
            raise SystemExit(f"{jobs} jobs were added, {there} are there")
        return {"commands": watch.found, **memory, "sqlite_count_s": counted, "ready_again_s": again}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=200_000)
    parser.add_argument("--groups", type=int, default=1000)
    parser.add_argument("--sizes", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    found = measure(options.jobs, options.groups, options.sizes, rounds=options.rounds)
    print()
    print_table(
        [[f"{options.jobs} jobs, {options.groups} groups", "seconds", "manager CPU s", f"over {GOAL_S:g} s"]]
        + [
            [name, f"{one['seconds']:.2f}", f"{one['manager_s']:.2f}", "yes" if one["seconds"] > GOAL_S else ""]
            for name, one in found["commands"].items()
        ]
    )
    print(f"\nSQLite alone counts them in {found['sqlite_count_s']:.2f} s")
    print(f"manager resident {found['resident_bytes'] / 1e6:.0f} MB, at most {found['peak_bytes'] / 1e6:.0f} MB")
    print(f"ready again after kill -9: {found['ready_again_s']:.2f} s")
    print(f"\nwritten to {save('queue', {**vars(options), **found})}")


if __name__ == "__main__":
    main()
