"""Input for `add` and `run`: from bytes to batches of jobs that can be sent. Pure; opens nothing.

One command a line, one JSON object a line, a line of text with a tab and a JSON object behind it, or
one JSON array of objects. Blank lines and lines that begin with `#` are skipped. Whatever is wrong
raises `BadInput` that names the source, the line and the field. Plain lines are the hot path: a block
of them is checked with one regular expression and split by one call.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Generator, Iterable, Iterator, Mapping
from typing import Final

import msgspec
from msgspec import Struct

from rota.client.fields import MAX_COMMAND, Wanted, check_argument, check_command
from rota.client.here import captured_environment
from rota.errors import BadInput
from rota.wire.messages import NewAfter, NewSpec

#: Jobs in one message, and about how many bytes of commands, specifications and environments.
BATCH: Final = 10_000
BATCH_BYTES: Final = 4 << 20
MAX_LINE: Final = 1 << 20
MAX_ARRAY: Final = 512 << 20

_SPACE: Final = " \t\r\f\v"
#: A line that is not simply a command: blank, a comment, JSON, or with JSON behind a tab.
_SPECIAL: Final = re.compile(r"^[ \t\r\f\v]*(?:$|[#{])|\t[ \t]*\{", re.MULTILINE)
#: `{ cmd; }` is a shell's group, `{"cmd"…` an object, and `{cmd` can only be a mistaken object.
_OBJECT: Final = re.compile(r"\{(?:\s*[\"}]|\S)")
#: Likewise `[ -f x ]` and `[[ -f x ]]` are commands, `[{` is an array, and `[1` a mistaken one.
_ARRAY: Final = re.compile(rb"\s*\[(?:\s*[\{\]]|[^\s\[])")
_TRAILER: Final = re.compile(r"\t[ \t]*(?=\{)")


class Batch(Struct):
    """Some jobs of a submission, in order; the pieces of an `Add` message."""

    first: int
    cmds: list[str | list[str]]
    specs: list[NewSpec]
    envs: list[bytes]
    spec_of: list[int] | None
    lines: list[int] | None
    after: list[NewAfter]
    fresh: list[int]
    allowed: list[int]
    last: bool = False


class Builder:
    """Gathers jobs into batches and stores once what they share."""

    def __init__(self, base: Wanted, *, source: str = "", unit: str = "line") -> None:
        self.base = base
        self.source = source
        self.unit = unit  #: what the numbers in `line:N` and in errors count
        self.count = 0
        self._specs: dict[NewSpec, int] = {}
        self._envs: dict[tuple[tuple[str, str], ...], int] = {}
        self._known: dict[bytes, tuple[Wanted, int]] = {}
        self._base_spec = -1
        self._new_specs: list[NewSpec] = []
        self._new_envs: list[bytes] = []
        self._cmds: list[str | list[str]] = []
        self._spec_of: list[int] = []
        self._lines: list[int] = []
        self._fresh: list[int] = []
        self._allowed: list[int] = []
        self._after: list[NewAfter] = []
        #: (entry, condition, line of the parent, line) of those that wait for a line still to come
        self._forward: list[tuple[int, int, int, int]] = []
        #: batches that may not go before those lines are known, for a dependency goes with its job
        self._held: list[Batch] = []
        #: runs of lines that all hold a job: (first line, first entry, how many)
        self._runs: list[tuple[int, int, int]] = []
        self._bytes = 0

    # -- adding

    def plain(self, cmds: list[str], line: int) -> None:
        """Commands of consecutive lines, without fields of their own."""
        if self._base_spec < 0:
            self._base_spec = self._spec(self.base)
        self._extend(cmds, line)
        self._spec_of += [self._base_spec] * len(cmds)
        self._bytes += sum(map(len, cmds))
        if self.base.after:
            for entry in range(self.count - len(cmds), self.count):
                self._depend(entry, self.base, line + len(cmds) - self.count + entry)

    def fielded(self, fields: dict[str, object], line: int, cmd: str | None = None) -> None:
        """One job with fields of its own."""
        given = fields.pop("cmd", None) if cmd is None else cmd
        if given is None:
            if "call" in fields:
                raise self.bad(
                    line, BadInput("field 'call': not supported by this version yet", hint="give 'cmd'")
                )
            raise self.bad(line, BadInput("field 'cmd': missing", hint='write it like {"cmd": "sleep 1"}'))
        try:
            command = check_command(given)
        except BadInput as error:
            raise self.bad(line, BadInput(f"field 'cmd': {error.message}", hint=error.hint)) from None
        wanted, spec = self._resolved(fields, line)
        self._extend([command], line)
        self._spec_of.append(spec)
        self._bytes += len(command) if isinstance(command, str) else sum(map(len, command))
        entry = self.count - 1
        if wanted.rerun and not self.base.rerun:
            self._fresh.append(entry)
        if wanted.allow_unsatisfiable and not self.base.allow_unsatisfiable:
            self._allowed.append(entry)
        if wanted.after:
            self._depend(entry, wanted, line)

    def _resolved(self, fields: dict[str, object], line: int) -> tuple[Wanted, int]:
        try:
            key = msgspec.msgpack.encode(fields)
        except (OverflowError, TypeError, UnicodeEncodeError, RecursionError):
            key = b""  # nothing a field can be: the check will say so
        known = self._known.get(key) if key else None
        if known is None:
            try:
                wanted = self.base.changed(fields)
                _check_contradiction(self.base, wanted)
            except BadInput as error:
                raise self.bad(line, error) from None
            known = (wanted, self._spec(wanted))
            if len(self._known) > 100_000:
                self._known.clear()
            self._known[key] = known
        return known

    def _extend(self, cmds: list[str] | list[str | list[str]], line: int) -> None:
        if self._runs and self._runs[-1][0] + self._runs[-1][2] == line:
            start, entry, many = self._runs[-1]
            self._runs[-1] = (start, entry, many + len(cmds))
        else:
            self._runs.append((line, self.count, len(cmds)))
        self._cmds += cmds
        self._lines += range(line, line + len(cmds))
        self.count += len(cmds)

    def _spec(self, wanted: Wanted) -> int:
        env = self._envs.get(wanted.env)
        if env is None:
            env = self._envs[wanted.env] = len(self._envs)
            self._new_envs.append(captured_environment(dict(wanted.env)))
            self._bytes += len(self._new_envs[-1])
        spec = NewSpec(
            cwd=wanted.cwd,
            group=wanted.group,
            name=wanted.name,
            project=wanted.project,
            queue=wanted.queue,
            priority=wanted.priority,
            size=wanted.size,
            walltime_s=wanted.walltime,
            retries=wanted.retries,
            backoff_s=wanted.backoff,
            no_retry_over_s=wanted.no_retry_over,
            scratch=wanted.scratch,
            pipefail=wanted.pipefail,
            env=env,
        )
        index = self._specs.get(spec)
        if index is None:
            index = self._specs[spec] = len(self._specs)
            self._new_specs.append(spec)
            self._bytes += 200 + len(spec.cwd) + len(spec.name)
        return index

    def _depend(self, entry: int, wanted: Wanted, line: int) -> None:
        for condition, of_line, number in wanted.after:
            if not of_line:
                self._after.append(NewAfter(entry=entry, parent=number, condition=condition))
                self._bytes += 10
            elif number > line:
                self._forward.append((entry, condition, number, line))
            else:
                self._after.append(self._on_line(entry, condition, number, line))

    def _on_line(self, entry: int, condition: int, number: int, line: int) -> NewAfter:
        parent = self._entry_of(number)
        if parent is None:
            message = f"field 'after': {self.unit} {number} of this input is not a job"
            raise self.bad(line, BadInput(message, hint=f"name a {self.unit} with a command"))
        if parent == entry:
            raise self.bad(line, BadInput("field 'after': it would wait for itself", hint="name another"))
        return NewAfter(entry=entry, parent=parent, condition=condition, local=True)

    # -- taking

    def full(self) -> Iterator[Batch]:
        """A batch if there is enough for one."""
        if len(self._cmds) >= BATCH or self._bytes >= BATCH_BYTES:
            self._held.append(self._take())
            if not self._forward:
                yield from self._held
                self._held.clear()

    def finish(self) -> Iterator[Batch]:
        """All that is left. Raises `BadInput` if a dependency on a line cannot be resolved."""
        last = self._take()
        last.last = True
        self._held.append(last)
        starts = [batch.first for batch in self._held]
        for entry, condition, number, line in self._forward:
            batch = self._held[bisect_right(starts, entry) - 1]
            batch.after.append(self._on_line(entry, condition, number, line))
        yield from self._held

    def _take(self) -> Batch:
        first = self.count - len(self._cmds)
        # Numbers that say nothing are not sent.
        spec_of = self._spec_of if any(self._spec_of) else None
        lines = self._lines
        in_order = not lines or (lines[0] == first + 1 and lines[-1] == first + len(lines))
        batch = Batch(
            first=first,
            cmds=self._cmds,
            specs=self._new_specs,
            envs=self._new_envs,
            spec_of=spec_of,
            lines=None if in_order else lines,
            after=self._after,
            fresh=self._fresh,
            allowed=self._allowed,
        )
        self._cmds, self._spec_of, self._lines = [], [], []
        self._new_specs, self._new_envs, self._after = [], [], []
        self._fresh, self._allowed, self._bytes = [], [], 0
        return batch

    def _entry_of(self, line: int) -> int | None:
        at = bisect_right(self._runs, (line, self.count + 1, 0)) - 1
        if at < 0:
            return None
        start, entry, many = self._runs[at]
        return entry + line - start if line < start + many else None

    def bad(self, line: int, error: BadInput) -> BadInput:
        """The same error with its place."""
        return BadInput(f"{self.place(line)}: {error.message}", hint=error.hint)

    def place(self, line: int) -> str:
        return f"{self.source} {self.unit} {line}" if self.source else f"{self.unit} {line}"


def _check_contradiction(base: Wanted, wanted: Wanted) -> None:
    """What was asked for the whole submission cannot be taken back by a line."""
    for name in ("rerun", "allow_unsatisfiable"):
        if getattr(base, name) and not getattr(wanted, name):
            flag = name.replace("_", "-")
            raise BadInput(f"field '{name}': contradicts --{flag}", hint="leave one of them out")


def from_objects(entries: Iterable[str | list[str] | Mapping[str, object]], base: Wanted) -> Iterator[Batch]:
    """Jobs given in Python: texts, argument lists, or mappings of fields."""
    builder = Builder(base, unit="entry")
    for number, entry in enumerate(entries, 1):
        if isinstance(entry, Mapping):
            builder.fielded(dict(entry), number)
        else:
            builder.fielded({"cmd": entry}, number)
        yield from builder.full()
    yield from builder.finish()


def from_bytes(blocks: Iterable[bytes], base: Wanted, *, source: str) -> Iterator[Batch]:
    """Jobs from the blocks of an input. The generator's last batch has `last` set."""
    builder = Builder(base, source=source)
    rest = b""
    line = 1
    started = False
    stream = iter(blocks)
    for block in stream:
        rest += block
        if not started:
            if len(rest) < 3 or rest.strip() in (b"", b"["):
                if len(rest) > MAX_LINE:
                    raise builder.bad(1, BadInput("more than 1 MiB of nothing", hint="is this the right file?"))
                continue
            started = True
            rest = rest.removeprefix(b"\xef\xbb\xbf")
            if _ARRAY.match(rest):
                yield from _from_array(rest, stream, builder)
                return
        end = rest.rfind(b"\n")
        if end < 0:
            _check_length(rest, builder, line)
            continue
        line = yield from _lines(rest[:end], builder, line)
        rest = rest[end + 1 :]
        _check_length(rest, builder, line)
    if not started:
        rest = rest.removeprefix(b"\xef\xbb\xbf")
        if _ARRAY.match(rest):
            yield from _from_array(rest, stream, builder)
            return
    if rest:
        yield from _lines(rest, builder, line)
    yield from builder.finish()


