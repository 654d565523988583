"""What a call has left in its file: its result, or the exception that ended it."""

from __future__ import annotations

import os
from typing import Any, Final

import msgspec

from rota.core.jobs.outcome import CallError, Returned

#: The most that is read of an outcome: a result of 1 MiB, and what describes it.
_MOST: Final = (1 << 20) + (256 << 10)
_REASONS: Final = frozenset({"exception", "import", "result"})
_MOST_SAID: Final = 500


class _Told(msgspec.Struct):
    """The first line of an outcome."""

    warm: bool = False
    typed: bool = False
    note: str = ""
    reason: str = ""
    error: tuple[str, str, str] | None = None


_told = msgspec.json.Decoder(_Told)
_any = msgspec.json.Decoder(Any)


class CallFile:
    """The file of a call: its request, followed by its outcome."""

    __slots__ = ("_fd", "_skip")

    def __init__(self, fd: int, request: int) -> None:
        """`request`: the size of the request."""
        self._fd = fd
        self._skip = request

    def read(self) -> tuple[str, Returned | None]:
        """Why it failed, if it did, and what it left; None: nothing that can be read."""
        try:
            size = os.fstat(self._fd).st_size - self._skip
            data = os.pread(self._fd, min(size, _MOST + 1), self._skip) if size > 0 else b""
        except OSError:
            return "", None
        head, newline, value = data.partition(b"\n")
        if not newline or size > _MOST:
            return "", None
        try:
            told = _told.decode(head)
            text = value.decode()
            if told.error is None:
                _any.decode(value)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return "", None
        if told.error is None:
            return "", Returned(text, None, told.typed, told.warm, told.note)
        reason = told.reason if told.reason in _REASONS else "exception"
        return reason, Returned("", CallError(*told.error), told.typed, told.warm, told.note)

    def close(self) -> None:
        """Safe to call twice."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def verdict(file: CallFile | None, code: int) -> tuple[str, str, bool, Returned | None]:
    """The reason why a call failed, its message, whether another attempt would be as useless, and what it left."""
    if file is None:
        return "result", "its launcher died with its result", False, None
    reason, left = file.read()
    if left is None:
        # It was killed, or left by another door; an exit code or signal says that better, if there is one.
        said = "it ended before it could leave a result, or closed the descriptor for it" if code >= 0 else ""
        return ("result" if said else ""), said, False, None
    if left.error is None:
        return "", "", False, left
    words = left.error.message.split("\n", 1)[0] if left.error.message else ""
    message = words if reason == "result" else f"{left.error.type}: {words}" if words else left.error.type
    return reason, message[:_MOST_SAID], reason == "import", left
