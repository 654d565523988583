"""A small manager for tests of the runner: the real protocol on a real Unix socket, no scheduling.

It runs no thread: a test asks for what it waits for, and only then is the socket read.
"""

from __future__ import annotations

import os
import secrets
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from rota.core.attempts.leases import Finished, LeaseRef, Started
from rota.core.jobs.command import Command
from rota.plan.size import Size
from rota.wire import codec
from rota.wire import messages as m
from tests.deployment import begin
from tests.leftovers import end_all_of

DEADLINE_S = 60.0
SIZE = Size()

T = TypeVar("T")


class Gone(Exception):
    """The runner closed the connection."""


class FakeManager:
    """Accepts one runner at a time and remembers everything it said."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.runners = home / "runners"
        self.runners.mkdir(exist_ok=True)
        self.path = home / "socket"
        self.rules: dict[str, Any] = {
            "touch_s": 5.0,
            "orphan_after_s": 3600.0,
            "grace_s": 1.0,
            "keep_output": 16 * 1024 * 1024,
            "containment": "auto",
        }
        self.auto_ack = True
        self.lasting = bool(os.environ.get("ROTA_TEST_LASTING"))  #: do the jobs of its runners outlive them?
        self.processes: list[subprocess.Popen[bytes]] = []
        self.joins: list[m.Join] = []
        self.started: list[Started] = []
        self.ended: list[Finished] = []
        self.returned: list[LeaseRef] = []
        self.closed: list[int] = []
        self.settles: list[m.Settle] = []
        self.live: list[m.Chunk] = []
        self.live_ends: list[m.LiveEnd] = []
        self.reports: list[m.Report] = []
        self.said: list[m.OpenChannel | m.InChannel] = []  #: in channels
        self._listener: socket.socket | None = None
        self._stream: socket.socket | None = None
        self._reader: codec.Reader[m.FromRunner] = codec.Reader(m.FromRunner)
        self._seats = 0
        self._tokens = secrets.randbits(40)  #: no other test's, which may run beside this one
        self._specs = 0
        self._last_job = 0
        self.listen()

    # ---------------------------------------------------------- the runner process

    def spawn(self, *prefix: str) -> subprocess.Popen[bytes]:
        """Start a runner, below the command `prefix` if there is one."""
        more = ["--lasting", "yes"] if self.lasting else []
        process = begin(
            [
                *prefix,
                sys.executable, "-P", "-m", "rota.runner", "--socket", str(self.path),
                "--dir", str(self.runners), "--log", str(self.home / "runner.log"), *more,
            ],
            start_new_session=True,
        )  # fmt: skip
        self.processes.append(process)
        return process

    def begin(self) -> subprocess.Popen[bytes]:
        """A runner that has joined."""
        process = self.spawn()
        self.accept()
        return process

    def finish(self) -> None:
        """End everything, as a test ends: the runners end their jobs; if they no longer can, it is done here."""
        self.hang_up()
        for process in self.processes:
            for _ in range(2):
                if process.poll() is None:
                    process.send_signal(signal.SIGTERM)
                    time.sleep(0.02)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                end_all_of(str(self.home))
        if self._listener is not None:
            self._listener.close()

    # ---------------------------------------------------------- the connection

    def listen(self) -> None:
        self.path.unlink(missing_ok=True)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.path))
        self._listener.listen(8)

    def go_away(self) -> None:
        """The manager is down: nobody listens."""
        self.hang_up()
        assert self._listener is not None
        self._listener.close()
        self._listener = None
        self.path.unlink()

    def hang_up(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def accept(self, *, forget: list[LeaseRef] | None = None) -> m.Join:
        """Welcome the next connection and let it join."""
        joins = len(self.joins)
        self.greet()
        self.until(lambda: len(self.joins) > joins)
        self.send(m.Rules(**self.rules, forget=forget or []))
        return self.joins[-1]

    def greet(self) -> None:
        """Welcome the next connection. Raises `Gone` if no runner is left that could make one."""
        assert self._listener is not None
        end = time.monotonic() + DEADLINE_S
        while not select.select([self._listener], [], [], 0.1)[0]:
            if all(process.poll() is not None for process in self.processes):
                raise Gone
            assert time.monotonic() < end, self.log()
        self._stream, _ = self._listener.accept()
        self._reader = codec.Reader(m.FromRunner)
        self.send(m.Welcome(m.PROTOCOL, "runner", "tester", 1, "test"))

    def send(self, message: m.Message) -> None:
        self.send_bytes(codec.frame(message))

    def send_bytes(self, data: bytes) -> None:
        assert self._stream is not None
        self._stream.settimeout(DEADLINE_S)
        try:
            self._stream.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            raise Gone from None  # it said its last word and left

    def read(self, timeout: float) -> bool:
        """Take in what comes within this time; False if nothing came."""
        assert self._stream is not None
        if not select.select([self._stream], [], [], timeout)[0]:
            return False
        try:
            data = self._stream.recv(1 << 20)
        except ConnectionError:
            data = b""
        if not data:
            raise Gone
        for message in self._reader.feed(data):
            self._take(message)
        return True

    def _take(self, message: m.FromRunner) -> None:
        match message:
            case m.Hello():
                assert message.role == "runner"
            case m.Join():
                self.joins.append(message)
            case m.Report():
                self.reports.append(message)
                self.started += message.started
                self.ended += message.ended
                self.returned += message.returned
                self.closed += message.closed
                if message.seq and self.auto_ack:
                    self.send(m.Ack(message.seq))
            case m.Settle():
                self.settles.append(message)
                self.send(m.Ack(-1))
            case m.Live(chunks):
                self.live += chunks
            case m.LiveEnd():
                self.live_ends.append(message)
            case m.Relayed(said):
                self.said.append(said)

    def until(self, condition: Callable[[], T]) -> T:
        """Read until this is true; its value."""
        end = time.monotonic() + DEADLINE_S
        while not (value := condition()):
            if time.monotonic() > end:
                raise AssertionError(f"waited in vain; log: {self.log()}")
            self.read(0.1) if self._stream is not None else time.sleep(0.02)
        return value

    def log(self) -> str:
        path = self.home / "runner.log"
        return path.read_text() if path.exists() else ""

    # ---------------------------------------------------------- work

    def spec(self, **fields: Any) -> m.RunSpec:
        self._specs += 1
        values: dict[str, Any] = {
            "id": self._specs,
            "env": 1,
            "cwd": str(self.home),
            "user": "tester",
            "name": "",
            "group": "default",
            "size": SIZE,
            "walltime_s": None,
            "scratch": False,
            "pipefail": False,
        }
        return m.RunSpec(**{**values, **fields})

    def grant(
        self, job: int, cmd: Command, spec: m.RunSpec, *, rank: int | None = None, attempt: int = 1
    ) -> m.Grant:
        self._tokens += 1
        self._last_job = max(self._last_job, job)
        return m.Grant(job, attempt, self._tokens, spec.id, cmd, job if rank is None else rank)

    def seats(self, count: int = 1, size: Size = SIZE) -> list[m.Seat]:
        self._seats += count
        return [m.Seat(self._seats - n, size) for n in range(count)]

    def work(
        self,
        grants: list[m.Grant],
        *specs: m.RunSpec,
        seats: int | list[m.Seat] = 1,
        env: bytes = b"PATH=/usr/local/bin:/usr/bin:/bin",
    ) -> None:
        self.send(
            m.Work(
                grants=grants,
                seats=self.seats(seats) if isinstance(seats, int) else seats,
                specs=list(specs),
                envs=[(1, env)],
            )
        )

    def run(
        self, *cmds: Command, seats: int = 1, env: bytes = b"PATH=/usr/local/bin:/usr/bin:/bin", **fields: Any
    ) -> list[Finished]:
        """Run commands as jobs 1, 2, … and wait for all; outcomes in order of the commands."""
        spec = self.spec(**fields)
        first = self._last_job + 1
        grants = [self.grant(first + n, cmd, spec) for n, cmd in enumerate(cmds)]
        self.work(grants, spec, seats=seats, env=env)
        return self.wait_for([grant.job for grant in grants])

    def wait_for(self, jobs: list[int]) -> list[Finished]:
        self.until(lambda: set(jobs) <= {done.job for done in self.ended})
        by_job = {done.job: done for done in self.ended}
        return [by_job[job] for job in jobs]

    def picks(self) -> list[int]:
        """The cores of this host in the order in which its last runner picks them."""
        cores = sorted(os.sched_getaffinity(0))
        first = self.joins[-1].pid % len(cores)
        return cores[first:] + cores[:first]

    def output(self, done: Finished) -> tuple[bytes, bytes]:
        """What the job printed, as the manager would find it."""
        outcome = done.outcome
        if not outcome.segment:
            return b"", b""
        data = (self.home / "output" / outcome.segment).read_bytes()[outcome.offset :]
        return data[: outcome.out_len], data[outcome.out_len : outcome.out_len + outcome.err_len]


def ref(grant: m.Grant) -> LeaseRef:
    return LeaseRef(grant.job, grant.attempt, grant.token)
