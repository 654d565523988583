"""CPU that the runner spends per job, with its launcher inside and in a process of its own, next to a bare
spawn-and-wait loop in the same run.

``python bench/runner_spawn.py [JOBS] [SEATS] [ROUNDS]``. Rounds alternate between the three, medians are
printed: the machine's speed differs more from minute to minute than they differ from each other.
"""

from __future__ import annotations

import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rota.plan.size import Size
from rota.wire import codec
from rota.wire import messages as m

#: How many leases the runner gets ahead of its seats; a manager does the same.
AHEAD = 256


def bare(jobs: int, seats: int, env: dict[str, str]) -> tuple[float, float]:
    """(CPU, elapsed) microseconds per job of `os.posix_spawn` and `os.wait4`, nothing else, with as
    many processes at once as the runner has seats."""
    null = os.open(os.devnull, os.O_RDWR)
    actions = [(os.POSIX_SPAWN_DUP2, null, fd) for fd in range(3)]
    before, began = cpu_of(os.getpid()), time.perf_counter()
    for n in range(jobs):
        os.posix_spawn("/bin/sh", ["sh", "-c", "true"], env, file_actions=actions, setsid=True)
        if n >= seats - 1:
            os.wait4(-1, 0)
    for _ in range(min(jobs, seats - 1)):
        os.wait4(-1, 0)
    elapsed = time.perf_counter() - began
    cpu = cpu_of(os.getpid()) - before
    os.close(null)
    return cpu / jobs * 1e6, elapsed / jobs * 1e6


def cpu_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/schedstat").read_text().split()
    return int(fields[0]) / 1e9


class Bench:
    """A manager that only leases `true` and acknowledges."""

    def __init__(self, home: Path, env: dict[str, str], *, lasting: bool) -> None:
        """`lasting`: the launcher is a process of its own."""
        (home / "runners").mkdir(parents=True)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(home / "socket"))
        listener.listen()
        self.process = subprocess.Popen(
            [
                sys.executable, "-m", "rota.runner",
                "--socket", str(home / "socket"), "--dir", str(home / "runners"), "--log", str(home / "log"),
                "--lasting", "yes" if lasting else "no",
            ]
        )  # fmt: skip
        self._stream, _ = listener.accept()
        self._reader: codec.Reader[m.FromRunner] = codec.Reader(m.FromRunner)
        self._job = 0
        self._seat = 0
        self._spec = m.RunSpec(1, 1, str(home), "bench", "", "bench", Size(), None, False, False)
        self._env = "\0".join(f"{name}={value}" for name, value in env.items()).encode()
        self._send(m.Welcome(m.PROTOCOL, "runner", "bench", 1, "bench"))
        while not any(isinstance(message, m.Join) for message in self._read()):
            pass
        self._send(m.Rules(15.0, 3600.0, 5.0, 1 << 24, "auto"))
        self.launcher = self._launcher() if lasting else 0

    def _launcher(self) -> int:
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return int(children.split()[0])

    def _send(self, message: m.Message) -> None:
        self._stream.sendall(codec.frame(message))

    def _read(self) -> list[m.FromRunner]:
        return self._reader.feed(self._stream.recv(1 << 20))

    def _lease(self, count: int, seats: int) -> None:
        grants = []
        for _ in range(count):
            self._job += 1
            grants.append(m.Grant(self._job, 1, self._job * 7919, 1, "true", self._job))
        opened = [m.Seat(self._seat + n + 1, Size()) for n in range(seats)]
        self._seat += seats
        self._send(m.Work(grants, opened, [self._spec], [(1, self._env)]))

    def _cpu(self) -> tuple[float, float]:
        return cpu_of(self.process.pid), cpu_of(self.launcher) if self.launcher else 0.0

    def run(self, jobs: int, seats: int) -> tuple[float, float, float]:
        """Microseconds per job: CPU of the runner, of its launcher, elapsed."""
        before, began = self._cpu(), time.perf_counter()
        leased = min(jobs, AHEAD)
        ended = 0
        self._lease(leased, seats)
        while ended < jobs:
            for message in self._read():
                if isinstance(message, m.Report) and message.seq:
                    ended += len(message.ended)
                    self._send(m.Ack(message.seq))
            more = min(jobs - leased, AHEAD - (leased - ended))
            if more > 0:
                leased += more
                self._lease(more, 0)
        elapsed = time.perf_counter() - began
        runner, launcher = (after - was for after, was in zip(self._cpu(), before, strict=True))
        return runner / jobs * 1e6, launcher / jobs * 1e6, elapsed / jobs * 1e6

    def end(self) -> None:
        self._send(m.Leave())
        self.process.wait(30)


def main() -> None:
    given = [int(word) for word in sys.argv[1:]]
    jobs, seats, rounds = (given + [3000, 2, 5][len(given) :])[:3]
    env = dict(os.environ)
    with tempfile.TemporaryDirectory() as directory:
        inside = Bench(Path(directory, "inside"), env, lasting=False)
        apart = Bench(Path(directory, "apart"), env, lasting=True)
        rows = []
        for _ in range(rounds):
            inside_cpu, _, inside_wall = inside.run(jobs, seats)
            rows.append((*bare(jobs, seats, env), inside_cpu, inside_wall, *apart.run(jobs, seats)))
        inside.end()
        apart.end()
    names = ("bare cpu", "bare wall", "inside cpu", "inside wall", "agent cpu", "launcher cpu", "apart wall")
    print(f"{jobs} x true, {seats} seats, {len(env)} variables, {rounds} rounds, µs per job")
    for index, name in enumerate(names):
        column = [row[index] for row in rows]
        print(f"  {name:12s} median {statistics.median(column):8.1f}   least {min(column):8.1f}")
    ratio = statistics.median(row[6] / row[3] for row in rows)
    print(f"  a whole job through the process: {ratio:.2f} of inside")


if __name__ == "__main__":
    main()
