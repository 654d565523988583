"""Input files that are read whole: a path, or `-` for stdin."""

from __future__ import annotations

import sys

from rota.errors import BadInput


def read_input(path: str, *, most: int, what: str, too_large: str) -> bytes:
    """All bytes of a file or of stdin, of which there may be `most`. Raises `BadInput`.

    `what` names the kind of file, and `too_large` is the hint for one that has more bytes.
    """
    try:
        if path == "-":
            data = sys.stdin.buffer.read(most + 1)
        else:
            with open(path, "rb") as file:
                data = file.read(most + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise BadInput(f"cannot read {path}: {reason}", hint=f"give {what}, or '-' for stdin") from None
    if len(data) > most:
        limit = f"{most >> 30} GiB" if most >= 1 << 30 else f"{most >> 20} MiB"
        raise BadInput(f"{path} is larger than {limit}", hint=too_large)
    return data
