"""Opens the files that a job names for its output, instead of having it captured.

For appending, so that an attempt never destroys what an earlier one wrote. Directories are not made.
"""

from __future__ import annotations

import errno
import os

from rota.launcher.base import CannotRun, Refused

_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOCTTY
_OUT_OF_DESCRIPTORS = {errno.EMFILE, errno.ENFILE, errno.ENOMEM}
#: Errors that may pass. All others say that the path itself is wrong.
_MAY_PASS = {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.EINTR, errno.EAGAIN}


def open_for_output(path: str) -> int:
    """A descriptor that appends to this file. Raises `Refused` or `CannotRun`."""
    try:
        # Not blocking: a named pipe may never get a reader, and the runner must not wait for one.
        fd = os.open(path.encode("utf-8", "surrogateescape"), _FLAGS | os.O_NONBLOCK, 0o666)
    except ValueError:
        raise _failed(path, "not a path") from None
    except OSError as error:
        if error.errno in _OUT_OF_DESCRIPTORS:
            raise Refused(f"cannot open {path}: {error.strerror}") from None
        raise _failed(path, error.strerror or str(error), permanent=error.errno not in _MAY_PASS) from None
    os.set_blocking(fd, True)
    return fd


def _failed(path: str, why: str, *, permanent: bool = True) -> CannotRun:
    message = f"cannot write its output to {path}: {why}".replace("\0", "\\0")
    return CannotRun(None, message, reason="output_file", permanent=permanent)
