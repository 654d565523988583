"""Starts nothing on a full disk: how a job ends, and what it prints, could not be recorded.

The manager is told, so that jobs go elsewhere, and told again when there is room. For agents of nodes only: on
the manager's own host the manager watches the disk itself.
"""

from __future__ import annotations

import os
from errno import EDQUOT, ENOSPC
from typing import Final

from rota.launcher import room
from rota.launcher.base import Refused
from rota.runner.log import say
from rota.runner.loop import Loop
from rota.runner.report.outbox import Outbox

#: With less than this the disk is full.
FULL: Final = 1 << 20
#: Bytes that must be writable before the disk no longer counts as full.
_ENOUGH: Final = 2 * FULL
_LOOK_EVERY_S: Final = 1.0
_NAME: Final = "room"


class DiskRoom:
    """Knows whether the disk of a runner's directory is full."""

    def __init__(self, directory: str, *, loop: Loop, outbox: Outbox) -> None:
        self._directory = directory
        self._loop = loop
        self._outbox = outbox
        self._look_at = 0.0
        self.unfit = ""  #: why nothing can be started here

    def demand(self) -> None:
        """Raises `Refused` if the disk is full."""
        if self.unfit:
            raise Refused(self.unfit)
        try:
            room.demand(self._directory, FULL)
        except OSError as error:
            self.failed(error)
            raise Refused(self.unfit or f"cannot prepare: {error}") from None

    def failed(self, error: OSError) -> None:
        """The journal could not be written before a start. Errors other than a full disk are ignored."""
        if error.errno not in (ENOSPC, EDQUOT):
            return
        self.unfit = f"the disk of its agent is full: {self._directory}: {error.strerror or error}"
        say(self.unfit)
        self._outbox.unfit = self.unfit
        self._look_at = self._loop.now + _LOOK_EVERY_S
        self._loop.due(self._look_at)

    def tick(self, now: float) -> None:
        if not self.unfit:
            return
        if now >= self._look_at:
            self._look_at = now + _LOOK_EVERY_S
            if self._has_enough():
                say("there is room on the disk again")
                self.unfit = self._outbox.unfit = ""
                self._loop.due(now)  # to report it
                return
        self._loop.due(self._look_at)

    def _has_enough(self) -> bool:
        """Is there enough room? Only an attempt to write shows a quota."""
        path = f"{self._directory}/{_NAME}"
        try:
            if room.left(self._directory) < _ENOUGH:
                return False
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            try:
                os.posix_fallocate(fd, 0, _ENOUGH)
            finally:
                os.close(fd)
                os.unlink(path)
        except OSError:
            return False
        return True
