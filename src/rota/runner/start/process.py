"""Start the command of a lease.

It keeps no state about jobs: what runs and what must end is decided elsewhere.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence

from rota.core.jobs.command import Command
from rota.runner import libc
from rota.runner.start.environment import Environment, Variables
from rota.runner.task import Pipes

SHELL = b"/bin/sh"
BASH = b"/bin/bash"
#: Joins the control groups that are its first $0 arguments, then becomes the command. If that fails the
#: command runs all the same; it is moved at its first sample.
_JOIN_GROUPS = b'''n=$0
while [ $n -gt 0 ]; do { echo $$ > "$1"/cgroup.procs; } 2>/dev/null; shift; n=$((n-1)); done; exec "$@"'''

_TEMPORARY = {errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EINTR}
_MISSING = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG}

_shell_argv = libc.strings([b"sh", b"-c", b""])
_shell_at = libc.address(_shell_argv)

#: The file to execute (None: to be looked for), and its arguments beginning with its name.
Words = tuple[bytes | None, list[bytes]]


class Refused(Exception):
    """The system cannot start anything at the moment; later it may."""


class CannotRun(Exception):
    """This command cannot be started, now or (if `permanent`) later."""

    def __init__(
        self, exit_code: int | None, message: str, *, reason: str = "not_found", permanent: bool = True
    ) -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.message = message
        self.reason = reason
        self.permanent = permanent


def start_shell(text: bytes, environment: Environment, pipes: Pipes) -> int:
    """The pid of a shell with this command line, in the directory of its specification.

    The way of nearly all jobs: it does as little as possible. Raises `Refused` or `CannotRun`. This
    process's own working directory changes.
    """
    try:
        os.chdir(environment.cwd)
        _shell_argv[2] = text
        return libc.spawn(SHELL, _shell_at, environment.address, pipes.actions_at)
    except (OSError, ValueError):
        # Once more, slowly, to say what is wrong (or, if that has passed, to start it).
        return start(shell(text), environment, pipes.actions_at, cwd=environment.cwd)


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
        path = _found(argv[0], variables.path)
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


def words_of(command: Command, *, pipefail: bool) -> Words:
    """What must be executed for a command. Raises `CannotRun`."""
    words: Words
    if isinstance(command, str):
        text = command.encode("utf-8", "surrogateescape")
        words = (BASH, [b"bash", b"-o", b"pipefail", b"-c", text]) if pipefail else shell(text)
    else:
        words = None, [word.encode("utf-8", "surrogateescape") for word in command]
        if not words[1] or not words[1][0]:
            raise CannotRun(127, "the command is empty")
    if any(b"\0" in word for word in words[1]):
        raise CannotRun(126, "the command contains a NUL character")
    return words


def shell(text: bytes) -> Words:
    return SHELL, [b"sh", b"-c", text]


def _explained(error: OSError, path: bytes) -> Refused | CannotRun:
    name = os.fsdecode(path)
    if error.errno in _TEMPORARY:
        return Refused(f"cannot start a process: {error.strerror}")
    if error.errno in _MISSING:
        return CannotRun(127, f"{name}: not found")
    return CannotRun(126, f"{name}: cannot be executed: {error.strerror}")


def _found(name: bytes, search: bytes) -> bytes:
    """What a shell would execute for this name."""
    if b"/" in name:
        candidates = [name]
    else:
        candidates = [(directory or b".") + b"/" + name for directory in search.split(b":")]
    denied = ""
    for path in candidates:
        try:
            mode = os.stat(path).st_mode
        except OSError as error:
            if error.errno == errno.EACCES:
                denied = denied or os.fsdecode(path)
            continue
        if not os.access(path, os.X_OK) or (mode & 0o170000) == 0o040000:
            denied = denied or os.fsdecode(path)
            continue
        return path
    if denied:
        raise CannotRun(126, f"{denied}: not executable")
    raise CannotRun(127, f"{os.fsdecode(name)}: not found")
