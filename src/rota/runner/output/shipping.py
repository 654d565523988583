"""Sends the output of jobs on a node to the manager: the pieces of segments that outcomes refer to.

The manager keeps a copy of each segment under the same name. A piece that was lost is sent again from disk; a
piece that arrives twice changes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

from rota.core.attempts.leases import Finished
from rota.runner.log import say
from rota.wire import codec
from rota.wire.reports import Piece

_PIECE = 256 * 1024


class Shipping:
    """Sends the output of ended attempts, before their end is reported."""

    def __init__(self, directory: str, send: Callable[[bytes], None]) -> None:
        self._directory = directory  #: of the segments
        self._send = send

    def send(self, ended: Iterable[Finished], *, most_bytes: int | None = None) -> int:
        """Send the output of these outcomes up to about `most_bytes`; how many outcomes that covers. Output that
        cannot be read is skipped: the end is reported anyway."""
        name, handle = "", -1
        done = sent = 0
        try:
            for finished in ended:
                done += 1
                outcome = finished.outcome
                left = outcome.out_len + outcome.err_len
                if not outcome.segment or not left:
                    continue
                sent += left
                try:
                    if outcome.segment != name:
                        if handle >= 0:
                            os.close(handle)
                            handle = -1
                        path = f"{self._directory}/{outcome.segment}"
                        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
                        name = outcome.segment
                    self._send_piece(handle, finished, left)
                except OSError as error:
                    say(f"output of job {finished.job} cannot be sent: {error}")
                if most_bytes is not None and sent >= most_bytes:
                    break
        finally:
            if handle >= 0:
                os.close(handle)
        return done

    def _send_piece(self, handle: int, finished: Finished, left: int) -> None:
        offset, segment = finished.outcome.offset, finished.outcome.segment
        while left > 0 and (data := os.pread(handle, min(left, _PIECE), offset)):
            piece = Piece(segment, offset, data, finished.job, finished.attempt, finished.token)
            self._send(codec.frame(piece))
            offset += len(data)
            left -= len(data)