def _check_length(line: bytes, builder: Builder, number: int) -> None:
    if len(line) > MAX_LINE:
        raise builder.bad(
            number, BadInput(f"has more than {MAX_LINE} bytes", hint="put the command in a script file")
        )


def _lines(data: bytes, builder: Builder, line: int) -> Generator[Batch, None, int]:
    """Whole lines; returns the number of the line after them."""
    text = _decoded(data, builder, line)
    lines = text.split("\n")
    if len(data) > MAX_COMMAND:
        for at, content in enumerate(lines):
            if len(content) * 4 > MAX_COMMAND:
                _check_long(content, builder, line + at)
    if _SPECIAL.search(text) is None:
        for at in range(0, len(lines), BATCH):
            builder.plain(lines[at : at + BATCH], line + at)
            yield from builder.full()
    else:
        plain: list[str] = []
        for at, content in enumerate(lines, line):
            if _SPECIAL.search(content) is None:
                plain.append(content)
                continue
            if plain:
                builder.plain(plain, at - len(plain))
                plain = []
            _special(content, builder, at)
            yield from builder.full()
        if plain:
            builder.plain(plain, line + len(lines) - len(plain))
            yield from builder.full()
    return line + len(lines)


def _decoded(data: bytes, builder: Builder, line: int) -> str:
    nul = data.find(b"\0")
    if nul >= 0:
        where = line + data.count(b"\n", 0, nul)
        raise builder.bad(where, BadInput("contains a NUL byte", hint="is this a text file?"))
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        where = line + data.count(b"\n", 0, error.start)
        raise builder.bad(where, BadInput("is not valid UTF-8", hint="convert the file with iconv")) from None
    if "\r" in text:
        text = text.replace("\r\n", "\n").removesuffix("\r")
    return text


