"""Both ends of a stdout and a stderr pipe."""

from __future__ import annotations

import os
from collections.abc import Sequence

from rota.launcher import libc


class HeldPipes:
    """Both ends of a stdout and a stderr pipe, used by one job after the other.

    The writing ends are kept open, so a pipe never reports its end. That all processes of a job are
    gone is known otherwise, and then the rest of its output can be read without waiting.
    """

    __slots__ = ("_actions", "actions_at", "err", "err_write", "out", "out_write")

    polled = True
    read = staticmethod(os.read)  #: as it is: nothing is slower for being read through an interface

    def __init__(self, null: int, fds: Sequence[int] = ()) -> None:
        """`null`: a descriptor of /dev/null. `fds`: reading and writing end for stdout, then for stderr, if they
        were made elsewhere. Raises `OSError`."""
        self.out, self.out_write, self.err, self.err_write = fds or _made()
        self._actions = libc.FileActions([(null, 0), (self.out_write, 1), (self.err_write, 2)])
        self.actions_at = self._actions.address  #: what a child does with its descriptors, for `libc.spawn`

    def close(self) -> None:
        for fd in (self.out, self.out_write, self.err, self.err_write):
            os.close(fd)
        self._actions.close()


def _made() -> tuple[int, int, int, int]:
    out, out_write = os.pipe()
    try:
        err, err_write = os.pipe()
    except OSError:
        os.close(out)
        os.close(out_write)
        raise
    os.set_blocking(out, False)
    os.set_blocking(err, False)
    return out, out_write, err, err_write
