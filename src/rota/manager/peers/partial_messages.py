"""Limits the bytes of incomplete messages, for each holder of a token over all its connections.

One message may be large. A client with many connections must not keep many large ones half sent. Pure.
"""

from __future__ import annotations

from typing import Final

from rota.errors import EnvironmentFault

#: Of one holder of a token, together.
MOST: Final = 256 << 20
#: A connection with less is not counted.
SMALL: Final = 64 << 10


class PartialMessages:
    """Bytes of incomplete messages, by token holder."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._held: dict[str, int] = {}

    def change(self, whose: str, *, before: int, now: int) -> None:
        """The bytes of one connection of a holder changed. Raises `EnvironmentFault` if all its connections
        together hold too much; they are counted nevertheless, until the connection is closed."""
        held = self._held.get(whose, 0) + now - before
        if held > 0:
            self._held[whose] = held
        else:
            self._held.pop(whose, None)
        if held > self._most and now > before:
            raise EnvironmentFault(
                "too much is being sent at once", hint="send less at a time, or over fewer connections"
            )
