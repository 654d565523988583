"""The identity of this runner: its name, machine and boot, and the directory that it keeps locked."""

from __future__ import annotations

import contextlib
import os
import socket

from rota.boot import boot_id, machine_id
from rota.launcher import procfs, trees
from rota.runner.contain import process_mark
from rota.runner.log import say_all
from rota.runner.report import journal


def name_of(host: str) -> str:
    """The prefix of all runner names on a host; the pid and eight random digits follow."""
    short = host.partition(".")[0]
    return "".join(c if c.isascii() and (c.isalnum() or c == "-") else "_" for c in short)


def node_of(runner: str) -> str:
    """The prefix of a runner's name: `name_of` its host."""
    return runner.rsplit("-", 2)[0]


def start_of(pid: int) -> int:
    """When this process was started, for `lives`; 0: it is gone."""
    seen = procfs.process(pid)
    return seen.start_time if seen is not None else 0


def lives(pid: int, start_time: int) -> bool:
    """Is the runner with this process on this machine alive?"""
    return procfs.lives(pid, start_time)


def host_name(given: str) -> str:
    """The name of this host, unless another was given."""
    return given or socket.gethostname() or "localhost"


#: Where jobs say how far they are, in the directory of a runner.
PROGRESS = "progress"


class RunnerIdentity:
    """Claimed once, at start, and held until the process ends."""

    def __init__(self, root: str, *, host: str = "", place: tuple[str, str, int] | None = None) -> None:
        """`place`: name, directory and lock of a dead runner whose place this one takes."""
        self.root = root
        self.host = host_name(host)
        self.boot_id = boot_id()
        self.machine = machine_id(self.host)
        self.pid = os.getpid()
        seen = procfs.process(self.pid)
        self.start_time = seen.start_time if seen is not None else 0
        self.id, self.directory, self._lock = self._claim(root) if place is None else place
        process_mark.set_node(node_of(self.id))

    def _claim(self, root: str) -> tuple[str, str, int]:
        os.makedirs(root, mode=0o700, exist_ok=True)
        while True:
            name = f"{name_of(self.host)}-{self.pid}-{os.urandom(4).hex()}"
            directory = f"{root}/{name}"
            os.mkdir(directory, 0o700)
            lock = journal.take_lock(directory, create=True)
            if lock is not None:
                return name, directory, lock
            # Another runner found it before it was locked, and took it for a dead one: try again.

    def began(self) -> journal.Began:
        return journal.Began(self.id, self.machine, self.boot_id, self.pid, self.start_time)

    def remove(self) -> None:
        """Remove the directory: nothing of this runner is needed any more. Raises `OSError`."""
        for name in ("epoch", "rules"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f"{self.directory}/{name}")
        if os.path.isdir(progress := f"{self.directory}/{PROGRESS}"):
            say_all(trees.remove(progress))
        for name in ("journal", "lock"):
            os.unlink(f"{self.directory}/{name}")
        os.rmdir(self.directory)
