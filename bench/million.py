"""A million one-line jobs: how long until they are safely queued, what they cost, how soon they are back.

First the queue: `rota add FILE`, the manager's memory, queries, kill -9 and recovery, while the jobs
wait (each would run for a quarter of an hour, so a few run and the rest stay). Then the history:
jobs a second and CPU a job in an empty deployment and in one with as many finished jobs, interleaved.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from deployment import Deployment, is_alive, print_table, resident_bytes, save
from history import write_finished
from throughput import warm_round


def seconds(action: Callable[[], object]) -> float:
    begun = time.perf_counter()
    action()
    return time.perf_counter() - begun


def peak_bytes(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


def queue(jobs: int) -> dict[str, float]:
    """Add, ask, kill, recover, ask again."""
    with Deployment() as deployment:
        commands = deployment.top / "commands"
        with commands.open("w") as file:
            file.writelines(f"sleep 900.{number:07d}\n" for number in range(jobs))
        deployment.start()

        def add() -> None:
            deployment.run("add", "--quiet", str(commands), stdout=subprocess.DEVNULL)

        def ask(*args: str) -> float:
            return statistics.median(seconds(lambda: deployment.run(*args, "--json")) for _ in range(5))

        found = {"add_s": seconds(add)}
        pid = deployment.manager_pid()
        found |= {"resident_bytes": resident_bytes(pid), "peak_bytes": peak_bytes(pid)}
        found |= {"jobs_s": ask("jobs"), "status_s": ask("status")}
        _check(deployment, jobs)

        os.kill(pid, signal.SIGKILL)
        deployment.wait_for(lambda: not is_alive(pid), seconds=30, what="the end of the manager")

        def recover() -> None:
            deployment.start()
            deployment.run("status")

        found["ready_again_s"] = seconds(recover)
        pid = deployment.manager_pid()
        found |= {
            "resident_again_bytes": resident_bytes(pid),
            "jobs_again_s": ask("jobs"),
            "status_again_s": ask("status"),
        }
        _check(deployment, jobs)
        return found


def _check(deployment: Deployment, jobs: int) -> None:
    there = sum(deployment.json("status")["counts"].values())
    if there != jobs:
        raise SystemExit(f"{jobs} jobs were added, {there} are there")


def history(finished: int, *, jobs: int, rounds: int) -> dict[str, dict[str, float]]:
    """The same work with nothing and with much behind it."""
    found: dict[str, list[tuple[float, float]]] = {}
    with ExitStack() as stack:
        homes = {
            "empty": stack.enter_context(Deployment()),
            "with history": stack.enter_context(Deployment()),
        }
        for name, deployment in homes.items():
            deployment.start()
            if name != "empty":
                deployment.run("manager", "stop")
                took = seconds(partial(write_finished, deployment.home, finished))
                print(f"writing {finished} finished jobs took {took:.0f} s", flush=True)
                deployment.start()
            deployment.run("run", "--", "true")
        for number in range(rounds):
            for name, deployment in homes.items():
                directory = deployment.work / str(number)
                directory.mkdir()
                commands = deployment.top / "commands"
                commands.write_text("true\n" * jobs)
                took, cpu = warm_round(deployment, commands, jobs, directory)
                found.setdefault(name, []).append((jobs / took, sum(cpu.values())))
    return {
        name: {
            "jobs_per_s": statistics.median(rate for rate, _ in rounds_of),
            "cpu_us_per_job": statistics.median(cpu for _, cpu in rounds_of),
        }
        for name, rounds_of in found.items()
    }


GOALS = {
    "add_s": ("added durably", 40.0, "s"),
    "resident_bytes": ("resident after that", 1.2e9, "bytes"),
    "peak_bytes": ("resident at most", 1.2e9, "bytes"),
    "jobs_s": ("rota jobs --json", 1.0, "s"),
    "status_s": ("rota status --json", 1.0, "s"),
    "ready_again_s": ("ready again after kill -9", 30.0, "s"),
    "resident_again_bytes": ("resident after recovery", 1.2e9, "bytes"),
    "jobs_again_s": ("rota jobs --json after that", 1.0, "s"),
    "status_again_s": ("rota status --json after that", 1.0, "s"),
}


def shown(value: float, unit: str) -> str:
    return f"{value:.2f} s" if unit == "s" else f"{value / 1e6:.0f} MB"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--finished", type=int, default=1_000_000)
    parser.add_argument("--batch", type=int, default=2000, help="jobs run in each round of the second part")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=["queue", "history"])
    options = parser.parse_args()
    result: dict[str, Any] = {"jobs": options.jobs, "finished": options.finished}
    if options.only != "history":
        found = result["queue"] = queue(options.jobs)
        print_table(
            [[f"{options.jobs} jobs", "measured", "goal"]]
            + [[what, shown(found[name], unit), shown(goal, unit)] for name, (what, goal, unit) in GOALS.items()]
        )
        print()
    if options.only != "queue":
        rates = result["history"] = history(options.finished, jobs=options.batch, rounds=options.rounds)
        print_table(
            [["finished jobs in the store", "jobs/s", "CPU µs/job"]]
            + [[name, f"{one['jobs_per_s']:.0f}", f"{one['cpu_us_per_job']:.0f}"] for name, one in rates.items()]
        )
    print(f"\nwritten to {save('million', result)}")


if __name__ == "__main__":
    main()
