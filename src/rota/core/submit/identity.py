"""The identity key of a job: a 128-bit hash.

It covers the user, the command, the directory, the array index, and n for the n-th equal entry of one input.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Final, Protocol

from rota.core.jobs.command import Command, command_to_text, identity_bytes
from rota.core.jobs.job import Job, Spec
from rota.errors import BadInput

_SEPARATOR = b"\0"
#: Equal entries of one input among which the place of a job is searched for.
_MOST_EQUAL: Final = 1 << 20


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
        digest.update(identity_bytes(cmd, n))
        return digest.hexdigest()

    return key


def spec_keys(spec: Spec) -> KeyMaker:
    """Return a function that computes the keys of jobs with this specification."""
    return key_maker(user=spec.user, cwd=None if spec.scratch else spec.cwd)


def redefined_keys(jobs: Iterable[tuple[Job, Spec]], cmd: Command | None) -> dict[int, str]:
    """The keys of jobs with other specifications and, unless it is None, another command.

    A job with another command is the first such entry. One that only changes its directory stays the n-th equal
    entry of its input. Raises `BadInput`.
    """
    makers: dict[Spec, KeyMaker] = {}
    places = _Places()
    keys: dict[int, str] = {}
    for job, spec in jobs:
        make = makers.get(spec)
        if make is None:
            make = makers[spec] = spec_keys(spec)
        index = job.element.index if job.element is not None else None
        if cmd is not None and cmd != job.cmd:
            keys[job.id] = make(cmd, 0, index)
        elif (spec.scratch, spec.cwd) == (job.spec.scratch, job.spec.cwd):
            keys[job.id] = job.key
        else:
            keys[job.id] = make(job.cmd, places.of(job, index), index)
    return keys


class _Places:
    """Which of several equal entries a job is: its key tells, compared with those of all places in turn."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str | None, str, int | None], dict[str, int]] = {}

    def of(self, job: Job, index: int | None) -> int:
        cwd = None if job.spec.scratch else job.spec.cwd
        known = self._known.setdefault((job.spec.user, cwd, command_to_text(job.cmd), index), {})
        make = key_maker(user=job.spec.user, cwd=cwd)
        while job.key not in known:
            if len(known) >= _MOST_EQUAL:
                raise BadInput(f"job {job.id} cannot be moved", hint="remove it and add it anew")
            known[make(job.cmd, len(known), index)] = len(known)
        return known[job.key]
