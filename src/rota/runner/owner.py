"""To be another user for a moment, or for good.

Where jobs run as those who added them, nothing of theirs is touched as root: paths are opened, searched and
changed to under the owner's identity, and a command is started by a child that has become the owner for good.
"""

from __future__ import annotations

import contextlib
import errno
import os
import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rota.runner import libc

_ANSWER = struct.Struct("ii")


class Owner(NamedTuple):
    """A user of this host."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]

    def given(self, *files: int | str) -> None:
        """Let these belong to the owner. Raises `OSError`."""
        for file in files:
            os.chown(file, self.uid, self.gid)


@contextlib.contextmanager
def acting_as(owner: Owner | None) -> Iterator[None]:
    """Within this, files are found and opened by the rights of the owner.

    The real user stays: a process of the owner cannot signal this one meanwhile.
    """
    if owner is None:
        yield
        return
    own, group = os.getgroups(), os.getegid()
    os.setgroups(owner.groups)
    os.setegid(owner.gid)
    os.seteuid(owner.uid)
    try:
        yield
    finally:
        os.seteuid(os.getuid())
        os.setegid(group)
        os.setgroups(own)


def spawn_as(
    owner: Owner, path: bytes, argv_at: int, envp_at: int, actions_at: int, groups: Sequence[str]
) -> tuple[int, int]:
    """`libc.spawn` as the owner, inside control groups: the pid, or 0 and an error. Raises `OSError` if there is
    no child.

    A child joins the groups, becomes the owner, starts the process and ends, and the process is ours, since we are
    the sub-reaper. What an owner put into the environment is seen by nobody before it is the owner's own process.
    """
    hear, tell = os.pipe()
    try:
        child = os.fork()
    except OSError:
        os.close(hear)
        os.close(tell)
        raise
    if not child:
        _start_and_end(owner, path, argv_at, envp_at, actions_at, groups, tell)
    os.close(tell)
    try:
        said = os.read(hear, _ANSWER.size)
    finally:
        os.close(hear)
        os.waitpid(child, 0)
    # A group that is killed at this moment takes the child along.
    pid, error = _ANSWER.unpack(said) if len(said) == _ANSWER.size else (0, errno.EINTR)
    return pid, error


def _start_and_end(
    owner: Owner, path: bytes, argv_at: int, envp_at: int, actions_at: int, groups: Sequence[str], tell: int
) -> None:
    try:
        for group in groups:
            with contextlib.suppress(OSError), open(f"{group}/cgroup.procs", "w", encoding="ascii") as file:
                file.write("0")  # what could not join is moved at its first sample
        os.setgroups(owner.groups)
        os.setresgid(owner.gid, owner.gid, owner.gid)
        os.setresuid(owner.uid, owner.uid, owner.uid)
        os.write(tell, _ANSWER.pack(libc.spawn(path, argv_at, envp_at, actions_at), 0))
    except OSError as error:
        os.write(tell, _ANSWER.pack(0, error.errno or errno.EPERM))
    finally:
        os._exit(0)
