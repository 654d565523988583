"""Turns the chunks of a submission into events: keys, stored specifications, and what the store knows.

Reads the store, changes nothing; the engine decides.
"""

from __future__ import annotations

from rota.core.admission.admission import Admission
from rota.core.admission.limit_uses import resolve
from rota.core.events import Asker, ChunkArrived, EntryAfter
from rota.core.fields.values import MAX_COMMAND, MAX_ENVIRONMENT, MAX_NAME, MAX_PATH
from rota.core.jobs.command import Command, texts_of
from rota.core.jobs.job import Condition, Job, Spec
from rota.core.rows import KnownJob
from rota.core.submit.identity import KeyMaker, key_maker
from rota.core.submit.spec_library import Library
from rota.errors import BadInput
from rota.manager.submit.lookups import ArrayElements, EarlierJobs, JobsByCommand, LastInput, line_of, parents_of
from rota.plan.policy.limits import Limit, Limits
from rota.units import MAX_BYTES
from rota.wire import messages as m
from rota.wire.specs import spec_from, wanted_limits

#: Dependencies in one chunk. They are decided about in one turn, while everything else waits.
MOST_AFTER = 1_000_000
_MOST_NOTICES = 10
#: Characters of a path, or of a name that is given instead of one.
_LONGEST_INPUT = 8192


class Intake:
    """One submission that is being received."""

    def __init__(
        self,
        submission: str,
        user: str,
        library: Library,
        limits: Limits,
        admission: Admission,
        *,
        admin: bool = False,
    ) -> None:
        self.submission = submission
        self.user = user
        self.dep_groups: set[str] = set()  #: that its jobs may join
        self._library = library
        self._limits = limits
        self._admission = admission
        self._admin = admin  #: an administrator brings it
        self._notices: list[str] = []  #: for the answer
        self._homes: set[str] = set()  #: containers that its jobs name
        self._reserving = False  #: it may bring reservations
        self._reserved = 0  #: the number that it brought
        self._declared: dict[str, Limit] = {}  #: by its jobs
        self._envs: list[int] = []
        self._specs: list[Spec] = []
        self._wished: dict[int, Spec] = {}  #: reservations as they were asked for, by the number of their spec
        self._spec_ids: list[int] = []
        self._keys: list[KeyMaker] = []
        self._seen: dict[str, int] = {}  #: key of a command → how often it came in this submission
        self._fresh: set[int] = set()
        self._rerun: set[int] = set()
        self.reruns = False  #: it may replace jobs
        self._allowed: set[int] = set()

    def check(self, add: m.Add) -> None:
        """Raise `BadInput` for a chunk that is malformed."""
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
        if len(add.after) > MOST_AFTER:
            raise BadInput(
                f"more than {MOST_AFTER:,} dependencies at once",
                field="after",
                hint="put the jobs that are waited for in a group with 'dep_groups' and wait for '@group'",
            )
        end = add.first + len(add.cmds)
        if any(not add.first <= each.entry < end for each in add.after):
            raise BadInput("a dependency does not belong to this chunk")
        for each in add.after:
            check_after(each)
        own = (*(each.entry for each in add.elements), *(entry for entry, _bytes in add.inputs))
        if any(not add.first <= entry < end for entry in own):
            raise BadInput("an element of an array does not belong to this chunk")
        if len(add.input) > _LONGEST_INPUT or "\0" in add.input:
            raise BadInput("the name of the input is too long", hint="give a shorter one with --input")
        if any(not 0 <= number < MAX_BYTES for _entry, number in add.inputs):
            raise BadInput("out of range", field="input_bytes")
        if any(not 0 <= each.index < 2**53 or not 0 <= each.array < 2**53 for each in add.elements):
            raise BadInput("an index is out of range", field="array")
        for position, cmd in enumerate(add.cmds):
            check_command(cmd, line_of(add, position))
        if any(len(blob) > MAX_ENVIRONMENT for blob in add.envs):
            raise BadInput("the environment is too large", hint=f"keep it under {MAX_ENVIRONMENT >> 20} MiB")

    def keys(self, add: m.Add) -> list[str]:
        """Take in specifications and environments; the key of each command of the chunk."""
        self._envs += [self._library.env(blob) for blob in add.envs]
        for new in add.specs:
            try:
                uses = resolve(
                    wanted_limits(new.limits), self._limits, self._declared, user=self.user, admin=self._admin
                )
                spec = spec_from(new, uses, user=self.user, env=self._envs[new.env])
                admitted = self._admission.admit(spec, admin=self._admin)
                if spec.at is not None:
                    self._wished[len(self._specs)] = spec
                spec = admitted.spec
                notices = [*admitted.notices, *self._missing_container(spec)]
                if spec.at is not None and (notice := self._admission.unanswered(spec)):
                    notices.append(notice)
            except BadInput as error:
                raise self._placed(add, error) from None
            if notices and len(self._notices) < _MOST_NOTICES:
                self._notices += [self._placed(add, BadInput(text)).message for text in notices]
            self.dep_groups.update(spec.dep_groups)
            self._reserving |= spec.at is not None
            self._specs.append(spec)
            self._spec_ids.append(self._library.spec(spec))
            self._keys.append(key_maker(user=self.user, cwd=None if spec.scratch else spec.cwd))
        seen = self._seen
        indexes = {each.entry: each.index for each in add.elements}
        keys = []
        makers, spec_of = self._keys, add.spec_of
        maker = makers[0]
        for position, cmd in enumerate(add.cmds):
            if spec_of is not None:
                maker = makers[spec_of[position]]
            index = indexes.get(add.first + position) if indexes else None
            key = maker(cmd, 0, index)
            n = seen.get(key)
            if n is None:
                seen[key] = 1
            else:
                seen[key] = n + 1
                key = maker(cmd, n, index)
            keys.append(key)
        if self._reserving:
            self._refuse_reservations(add, keys)
        return keys

    def _missing_container(self, spec: Spec) -> list[str]:
        """A notice for a job whose container does not exist, once per container."""
        home = next((word for word in spec.types if word.startswith("inner=")), "")
        if not home or home in self._homes:
            return []
        self._homes.add(home)
        notice = self._admission.missing_container(spec, self._specs)
        return [notice] if notice else []

    def _refuse_reservations(self, add: m.Add, keys: list[str]) -> None:
        """Raise `BadInput` at the first reservation that is one too many for the user."""
        waiting = self._admission.waiting_reservations(self.user)
        for position, key in enumerate(keys):
            wished = self._wished.get(add.spec_of[position] if add.spec_of is not None else 0)
            new = add.fresh or add.first + position in add.fresh_entries or not self._admission.is_known(key)
            if wished is not None and new:
                self._reserved += 1
                try:
                    self._admission.refuse_reservation(wished, waiting + self._reserved, admin=self._admin)
                except BadInput as error:
                    line = line_of(add, position)
                    raise error.at(line=line) from None

    def _placed(self, add: m.Add, error: BadInput) -> BadInput:
        """The error with the line of the first command that has the next specification."""
        wanted = len(self._specs)
        spec_of = add.spec_of or [0] * len(add.cmds)
        if wanted not in spec_of:
            return error
        line = line_of(add, spec_of.index(wanted))
        return error.at(line=line)

    def event(
        self,
        add: m.Add,
        by: Asker,
        *,
        keys: list[str],
        known: dict[str, KnownJob],
        loaded: dict[int, Job],
        dependents: dict[int, Job],
        arrays: ArrayElements,
        before: EarlierJobs,
        followers: dict[int, Job],
        last: LastInput,
        commanded: JobsByCommand,
    ) -> ChunkArrived:
        """The event for the engine."""
        self._fresh.update(add.fresh_entries)
        self._rerun.update(add.rerun_entries)
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
                EntryAfter(
                    each.entry,
                    parent if each.local else before.places.get(parent, parent),
                    Condition(each.condition),
                    each.local,
                )
                for each in add.after
                for parent in parents_of(each, arrays, commanded)
            ],
            known=known,
            loaded=loaded,
            last=not add.more,
            fresh=add.fresh or frozenset(self._fresh),
            check=add.check,
            allow_unsatisfiable=add.allow_unsatisfiable or frozenset(self._allowed),
            elements={each.entry: (each.array, each.index) for each in add.elements},
            inputs=dict(add.inputs),
            dependents=dependents,
            limits=[] if add.more else list(self._declared.values()),
            warnings=[] if add.more else self._notices,
            rerun=add.rerun or frozenset(self._rerun),
            namesakes=before.namesakes,
            formers=before.formers,
            followers=followers,
            input="" if add.more else add.input,
            previous=last.jobs,
            dropped=last.dropped,
            kept=last.kept,
        )


