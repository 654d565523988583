"""A real deployment for tests: real processes in a private home, ended by their ids."""

from __future__ import annotations

import contextlib
import functools
import glob
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

import rota as rota_package
from rota.client import submission
from tests.warm import COLD, Warm

#: What `rota add --json` says where nothing that was there before is touched.
LEFT_ALONE: dict[str, list[int]] = {"replaced": [], "changed": [], "kept": []}

ROTA = str(Path(sys.executable).with_name("rota"))


class Deployment:
    """One `ROTA_HOME`, the commands that a user would type, and the processes behind it."""

    def __init__(self, top: Path, **settings: str) -> None:
        self.home = top / "home"
        self.work = top / "work"
        self.work.mkdir(parents=True, exist_ok=True)
        self.before: list[str] = []  #: what commands are run by, on another host for example
        self.namespaces: list[str] = []  #: the files of those that it enters, if that is all that it does
        # Nothing of the caller's deployment, but perhaps a dashboard that is built elsewhere.
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("ROTA_") or k == "ROTA_STATIC"}
        self.env |= {"ROTA_HOME": str(self.home), "NO_COLOR": "1", "PYTHONFAULTHANDLER": "1"}
        self.env |= {"ROTA_HTTP": "off"}  # one more process for each, where few tests look at it
        self.env |= {f"ROTA_{name.upper()}": value for name, value in settings.items()}

    def rota(
        self, *args: str, input: str | bytes | None = None, timeout: float = 120, **options: Any
    ) -> subprocess.CompletedProcess[str]:
        """`rota ARGS` as a user types it; its status is not judged."""
        data = input.encode() if isinstance(input, str) else input
        cwd, env = options.pop("cwd", self.work), options.pop("env", self.env)
        given: dict[str, Any]
        can_fork = not options and (not self.before or self.namespaces) and COLD not in os.environ
        if can_fork and _warm().can_run(args, env):
            given = {"input": data, "namespaces": self.namespaces}
            done = _warm().run(args, env=env, cwd=str(cwd), timeout=timeout, **given)
        else:
            given = {"input": data} if data is not None else {"stdin": subprocess.DEVNULL}
            options = {"cwd": cwd, "env": env, "capture_output": True, **given, **options}
            done = subprocess.run([*self.before, ROTA, *args], timeout=timeout, check=False, **options)
        out, err = (stream.decode(errors="replace") for stream in (done.stdout or b"", done.stderr or b""))
        return subprocess.CompletedProcess(done.args, done.returncode, out, err)

    def ok(self, *args: str, **options: Any) -> str:
        """`rota ARGS`, which must succeed; what it printed."""
        done = self.rota(*args, **options)
        assert done.returncode == 0, f"rota {args} ended with {done.returncode}: {done.stderr}{self.logs()}"
        return done.stdout

    def json(self, *args: str, **options: Any) -> Any:
        return json.loads(self.ok(args[0], "--json", *args[1:], **options))

    def popen(self, *args: str, **options: Any) -> subprocess.Popen[bytes]:
        options = {"cwd": self.work, "env": self.env, **options}
        return subprocess.Popen([*self.before, ROTA, *args], **options)

    def start(self, *, cold: bool = False) -> None:
        """Start the manager; a cold one, and what that starts, is real whatever other tests have."""
        if cold:
            assert self.popen("manager", "start", stdout=subprocess.DEVNULL).wait() == 0, self.logs()
        else:
            self.ok("manager", "start")

    def manager_pid(self) -> int:
        return int(json.loads((self.home / "manager.json").read_bytes())["pid"])

    def runner_pids(self) -> list[int]:
        """Runners of this deployment that are alive, whoever started them.

        A child of a runner that has not executed its command yet looks like one.
        """
        found = [pid for pid in _our_processes(self.home) if b"rota.runner" in _read(f"/proc/{pid}/cmdline")]
        return [pid for pid in found if _parent(pid) not in found]

    def client(self) -> rota_package.Client:
        """The Python client, for what is looked at again and again: a command takes long to start."""
        return rota_package.connect(home=self.home)

    def states(self, *selectors: str) -> dict[int, str]:
        with self.client() as client:
            return {job.id: job.state for job in client.jobs(*selectors, limit=100_000).jobs}

    def state(self, job: int) -> str:
        with self.client() as client:
            return client.job(job).state

    def logs(self) -> str:
        text = ""
        for name in ("manager.log", "manager.out", "runner.log", "runner.out"):
            with contextlib.suppress(OSError):
                text += f"\n--- {name}\n{(self.home / 'logs' / name).read_text()[-3000:]}"
        return text

    def close(self) -> None:
        """End everything that carries this deployment's home, or one of those who used it, in its environment."""
        for _ in range(50):
            pids = _our_processes(self.home, self.work)
            if not pids:
                break
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.05)
        # What it reserves against a full disk is much, and tells nobody anything.
        (self.home / "ballast").unlink(missing_ok=True)
        # No runner comes any more that would clean up after those that were killed.
        for runner in (self.home / "runners").glob("*-*"):
            for group in glob.glob(f"/sys/fs/cgroup/*/rota-{runner.name}-*"):
                with contextlib.suppress(OSError):
                    os.rmdir(group)


@contextlib.contextmanager
def deployment(top: Path, **settings: str) -> Iterator[Deployment]:
    """A deployment that is gone at the end, whatever happened."""
    made = Deployment(top, **settings)
    try:
        yield made
    finally:
        made.close()


def add_new(client: rota_package.Client, commands: list[Any], **fields: Any) -> list[int]:
    """Add jobs that are new whatever else is there, like a command after `--`; their ids."""
    batches, options = submission.prepare(commands, fields, check=False)
    options = msgspec.structs.replace(options, fresh=True, rerun=False)
    return client.submit(submission.new_id(), batches, options).added


def wait_until(condition: Callable[[], Any], what: str, *, seconds: float = 60) -> Any:
    """Wait for something that must happen; the bound only ends a hanging test."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"waited in vain until {what}"
        time.sleep(0.02)
    return found


def is_alive(pid: int) -> bool:
    """A zombie is dead."""
    return _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()[:1] not in ([], [b"Z"], [b"X"])


@functools.cache
def _warm() -> Warm:
    """One for all tests of a process."""
    return Warm(ROTA)


def begin(args: list[str], **options: Any) -> subprocess.Popen[bytes]:
    """A runner that belongs to no deployment, with the environment of this process."""
    return (subprocess.Popen if COLD in os.environ else _warm().popen)(args, **options)


def cool_down() -> None:
    """No more commands are run by this process."""
    if _warm.cache_info().currsize:
        _warm().close()
        _warm.cache_clear()


def _our_processes(home: Path, work: Path | None = None) -> list[int]:
    """Those with this home; and, below `work`, with those of colleagues, who take theirs along into their jobs.
    A job that was added over HTTP has no home: it has the relay of its runner."""
    marks = [f"ROTA_HOME={home}\0".encode(), f"ROTA_RELAY={home}/".encode()]
    if work is not None:
        marks += [f"ROTA_HOME={work}/".encode(), f"ROTA_RELAY={work}/".encode()]
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            environ = _read(f"/proc/{name}/environ") + b"\0"
            if any(mark in environ for mark in marks) and is_alive(int(name)):
                found.append(int(name))
    return found


def _parent(pid: int) -> int:
    fields = _read(f"/proc/{pid}/stat").rpartition(b") ")[2].split()
    return int(fields[1]) if fields else 0


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""
