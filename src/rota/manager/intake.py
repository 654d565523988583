"""Turn the chunks of a submission into events: keys, stored specifications, and what the store knows.

Reads the store, changes nothing; the engine decides.
"""

from __future__ import annotations

import base64
from collections import OrderedDict
from collections.abc import Callable
from hashlib import blake2b

import msgspec

from rota.core.events import Asker, ChunkArrived, EntryAfter, LibraryGrew
from rota.core.identity import key_maker
from rota.core.job import Command, Condition, Job, Spec
from rota.core.states import RETRYABLE
from rota.errors import BadInput
from rota.manager.rows import job_from_row
from rota.store.base import Store
from rota.wire import messages as m

#: An argument list or environment may not be longer than the kernel takes.
MAX_ARGUMENT = 128 * 1024 - 1
MAX_ENV = 2 * 1024 * 1024
_ENVS_REMEMBERED = 256

_Key = Callable[[Command, int], str]


class Library:
    """Specifications and environments by content, each with its number in the store."""

    def __init__(self, *, specs: dict[int, Spec], env_ids: dict[str, int], next_spec: int, next_env: int) -> None:
        self.specs = specs
        self._spec_ids = {spec: number for number, spec in specs.items()}
        self._env_ids = env_ids
        self._next_spec = next_spec
        self._next_env = next_env
        self._blobs: OrderedDict[int, bytes] = OrderedDict()

    def spec(self, spec: Spec, new: list[tuple[int, str]]) -> int:
        """The number of this specification; a row is added to `new` if it has none yet."""
        number = self._spec_ids.get(spec)
        if number is None:
            number = self._next_spec
            self._next_spec += 1
            self._spec_ids[spec] = number
            self.specs[number] = spec
            new.append((number, msgspec.json.encode(spec).decode()))
        return number

    def env(self, blob: bytes, new: list[tuple[int, str, str]]) -> int:
        """The number of this environment; a row is added to `new` if it has none yet."""
        digest = blake2b(blob, digest_size=16).hexdigest()
        number = self._env_ids.get(digest)
        if number is None:
            number = self._next_env
            self._next_env += 1
            self._env_ids[digest] = number
            new.append((number, digest, base64.b64encode(blob).decode()))
        self._remember(number, blob)
        return number

    def blob(self, number: int, store: Store) -> bytes:
        """The environment with this number."""
        blob = self._blobs.get(number)
        if blob is None:
            blob = store.env(number)
            self._remember(number, blob)
        return blob

    def _remember(self, number: int, blob: bytes) -> None:
        self._blobs[number] = blob
        self._blobs.move_to_end(number)
        if len(self._blobs) > _ENVS_REMEMBERED:
            self._blobs.popitem(last=False)


class Intake:
    """One submission on its way in."""

    def __init__(self, submission: str, user: str, library: Library) -> None:
        self.submission = submission
        self.user = user
        self._library = library
        self._envs: list[int] = []
        self._specs: list[Spec] = []
        self._spec_ids: list[int] = []
        self._keys: list[_Key] = []
        self._seen: dict[str, int] = {}  #: key of a command → how often it came in this submission
        self._fresh: set[int] = set()
        self._allowed: set[int] = set()

    def check(self, add: m.Add) -> None:
        """Refuse what no client of ours sends. Raises `BadInput`."""
        if len(self._specs) + len(add.specs) == 0:
            raise BadInput("a submission needs a specification")
        if add.spec_of is not None and (
            len(add.spec_of) != len(add.cmds)
            or not all(0 <= index < len(self._specs) + len(add.specs) for index in add.spec_of)
        ):
            raise BadInput("the specifications do not fit the commands")
        if add.lines is not None and len(add.lines) != len(add.cmds):
            raise BadInput("the lines do not fit the commands")
        if any(not 0 <= spec.env < len(self._envs) + len(add.envs) for spec in add.specs):
            raise BadInput("a specification names an environment that was not sent")
        end = add.first + len(add.cmds)
        if any(not add.first <= each.entry < end or each.condition not in (1, 2, 3) for each in add.after):
            raise BadInput("a dependency does not belong to this chunk")
        for position, cmd in enumerate(add.cmds):
            _check_command(cmd, add.lines[position] if add.lines else add.first + position + 1)
        for spec in add.specs:
            _check_spec(spec)
        if any(len(blob) > MAX_ENV for blob in add.envs):
            raise BadInput("the environment is too large", hint=f"keep it under {MAX_ENV >> 20} MiB")

    def keys(self, add: m.Add, grew: LibraryGrew) -> list[str]:
        """Take in specifications and environments; the key of each command of the chunk."""
        self._envs += [self._library.env(blob, grew.envs) for blob in add.envs]
        for new in add.specs:
            spec = _spec(new, user=self.user, env=self._envs[new.env])
            self._specs.append(spec)
            self._spec_ids.append(self._library.spec(spec, grew.specs))
            self._keys.append(key_maker(user=self.user, cwd=None if spec.scratch else spec.cwd))
        seen = self._seen
        keys = []
        makers, spec_of = self._keys, add.spec_of
        maker = makers[0]
        for position, cmd in enumerate(add.cmds):
            if spec_of is not None:
                maker = makers[spec_of[position]]
            key = maker(cmd, 0)
            n = seen.get(key)
            if n is None:
                seen[key] = 1
            else:
                seen[key] = n + 1
                key = maker(cmd, n)
            keys.append(key)
        return keys

    def event(
        self,
        add: m.Add,
        by: Asker,
        *,
        keys: list[str],
        known: dict[str, tuple[int, int]],
        loaded: dict[int, Job],
    ) -> ChunkArrived:
        """What the engine is told."""
        self._fresh.update(add.fresh_entries)
        self._allowed.update(add.allowed_entries)
        return ChunkArrived(
            by=by,
            submission=self.submission,
            first=add.first,
            cmds=add.cmds,
            keys=keys,
            specs=self._specs,
            spec_ids=self._spec_ids,
            spec_of=add.spec_of,
            lines=add.lines,
            after=[
                EntryAfter(each.entry, each.parent, Condition(each.condition), each.local) for each in add.after
            ],
            known=known,
            loaded=loaded,
            last=not add.more,
            fresh=add.fresh or frozenset(self._fresh),
            check=add.check,
            allow_unsatisfiable=add.allow_unsatisfiable or frozenset(self._allowed),
        )


