"""A small batch engine: a process of its own that starts what is in its spool, one after the other.

``python -m tests.pools.engine SPOOL SLOTS ARGV…``: files in SPOOL/pending are elements that wait, files in
SPOOL/running those that run; an element is started as ``ARGV… --ticket SPOOL/tickets/ELEMENT``. Like any
engine it knows nothing of jobs, and it lives on when whoever submitted to it dies.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path


def main() -> None:
    spool, slots, argv = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    running: dict[str, subprocess.Popen[bytes]] = {}
    while spool.exists():
        for element, process in list(running.items()):
            if process.poll() is not None:
                del running[element]
                (spool / "running" / element).unlink(missing_ok=True)
        waiting = sorted(os.listdir(spool / "pending"))
        if waiting and len(running) < slots:
            element = waiting[0]
            try:
                (spool / "pending" / element).rename(spool / "running" / element)
            except FileNotFoundError:
                continue  # withdrawn meanwhile
            running[element] = subprocess.Popen([*argv, "--ticket", str(spool / "tickets" / element)])
        time.sleep(0.02)


if __name__ == "__main__":
    main()
