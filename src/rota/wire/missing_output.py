"""The line that marks missing bytes in an output, at their position.

Every reader uses it: `rota logs`, `rota run`, the Python client, the HTTP API. Output without a mark is complete.
"""

from __future__ import annotations

from typing import Final

#: The reason when the middle of an output was dropped because of its length.
NOT_KEPT: Final = "not kept; to keep more, raise the setting keep_output"
_LONGEST: Final = 500


def mark(missing: int, why: str, *, after: bytes = b"\n") -> bytes:
    """The mark for so many bytes (0: unknown). `after` is the output before it: the mark starts a new line."""
    begin = "" if not after or after.endswith(b"\n") else "\n"
    count = "1 byte is" if missing == 1 else f"{missing} bytes are" if missing else "some output is"
    shown = "".join(
        each if each.isprintable() else "?" for each in why[:_LONGEST]
    )  # the text may come from a node
    return f"{begin}[rota: {count} missing here: {shown}]\n".encode()
