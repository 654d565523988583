"""Starts one program in a directory, or says why that fails. Keeps no state."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence

from rota.launcher import libc
from rota.launcher.base import SHELL, CannotRun, Refused, Words
from rota.launcher.programs import found
from rota.launcher.variables import Variables

#: Joins the control groups that are its first $0 arguments, then becomes the command. If that fails the
#: command runs all the same; it is moved at its first sample.
_JOIN_GROUPS = b'''n=$0
while [ $n -gt 0 ]; do { echo $$ > "$1"/cgroup.procs; } 2>/dev/null; shift; n=$((n-1)); done; exec "$@"'''

_TEMPORARY = {errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EINTR}
_MISSING = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG}


def start(words: Words, variables: Variables, actions_at: int, *, cwd: bytes, cgroups: Sequence[str] = ()) -> int:
    """The pid of a program, started in `cwd`. Raises `Refused` or `CannotRun`.

    This process's own working directory changes to `cwd`.
    """
    try:
        os.chdir(cwd)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "not a path"
        if isinstance(error, OSError) and error.errno in _TEMPORARY:
            raise Refused(why) from None
        raise CannotRun(127, f"cannot change to directory {os.fsdecode(cwd)}: {why}") from None
    path, argv = words
    if path is None:
        path = found(argv[0], variables.path)
    if cgroups:
        groups = [os.fsencode(group) for group in cgroups]
        argv = [b"sh", b"-c", _JOIN_GROUPS, b"%d" % len(groups), *groups, path, *argv[1:]]
        path = SHELL
    try:
        return _spawn(path, argv, variables, actions_at)
    except OSError as error:
        if error.errno != errno.ENOEXEC:
            raise _explained(error, path) from None
    # A script without an interpreter line: what a shell would do.
    try:
        return _spawn(SHELL, [b"sh", path, *argv[1:]], variables, actions_at)
    except OSError as error:
        raise _explained(error, path) from None


def _spawn(path: bytes, argv: list[bytes], variables: Variables, actions_at: int) -> int:
    vector = libc.strings(argv)
    return libc.spawn(path, libc.address(vector), variables.address, actions_at)


def _explained(error: OSError, path: bytes) -> Refused | CannotRun:
    name = os.fsdecode(path)
    if error.errno in _TEMPORARY:
        return Refused(f"cannot start a process: {error.strerror}")
    if error.errno in _MISSING:
        return CannotRun(127, f"{name}: not found")
    return CannotRun(126, f"{name}: cannot be executed: {error.strerror}")


def status_of(found: os.waitid_result) -> int:
    """The status as wait(2) would tell it."""
    if found.si_code == os.CLD_EXITED:
        return (found.si_status & 0xFF) << 8
    return found.si_status | (0x80 if found.si_code == os.CLD_DUMPED else 0)


def in_session(group: int, leader: int) -> bool:
    """Does this process group still belong to this session? A terminal may remember the number of one that has
    ended."""
    try:
        return os.getsid(group) == leader
    except ProcessLookupError:
        return True  # its leader is gone: the number of a living group is not reused
    except OSError:
        return False