def _check_long(content: str, builder: Builder, line: int) -> None:
    if len(content.encode()) > MAX_LINE:
        raise builder.bad(
            line, BadInput(f"has more than {MAX_LINE} bytes", hint="put the command in a script file")
        )
    if _SPECIAL.search(content) is None:
        try:
            check_argument(content)
        except BadInput as error:
            raise builder.bad(line, error) from None


def _special(content: str, builder: Builder, line: int) -> None:
    word = content.lstrip(_SPACE)
    if not word or word[0] == "#":
        return
    if word[0] == "{" and _OBJECT.match(word):
        builder.fielded(_object(word, builder, line), line)
        return
    for match in _TRAILER.finditer(content):
        trailer = content[match.end() :]
        if trailer.rstrip().endswith("}") or re.match(r'\{\s*"', trailer):
            command = content[: match.start()]
            builder.fielded(_object(trailer, builder, line), line, command)
            return
    try:
        check_argument(content)
    except BadInput as error:
        raise builder.bad(line, error) from None
    builder.plain([content], line)


def _object(text: str | bytes | msgspec.Raw, builder: Builder, line: int) -> dict[str, object]:
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise builder.bad(line, BadInput(f"is not valid JSON: {error}", hint="correct it, or quote it")) from None
    if not isinstance(value, dict):
        raise builder.bad(line, BadInput("is not a JSON object", hint='write it like {"cmd": "sleep 1"}'))
    return value


