"""Specifications and environments of all jobs, stored once each and known by number."""

from __future__ import annotations

import base64
from collections import OrderedDict
from collections.abc import Callable
from hashlib import blake2b

import msgspec

from rota.core.events import LibraryGrew
from rota.core.jobs.job import Spec
from rota.core.rows import EnvRow, SpecRow

_ENVS_REMEMBERED = 256


class Library:
    """Specifications and environments by content, each with its number in the store.

    What is new is handed over by `grown` until it is stored: it may come with a submission that is refused, and
    the next one that has it must not rely on a row that nobody wrote.
    """

    def __init__(self, *, specs: dict[int, Spec], env_ids: dict[str, int], next_spec: int, next_env: int) -> None:
        self.specs = specs
        self._spec_ids = {spec: number for number, spec in specs.items()}
        self._env_ids = env_ids
        self._next_spec = next_spec
        self._next_env = next_env
        self._blobs: OrderedDict[int, bytes] = OrderedDict()
        self._new = LibraryGrew(specs=[], envs=[])

    def grown(self) -> list[LibraryGrew]:
        """What has to be stored before any job that uses it: an event, or none."""
        new = self._new
        if not (new.specs or new.envs):
            return []
        self._new = LibraryGrew(specs=[], envs=[])
        return [new]

    def spec(self, spec: Spec) -> int:
        """The number of this specification, perhaps a new one."""
        number = self._spec_ids.get(spec)
        if number is None:
            number = self._next_spec
            self._next_spec += 1
            self._spec_ids[spec] = number
            self.specs[number] = spec
            self._new.specs.append(SpecRow(number, msgspec.json.encode(spec).decode()))
        return number

    def env(self, blob: bytes) -> int:
        """The number of this environment, perhaps a new one."""
        digest = blake2b(blob, digest_size=16).hexdigest()
        number = self._env_ids.get(digest)
        if number is None:
            number = self._next_env
            self._next_env += 1
            self._env_ids[digest] = number
            self._new.envs.append(EnvRow(number, digest, base64.b64encode(blob).decode()))
        self._remember(number, blob)
        return number

    def remembers(self, number: int) -> bool:
        """Is the environment with this number remembered? If so, it is for some time."""
        if number not in self._blobs:
            return False
        self._blobs.move_to_end(number)
        return True

    def blob(self, number: int, read: Callable[[int], bytes]) -> bytes:
        """The environment with this number; `read` finds one that is not remembered."""
        blob = self._blobs.get(number)
        if blob is None:
            blob = read(number)
            self._remember(number, blob)
        return blob

    def _remember(self, number: int, blob: bytes) -> None:
        self._blobs[number] = blob
        self._blobs.move_to_end(number)
        if len(self._blobs) > _ENVS_REMEMBERED:
            self._blobs.popitem(last=False)
