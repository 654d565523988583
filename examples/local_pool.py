#!/usr/bin/env python3
"""The programs of a pool (docs/pools.md) whose runners are plain processes on this machine.

    local_pool.py start|stop|list DIRECTORY

A pool of real machines does the same there: it brings the ticket, starts the runner, and can tell what runs.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any


def start(top: Path, asked: dict[str, Any]) -> dict[str, Any]:
    """Start each runner in a session of its own, with a copy of its ticket."""
    ids = {}
    for runner in asked["runners"]:
        place = top / runner["name"]
        place.mkdir(mode=0o700, parents=True)
        shutil.copy(runner["ticket"], place / "ticket")  # keeps its mode, 0600
        command = [
            Path(asked["rota"]).with_name("python"), "-m", "rota.runner",
            "--ticket", place / "ticket", "--dir", place / "work",
            "--linger", str(asked["idle_s"]), "--until", str(runner["seconds"]),
        ]  # fmt: skip
        with (place / "log").open("w") as log:
            process = subprocess.Popen(
                command, cwd=place, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        (place / "pid").write_text(str(process.pid))
        ids[runner["name"]] = str(process.pid)
    return {"ids": ids}


def stop(top: Path, asked: dict[str, Any]) -> dict[str, Any]:
    """End these; what has ended already is no error."""
    for each in found(top):
        if each["id"] in asked["ids"] and each["state"] == "running":
            os.kill(int(each["id"]), signal.SIGTERM)
    return {}


def found(top: Path) -> list[dict[str, Any]]:
    """All runners that were started here."""
    return [
        {"name": file.parent.name, "id": file.read_text(), "state": state(file), "host": os.uname().nodename}
        for file in sorted(top.glob("*/pid"))
    ]


def state(file: Path) -> str:
    """A process id may be given to another process later, so the name must be among its arguments."""
    try:
        arguments = Path(f"/proc/{file.read_text()}/cmdline").read_bytes()
    except OSError:
        return "gone"
    return "running" if file.parent.name.encode() in arguments else "gone"


def main() -> None:
    what, top, asked = sys.argv[1], Path(sys.argv[2]), json.load(sys.stdin)
    if what == "list":
        answer = {"runners": [each for each in found(top) if each["name"].startswith(asked["prefix"])]}
    else:
        answer = {"start": start, "stop": stop}[what](top, asked)
    print(json.dumps(answer))


main()
