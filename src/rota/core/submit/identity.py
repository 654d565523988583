"""What makes two jobs the same: 128 bits over user, command, directory, array index, and the n of the n-th
equal entry of one input."""

from __future__ import annotations

from hashlib import blake2b
from typing import Protocol

from rota.core.jobs.job import Command

_SEPARATOR = b"\0"


class KeyMaker(Protocol):
    def __call__(self, cmd: Command, n: int, index: int | None = None) -> str: ...


def key_maker(*, user: str, cwd: str | None) -> KeyMaker:
    """A function that gives the key of the n-th equal command (from 0) of one user and directory, or of
    one element of an array of it.

    `cwd` is None for scratch jobs, whose directory is not part of what they are.
    """
    start = blake2b(digest_size=16)
    for part in (user, "" if cwd is None else cwd):
        start.update(part.encode("utf-8", "surrogateescape") + _SEPARATOR)

    def key(cmd: Command, n: int, index: int | None = None) -> str:
        digest = start.copy()
        if index is not None:
            digest.update(b"a%d\0" % index)
        # n comes first: behind a list it could be taken for one more argument.
        if isinstance(cmd, str):
            digest.update(b"s%d\0" % n + cmd.encode())
        else:
            digest.update(b"l%d\0" % n)
            for part in cmd:
                digest.update(part.encode() + _SEPARATOR)
        return digest.hexdigest()

    return key
