"""A private deployment for a benchmark: started, measured and removed again, by process id only."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

_TICK = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Deployment:
    """One `ROTA_HOME` in a temporary directory. As a context manager it is stopped and removed at the end."""

    def __init__(self, *, rota: str | None = None, settings: dict[str, str] | None = None) -> None:
        self.rota = rota or str(Path(sys.executable).with_name("rota"))
        self.top = Path(tempfile.mkdtemp(prefix="rota-bench."))
        self.home = self.top / "home"
        self.work = self.top / "work"
        self.work.mkdir()
        self.env = {key: value for key, value in os.environ.items() if not key.startswith("ROTA_")}
        self.env |= {"ROTA_HOME": str(self.home), "NO_COLOR": "1", **(settings or {})}

    def __enter__(self) -> Deployment:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        shutil.rmtree(self.top, ignore_errors=True)

    def run(self, *args: str, timeout: float = 900, **options: Any) -> subprocess.CompletedProcess[bytes]:
        """`rota ARGS`, which must succeed."""
        options = {"cwd": self.work, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
        done = subprocess.run([self.rota, *args], env=self.env, timeout=timeout, check=False, **options)
        if done.returncode:
            words = (done.stderr or b"").decode(errors="replace").strip()
            raise SystemExit(f"rota {' '.join(args)} ended with {done.returncode}: {words}")
        return done

    def json(self, *args: str) -> Any:
        return json.loads(self.run(*args, "--json").stdout)

    def start(self) -> None:
        self.run("manager", "start")

    def manager_pid(self) -> int:
        return int(json.loads((self.home / "manager.json").read_bytes())["pid"])

    def pids(self) -> dict[str, list[int]]:
        """Of the processes whose cost counts: the manager and its runners."""
        runners = self.json("manager", "status")["runners"]
        return {"manager": [self.manager_pid()], "runner": [one["pid"] for one in runners]}

    def wait_for(self, condition: Any, *, seconds: float, what: str) -> None:
        """Until `condition()` is true."""
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise SystemExit(f"waited {seconds:.0f} s in vain for {what}")
            time.sleep(0.05)

    def stop(self) -> None:
        """End the manager and everything it started."""
        if not self.home.exists():
            return
        try:
            pids = [pid for group in self.pids().values() for pid in group]
        except (OSError, SystemExit, subprocess.TimeoutExpired, ValueError, KeyError):
            pids = [self.manager_pid()] if (self.home / "manager.json").exists() else []
        try:
            self.run("manager", "stop", "--kill", timeout=60)
        except (SystemExit, subprocess.TimeoutExpired):
            pass
        for pid in pids:
            self._end(pid)

    def _end(self, pid: int) -> None:
        # Ours only: a process id may have been given to somebody else since.
        if is_alive(pid) and _belongs(pid, self.home):
            os.kill(pid, signal.SIGTERM)
            end = time.monotonic() + 5
            while is_alive(pid) and time.monotonic() < end:
                time.sleep(0.05)
            if is_alive(pid) and _belongs(pid, self.home):
                os.kill(pid, signal.SIGKILL)


def _belongs(pid: int, home: Path) -> bool:
    try:
        return f"ROTA_HOME={home}".encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False


def _stat(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def is_alive(pid: int) -> bool:
    """A zombie is dead."""
    try:
        return _stat(pid)[0] not in "ZX"
    except OSError:
        return False


def cpu_s(pid: int) -> float:
    """User and system time of the process itself, without its children."""
    fields = _stat(pid)
    return (int(fields[11]) + int(fields[12])) / _TICK


def family_cpu_s(pid: int) -> float:
    """The same with the children that it has waited for."""
    return sum(map(int, _stat(pid)[11:15])) / _TICK


def resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE


def describe_machine() -> dict[str, Any]:
    """What a figure means nothing without."""
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        "unknown",
    )
    return {
        "cores": len(os.sched_getaffinity(0)),
        "cpu": model,
        "kernel": os.uname().release,
        "python": sys.version.split()[0],
    }


def save(name: str, result: dict[str, Any]) -> Path:
    """Write a result to `bench/results/NAME-TIME.json`."""
    directory = Path(__file__).with_name("results")
    directory.mkdir(exist_ok=True)
    path = directory / f"{name}-{time.strftime('%Y%m%dT%H%M%S')}.json"
    path.write_text(json.dumps({"machine": describe_machine(), **result}, indent=1) + "\n")
    return path


def print_table(rows: list[list[str]]) -> None:
    """The first row is the heading; the first column is text, the others are numbers."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for number, row in enumerate(rows):
        cells = [
            row[0].ljust(widths[0]),
            *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)),
        ]
        print("  ".join(cells).rstrip())
        if number == 0:
            print("  ".join("-" * width for width in widths))
