"""What makes two jobs the same: 128 bits over user, command, directory and the n of the n-th equal entry."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b

from rota.core.job import Command

_SEPARATOR = b"\0"


def key_maker(*, user: str, cwd: str | None) -> Callable[[Command, int], str]:
    """A function that gives the key of the n-th equal command (from 0) of one user and directory.

    `cwd` is None for scratch jobs, whose directory is not part of what they are.
    """
    start = blake2b(digest_size=16)
    for part in (user, "" if cwd is None else cwd):
        start.update(part.encode("utf-8", "surrogateescape") + _SEPARATOR)

    def key(cmd: Command, n: int) -> str:
        digest = start.copy()
        # n comes first: behind a list it could be taken for one more argument.
        if isinstance(cmd, str):
            digest.update(b"s%d\0" % n + cmd.encode())
        else:
            digest.update(b"l%d\0" % n)
            for part in cmd:
                digest.update(part.encode() + _SEPARATOR)
        return digest.hexdigest()

    return key
