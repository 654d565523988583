"""Finds programs as a shell would."""

from __future__ import annotations

import errno
import os
import pwd

from rota.launcher.base import CannotRun


def found(name: bytes, search: bytes) -> bytes:
    """What a shell would execute for this name, with this PATH. Raises `CannotRun`."""
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


def login_shell(wanted: bytes) -> str:
    """The shell of the user: `wanted`, if that can be executed."""
    if wanted.startswith(b"/") and os.access(wanted, os.X_OK):
        return os.fsdecode(wanted)
    try:
        return pwd.getpwuid(os.getuid()).pw_shell or "/bin/sh"
    except KeyError:
        return "/bin/sh"
