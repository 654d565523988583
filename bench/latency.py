"""From `add` in a connected Python client to the command's first instruction, beside a bare `posix_spawn`.

The command is `echo x > FIFO`, for which the shell opens the FIFO before it does anything else; the
benchmark is blocked in opening the other end, so it wakes at that instant. The bare figure is the
same shell with the same command, started by `posix_spawn`, until it has ended and was waited for.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from pathlib import Path

import rota
from deployment import Deployment, print_table, save


def bare(fifo: Path) -> tuple[float, float]:
    """Seconds until the first instruction, and until the end, of a shell that we start ourselves."""
    begun = time.perf_counter()
    pid = os.posix_spawn("/bin/sh", ["sh", "-c", f"echo x > {fifo}"], os.environ)
    first = _opened(fifo)
    os.waitpid(pid, 0)
    return first - begun, time.perf_counter() - begun


def _opened(fifo: Path) -> float:
    """When somebody opened the FIFO to write."""
    reader = os.open(fifo, os.O_RDONLY)
    now = time.perf_counter()
    try:
        while os.read(reader, 100):
            pass
    finally:
        os.close(reader)
    return now


def queued(client: rota.Client, fifo: Path) -> float:
    """Seconds from before `add` until the job's first instruction."""
    begun = time.perf_counter()
    added = client.add([f"echo x > {fifo}"], rerun=True)
    first = _opened(fifo)
    client.wait(*added.ids)
    return first - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=200)
    options = parser.parse_args()
    with Deployment() as deployment:
        fifo = deployment.top / "fifo"
        os.mkfifo(fifo)
        deployment.start()
        deployment.run("run", "--", "true")  # the runner is there, too
        spawned: list[tuple[float, float]] = []
        added: list[float] = []
        with rota.connect(home=deployment.home) as client:
            for number in range(options.rounds + 10):
                sample, whole = queued(client, fifo), bare(fifo)
                if number >= 10:  # the first few fill caches
                    added.append(sample)
                    spawned.append(whole)
    first = statistics.median(one for one, _ in spawned)
    whole_s = statistics.median(one for _, one in spawned)
    latency = statistics.median(added)
    slow = sorted(added)[int(len(added) * 0.95)]
    print_table(
        [
            [f"median of {options.rounds}", "ms", "of posix_spawn + wait"],
            ["posix_spawn to first instruction", f"{first * 1e3:.2f}", f"{first / whole_s:.2f}"],
            ["posix_spawn + wait", f"{whole_s * 1e3:.2f}", "1.00"],
            ["rota add to first instruction", f"{latency * 1e3:.2f}", f"{latency / whole_s:.2f}"],
            ["  95th percentile", f"{slow * 1e3:.2f}", f"{slow / whole_s:.2f}"],
        ]
    )
    result = {"spawn_first_s": first, "spawn_wait_s": whole_s, "add_first_s": latency, "add_p95_s": slow}
    print(f"\nwritten to {save('latency', {'rounds': options.rounds, **result, 'ratio': latency / whole_s})}")


if __name__ == "__main__":
    main()
