"""A deployment of a release, while golden files are made: with nothing of this machine in it, and killed by ids.

Needs nothing of today's `rota`: it is the release's program that runs.
"""

from __future__ import annotations

import base64
import contextlib
import glob
import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

#: What is not worth keeping: room against a full disk, and what only a living manager has.
_LEFT_OUT = {"ballast", "manager.sock", "manager.lock"}


class Scene:
    """One `ROTA_HOME` below a neutral directory."""

    def __init__(self, top: Path, name: str, **settings: str) -> None:
        self.name = name
        self.home = top / name
        self.work = top / "work"
        self.work.mkdir(exist_ok=True)
        self.program = str(Path(sys.executable).with_name("rota"))
        self.env = {"PATH": "/usr/bin:/bin", "HOME": "/", "LANG": "C.UTF-8", "NO_COLOR": "1"}
        self.env |= {"ROTA_HOME": str(self.home), "ROTA_HTTP": "off"}
        self.env |= {f"ROTA_{key.upper()}": value for key, value in settings.items()}
        # Where frames are kept; see `tap`.
        self.env |= {key: value for key, value in os.environ.items() if key == "GOLDEN_TAP"}

    def rota(self, *args: str, input: str | None = None) -> tuple[int, str, str]:
        """`rota ARGS` as a user types it: status, output, errors."""
        code, out, err = self.raw(*args, input=input)
        return code, out.decode(), err.decode()

    def raw(self, *args: str, input: str | None = None) -> tuple[int, bytes, bytes]:
        given = (input or "").encode()
        done = subprocess.run(
            [self.program, *args],
            input=given,
            cwd="/",
            env=self.env,
            capture_output=True,
            check=False,
            timeout=120,
        )
        return done.returncode, done.stdout, done.stderr

    def ok(self, *args: str, input: str | None = None) -> str:
        code, out, err = self.rota(*args, input=input)
        assert code == 0, f"rota {args} ended with {code}: {err}"
        return out

    def json(self, *args: str, input: str | None = None) -> Any:
        return json.loads(self.ok(args[0], "--json", *args[1:], input=input))

    def add(self, *args: str) -> int:
        """One job that takes no room, in a directory that every machine has."""
        (id,) = self.json("add", "--cpus", "0", "--mem", "1M", "--cwd", "/", *args)["added"]
        return int(id)

    def plan(self, *args: str) -> int:
        """One job that says itself what it asks for."""
        (id,) = self.json("add", "--cwd", "/", *args)["added"]
        return int(id)

    def agent(self, name: str, token: Path, directory: Path) -> int:
        """The process of an agent of a node that is this very host."""
        address = json.loads((self.home / "manager.json").read_bytes())["address"]
        words = [
            "--manager",
            address,
            "--token",
            str(token),
            "--name",
            name,
            "--dir",
            str(directory),
            "--cores",
            "2",
        ]
        command = [self.program, "node", "run", *words, "--log", "/dev/null"]
        return subprocess.Popen(command, env=self.env, cwd="/", start_new_session=True).pid

    def states(self) -> dict[int, str]:
        return {job["id"]: job["state"] for job in self.json("jobs", "--limit", "1000")["jobs"]}

    def wait_for(self, job: int, state: str) -> None:
        self.wait_until(lambda: self.states().get(job) == state, f"job {job} is {state}")

    def wait_until(self, condition: Callable[[], Any], what: str) -> None:
        deadline = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < deadline, f"waited in vain until {what}: {self.states()}"
            time.sleep(0.1)

    def manager_pid(self) -> int:
        return int(json.loads((self.home / "manager.json").read_bytes())["pid"])

    def runner_pids(self) -> list[int]:
        return [one["pid"] for one in self.json("manager", "status")["runners"]]

    def kill(self, *pids: int) -> None:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)

    def end(self) -> None:
        """End everything that carries this home in its environment, or comes from what does."""
        for _ in range(100):
            pids = _tree(self.home)
            if not pids:
                break
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.05)
        for journal in self.home.parent.glob("**/runners/*-*/journal"):
            for group in glob.glob(f"/sys/fs/cgroup/*/rota-{journal.parent.name}-*"):
                os.rmdir(group)

    def known(self) -> list[dict[str, Any]]:
        """Everything that users are told about each job."""
        return [self.json("show", str(id)) for id in sorted(self.states())]

    def outputs(self) -> dict[int, str]:
        """The bytes of stdout that `rota logs` prints of each job that has ended, in base 64."""
        ended = [id for id, state in self.states().items() if state in ("complete", "failed")]
        return {id: base64.b64encode(self.raw("logs", "--out", str(id))[1]).decode() for id in ended}

    def pack(self, out: Path, told: dict[str, Any], *beside: Path) -> None:
        """The home as it lies there, files beside it, and what its users knew of it."""
        with tarfile.open(out / f"{self.name}.tar.xz", "w:xz", preset=9) as archive:
            archive.add(self.home, "home", filter=_plain)
            for path in beside:
                archive.add(path, path.name, filter=_plain)
            text = json.dumps(told, indent=1).encode()
            entry = tarfile.TarInfo("told.json")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text))


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    name = os.path.basename(entry.name)
    if name in _LEFT_OUT or not (entry.isreg() or entry.isdir()) or "/logs/" in entry.name:
        return None
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


@contextlib.contextmanager
def scene(top: Path, name: str, **settings: str) -> Iterator[Scene]:
    made = Scene(top, name, **settings)
    try:
        yield made
    finally:
        made.end()


def _tree(home: Path) -> set[int]:
    mark = f"ROTA_HOME={home}".encode()
    parents: dict[int, int] = {}
    found: set[int] = set()
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            fields = Path(f"/proc/{name}/stat").read_bytes().rpartition(b")")[2].split()
            if fields[0] in (b"Z", b"X"):
                continue
            parents[int(name)] = int(fields[1])
            if mark in Path(f"/proc/{name}/environ").read_bytes().split(b"\0"):
                found.add(int(name))
        except OSError:
            continue
    grown = True
    while grown:
        more = {pid for pid, parent in parents.items() if parent in found} - found
        grown = bool(more)
        found |= more
    return found
