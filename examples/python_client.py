"""Rota from Python: add a few jobs, wait for them, look at what they cost.

Start a manager first (`rota manager start`) and run this with the interpreter that Rota is installed in.
"""

from __future__ import annotations

import rota


def main() -> int:
    """Exit status 0 when every job was complete."""
    with rota.connect() as manager:
        squares = [f"echo {n} squared is $(({n} * {n}))" for n in range(1, 6)]
        added = manager.add(squares, group="squares", rerun=True)
        settled = manager.wait(*added.ids)
        for job in manager.jobs(*added.ids).jobs:
            said = manager.output(job.id).decode().strip()
            print(f"job {job.id}: {job.state} after {job.wall_s or 0:.3f} s: {said}")
        print(settled.counts)
        return 1 if settled.failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
