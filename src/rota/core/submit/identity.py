"""The identity key of a job: a 128-bit hash.

It covers the user, the command, the directory, the array index, and n for the n-th equal entry of one input.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Protocol

from rota.core.jobs.job import Command

_SEPARATOR = b"\0"


class KeyMaker(Protocol):
    """Computes the key of the n-th equal command, or of one element of its array."""

    def __call__(self, cmd: Command, n: int, index: int | None = None) -> str: ...


def key_maker(*, user: str, cwd: str | None) -> KeyMaker:
    """Return a function that computes the key of the n-th equal command, or of one element of its array.

    `cwd` is None for scratch jobs: their directory is not part of their identity.
    """
    start = blake2b(digest_size=16)
    for part in (user, "" if cwd is None else cwd):
        start.update(part.encode("utf-8", "surrogateescape") + _SEPARATOR)

    def key(cmd: Command, n: int, index: int | None = None) -> str:
        digest = start.copy()
        if index is not None:
            digest.update(b"a%d\0" % index)
        # n comes before the command: after a list it could be taken for one more argument.
        if isinstance(cmd, str):
            digest.update(b"s%d\0" % n + cmd.encode())
        else:
            digest.update(b"l%d\0" % n)
            for part in cmd:
                digest.update(part.encode() + _SEPARATOR)
        return digest.hexdigest()

    return key
