"""A runner of a delegated pool: it has a ticket and shares nothing with the manager.

Its directory holds everything that it has: a key of its own, by which the manager knows it again, its journal, and
output on its way to the manager. It is removed when the runner leaves.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import shutil
import socket
import stat
import time
from pathlib import Path

from rota.boot import machine_id
from rota.errors import Denied, EnvironmentFault
from rota.plan.site.node_facts import NodeFacts
from rota.runner.node import Node, NodeOptions
from rota.runner.report.journal import lock_file
from rota.wire import private_files
from rota.wire.ticket_file import Ticket


class TicketRunner(Node):
    """The identity of such a runner: the name and secret of its ticket, and its own key."""

    stays = False
    alone = False  # several of them may share a machine, unknown to each other

    def __init__(self, ticket: Ticket, directory: Path, *, until: float | None = None) -> None:
        """Make or find its directory below this one. `until`: monotonic time at which it will be ended.

        Raises `RotaError` if the directory cannot be used.
        """
        self.directory = directory.absolute() / ticket.name
        _make_private(self.directory)
        self._lock = lock_file(str(self.directory / "lock"), create=True)  # held as long as we live
        if self._lock is None:
            raise EnvironmentFault(f"a runner uses {self.directory} already", hint="start one for each ticket")
        super().__init__(NodeOptions(name=ticket.name), ticket.secret, self.root)
        self.machine = socket.gethostname() or "localhost"
        # On another machine a copy of the directory, or a shared one, does not make the same runner.
        own = f"{_key(self.directory / 'key')} {machine_id(self.machine)}"
        self.key = hashlib.sha256(own.encode()).hexdigest()
        self._until = until

    @property
    def root(self) -> str:
        """Where runners have their directories; output and scratch directories are beside it."""
        return str(self.directory / "runners")

    @property
    def left_s(self) -> float | None:
        return None if self._until is None else self._until - time.monotonic()

    def facts(self) -> NodeFacts | None:
        return None  # its size is that of its ticket, whatever its machine has

    def clean_up(self) -> None:
        """Remove the directory, unless something in it was not reported. Raises `OSError`."""
        if not os.listdir(self.root):
            shutil.rmtree(self.directory)


def moment(text: str) -> float:
    """The monotonic time of ``SECONDS`` from now, or of ``@SECONDS`` since the epoch. Raises `ValueError`."""
    wait_s = float(text[1:]) - time.time() if text.startswith("@") else float(text)
    if not -1e12 < wait_s < 1e12:
        raise ValueError(f"{text!r} is no time")
    return time.monotonic() + wait_s


def _make_private(path: Path) -> None:
    """Make this directory, or find it. Others must not have prepared it: it may be where all users write."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            path.mkdir(mode=0o700)
        facts = path.lstat()
        if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.geteuid() or facts.st_mode & 0o077:
            raise Denied(f"{path} is not a directory of yours alone", hint="remove it, or give another --dir")
        (path / "runners").mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise EnvironmentFault(f"cannot use {path}: {error.strerror}", hint="give another --dir") from None


def _key(path: Path) -> str:
    """The secret in this file. It is made, and on disk, before it is used for the first time."""
    try:
        return private_files.read(path).decode("ascii", "replace")
    except FileNotFoundError:
        key = secrets.token_urlsafe(32)
        private_files.write(path, key.encode())
        return key