# ------------------------------------------------------------------ one JSON array


def _from_array(head: bytes, stream: Iterator[bytes], builder: Builder) -> Iterator[Batch]:
    data = bytearray(head)
    for block in stream:
        data += block
        if len(data) > MAX_ARRAY:
            raise BadInput(f"{builder.source}: the array has more than 512 MiB", hint="give one object a line")
    whole = bytes(data)
    _decoded(whole, builder, 1)
    try:
        entries = msgspec.json.decode(whole, type=list[msgspec.Raw])
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        place = _place_of(str(error), whole)
        raise BadInput(f"{builder.source}{place}: is not valid JSON: {error}", hint="correct it") from None
    builder.unit = "entry"
    position = 0
    for number, raw in enumerate(entries, 1):
        # People look for lines; `after` counts entries, for several may share a line.
        content = bytes(raw)
        position = whole.find(content, position)
        try:
            builder.fielded(_object(content, builder, number), number)
        except BadInput as error:
            line = whole.count(b"\n", 0, position) + 1
            message = error.message.removeprefix(f"{builder.place(number)}: ")
            raise BadInput(f"{builder.source} line {line} (entry {number}): {message}", hint=error.hint) from None
        position += len(content)
        yield from builder.full()
    yield from builder.finish()


def _place_of(message: str, data: bytes) -> str:
    found = re.search(r"\(byte (\d+)\)", message)
    if found is None:
        return ""
    before = data.count(b"\n", 0, int(found[1]))
    return f" line {before + 1}"
