"""The environment and working directory of jobs, prepared once per specification.

Only what differs between the jobs of one specification is filled in at each start.
"""

from __future__ import annotations

from rota.plan.size import CORE
from rota.runner import libc
from rota.wire.messages import RunSpec, Work

DEFAULT_PATH = b"/usr/local/bin:/usr/bin:/bin"
#: Slots at the beginning of every environment that are filled in at each start.
_JOB, _ATTEMPT, _LEASE, _ROTA_TMPDIR, _TMPDIR = range(5)


def job_entry(job: int) -> bytes:
    return b"ROTA_JOB_ID=%d" % job


def lease_entry(token: int) -> bytes:
    """What a process of a lease carries in its environment, for whoever looks for survivors."""
    return b"ROTA_LEASE=%x" % token


class Environment:
    """The variables of the jobs of one specification."""

    __slots__ = ("_attempt", "_vector", "address", "cwd", "path", "spec")

    def __init__(self, spec: RunSpec, stored: bytes) -> None:
        self.spec = spec
        self.cwd = spec.cwd.encode("utf-8", "surrogateescape")
        own = _own(spec)
        user: dict[bytes, bytes] = {}
        for entry in stored.split(b"\0"):
            name, equals, value = entry.partition(b"=")
            if equals and name:
                user[name] = value
        self.path = user.get(b"PATH", DEFAULT_PATH)
        tmpdir = user.pop(b"TMPDIR", b"")
        if b"OMP_NUM_THREADS" not in user:
            own[b"OMP_NUM_THREADS"] = b"%d" % max(1, spec.size.cpus // CORE)
        if b"ROTA_SUBMIT_DIR" not in user:  # whoever submitted knows better than we
            own[b"ROTA_SUBMIT_DIR"] = self.cwd
        user.update(own)
        for name in (b"ROTA_JOB_ID", b"ROTA_ATTEMPT", b"ROTA_LEASE", b"ROTA_TMPDIR"):
            user.pop(name, None)
        slots = [b"", b"", b"", b"ROTA_TMPDIR=" + (tmpdir or b"/tmp")]
        if tmpdir or spec.scratch:
            slots.append(b"TMPDIR=" + tmpdir)
        self._vector = libc.strings(slots + [name + b"=" + value for name, value in user.items()])
        self._attempt = 0
        self.address = libc.address(self._vector)  #: of the vector, for `spawn`

    def fill(self, job_entry: bytes, attempt: int, lease_entry: bytes) -> None:
        """Make the vector that of one attempt."""
        vector = self._vector
        vector[_JOB] = job_entry
        vector[_LEASE] = lease_entry
        if attempt != self._attempt:
            self._attempt = attempt
            vector[_ATTEMPT] = b"ROTA_ATTEMPT=%d" % attempt

    def in_scratch(self, tmpdir: bytes) -> None:
        """Set the directory for temporary files of the next attempt; its specification has `scratch`."""
        self._vector[_TMPDIR] = b"TMPDIR=" + tmpdir
        self._vector[_ROTA_TMPDIR] = b"ROTA_TMPDIR=" + tmpdir


class Catalogue:
    """What the manager has told about specifications and environments."""

    def __init__(self) -> None:
        self._specs: dict[int, RunSpec] = {}
        self._envs: dict[int, bytes] = {}
        self._made: dict[int, Environment] = {}

    def learn(self, work: Work) -> None:
        for number, entries in work.envs:
            self._envs[number] = entries
        for spec in work.specs:
            self._specs[spec.id] = spec
            self._made.pop(spec.id, None)

    def environment(self, number: int) -> Environment | None:
        """Of a specification, or None if it is not known."""
        made = self._made.get(number)
        if made is None and (spec := self._specs.get(number)) is not None:
            made = self._made[number] = Environment(spec, self._envs.get(spec.env, b""))
        return made

    def clear(self) -> None:
        """On a new connection the manager tells again what it refers to."""
        self._specs.clear()
        self._envs.clear()
        self._made.clear()


def _own(spec: RunSpec) -> dict[bytes, bytes]:
    size = spec.size
    own = {
        b"ROTA_JOB_NAME": spec.name,
        b"ROTA_GROUP": spec.group,
        b"ROTA_CPUS": f"{size.cpus / CORE:g}",
        b"ROTA_MEM_MB": str(size.mem // (1024 * 1024)),
        b"ROTA_WALLTIME_S": f"{spec.walltime_s:g}" if spec.walltime_s is not None else "",
    }
    return {name: value.replace("\0", "").encode("utf-8", "surrogateescape") for name, value in own.items()}
