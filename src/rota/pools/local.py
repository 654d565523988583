"""The pool of this machine: one runner process with as many seats as fit.

A runner outlives the manager that started it. One that is alive holds a lock on its directory, so a
new manager waits for it to join instead of starting a second one.
"""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
import socket
import sys
import time
from pathlib import Path

from rota.core.events import HostAppeared
from rota.home import Home
from rota.host import usable_memory
from rota.plan.size import CORE, Capacity
from rota.pool_names import LOCAL
from rota.settings import Settings

log = logging.getLogger("rota.pools.local")

_FIRST_DELAY_S = 0.5
_MAX_DELAY_S = 30.0
_GOOD_AFTER_S = 10.0


class LocalPool:
    """Keeps one runner alive on this host."""

    name = LOCAL

    def __init__(self, home: Home, settings: Settings) -> None:
        self._home = home
        self._settings = settings
        self._off = settings.local == "off"
        self._child = 0  #: pid of the runner this manager started, while it has not ended
        self._delay_s = _FIRST_DELAY_S
        self._not_before = 0.0
        self._good_at = 0.0  #: when the runner that started last has lived long enough
        self._stopping = False

    def hosts(self) -> list[HostAppeared]:
        settings = self._settings
        if self._off:
            return []
        cores = settings.cores or len(os.sched_getaffinity(0))
        mem = settings.mem or usable_memory()
        disk = settings.disk if settings.disk is not None else shutil.disk_usage(self._home.path).free
        capacity = Capacity(cpus=cores * CORE, mem=mem, disk=disk, pool=self.name)
        return [HostAppeared(host=hostname(), capacity=capacity)]

    def start(self) -> None:
        if not self._off and not runner_lives(self._home.runners):
            self._spawn()

    def check(self) -> None:
        if self._child and os.waitpid(self._child, os.WNOHANG)[0]:
            log.warning("runner process %d has ended", self._child)
            self._child = 0
        if self._off or self._child or self._stopping or time.monotonic() < self._not_before:
            return
        if runner_lives(self._home.runners):
            return
        # One that ends soon after its start is not started again at once.
        now = time.monotonic()
        self._delay_s = min(_MAX_DELAY_S, self._delay_s * 2) if now < self._good_at else _FIRST_DELAY_S
        self._not_before = now + self._delay_s
        self._spawn()

    def stop(self) -> None:
        self._stopping = True

    def _spawn(self) -> None:
        argv = [
            sys.executable, "-P", "-m", "rota.runner",
            "--socket", str(self._home.socket),
            "--dir", str(self._home.runners),
            "--log", str(self._home.logs / "runner.log"),
        ]  # fmt: skip
        self._good_at = time.monotonic() + _GOOD_AFTER_S
        null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        out = os.open(self._home.logs / "runner.out", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            self._child = os.posix_spawn(
                sys.executable,
                argv,
                os.environ,
                setsid=True,
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, null, 0),
                    (os.POSIX_SPAWN_DUP2, out, 1),
                    (os.POSIX_SPAWN_DUP2, out, 2),
                ],
            )
        except OSError as error:
            log.exception("cannot start a runner: %s", error.strerror)
        finally:
            os.close(null)
            os.close(out)


def runner_lives(root: Path) -> bool:
    """Does any runner below this directory hold its lock?"""
    try:
        directories = list(root.iterdir())
    except FileNotFoundError:
        return False
    return any(_locked(directory / "lock") for directory in directories)


def _locked(path: Path) -> bool:
    try:
        handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    else:
        return False
    finally:
        os.close(handle)


def hostname() -> str:
    return socket.gethostname() or "localhost"
