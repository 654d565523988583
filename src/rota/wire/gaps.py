"""The mark that stands in an output where bytes of it are not: one line, at their place in the text.

Every reader uses it: `rota logs`, `rota run`, the Python client, the HTTP API. A text without a mark is whole.
"""

from __future__ import annotations

from typing import Final

#: Why bytes in the middle of the output of an ended job are not there: there were too many.
NOT_KEPT: Final = "not kept; to keep more, raise the setting keep_output"
_LONGEST: Final = 500


def mark(missing: int, why: str, *, after: bytes = b"\n") -> bytes:
    """The line for so many bytes (0: nobody knows how many). `after` is what was printed before it, for the mark
    begins a line of its own.
    """
    begin = "" if not after or after.endswith(b"\n") else "\n"
    count = "1 byte is" if missing == 1 else f"{missing} bytes are" if missing else "some output is"
    shown = "".join(each if each.isprintable() else "?" for each in why[:_LONGEST])  # a node may have said it
    return f"{begin}[rota: {count} missing here: {shown}]\n".encode()
