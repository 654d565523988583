"""The past of the Gantt chart: a month of a million finished jobs on a hundred hosts.

Asks a real manager for the whole month, for a day and for a quarter of an hour, and prints the processor time of
each beside what SQLite needs to read the same columns of the same rows and do nothing with them: the physical
limit. Meanwhile a client asks for something that the loop answers at once; the longest answer is the longest hold
of the loop.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sqlite3
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

import rota
from deployment import Deployment, cpu_s
from history import Spread, write_finished

MONTH_S = 30 * 86_400.0
HOSTS = 100
CORES = 8


class Knocks:
    """Asks for the limits, which the loop answers by itself, again and again; from a process of its own, so that
    nothing but the manager makes it wait."""

    def __init__(self, home: Path) -> None:
        self._over = multiprocessing.Event()
        self._ours, theirs = multiprocessing.Pipe()
        self._process = multiprocessing.Process(target=_knock, args=(home, self._over, theirs), daemon=True)
        self._process.start()
        self._ours.recv()

    def longest_s(self) -> tuple[float, float]:
        """The longest answer, and that which is longer than 99 of 100."""
        self._over.set()
        took: list[float] = sorted(self._ours.recv())
        self._process.join()
        return took[-1], took[int(0.99 * len(took))]


def _knock(home: Path, over: Any, tell: Any) -> None:
    took = []
    with rota.connect(home) as client:
        client.limits()
        tell.send(None)
        while not over.wait(0.005):
            begun = time.perf_counter()
            client.limits()
            took.append(time.perf_counter() - begun)
    tell.send(took)


def scan(database: Path, since: float, until: float) -> float:
    """Seconds of the processor for reading what is drawn of all attempts, with a cache like that of a reader."""
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
        connection.execute("PRAGMA cache_size=-8192")
        begun = time.thread_time()
        connection.execute(
            "SELECT count(host), sum(ended_at - started_at), count(outcome), count(spec), count(given)"
            " FROM attempts WHERE ended_at > ? AND started_at < ?",
            (since, until),
        ).fetchone()
        return time.thread_time() - begun


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    asked = parser.parse_args()
    now = time.time()
    every_s = MONTH_S / asked.jobs
    spread = Spread(now - MONTH_S, every_s, 0.8 * every_s * HOSTS * CORES, HOSTS)
    with Deployment() as deployment:
        begun = time.perf_counter()
        write_finished(deployment.home, asked.jobs, failed_every=50, spread=spread)
        print(f"{asked.jobs:,} finished jobs written in {time.perf_counter() - begun:.0f} s", flush=True)
        deployment.run("manager", "start")
        windows = {"15 minutes": 900.0, "a day": 86_400.0, "a month": MONTH_S}
        with rota.connect(deployment.home) as client:
            client.limits()
            quiet = Knocks(deployment.home)
            time.sleep(3.0)
            idle = quiet.longest_s()
            for name, length in windows.items():
                knocks = Knocks(deployment.home)
                took, scans, cpu = [], [], []
                manager = deployment.manager_pid()
                for again in range(asked.repeat):
                    # Windows so far apart that no answer which is kept is good for another.
                    until = now - again * max(300.0, length / 50)
                    begun, used = time.perf_counter(), cpu_s(manager)
                    past = client.gantt(since=until - length, until=until, limit=10_000).past
                    took.append(time.perf_counter() - begun)
                    cpu.append(cpu_s(manager) - used)
                    scans.append(scan(deployment.home / "rota.db", until - length, until))
                held = knocks.longest_s()
                assert past is not None
                drawn = len(past.merged) or len(past.attempts)
                merged = " (merged)" if past.slice_s else ""
                print(
                    f"{name:<10}  {past.total:>9,} attempts  {drawn:>6,} bars{merged}:"
                    f" {median(took):6.3f} s (best {min(took):.3f}), {median(cpu):.2f} s of the processor,"
                    f" a plain scan {median(scans):.2f} s of it,"
                    f" ratio {median(cpu) / median(scans):.1f}; longest hold of the loop"
                    f" {1e3 * held[0]:.0f} ms, 99 of 100 below {1e3 * held[1]:.0f} ms"
                    f" (idle: {1e3 * idle[0]:.0f} ms, {1e3 * idle[1]:.0f} ms)",
                    flush=True,
                )
    return 0


if __name__ == "__main__":
    sys.exit(main())
