"""Bytes of messages that have begun and are not complete, by whose they are: bounded, over all their connections.

One message may be large, and somebody who may connect often must not keep many large ones half sent. Pure.
"""

from __future__ import annotations

from typing import Final

from rota.errors import EnvironmentFault

#: Of one holder of a token, together.
MOST: Final = 256 << 20
#: A connection with less is not counted.
SMALL: Final = 64 << 10


class PartialMessages:
    """How much everybody holds."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._held: dict[str, int] = {}

    def change(self, whose: str, *, before: int, now: int) -> None:
        """A connection of theirs now holds so much. Raises `EnvironmentFault` when it is too much in all; it is
        counted nevertheless, until the connection has gone."""
        held = self._held.get(whose, 0) + now - before
        if held > 0:
            self._held[whose] = held
        else:
            self._held.pop(whose, None)
        if held > self._most and now > before:
            raise EnvironmentFault(
                "too much is being sent at once", hint="send less at a time, or over fewer connections"
            )
