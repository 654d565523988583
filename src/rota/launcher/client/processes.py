"""Starts a launcher process, and attaches to one that an earlier runner has started."""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections import deque
from collections.abc import Sequence
from typing import TypeVar

import msgspec

from rota.launcher import journal, libc
from rota.launcher import messages as m
from rota.launcher.base import Key
from rota.launcher.client.conversation import LIMIT_S, Fenced
from rota.launcher.client.remote import RemoteLauncher
from rota.launcher.client.spooled import SpoolReader
from rota.launcher.descriptors import make_room
from rota.launcher.door import SOCKET, reachable, secret_of
from rota.launcher.frames import Broken, Channel
from rota.launcher.log import LOG
from rota.launcher.procfs import boot_id, lives
from rota.launcher.trees import remove

A = TypeVar("A", bound=m.Message)


class CannotAttach(Exception):
    """This launcher is dead or refuses this runner."""


class OtherVersion(CannotAttach):
    """This launcher lives and speaks only a version that is unknown here. Its jobs are not ours to end."""


class Adopted(msgspec.Struct, frozen=True):
    """A lease that a launcher held for its next runner."""

    key: Key
    note: bytes
    processes: Sequence[m.HeldProcess]
    fds: Sequence[Sequence[int]]  #: of each process: the master of its terminal, or the file for its output
    pipes: SpoolReader | None  #: to which its last process writes; see `SpoolReader.restore`
    ended_for: str  #: why the launcher has ended it: `walltime`, `orphaned`


def start_launcher(directory: str, epoch: int) -> RemoteLauncher:
    """Start a launcher for new leases; this process must be a sub-reaper. Raises `OSError`."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        os.makedirs(directory, 0o700)
    except OSError:
        ours.close()
        theirs.close()
        raise
    try:
        return _started(directory, epoch, ours, theirs)
    except OSError:
        # It is tried again and again, each time in a new one. All descriptors are closed: to remove it needs some.
        remove(directory)
        raise


def _started(directory: str, epoch: int, ours: socket.socket, theirs: socket.socket) -> RemoteLauncher:
    try:
        pid = _spawn(directory, theirs.fileno())
    except OSError:
        ours.close()
        raise
    finally:
        theirs.close()
    try:
        launcher, _ = _enter(ours, directory, epoch, version=m.VERSION, secret=b"", own=True)
    except CannotAttach as why:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise OSError(f"the launcher does not begin: {why}") from None
    return launcher


def _spawn(directory: str, connection: int) -> int:
    """Start the process, with this descriptor as its connection; its pid."""
    words = [sys.executable, "-P", "-m", "rota.launcher", "--fd", "3", "--dir", directory]
    argv = libc.strings([os.fsencode(word) for word in words])
    # It carries no mark of a lease, so that what it starts is known by the one it is given.
    variables = libc.strings([name + b"=" + value for name, value in os.environb.items() if name != m.MARK])
    with open(os.devnull, "r+b", buffering=0) as null, open(f"{directory}/{LOG}", "ab", 0, opener=_private) as log:
        streams = [(null.fileno(), 0), (null.fileno(), 1), (log.fileno(), 2), (connection, 3)]
        actions = libc.FileActions(streams)
        try:
            program = os.fsencode(sys.executable)
            return libc.spawn(program, libc.address(argv), libc.address(variables), actions.address)
        finally:
            actions.close()


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def attach(directory: str, epoch: int) -> tuple[RemoteLauncher, list[Adopted]]:
    """Take over the launcher in this directory, with what it holds. Raises `CannotAttach`."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.settimeout(LIMIT_S)
        with reachable(f"{directory}/{SOCKET}") as path:
            sock.connect(path)
        secret = secret_of(directory)
        version = _version_of(directory)
    except OSError as error:
        sock.close()
        raise CannotAttach(str(error)) from None
    except OtherVersion:
        sock.close()
        raise
    return _enter(sock, directory, epoch, version=version, secret=secret, own=False)


def other_version(directory: str) -> str:
    """The unknown version of the living launcher in this directory; empty: it is dead, or its version is known."""
    try:
        _version_of(directory)
    except OtherVersion as why:
        began = journal.read(directory).began
        return str(why) if began is not None and lives(began.pid, began.start_time) else ""
    except OSError:
        pass
    return ""


def _version_of(directory: str) -> int:
    """Which version to speak with the launcher in this directory: its own. Its journal begins with that in every
    version. Raises `OtherVersion` and `OSError`."""
    began = journal.read(directory).began
    if began is None or began.version in m.SPOKEN:
        return m.VERSION if began is None else began.version
    known = ", ".join(map(str, m.SPOKEN))
    raise OtherVersion(f"it speaks version {began.version}, and this release only {known}")


def _enter(
    sock: socket.socket, directory: str, epoch: int, *, version: int, secret: bytes, own: bool
) -> tuple[RemoteLauncher, list[Adopted]]:
    sock.settimeout(LIMIT_S)
    channel = Channel(sock, m.decode_from_launcher, takes_fds=True)
    try:
        channel.send(m.Attach(version, boot_id(), directory, epoch, secret))
        while not channel.flush():
            pass
        return _welcomed(channel, directory, own=own)
    except (Broken, Fenced, OSError) as why:
        channel.close()
        raise CannotAttach(str(why)) from None


def _welcomed(
    channel: Channel[m.FromLauncher], directory: str, *, own: bool
) -> tuple[RemoteLauncher, list[Adopted]]:
    heard: deque[m.FromLauncher] = deque()

    def hear(kind: type[A]) -> A:
        while not heard:
            heard.extend(channel.receive())
        said = heard.popleft()
        if isinstance(said, kind):
            return said
        raise Broken(said.why if isinstance(said, m.Unwelcome) else f"it says {type(said).__name__} first")

    welcome = hear(m.Welcome)
    launcher = RemoteLauncher(channel, welcome, directory, own=own)
    adopted = []
    try:
        make_room(8 * (welcome.pipes + welcome.tasks))
        for _ in range(welcome.pipes):
            held = hear(m.HeldPipes)
            launcher.hold_pipes(held, channel.take_fds(6))
        for _ in range(welcome.tasks):
            task = hear(m.HeldTask)
            fds = [channel.take_fds(process.fds) for process in task.processes]
            pipes = launcher.adopt(task)
            adopted.append(Adopted(task.key, task.note, task.processes, fds, pipes, task.ended_for))
        launcher.begin(heard)
    except BaseException:
        launcher.close()
        raise
    return launcher, adopted
