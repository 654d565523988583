"""Gathers jobs into batches, the pieces of a submission. What the jobs share is stored once.

Plain commands are the hot path: thousands of them cost a few list operations.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from rota.client.entries import Entries
from rota.client.fields.array import Elements, throttle
from rota.client.fields.fields import Wanted
from rota.client.fields.inputs import InputFiles
from rota.client.fields.new_spec import new_spec
from rota.client.fields.parents import sent_parent
from rota.client.submit_environment import captured_environment
from rota.core.fields.after import MAX_PARENTS
from rota.core.fields.values import check_command
from rota.core.jobs.command import CALL_FIELDS, Call, Command, length
from rota.errors import BadInput
from rota.wire.client_messages import NewAfter, NewElement, NewSpec

#: Jobs in one message, and the approximate bytes of commands, specifications and environments.
BATCH: Final = 10_000
BATCH_BYTES: Final = 4 << 20
#: The most elements, and the most dependencies, that all arrays of a submission may have together.
MAX_OF_ARRAYS: Final = 5_000_000
MAX_PAIRS: Final = 2_000_000

#: Approximate size in a message of one element, one dependency and one specification.
_ELEMENT_BYTES: Final = 20
_AFTER_BYTES: Final = 12
_SPEC_BYTES: Final = 250


class UploadBatch(Struct):
    """Some jobs of a submission, in order; the pieces of an `Add` message."""

    first: int
    cmds: list[Command]
    specs: list[NewSpec]
    envs: list[bytes]
    spec_of: list[int] | None
    lines: list[int] | None
    after: list[NewAfter]
    rerun: list[int]
    allowed: list[int]
    elements: list[NewElement]
    inputs: list[tuple[int, int]]
    last: bool = False


class Most(Struct, frozen=True):
    """Limits on one submission, for a process that acts for users, such as the gateway."""

    jobs: int
    parents: int  #: of all its jobs together


class Resolved(Struct, frozen=True):
    """Fields after the defaults, the specification they became, and the size of the job's input."""

    wanted: Wanted
    spec: int
    input_bytes: int | None


class Forward(Struct, frozen=True):
    """Jobs that depend on a later line."""

    entries: range
    condition: int
    number: int  #: of the line they wait for
    line: int


