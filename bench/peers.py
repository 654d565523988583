"""Other programs that run a list of commands, each behind one function: seconds for the whole list.

Each gets the same file of commands, the same number of slots and an empty directory, is timed from
its start to the end of the last command, and leaves nothing running.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

Peer = Callable[[Path, int, Path], float]

_LIMIT_S = 600


def _timed(command: list[str], commands: Path, directory: Path, env: dict[str, str] | None = None) -> float:
    with commands.open("rb") as stdin:
        begun = time.perf_counter()
        subprocess.run(
            command,
            stdin=stdin,
            stdout=subprocess.DEVNULL,
            cwd=directory,
            env=os.environ | {"HOME": str(directory)} | (env or {}),
            timeout=_LIMIT_S,
            check=True,
        )
        return time.perf_counter() - begun


def xargs(commands: Path, slots: int, directory: Path) -> float:
    return _timed(["xargs", f"-P{slots}", "-I{}", "sh", "-c", "{}"], commands, directory)


def parallel(commands: Path, slots: int, directory: Path) -> float:
    (directory / ".parallel").mkdir(exist_ok=True)
    (directory / ".parallel" / "will-cite").touch()
    return _timed(["parallel", f"-j{slots}"], commands, directory)


def task_spooler(commands: Path, slots: int, directory: Path) -> float:
    """A client process for each job; then waits until none is queued or running."""
    spooler = shutil.which("tsp") or "ts"
    env = {"TS_SOCKET": str(directory / "tsp.socket"), "TS_MAXFINISHED": "10", "TMPDIR": str(directory)}
    script = f"""
        {spooler} -S {slots}
        while read -r line; do {spooler} -n sh -c "$line"; done
        {spooler} -w
        while {spooler} | grep -Eq ' (queued|running) '; do sleep 0.01; done
    """
    try:
        return _timed(["sh", "-c", script], commands, directory, env)
    finally:
        subprocess.run([spooler, "-K"], env=os.environ | env, timeout=30, check=False)


_HYPERQUEUE = """
import sys
from pathlib import Path
from hyperqueue import Job, LocalCluster
from hyperqueue.cluster import WorkerConfig

import logging
logging.disable(logging.CRITICAL)
with LocalCluster(server_dir=sys.argv[1], worker_config=WorkerConfig(cores=int(sys.argv[2]))) as cluster:
    job = Job(max_fails=None)
    for line in sys.stdin:
        job.program(["sh", "-c", line.rstrip("\\n")], stdout=None, stderr=None)
    client = cluster.client()
    client.wait_for_jobs([client.submit(job)])
"""


def hyperqueue(commands: Path, slots: int, directory: Path) -> float:
    """A server, one worker, one submission of many tasks, without files for their output.

    Its Python package asks once a second whether all is done, so with few jobs this says little."""
    if shutil.which("hq") is None:
        command = [sys.executable, "-c", _HYPERQUEUE, str(directory / "hq"), str(slots)]
        return _timed(command, commands, directory, {"TQDM_DISABLE": "1"})
    at = f"--server-dir={directory / 'hq'}"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": directory}
    begun = time.perf_counter()
    started = [subprocess.Popen(["hq", at, "server", "start", "--host=localhost"], **quiet)]  # type: ignore[call-overload]
    try:
        while subprocess.run(["hq", at, "server", "info"], check=False, timeout=30, **quiet).returncode:  # type: ignore[call-overload]
            time.sleep(0.02)
        started.append(subprocess.Popen(["hq", at, "worker", "start", f"--cpus={slots}"], **quiet))  # type: ignore[call-overload]
        submit = ["hq", at, "submit", "--wait", "--stdout=none", "--stderr=none", f"--each-line={commands}"]
        subprocess.run([*submit, "--", "sh", "-c", 'eval "$HQ_ENTRY"'], check=True, timeout=_LIMIT_S, **quiet)  # type: ignore[call-overload]
        return time.perf_counter() - begun
    finally:
        subprocess.run(["hq", at, "server", "stop"], check=False, timeout=30, **quiet)  # type: ignore[call-overload]
        for process in started:
            process.terminate()
            process.wait(30)


PEERS: dict[str, Peer] = {
    "xargs": xargs,
    "parallel": parallel,
    "task-spooler": task_spooler,
    "hyperqueue": hyperqueue,
}


def missing(name: str) -> str:
    """How to get this peer, or "" if it is here."""
    match name:
        case "xargs" if shutil.which("xargs") is None:
            return "install the package findutils"
        case "parallel" if shutil.which("parallel") is None:
            return "install the package parallel"
        case "task-spooler" if not (shutil.which("tsp") or shutil.which("ts")):
            return "install the package task-spooler"
        case "hyperqueue" if not (shutil.which("hq") or importlib.util.find_spec("hyperqueue")):
            return "pip install hyperqueue, or put hq on PATH"
    return ""
