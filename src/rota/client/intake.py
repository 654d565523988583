"""Input for `add` and `run`: converts bytes to batches of jobs. The caller does the reading.

A line is a command, a JSON object, or a command with a tab and a JSON object; or the whole input is one JSON array
of objects. Blank lines and lines that begin with `#` are skipped. Any error raises `BadInput` that names the
source, the line and the field. Plain lines are the hot path: a block of them is checked with one regular
expression and split by one call.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Iterator, Mapping
from typing import Final

import msgspec

from rota.client.batches import BATCH, Builder, Most, UploadBatch
from rota.client.fields.fields import Wanted
from rota.core.fields.values import MAX_COMMAND, check_argument
from rota.errors import BadInput

MAX_LINE: Final = 1 << 20
MAX_ARRAY: Final = 512 << 20

_SPACE: Final = " \t\r\f\v"
#: A line that is not a plain command: blank, a comment, JSON, or with JSON after a tab.
_SPECIAL: Final = re.compile(r"^[ \t\r\f\v]*(?:$|[#{])|\t[ \t]*\{", re.MULTILINE)
#: `{ cmd; }` is a shell group, `{"cmd"…` an object, and `{cmd` can only be a malformed object.
_OBJECT: Final = re.compile(r"\{(?:\s*[\"}]|\S)")
#: Likewise `[ -f x ]` and `[[ -f x ]]` are commands, `[{` is an array, and `[1` a malformed one.
_ARRAY: Final = re.compile(rb"\s*\[(?:\s*[\{\]]|[^\s\[])")
#: A line that only a script has: the first one with an interpreter, or one with options for a scheduler.
_SCRIPT: Final = re.compile(r"#(?:!|(?:ROTA|SBATCH|BSUB|OAR|PBS)\b)")
_MARK: Final = b"\xef\xbb\xbf"
_TRAILER: Final = re.compile(r"\t[ \t]*(?=\{)")


def from_objects(
    entries: Iterable[str | list[str] | Mapping[str, object]], base: Wanted, *, most: Most | None = None
) -> Iterator[UploadBatch]:
    """Jobs given in Python: texts, argument lists, or mappings of fields."""
    builder = Builder(base, unit="entry", most=most)
    for number, entry in enumerate(entries, 1):
        if isinstance(entry, Mapping):
            builder.fielded(dict(entry), number)
        else:
            builder.fielded({"cmd": entry}, number)
        yield from builder.full()
    yield from builder.finish()


def from_bytes(
    blocks: Iterable[bytes], base: Wanted, *, source: str, lines: bool = False
) -> Iterator[UploadBatch]:
    """Jobs from the blocks of an input. The generator's last batch has `last` set. A script is refused, because
    each of its lines would be a job, unless the caller says that the input is a list of `lines`."""
    builder = Builder(base, source=source)
    rest = b""
    line = 1
    started = False
    stream = iter(blocks)
    for block in stream:
        rest += block
        if not started:
            # The first characters after a byte order mark and a bracket tell an array from a command.
            if len(rest) < 3 or rest.removeprefix(_MARK).strip() in (b"", b"["):
                if len(rest) > MAX_LINE:
                    raise builder.bad(1, BadInput("more than 1 MiB of nothing", hint="is this the right file?"))
                continue
            started = True
            rest = rest.removeprefix(_MARK)
            if _ARRAY.match(rest):
                yield from _from_array(rest, stream, builder)
                return
        end = rest.rfind(b"\n")
        if end < 0:
            _check_length(rest, builder, line)
            continue
        line = yield from _lines(rest[:end], builder, line, lines)
        rest = rest[end + 1 :]
        _check_length(rest, builder, line)
    if not started:
        rest = rest.removeprefix(_MARK)
        if _ARRAY.match(rest):
            yield from _from_array(rest, stream, builder)
            return
    if rest:
        yield from _lines(rest, builder, line, lines)
    yield from builder.finish()


def _check_length(line: bytes, builder: Builder, number: int) -> None:
    if len(line) > MAX_LINE:
        raise builder.bad(
            number, BadInput(f"has more than {MAX_LINE} bytes", hint="put the command in a script file")
        )


def _lines(data: bytes, builder: Builder, line: int, scripts: bool) -> Generator[UploadBatch, None, int]:
    """Whole lines, `scripts` included or not; returns the number of the line after them."""
    try:
        text = _decoded(data)
    except _Damaged as damage:
        # Report errors in order of lines, no matter how the input was cut into blocks.
        if damage.start:
            yield from _lines(data[: damage.start - 1], builder, line, scripts)
        raise builder.bad(line + data.count(b"\n", 0, damage.start), damage) from None
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
            if not scripts and _SCRIPT.match(content) and (at == 1 or content[1] != "!"):
                from rota.client.scripts import not_a_list

                raise builder.bad(at, not_a_list(content, builder.source))
            _special(content, builder, at)
            yield from builder.full()
        if plain:
            builder.plain(plain, line + len(lines) - len(plain))
            yield from builder.full()
    return line + len(lines)


class _Damaged(BadInput):
    """Invalid UTF-8 in the line that begins at `start`."""

    def __init__(self, data: bytes, position: int, message: str, *, hint: str) -> None:
        super().__init__(message, hint=hint)
        self.start = data.rfind(b"\n", 0, position) + 1


def _decoded(data: bytes) -> str:
    """Raises `_Damaged` for the first line with invalid UTF-8."""
    nul = data.find(b"\0")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        if nul < 0 or error.start < data.rfind(b"\n", 0, nul):
            hint = "convert the file with iconv"
            raise _Damaged(data, error.start, "is not valid UTF-8", hint=hint) from None
    if nul >= 0:
        raise _Damaged(data, nul, "contains a NUL byte", hint="is this a text file?")
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


def _from_array(head: bytes, stream: Iterator[bytes], builder: Builder) -> Iterator[UploadBatch]:
    data = bytearray(head)
    for block in stream:
        data += block
        if len(data) > MAX_ARRAY:
            error = BadInput("the array has more than 512 MiB", hint="give one object a line")
            raise error.at(source=builder.source)
    whole = bytes(data)
    try:
        _decoded(whole)
    except _Damaged as damage:
        raise builder.bad(whole.count(b"\n", 0, damage.start) + 1, damage) from None
    try:
        entries = msgspec.json.decode(whole, type=list[msgspec.Raw])
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        bad = BadInput(f"is not valid JSON: {error}", hint="correct it")
        raise bad.at(line=_line_of(str(error), whole), source=builder.source) from None
    builder.unit = "entry"
    position = 0
    line = 1
    for number, raw in enumerate(entries, 1):
        # Errors name lines, which people look for; `after` counts entries, because several may share a line.
        content = bytes(raw)
        begin = whole.find(content, position)
        line += whole.count(b"\n", position, begin)
        builder.line_of_entry = line
        builder.fielded(_object(content, builder, number), number)
        position = begin + len(content)
        line += content.count(b"\n")
        yield from builder.full()
    builder.line_of_entry = 0
    yield from builder.finish()


def _line_of(message: str, data: bytes) -> int:
    """The line that a decoder complains about; 0: it does not say."""
    found = re.search(r"\(byte (\d+)\)", message)
    return 0 if found is None else data.count(b"\n", 0, int(found[1])) + 1
