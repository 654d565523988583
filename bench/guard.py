"""Is the present commit as fast as a named one? Both are measured in pairs, one after the other in turns.

Each is checked out into a temporary directory with an environment of its own. Figures:

  warm         jobs a second of `rota run -` with a manager that is there
  from nothing the same with a new deployment each time, its start included
  plan         the same as `warm` for jobs that ask for resources and a walltime, so that they are planned
  one true     `rota run -- true`, from the first instruction of the command to its end
  cpu a job    user and system time of manager, runner, jobs and `rota run` in `warm`

A ratio above 1 means that the present commit is better. There are at least --pairs pairs; a figure gets more until
its 95 % interval is within ±--within, but no more than --most, and none begins after --minutes. The exit status is
1 if a ratio is below --floor, 0 otherwise, also where an interval stayed too wide: the table says so. Less than
six pairs, as with --quick, are too few to judge by.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from deployment import Deployment, describe_machine, print_table, save
from ratios import LEAST, Ratio, ratio

TOP = Path(__file__).resolve().parents[1]
WARM, COLD, PLAN, ONE, CPU = "warm", "from nothing", "plan", "one true", "cpu a job"
UNITS = {WARM: "jobs/s", COLD: "jobs/s", PLAN: "jobs/s", ONE: "ms", CPU: "µs"}
#: Of these less is better.
COSTS = {ONE, CPU}
_TICK = os.sysconf("SC_CLK_TCK")
_ONES = 8  #: commands of `one true` in a pair; their median counts

#: figure → (base, now) of each pair
Pairs = dict[str, list[tuple[float, float]]]


class Side:
    """The program of one commit, with two deployments that stay: one plans and one does not."""

    def __init__(self, top: Path, commit: str, jobs: int) -> None:
        self.top = top
        subprocess.run([TOP / "tools" / "checkout", commit, top], check=True, stdout=subprocess.DEVNULL)
        self._rota = str(top / "venv" / "bin" / "rota")
        self._jobs = jobs
        self._commands = top / "commands"
        self._commands.write_text("true\n" * jobs)
        self._round = 0

    def __enter__(self) -> Side:
        with contextlib.ExitStack() as stack:  # whatever fails here, nothing is left running
            self._warm, self._planned = (stack.enter_context(self._deployment()) for _ in range(2))
            for deployment in (self._warm, self._planned):
                deployment.start()
                deployment.run("run", "--", "true")  # the runner is there, too
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _deployment(self) -> Deployment:
        return Deployment(rota=self._rota, settings={"ROTA_HTTP": "off"})

    def _run(self, deployment: Deployment, *words: str) -> tuple[float, float]:
        """Seconds of wall time of `rota run - WORDS`, and of processor time of the command itself."""
        self._round += 1
        directory = deployment.top / f"round-{self._round}"  # a new one, so that the jobs are new
        directory.mkdir()
        before = os.times()
        with self._commands.open("rb") as stdin:
            begun = time.perf_counter()
            deployment.run("run", *words, "-", stdin=stdin, cwd=directory, stdout=subprocess.DEVNULL)
            seconds = time.perf_counter() - begun
        after = os.times()
        return seconds, after.children_user + after.children_system - before.children_user - before.children_system

    def warm(self) -> dict[str, float]:
        before = _cpu_s(self._warm)
        seconds, own = self._run(self._warm)
        spent = own + _cpu_s(self._warm) - before
        return {WARM: self._jobs / seconds, CPU: spent * 1e6 / self._jobs}

    def from_nothing(self) -> dict[str, float]:
        with self._deployment() as deployment:
            return {COLD: self._jobs / self._run(deployment)[0]}

    def plan(self) -> dict[str, float]:
        return {PLAN: self._jobs / self._run(self._planned, "-l", "core=1,walltime=1m")[0]}

    def one(self) -> dict[str, float]:
        begun = time.perf_counter()
        self._warm.run("run", "--rerun", "--", "true")
        return {ONE: (time.perf_counter() - begun) * 1e3}


def _cpu_s(deployment: Deployment) -> float:
    """Processor time of all processes of a deployment, with what they have waited for: nothing runs now."""
    mark = f"ROTA_HOME={deployment.home}".encode()
    ticks = 0
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and mark in Path(f"/proc/{name}/environ").read_bytes().split(b"\0"):
                fields = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
                ticks += sum(map(int, fields[11:15]))
        except OSError:
            continue
    return ticks / _TICK


#: What is measured together, and which figures it gives.
MEASURES: dict[Callable[[Side], dict[str, float]], tuple[str, ...]] = {
    Side.warm: (WARM, CPU),
    Side.from_nothing: (COLD,),
    Side.plan: (PLAN,),
    Side.one: (ONE,),
}


def measure_pair(
    base: Side, now: Side, number: int, wanted: set[str]
) -> Iterator[tuple[str, tuple[float, float]]]:
    """The wanted figures of both, in an order that turns with each pair."""
    sides = (base, now) if number % 2 == 0 else (now, base)
    for measure, figures in MEASURES.items():
        if not wanted & set(figures):
            continue
        turns = _ONES if measure is Side.one else 1
        found: dict[Side, list[dict[str, float]]] = {base: [], now: []}
        for turn in range(turns):
            for side in sides if turn % 2 == 0 else reversed(sides):
                found[side].append(measure(side))
        for figure in figures:
            values = [statistics.median(one[figure] for one in found[side]) for side in (base, now)]
            yield figure, (values[0], values[1])


def better(figure: str, pairs: list[tuple[float, float]]) -> Ratio:
    """How much better the second of each pair is: above 1 if it is."""
    return ratio(pairs if figure in COSTS else [(now, base) for base, now in pairs])


def measure(base: Side, now: Side, options: argparse.Namespace) -> Pairs:
    """Pairs until all figures are known well enough, or there is no more time."""
    pairs: Pairs = {figure: [] for figure in UNITS}
    end = time.monotonic() + options.minutes * 60
    number = 0
    while wanted := unsettled(pairs, options):
        if number >= options.pairs and time.monotonic() > end:
            break
        for figure, pair in measure_pair(base, now, number=number, wanted=wanted):
            pairs[figure].append(pair)
        number += 1
        wide = max((better(figure, found).half_width for figure, found in pairs.items()), default=math.inf)
        known = f"widest interval ±{wide:.1%}" if wide < math.inf else "too few yet"
        print(f"pair {number}: {known}", file=sys.stderr, flush=True)
    return pairs


def unsettled(pairs: Pairs, options: argparse.Namespace) -> set[str]:
    """Figures that need more pairs."""
    return {
        figure
        for figure, found in pairs.items()
        if len(found) < options.pairs
        or (len(found) < options.most and better(figure, found).half_width > options.within)
    }


def summary(pairs: Pairs, within: float) -> list[dict[str, Any]]:
    rows = []
    for figure, found in pairs.items():
        known = better(figure, found)
        rows.append(
            {
                "figure": figure,
                "unit": UNITS[figure],
                "base": statistics.median(base for base, _ in found),
                "now": statistics.median(now for _, now in found),
                "ratio": known.value,
                "low": known.low if known.low > 0 else None,
                "high": known.high if known.low > 0 else None,
                "pairs": len(found),
                "reached": known.half_width <= within,
            }
        )
    return rows


def below(rows: list[dict[str, Any]], floor: float) -> list[str]:
    """Figures that fell below the floor, of those with pairs enough to say so."""
    return [row["figure"] for row in rows if row["low"] is not None and row["ratio"] < floor]


def show(rows: list[dict[str, Any]], within: float) -> None:
    table = [["", "base", "now", "ratio", "95 % interval", "pairs", ""]]
    for row in rows:
        interval = f"{row['low']:.3f} to {row['high']:.3f}" if row["low"] else "not known"
        name = f"{row['figure']} ({row['unit']})"
        cells = [f"{row['base']:.0f}", f"{row['now']:.0f}", f"{row['ratio']:.3f}", interval, str(row["pairs"])]
        table.append([name, *cells, "" if row["reached"] else f"not within ±{within:.0%}"])
    print_table(table)


def commit_of(name: str) -> str:
    done = subprocess.run(
        ["git", "-C", TOP, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"there is no commit {name!r}")
    return done.stdout.strip()


def parse(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", metavar="BASE", help="the commit to compare with")
    parser.add_argument("--now", default="HEAD", help="the commit to judge (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=2000, help="in each list of commands (default: %(default)s)")
    parser.add_argument("--pairs", type=int, default=15, help="at least (default: %(default)s)")
    parser.add_argument("--most", type=int, default=80, help="pairs of one figure (default: %(default)s)")
    parser.add_argument("--minutes", type=float, default=60.0, help="no pair beyond the least begins after these")
    parser.add_argument(
        "--within", type=float, default=0.01, help="wanted half of an interval (default: %(default)s)"
    )
    parser.add_argument(
        "--floor", type=float, default=0.95, help="a ratio below this fails (default: %(default)s)"
    )
    parser.add_argument("--quick", action="store_true", help="two pairs of short lists, to see that it works")
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    options = parser.parse_args(words)
    if options.quick:
        options.jobs, options.pairs, options.most = 100, 2, 2
    return options


def main() -> int:
    options = parse()
    commits = {"base": commit_of(options.base), "now": commit_of(options.now)}
    changed = subprocess.run(
        ["git", "-C", TOP, "status", "--porcelain", "--", "src"], capture_output=True, check=True
    )
    if changed.stdout and options.now == "HEAD":
        print("what is not committed is not measured", file=sys.stderr)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that nothing is left running
    top = Path(tempfile.mkdtemp(prefix="rota-guard."))
    try:
        sides = (Side(top / side, commit, options.jobs) for side, commit in commits.items())
        with contextlib.ExitStack() as stack:
            base, now = (stack.enter_context(side) for side in sides)
            pairs = measure(base, now, options)
    finally:
        shutil.rmtree(top, ignore_errors=True)
    rows = summary(pairs, options.within)
    low = below(rows, options.floor)
    kept = {"commits": commits, "jobs": options.jobs, "floor": options.floor, "below": low, "figures": rows}
    path = save("guard", {**kept, "pairs": pairs})
    if options.json:
        print(json.dumps({"machine": describe_machine(), **kept}, indent=1))
    else:
        print(f"{commits['base'][:12]} (base) and {commits['now'][:12]} (now), {options.jobs} × `true`\n")
        show(rows, options.within)
        judged = ", ".join(low) or ("nothing" if options.pairs >= LEAST else "too few pairs to say")
        print(f"\nbelow the floor of {options.floor}: {judged}; written to {path}")
    return 1 if low else 0


if __name__ == "__main__":
    sys.exit(main())
