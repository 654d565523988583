"""Output through `rota run -- cat FILE`, beside plain `cat FILE | cat` and GNU parallel: rates and their ratio.

Rounds are interleaved and medians taken. The time that a `rota run -- true` takes is told beside it: it is part of
every run, whatever is printed. A second part has a reader that stalls until the spool is in use.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from deployment import Deployment, print_table, save


def timed(command: list[str], deployment: Deployment, *, stall_s: float = 0.0) -> float:
    """Seconds until all that a command prints was read. The reader begins after `stall_s`."""
    begun = time.perf_counter()
    with subprocess.Popen(command, env=deployment.env, cwd=deployment.work, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        time.sleep(stall_s)
        while running.stdout.read1(1 << 20):
            pass
    if running.returncode:
        raise SystemExit(f"{command[0]} ended with {running.returncode}")
    return time.perf_counter() - begun - stall_s


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mib", type=int, default=256, help="size of the file")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with Deployment() as deployment:
        file = deployment.top / "file"
        fill(file, options.mib)
        deployment.start()
        rota = deployment.rota
        ways: dict[str, Callable[[], float]] = {
            "cat": lambda: timed(["sh", "-c", f"cat {file} | cat"], deployment),
            "rota run": lambda: timed([rota, "run", "--", "cat", str(file)], deployment),
            "rota run, stalled": lambda: timed([rota, "run", "--", "cat", str(file)], deployment, stall_s=2.0),
            "rota run true": lambda: timed([rota, "run", "--", "true"], deployment),
        }
        if parallel := shutil.which("parallel"):
            ways["parallel"] = lambda: timed([parallel, "--will-cite", "cat", ":::", str(file)], deployment)
        seconds: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(options.rounds):
            for name, way in ways.items():
                seconds[name].append(way())
    medians = {name: statistics.median(found) for name, found in seconds.items()}
    rows = [
        [name, f"{found:.2f} s", f"{options.mib / found:,.0f} MiB/s", f"{medians['cat'] / found:.3f}"]
        for name, found in medians.items()
        if name != "rota run true"
    ]
    print_table([["through", "time", "rate", "of cat"], *rows])
    print(f"of which `rota run -- true` takes {medians['rota run true']:.2f} s")
    save("output", {"mib": options.mib, "seconds": medians, "ratio": medians["cat"] / medians["rota run"]})


def fill(file: Path, mib: int) -> None:
    """A file of lines, no two of which are alike."""
    with file.open("wb") as out:
        for block in range(mib):
            start = block * 65536
            out.write(b"".join(b"%015d\n" % number for number in range(start, start + 65536)))


if __name__ == "__main__":
    main()
