"""The environment and working directory of jobs, prepared once per specification.

Only what differs between the jobs of one specification is filled in at each start.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

import msgspec

from rota.launcher.nodefile import nodefile_path
from rota.launcher.scratch import Scratch
from rota.launcher.variables import Variables
from rota.plan.size import CORE, Size
from rota.runner.start.errands import own_variables, ticket_path
from rota.runner.start.mpi import mpi
from rota.runner.start.own_variables import OF_ONE_JOB
from rota.wire.job_structs import RunSpec
from rota.wire.orders import Allocation, Grant, Work

DEFAULT_PATH = b"/usr/local/bin:/usr/bin:/bin"
#: Slots at the beginning of every environment that are filled in at each start.
_JOB, _ATTEMPT, _LEASE, _ROTA_TMPDIR, _TMPDIR, _SCRATCH = range(6)  #: the last two where the job has them
#: The descriptor on which jobs that have `ROTA_PROGRESS` say how far they are. Shells know those below 10 only.
PROGRESS_FD = 9
_PROGRESS = b"ROTA_PROGRESS"


def job_entry(job: int) -> bytes:
    return b"ROTA_JOB_ID=%d" % job


def index_entry(index: int) -> bytes:
    return b"ROTA_ARRAY_INDEX=%d" % index


class Environment(Variables):
    """The variables of one specification, for jobs of equal size and array, or for one attempt with an
    allocation."""

    __slots__ = (
        "_attempt", "_cores_at", "_cores_entry", "_index_at",
        "behaves", "cwd", "plain", "scratch_goes", "size", "spec", "stored", "tells",
    )  # fmt: skip

    def __init__(
        self,
        spec: RunSpec,
        stored: bytes,
        *,
        size: Size | None = None,
        array: int | None = None,
        allocation: Allocation | None = None,
        nodefile: str = "",
        more: Mapping[bytes, bytes] | None = None,
    ) -> None:
        if allocation is not None and allocation.walltime_s is not None:
            spec = msgspec.structs.replace(spec, walltime_s=allocation.walltime_s)
        self.spec = spec
        self.stored = stored  #: the variables as the manager sent them
        self.size = size or spec.size  #: what its jobs take of the host
        self.cwd = spec.cwd.encode("utf-8", "surrogateescape")
        #: Does something remain to be done when the command has ended?
        self.behaves = bool(spec.on_success or spec.on_failure or spec.on_exit)
        #: Is the scratch directory removed if the end of an attempt was not seen?
        self.scratch_goes = spec.scratch and scratch_goes(spec, ok=False)
        #: Can a plain shell run its commands?
        self.plain = not (
            spec.scratch
            or spec.pipefail
            or spec.walltime_s is not None
            or spec.stdout
            or spec.stderr
            or self.behaves
            or spec.interactive
            or allocation is not None
        )
        own = _own(spec, self.size)
        if array is not None:
            own[b"ROTA_ARRAY_ID"] = b"%d" % array
        user: dict[bytes, bytes] = {}
        for entry in stored.split(b"\0"):
            name, equals, value = entry.partition(b"=")
            if equals and name:
                user[name] = value
        tmpdir = user.pop(b"TMPDIR", b"")
        #: May its jobs say how far they are?
        self.tells = _PROGRESS in user
        if self.tells:
            own[_PROGRESS] = b"%d" % PROGRESS_FD
        if b"OMP_NUM_THREADS" not in user:
            own[b"OMP_NUM_THREADS"] = b"%d" % max(1, self.size.cpus // CORE)
        if b"ROTA_SUBMIT_DIR" not in user:  # the submitter may have set it
            own[b"ROTA_SUBMIT_DIR"] = self.cwd
        for name in OF_ONE_JOB:  # of the job that submitted this one
            user.pop(name, None)
        if spec.gang:
            own[b"ROTA_GANG"] = spec.gang.encode()
        if allocation is not None:
            if allocation.gang_hosts:
                own[b"ROTA_GANG_HOSTS"] = allocation.gang_hosts.encode("utf-8", "surrogateescape")
            if allocation.nodes:
                own[b"ROTA_NODEFILE"] = os.fsencode(nodefile)
                own[b"ROTA_NODES"] = b"%d" % len(allocation.nodes)
            own.update({name: value for name, value in mpi(allocation, nodefile).items() if name not in user})
        user.update(own)
        user.update(more or {})
        slots = [b"", b"", b"", b"ROTA_TMPDIR=" + (tmpdir or b"/tmp")]
        if tmpdir or spec.scratch:
            slots.append(b"TMPDIR=" + tmpdir)
        if spec.scratch:
            slots.append(b"")
            if tmpdir:  # what it adds itself is not to write where it may
                user[b"ROTA_SUBMIT_TMPDIR"] = tmpdir
        self._index_at = len(slots)
        if array is not None:
            slots.append(index_entry(0))
        entries = slots + [name + b"=" + value for name, value in user.items()]
        self._cores_at = len(entries)  # the last one: without it the vector ends there
        self._cores_entry: bytes | None = b""
        entries.append(b"")
        super().__init__(entries, user.get(b"PATH", DEFAULT_PATH))
        self._attempt = 0

    def fill(self, job_entry: bytes, attempt: int, lease_entry: bytes) -> None:
        """Make the vector that of one attempt."""
        vector = self._vector
        vector[_JOB] = job_entry
        vector[_LEASE] = lease_entry
        if attempt != self._attempt:
            self._attempt = attempt
            vector[_ATTEMPT] = b"ROTA_ATTEMPT=%d" % attempt

    def at_index(self, entry: bytes) -> None:
        """Set the array index of the next attempt."""
        self._vector[self._index_at] = entry

    def on_cores(self, entry: bytes | None) -> None:
        """Set (or leave out) the list of cores of the next attempt."""
        if entry is not self._cores_entry:
            self._cores_entry = entry
            self._vector[self._cores_at] = entry

    def in_scratch(self, scratch: Scratch) -> None:
        """Set the private directories of the next attempt; its specification has `scratch`."""
        tmpdir = os.fsencode(scratch.tmp)
        self._vector[_SCRATCH] = b"ROTA_SCRATCH=" + os.fsencode(scratch.path)
        self._vector[_TMPDIR] = b"TMPDIR=" + tmpdir
        self._vector[_ROTA_TMPDIR] = b"ROTA_TMPDIR=" + tmpdir


class Catalogue:
    """Specifications and environments that the manager has sent."""

    def __init__(self, scratch_root: str = "") -> None:
        self._scratch_root = scratch_root
        self.more: dict[bytes, bytes] = {}  #: variables that all jobs here have
        self._specs: dict[int, RunSpec] = {}
        self._envs: dict[int, bytes] = {}
        self._made: dict[int, dict[tuple[Size | None, int | None], Environment]] = {}

    def learn(self, work: Work) -> None:
        for number, entries in work.envs:
            self._envs[number] = entries
        for spec in work.specs:
            self._specs[spec.id] = spec
            self._made.pop(spec.id, None)

    def environment(self, grant: Grant) -> Environment | None:
        """The environment of a lease, or None if its specification is not known."""
        number, element = grant.spec, grant.element
        key = (grant.size, element.array if element is not None else None)
        made = self._made.get(number)
        if made is None:
            if number not in self._specs:
                return None
            made = self._made[number] = {}
        if grant.allocation is not None:
            return self._allocated(grant, grant.allocation)
        if grant.errand is not None:
            spec = self._specs[number]
            stored = own_variables() + b"\0" + self._envs.get(spec.env, b"")
            return Environment(spec, stored, size=grant.size, more=self._more(grant))
        environment = made.get(key)
        if environment is None:
            spec = self._specs[number]
            stored = self._envs.get(spec.env, b"")
            environment = made[key] = Environment(spec, stored, size=key[0], array=key[1], more=self.more)
        return environment

    def rebuilt(self, grant: Grant, spec: RunSpec, stored: bytes) -> Environment:
        """The environment of a lease that an earlier runner has begun."""
        allocation = grant.allocation
        return Environment(
            spec,
            stored,
            size=grant.size,
            array=None if grant.element is None else grant.element.array,
            allocation=allocation,
            nodefile="" if allocation is None else nodefile_path(self._scratch_root, grant.job, grant.attempt),
            more=self._more(grant),
        )

    def _more(self, grant: Grant) -> dict[bytes, bytes]:
        """Variables besides those that were sent."""
        if grant.errand is None or not grant.errand.ticket:
            return self.more
        path = ticket_path(self._scratch_root, (grant.job, grant.attempt, grant.token))
        return {**self.more, b"ROTA_TICKET": os.fsencode(path)}

    def _allocated(self, grant: Grant, allocation: Allocation) -> Environment:
        """An environment for one attempt that has an allocation."""
        spec = self._specs[grant.spec]
        return Environment(
            spec,
            self._envs.get(spec.env, b""),
            size=grant.size,
            array=None if grant.element is None else grant.element.array,
            allocation=allocation,
            nodefile=nodefile_path(self._scratch_root, grant.job, grant.attempt),
            more=self.more,
        )

    def clear(self) -> None:
        """On a new connection the manager sends again what it refers to."""
        self._specs.clear()
        self._envs.clear()
        self._made.clear()


def scratch_goes(spec: RunSpec, *, ok: bool) -> bool:
    """Is the scratch directory removed in the end? Yes, unless a `cleanup` behaviour names another outcome."""
    done = (spec.on_success if ok else spec.on_failure) + spec.on_exit
    return "cleanup" in done or "cleanup" not in spec.on_success + spec.on_failure


def _own(spec: RunSpec, size: Size) -> dict[bytes, bytes]:
    own = {
        b"ROTA_JOB_NAME": spec.name,
        b"ROTA_GROUP": spec.group,
        b"ROTA_CPUS": f"{size.cpus / CORE:g}",
        b"ROTA_MEM_MB": str(size.mem // (1024 * 1024)),
        b"ROTA_WALLTIME_S": f"{spec.walltime_s:g}" if spec.walltime_s is not None else "",
    }
    return {name: value.replace("\0", "").encode("utf-8", "surrogateescape") for name, value in own.items()}