class Builder:
    """Gathers jobs into batches and stores once what they share."""

    def __init__(self, base: Wanted, *, source: str = "", unit: str = "line", most: Most | None = None) -> None:
        self.base = base
        self._most = most
        self.source = source
        self.unit = unit  #: what `line:N` and errors count: lines or entries
        self.line_of_entry = 0  #: where the entry that is being added begins; 0: not known
        self.count = 0
        self._files = InputFiles()
        self._specs: dict[NewSpec, int] = {}
        self._envs: dict[tuple[tuple[str, str], ...], int] = {}
        self._known: dict[bytes, Resolved] = {}
        self._plain: Resolved | None = None
        self._new_specs: list[NewSpec] = []
        self._new_envs: list[bytes] = []
        self._cmds: list[Command] = []
        self._spec_of: list[int] = []
        self._lines: list[int] = []
        self._rerun: list[int] = []
        self._allowed: list[int] = []
        self._after: list[NewAfter] = []
        self._elements: list[NewElement] = []
        self._inputs: list[tuple[int, int]] = []
        self._forward: list[Forward] = []
        #: batches held back until those lines are known, because a dependency is sent with its job
        self._held: list[UploadBatch] = []
        self._entries = Entries()
        self._of_arrays = 0
        self._pairs = 0
        self._parents = 0
        self._bytes = 0

    # -- adding

    def plain(self, cmds: list[str], line: int) -> None:
        """Commands of consecutive lines, without fields of their own."""
        known = self._plain
        if known is None:
            known = self._plain = self._resolve(self.base, line)
        if known.wanted.is_array:
            for number, cmd in enumerate(cmds, line):
                self._array(cmd, known, number)
            return
        self._extend(cmds, line)
        self._spec_of += [known.spec] * len(cmds)
        self._bytes += sum(map(len, cmds))
        entries = range(self.count - len(cmds), self.count)
        if known.input_bytes is not None:
            self._inputs += [(entry, known.input_bytes) for entry in entries]
        if self.base.after:
            for number, entry in enumerate(entries, line):
                self._depend(range(entry, entry + 1), self.base, number)

    def fielded(self, fields: dict[str, object], line: int, cmd: str | None = None) -> None:
        """One job, or one array, with fields of its own."""
        given = fields.pop("cmd", None) if cmd is None else cmd
        try:
            command = _command(fields, given)
        except BadInput as error:
            raise self.bad(line, error.at(field="cmd")) from None
        known = self._resolved(fields, line)
        if known.wanted.is_array:
            self._array(command, known, line)
            return
        self._extend([command], line)
        self._bytes += length(command)
        self._settle(range(self.count - 1, self.count), known, known.spec, line)

    def _settle(self, entries: range, known: Resolved, spec: int, line: int) -> None:
        """Record everything about new entries except their commands."""
        self._spec_of += [spec] * len(entries)
        if known.input_bytes is not None:
            self._inputs += [(entry, known.input_bytes) for entry in entries]
        if known.wanted.rerun and not self.base.rerun:
            self._rerun += entries
        if known.wanted.allow_unsatisfiable and not self.base.allow_unsatisfiable:
            self._allowed += entries
        if known.wanted.after:
            self._depend(entries, known.wanted, line)

    def _resolved(self, fields: dict[str, object], line: int) -> Resolved:
        try:
            key = msgspec.msgpack.encode(fields)
        except (OverflowError, TypeError, UnicodeEncodeError, RecursionError):
            key = b""  # no field can have such a value: the check will report it
        known = self._known.get(key) if key else None
        if known is None:
            try:
                wanted = self.base.changed(fields)
                _check_contradiction(self.base, wanted)
            except BadInput as error:
                raise self.bad(line, error) from None
            known = self._resolve(wanted, line)
            if len(self._known) > 100_000:
                self._known.clear()
            self._known[key] = known
        return known

    def _resolve(self, wanted: Wanted, line: int) -> Resolved:
        size = wanted.input_bytes
        if wanted.input_file is not None:
            try:
                size = self._files.size(os.path.join(wanted.cwd, wanted.input_file))
            except BadInput as error:
                raise self.bad(line, error.at(field="input_file")) from None
        return Resolved(wanted, self._spec(wanted), size)

    def _check_count(self, jobs: int, line: int) -> None:
        if self._most is not None and jobs > self._most.jobs:
            message = f"these are more than {self._most.jobs:,} jobs"
            raise self.bad(line, BadInput(message, hint="add them in several calls"))

    def _extend(self, cmds: list[str] | list[Command], line: int) -> None:
        self._check_count(self.count + len(cmds), line)
        self._entries.extend(line, self.count, len(cmds))
        self._cmds += cmds
        self._lines += range(line, line + len(cmds))
        self.count += len(cmds)

    def _spec(self, wanted: Wanted) -> int:
        env = self._envs.get(wanted.env)
        if env is None:
            env = self._envs[wanted.env] = len(self._envs)
            self._new_envs.append(captured_environment(dict(wanted.env)))
            self._bytes += len(self._new_envs[-1])
        spec = new_spec(wanted, env)
        index = self._specs.get(spec)
        if index is None:
            index = self._specs[spec] = len(self._specs)
            self._new_specs.append(spec)
            texts = (spec.cwd, spec.name, spec.stdout, spec.stderr, spec.where, *spec.dep_groups)
            behaviours = (*spec.on_success, *spec.on_failure, *spec.on_exit)
            asked = (*spec.request, *spec.types)
            self._bytes += _SPEC_BYTES + sum(map(len, (*texts, *behaviours, *asked))) + 70 * len(spec.limits)
        return index

    # -- arrays

    def _array(self, cmd: Command, known: Resolved, line: int) -> None:
        """Add the elements of one array, in as many batches as needed."""
        wanted = known.wanted
        elements = self._elements_of(cmd, wanted, line)
        spec = known.spec
        if wanted.array is not None:
            use = throttle(wanted.array)
            if use is not None:
                spec = self._spec(msgspec.structs.replace(wanted, limits=(*wanted.limits, use)))
        self._of_arrays += len(elements)
        if self._of_arrays > MAX_OF_ARRAYS:
            raise self.bad(
                line,
                BadInput(f"arrays of more than {MAX_OF_ARRAYS} elements in all", hint="add them in several calls"),
            )
        self._check_count(self.count + len(elements), line)
        number = len(self._entries.arrays)
        self._entries.arrays[line] = range(self.count, self.count + len(elements))
        each = _ELEMENT_BYTES + _AFTER_BYTES * len(wanted.after)
        done = 0
        while done < len(elements):
            room = BATCH_BYTES - self._bytes
            many = min(BATCH - len(self._cmds), room // each)
            if many < 1 and self._cmds:
                self._held.append(self._take())
                continue
            try:
                cmds = elements.commands(done, max(1, many), room=room)
            except BadInput as error:
                raise self.bad(line, error.at(field="array_file")) from None
            indexes = elements.indexes(done, len(cmds))
            entries = range(self.count, self.count + len(cmds))
            self._cmds += cmds
            self._lines += [line] * len(cmds)
            self.count += len(cmds)
            self._elements += [
                NewElement(entry, number, index) for entry, index in zip(entries, indexes, strict=True)
            ]
            self._bytes += sum(map(length, cmds)) + _ELEMENT_BYTES * len(cmds)
            self._settle(entries, known, spec, line)
            done += len(cmds)

    def _elements_of(self, cmd: Command, wanted: Wanted, line: int) -> Elements:
        field = "array_file"
        try:
            lines = None if wanted.array_file is None else self._files.parameters(wanted.array_file)
            field = "array"
            return Elements(cmd, wanted.array, lines)
        except BadInput as error:
            raise self.bad(line, error.at(field=field)) from None

    # -- dependencies

    def _depend(self, entries: range, wanted: Wanted, line: int) -> None:
        for condition, of_line, parent in wanted.after:
            if not of_line:
                self._join(entries, range(1), line)
                named = sent_parent(parent)
                self._after += [
                    msgspec.structs.replace(named, entry=entry, condition=condition) for entry in entries
                ]
                length_of = len(named.parent) if isinstance(named.parent, str) else 0
                self._bytes += (_AFTER_BYTES + length_of) * len(entries)
                continue
            assert isinstance(parent, int)
            waiting = Forward(entries, condition, parent, line)
            if parent > line:
                self._forward.append(waiting)
            else:
                found = self._on_line(waiting)
                self._after += found
                self._bytes += _AFTER_BYTES * len(found)

    def _on_line(self, waiting: Forward) -> list[NewAfter]:
        number, line = waiting.number, waiting.line
        parents = self._entries.of(number)
        if not parents:
            message = f"{self.unit} {number} of this input is not a job"
            raise self.bad(line, BadInput(message, field="after", hint=f"name a {self.unit} with a command"))
        if number == line:
            raise self.bad(line, BadInput("it would wait for itself", field="after", hint="name another"))
        self._join(waiting.entries, parents, line)
        return [
            NewAfter(entry=entry, parent=parent, condition=waiting.condition, local=True)
            for entry in waiting.entries
            for parent in parents
        ]

    def _join(self, entries: Sequence[int], parents: Sequence[int], line: int) -> None:
        """Limit the dependencies of arrays: between two of a thousand elements each there could be a million."""
        self._parents += len(entries) * len(parents)
        if self._most is not None and self._parents > self._most.parents:
            message = f"more than {self._most.parents:,} dependencies in one call"
            hint = "put the jobs that are waited for in a group with 'dep_groups' and wait for '@group'"
            raise self.bad(line, BadInput(message, field="after", hint=hint))
        if line in self._entries.arrays or len(parents) > 1:
            self._pairs += len(entries) * len(parents)
        if self._pairs > MAX_PAIRS or len(parents) > MAX_PARENTS:
            raise self.bad(
                line,
                BadInput(
                    "too many dependencies between elements of arrays",
                    field="after",
                    hint="put the array that is waited for in a group with 'dep_groups' and wait for '@group'",
                ),
            )

    # -- taking

    def full(self) -> Iterator[UploadBatch]:
        """The batches that are full."""
        if len(self._cmds) >= BATCH or self._bytes >= BATCH_BYTES:
            self._held.append(self._take())
        if self._held and not self._forward:
            yield from self._held
            self._held.clear()

    def finish(self) -> Iterator[UploadBatch]:
        """The remaining batches. Raises `BadInput` if a dependency on a line cannot be resolved."""
        last = self._take()
        last.last = True
        self._held.append(last)
        starts = [batch.first for batch in self._held]
        for waiting in self._forward:
            # Entries that wait together were added together.
            batch = self._held[bisect_right(starts, waiting.entries[0]) - 1]
            batch.after += self._on_line(waiting)
        yield from self._held

    def _take(self) -> UploadBatch:
        first = self.count - len(self._cmds)
        # Numbers equal to the default are not sent.
        spec_of = self._spec_of if any(self._spec_of) else None
        lines = self._lines
        in_order = not lines or (lines[0] == first + 1 and lines[-1] == first + len(lines))
        batch = UploadBatch(
            first=first,
            cmds=self._cmds,
            specs=self._new_specs,
            envs=self._new_envs,
            spec_of=spec_of,
            lines=None if in_order and not self._elements else lines,
            after=self._after,
            rerun=self._rerun,
            allowed=self._allowed,
            elements=self._elements,
            inputs=self._inputs,
        )
        self._cmds, self._spec_of, self._lines = [], [], []
        self._new_specs, self._new_envs, self._after = [], [], []
        self._elements, self._inputs = [], []
        self._rerun, self._allowed, self._bytes = [], [], 0
        return batch

    def bad(self, number: int, error: BadInput) -> BadInput:
        """The same error, with the line or entry of this number as its place."""
        if self.unit == "line":
            return error.at(line=number, source=self.source)
        return error.at(line=self.line_of_entry, entry=number, source=self.source)


def _command(fields: dict[str, object], given: object) -> Command:
    """The command of a job, or the call that its fields describe, which are taken from them. Raises `BadInput`."""
    if not fields.keys().isdisjoint(CALL_FIELDS):
        if given is not None:
            raise BadInput("both a command and a call are given", field="call", hint="give one of them")
        from rota.core.fields.calls import take_call  # late: few jobs are calls

        return take_call(fields)
    if given is None:
        raise BadInput("missing", field="cmd", hint='write it like {"cmd": "sleep 1"}')
    return given if isinstance(given, Call) else check_command(given)


def _check_contradiction(base: Wanted, wanted: Wanted) -> None:
    """Refuse a line that revokes an option of the whole submission."""
    for name in ("rerun", "allow_unsatisfiable"):
        if getattr(base, name) and not getattr(wanted, name):
            flag = name.replace("_", "-")
            raise BadInput(f"contradicts --{flag}", field=name, hint="leave one of them out")
