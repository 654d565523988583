"""Re-execution: after a bug the manager becomes a new image of itself, in the same process, and recovers.

Only its standard streams are inherited. Lock, sockets, ports and log are taken anew, as after any restart.
Processes that the old image started stay its children: a runner is found again by its lock, the gateway by its
process id, everything else has been ended or ends by itself, and all are reaped. While the lock is free in
between, `manager.json` says to whom it belongs: a client that finds no manager could start one.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import logging
import os
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from rota import __version__
from rota.errors import NotDone, StoreRefused
from rota.home import Home, ManagerFile
from rota.manager.host.gateway import LeftGateway
from rota.manager.loop.deployment import Deployment
from rota.manager.peers.peer import Peer
from rota.store.home.home_lock import HomeLock

log = logging.getLogger("rota.manager")

#: How long clients get to take what was sent to them.
_FLUSH_S: Final = 2.0
_LOOK_AGAIN_S: Final = 0.005
_VERSION_S: Final = 30.0
_LOCK_S: Final = 10.0
#: This interpreter, whatever becomes of the directory that it was found from.
_PYTHON: Final = os.path.join(os.path.realpath(os.path.dirname(sys.executable)), os.path.basename(sys.executable))
#: The option that marks a new image.
AGAIN: Final = "--again"
DRAIN: Final = "--drain"
#: The option that names a gateway to adopt.
GATEWAY: Final = "--gateway"


def command(deployment: Deployment, *, draining: bool, gateway: LeftGateway | None = None) -> list[str]:
    """The command line of the new image, from the options that hold now."""
    words = [_PYTHON, "-P", "-m", "rota.manager", "--home", str(deployment.home), AGAIN]
    if deployment.idle_stop_s is not None:
        words += ["--idle-stop", f"{deployment.idle_stop_s:.6f}"]
    if draining:
        words.append(DRAIN)
    if gateway is not None:
        words += [GATEWAY, str(gateway.pid), gateway.url, gateway.host]
    return words


def installed_version() -> str:
    """The version that a new image would be; empty: it could not even begin."""
    words = [_PYTHON, "-P", "-c", "import rota; print(rota.__version__)"]
    try:
        said = subprocess.run(words, capture_output=True, text=True, timeout=_VERSION_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return said.stdout.strip()


def is_installed() -> bool:
    """Is what is installed what is running?"""
    installed = installed_version()
    if installed != __version__:
        log.error("version %s is installed and %s is running: it exits", installed or "unknown", __version__)
    return installed == __version__


async def tell_clients(peers: Iterable[Peer]) -> None:
    """Tell every client that what is still unanswered was not done, so that it tries again, and wait until they
    have been told; not for long."""
    told = [peer for peer in peers if peer.role != "runner"]
    for peer in told:
        peer.fail(0, NotDone())
    limit = time.monotonic() + _FLUSH_S
    while any(peer.unsent for peer in told) and time.monotonic() < limit:
        await asyncio.sleep(_LOOK_AGAIN_S)


def announce(home: Home) -> None:
    """Have clients wait for the new image, and other managers leave it the lock."""
    facts = home.read_manager_file() or ManagerFile()
    try:
        write_manager_file(home, msgspec.structs.replace(facts, pid=os.getpid(), starts_anew=True))
    except OSError as error:  # a full disk; clients that connect meanwhile find nobody
        log.warning("%s cannot say that the manager starts anew: %s", home.manager_file, error)


def write_manager_file(home: Home, facts: ManagerFile) -> None:
    """Replace `manager.json`."""
    draft = home.manager_file.with_suffix(".new")
    draft.touch(mode=0o600)
    draft.write_bytes(msgspec.json.encode(facts))
    draft.replace(home.manager_file)


def refuse_second(home: Home) -> None:
    """Raise `StoreRefused` if a manager of this home is being re-executed."""
    pid = home.being_reexecuted()
    if pid not in (0, os.getpid()):
        raise StoreRefused(
            f"another manager (pid {pid}) already uses {home} and starts anew",
            hint="use that one, or stop it with `rota manager stop`",
            code="locked",
        )


def lock_when_free(home: Path, *, again: bool) -> HomeLock:
    """Take the lock of a home. A new image waits for it: another manager may hold it until it has noticed that."""
    limit = time.monotonic() + (_LOCK_S if again else 0.0)
    while True:
        try:
            return HomeLock(home)
        except StoreRefused as error:
            if error.code != "locked" or time.monotonic() >= limit:
                raise
        time.sleep(_LOOK_AGAIN_S)


def open_standard_streams() -> None:
    """Open every standard stream that is closed. Otherwise a lock or a socket could get its number, and would be
    inherited by the next image."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest free number


def reexecute(deployment: Deployment, *, draining: bool, gateway: LeftGateway | None) -> None:
    """Become the new image. Never returns."""
    words = command(deployment, draining=draining, gateway=gateway)
    log.info("the manager starts anew: %s", words)
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2:
            try:
                fcntl.fcntl(int(name), fcntl.F_SETFD, fcntl.FD_CLOEXEC)
            except OSError:
                pass  # that of the list itself
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            if stream is not None:  # it was closed when the process began
                stream.flush()
    os.execv(words[0], words)


class LeftChildren:
    """The children of the image before, which nobody else waits for."""

    def __init__(self) -> None:
        self._pids = _children()

    def reap(self) -> None:
        """Reap the children that have ended. Never blocks."""
        for pid in list(self._pids):
            try:
                ended, _status = os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                ended = pid
            if ended:
                self._pids.discard(pid)
                log.info("process %d of the image before has ended", pid)


def _children() -> set[int]:
    found: set[int] = set()
    for thread in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{thread}/children", encoding="ascii") as file:
                found.update(map(int, file.read().split()))
        except OSError:
            pass  # this kernel has no such list
    return found
