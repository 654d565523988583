"""The files that a job names for its output, instead of having it captured.

Opened for appending, so that an attempt never destroys what an earlier one wrote, and relative to the
directory of the specification (for a job in scratch too, whose own directory is removed). Directories
are not made.
"""

from __future__ import annotations

import errno
import os

from rota.core.output import output_file_names
from rota.runner import libc
from rota.runner.start.process import CannotRun, Refused
from rota.runner.task import Pipes
from rota.wire.job_structs import RunSpec
from rota.wire.orders import Grant

_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOCTTY
_OUT_OF_DESCRIPTORS = {errno.EMFILE, errno.ENFILE, errno.ENOMEM}
#: Errors that may pass. All others say that the path itself is wrong.
_MAY_PASS = {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.EINTR, errno.EAGAIN}


def expand(pattern: str, spec: RunSpec, grant: Grant, host: str) -> str:
    """The path that a pattern means for one attempt."""
    element = grant.element
    array, index = (None, None) if element is None else (element.array, element.index)
    return output_file_names.expand(
        pattern, job=grant.job, array=array, index=index, name=spec.name, user=spec.user, host=host
    )


class OutputFiles:
    """The open files of one attempt, until its process has inherited them."""

    def __init__(self, spec: RunSpec, grant: Grant, *, host: str, pipes: Pipes, null: int) -> None:
        """Opens what the specification names; the rest goes to the pipes. Raises `Refused` or `CannotRun`."""
        self._open: list[int] = []
        targets = [pipes.out_write, pipes.err_write]
        try:
            for stream, pattern in enumerate((spec.stdout, spec.stderr)):
                if pattern:
                    targets[stream] = self._opened(os.path.join(spec.cwd, expand(pattern, spec, grant, host)))
            self._actions = libc.FileActions([(null, 0), (targets[0], 1), (targets[1], 2)])
        except BaseException:
            self._close()
            raise
        self.actions_at = self._actions.address

    def _opened(self, path: str) -> int:
        try:
            # Not blocking: a named pipe may never get a reader, and the runner must not wait for one.
            fd = os.open(path.encode("utf-8", "surrogateescape"), _FLAGS | os.O_NONBLOCK, 0o666)
        except ValueError:
            raise _failed(path, "not a path") from None
        except OSError as error:
            if error.errno in _OUT_OF_DESCRIPTORS:
                raise Refused(f"cannot open {path}: {error.strerror}") from None
            raise _failed(path, error.strerror or str(error), permanent=error.errno not in _MAY_PASS) from None
        self._open.append(fd)
        os.set_blocking(fd, True)
        return fd

    def close(self) -> None:
        self._close()
        self._actions.close()

    def _close(self) -> None:
        for fd in self._open:
            os.close(fd)
        self._open.clear()


def _failed(path: str, why: str, *, permanent: bool = True) -> CannotRun:
    message = f"cannot write its output to {path}: {why}".replace("\0", "\\0")
    return CannotRun(None, message, reason="output_file", permanent=permanent)
