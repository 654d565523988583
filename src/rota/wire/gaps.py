"""The mark that stands in an output where bytes of it are not: one line, at their place in the text.

Every reader uses it: `rota logs`, `rota run`, the Python client, the HTTP API. A text without a mark is whole.
"""

from __future__ import annotations

from typing import Final

#: Why bytes in the middle of the output of an ended job are not there: there were too many.
NOT_KEPT: Final = "not kept; to keep more, raise the setting keep_output"


def mark(missing: int, why: str, *, after: bytes = b"\n") -> bytes:
    """The line for so many bytes. `after` is what was printed before it: the mark begins a line of its own.

    `why` is one line of harmless text, like `NOT_KEPT`.
    """
    begin = "" if not after or after.endswith(b"\n") else "\n"
    count = "1 byte is" if missing == 1 else f"{missing} bytes are"
    return f"{begin}[rota: {count} missing here: {why}]\n".encode()