def look_up(
    store: Store, library: Library, user: str, keys: list[str]
) -> tuple[dict[str, tuple[int, int]], dict[int, Job]]:
    """What the store knows of these keys: (id, state), and the whole job where it will be retried."""
    known = store.known_keys(user, keys)
    again = [job for job, state in known.values() if state in RETRYABLE]
    return known, load_jobs(store, library, again)


def load_jobs(store: Store, library: Library, ids: list[int]) -> dict[int, Job]:
    """Finished jobs, from the store."""
    if not ids:
        return {}
    return {row.id: job_from_row(row, library.specs[row.spec_id]) for row in store.jobs(ids)}


def _check_command(cmd: Command, line: int) -> None:
    parts = [cmd] if isinstance(cmd, str) else cmd
    if not parts or not parts[0]:
        raise BadInput(f"line {line}: field 'cmd' is empty", hint="give a command")
    if sum(map(len, parts)) > MAX_ENV:
        raise BadInput(f"line {line}: field 'cmd' is too long", hint="put it into a script")
    for part in parts:
        if "\0" in part:
            raise BadInput(f"line {line}: field 'cmd' contains a NUL byte", hint="remove it")
        if len(part) > MAX_ARGUMENT // 4 and len(part.encode()) > MAX_ARGUMENT:
            raise BadInput(
                f"line {line}: field 'cmd' is longer than {MAX_ARGUMENT} bytes", hint="put it into a script"
            )


def _check_spec(spec: m.NewSpec) -> None:
    size = spec.size
    numbers = (size.cpus, size.mem, size.disk, size.time_s, size.gpus, spec.retries, spec.backoff_s)
    if any(not 0 <= number < 2**62 for number in numbers) or not 0 <= spec.priority <= 255:
        raise BadInput("a size, a priority or a number of retries is out of range")
    for limit in (spec.walltime_s, spec.no_retry_over_s):
        if limit is not None and not 0 <= limit < 2**53:
            raise BadInput("a duration is out of range")
    if not spec.cwd.startswith("/") or "\0" in spec.cwd:
        raise BadInput(f"field 'cwd': {spec.cwd!r} is not an absolute path")
    if spec.queue != "default":
        raise BadInput(f"field 'queue': there is no queue {spec.queue!r}", hint="use 'default'")
    if not spec.group or "\0" in spec.group + spec.name + spec.project:
        raise BadInput("field 'group': a group needs a name")


def _spec(new: m.NewSpec, *, user: str, env: int) -> Spec:
    return Spec(
        user=user,
        cwd=new.cwd,
        env=env,
        group=new.group,
        name=new.name,
        project=new.project,
        queue=new.queue,
        priority=new.priority,
        size=new.size,
        walltime_s=new.walltime_s,
        retries=new.retries,
        backoff_s=new.backoff_s,
        no_retry_over_s=new.no_retry_over_s,
        scratch=new.scratch,
        pipefail=new.pipefail,
    )
