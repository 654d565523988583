"""The past of the Gantt chart: a month of a million finished jobs on a hundred hosts.

Asks a real manager for the whole month, for a day and for a quarter of an hour, and prints each beside the time
that SQLite needs to read the same rows and do nothing with them: the physical limit. Meanwhile a client asks for
something that the loop answers at once; the longest answer is the longest hold of the loop.
"""

from __future__ import annotations

import argparse
import sqlite3
import sys
import threading
import time
from pathlib import Path
from statistics import median

import rota
from deployment import Deployment, cpu_s
from history import Spread, write_finished

MONTH_S = 30 * 86_400.0
HOSTS = 100
CORES = 8


class Knocks(threading.Thread):
    """Asks for the limits, which the loop answers by itself, again and again."""

    def __init__(self, home: Path) -> None:
        super().__init__(daemon=True)
        self._home = home
        self._over = threading.Event()
        self.took: list[float] = []

    def run(self) -> None:
        with rota.connect(self._home) as client:
            while not self._over.wait(0.005):
                begun = time.perf_counter()
                client.limits()
                self.took.append(time.perf_counter() - begun)

    def stop(self) -> None:
        self._over.set()
        self.join()


def scan(database: Path, since: float, until: float) -> float:
    """Seconds for reading the times of all attempts, with a cache like that of a reader."""
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
        connection.execute("PRAGMA cache_size=-8192")
        begun = time.perf_counter()
        connection.execute(
            "SELECT count(*) FROM attempts WHERE ended_at > ? AND started_at < ?", (since, until)
        ).fetchone()
        return time.perf_counter() - begun


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
            quiet.start()
            time.sleep(1.0)
            quiet.stop()
            for name, length in windows.items():
                knocks = Knocks(deployment.home)
                knocks.start()
                took, scans, cpu = [], [], []
                manager = deployment.manager_pid()
                for again in range(asked.repeat):
                    # Another window each time: what is kept of an answer does not count.
                    until = now - again * 7.0
                    begun, used = time.perf_counter(), cpu_s(manager)
                    past = client.gantt(since=until - length, until=until, limit=10_000).past
                    took.append(time.perf_counter() - begun)
                    cpu.append(cpu_s(manager) - used)
                    scans.append(scan(deployment.home / "rota.db", until - length, until))
                knocks.stop()
                assert past is not None
                drawn = len(past.merged) or len(past.attempts)
                merged = " (merged)" if past.slice_s else ""
                print(
                    f"{name:<10}  {past.total:>9,} attempts  {drawn:>6,} bars{merged}:"
                    f" {median(took):6.3f} s (best {min(took):.3f}), {median(cpu):.2f} s of the processor,"
                    f" a plain scan {median(scans):6.3f} s,"
                    f" ratio {median(took) / median(scans):.1f}; longest hold of the loop"
                    f" {1e3 * max(knocks.took, default=0.0):.0f} ms (idle: {1e3 * max(quiet.took):.0f} ms)",
                    flush=True,
                )
    return 0


if __name__ == "__main__":
    sys.exit(main())