def check_after(each: m.NewAfter) -> None:
    """Raise `BadInput` for a dependency that is malformed."""
    if each.condition not in (1, 2, 3):
        raise BadInput("there is no such condition", field="after")
    if each.elements is not None:
        if each.local or isinstance(each.parent, str):
            raise BadInput("a dependency on elements needs the id of an array", field="after")
        if not 0 <= each.elements[0] <= each.elements[1] < 2**53:
            raise BadInput("an index is out of range", field="after")
    if each.cwd is not None:
        if each.local or not isinstance(each.parent, str) or len(each.cwd) > MAX_PATH:
            raise BadInput("a dependency on a command needs its text and its directory", field="after")
        check_command(each.parent)
    elif isinstance(each.parent, int):
        if not 0 <= each.parent < 2**53:
            raise BadInput("there is no such job", field="after")
    elif not 0 < len(each.parent) <= MAX_NAME or "\0" in each.parent:
        raise BadInput("a group needs a name", field="after")


def check_command(cmd: Command, line: int = 0) -> None:
    """Raise `BadInput` for a command that cannot be executed; `line`: where it is written."""
    parts = texts_of(cmd)
    if not parts or not parts[0]:
        raise BadInput("field 'cmd' is empty", line=line, hint="give a command").about("cmd")
    if sum(map(len, parts)) > MAX_ENVIRONMENT:
        raise BadInput("field 'cmd' is too long", line=line, hint="put it into a script").about("cmd")
    for part in parts:
        if "\0" in part:
            raise BadInput("field 'cmd' contains a NUL byte", line=line, hint="remove it").about("cmd")
        if len(part) > MAX_COMMAND // 4 and len(part.encode()) > MAX_COMMAND:
            raise BadInput(
                f"field 'cmd' is longer than {MAX_COMMAND} bytes", line=line, hint="put it into a script"
            ).about("cmd")
