"""Scripts that run as one job: the text is stored with the job, and `#ROTA` lines are its options.

Also tells scripts from lists of commands: to run each line of a script as a job of its own is never meant.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from itertools import takewhile
from typing import Final

from msgspec import Struct

from rota.client.fields.fields import checked
from rota.core.fields.field import JobField
from rota.core.fields.table import FIELDS
from rota.core.fields.values import MAX_COMMAND, shown
from rota.core.jobs.command import DESCRIPTOR, FROM_DESCRIPTOR
from rota.errors import BadInput

#: Shells take the text of a script as an argument: `bash -c TEXT NAME ARGUMENT…`.
_SHELLS: Final = frozenset({"sh", "bash", "dash", "ash", "ksh", "mksh", "zsh"})

#: A line with options for a scheduler.
_DIRECTIVE: Final = re.compile(r"#(ROTA|SBATCH|BSUB|OAR|PBS)\b")
_OWN: Final = "ROTA"


class Script(Struct, frozen=True):
    """A script that was read."""

    source: str  #: for messages
    name: str  #: that of its file; empty: it came from stdin
    text: str
    options: dict[str, object]  #: the fields of its `#ROTA` lines, as words of the command line
    others: tuple[str, ...] = ()  #: other schedulers that it has options for, such as `#SBATCH`

    @property
    def defaults(self) -> dict[str, object]:
        """Fields of its job that nobody has to give: what it is called, and that it learns from its equals."""
        return {"name": self.name, "learn": self.name} if self.name else {}

    def command(self, arguments: Iterable[str] = ()) -> str | list[str]:
        """What the job executes."""
        interpreter, words = _interpreter(self.text), list(arguments)
        name = self.name or "stdin"
        if not interpreter and not words:
            return self.text
        if not interpreter:
            return ["/bin/sh", "-c", self.text, name, *words]
        if os.path.basename(_program(interpreter)) in _SHELLS:
            return [*interpreter, "-c", self.text, name, *words]
        return ["/bin/sh", "-c", FROM_DESCRIPTOR, name, self.text, *interpreter, DESCRIPTOR, *words]


def read(blocks: Iterable[bytes], *, source: str, name: str = "") -> Script:
    """The script in these blocks of a file, or of stdin, which has no name. Raises `BadInput`."""
    data = b""
    for block in blocks:
        data += block
        if len(data) > MAX_COMMAND:
            break
    try:
        text = _text(data, path=source if name else "./script")
        options = _options(text)
    except BadInput as error:
        raise error.at(source=source) from None
    others = dict.fromkeys(f"#{found}" for _, found, _ in _directives(text) if found != _OWN)
    return Script(source, name, text, options, tuple(others))


def _text(data: bytes, *, path: str) -> str:
    by_path = f"run it by its path: rota add -- {_call(data, path)}"
    if len(data) > MAX_COMMAND:
        raise BadInput(
            f"a script may have {MAX_COMMAND} bytes at most, because it is stored with the job", hint=by_path
        )
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise BadInput("is not valid UTF-8", hint=by_path) from None
    if "\0" in text:
        raise BadInput("contains a NUL byte", hint=by_path)
    if not text.strip():
        raise BadInput("the script is empty", hint="give another file")
    return text


def _call(data: bytes, path: str) -> str:
    """What to type to run a file by its path, also if it may not be executed itself."""
    interpreter = _interpreter(data[:1000].decode(errors="replace")) or ([] if b"\0" in data else ["/bin/sh"])
    return shlex.join([*interpreter, path if interpreter or "/" in path else f"./{path}"])


def _directives(text: str) -> Iterator[tuple[int, str, str]]:
    """The number, scheduler and options of each line for a scheduler, down to the first command."""
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip() and not line.startswith("#"):
            return
        if found := _DIRECTIVE.match(line):
            yield number, found[1], line[found.end() :]


def _options(text: str) -> dict[str, object]:
    found: dict[str, object] = {}
    for number, scheduler, rest in _directives(text):
        if scheduler != _OWN:
            continue
        try:
            for field, value in _parsed(_split(rest)):
                checked({field.name: (value,) if field.many else value}, text=True)
                before = found.get(field.name, ())
                found[field.name] = (*before, value) if field.many and isinstance(before, tuple) else value
        except BadInput as error:
            raise error.at(line=number) from None
    return found


def _split(text: str) -> list[str]:
    """The words of a line, quoted as in a shell, up to one that begins with #."""
    words = shlex.shlex(text, posix=True)
    words.whitespace_split = True
    words.commenters = ""
    try:
        return list(takewhile(lambda word: not word.startswith("#"), words))
    except ValueError:
        raise BadInput("a quotation mark is not closed", hint="close it, or write \\ before it") from None


def _parsed(words: list[str]) -> Iterator[tuple[JobField, object]]:
    """Options as `rota add` takes them: `--mem 4G`, `--mem=4G`, `-n x`, `-nx`, `--scratch`, `--no-live`."""
    known = _flags()
    rest = iter(words)
    for word in rest:
        flag, attached, value = word.partition("=") if word.startswith("--") else (word[:2], word[2:], word[2:])
        if flag not in known:
            raise _no_option(word, flag)
        field, on = known[flag]
        if on is not None:
            if attached:
                raise BadInput(f"{flag} takes no value", hint=f"write {flag}")
            yield field, on
            continue
        if not attached:
            following = next(rest, None)
            if following is None:
                raise BadInput(f"{flag} needs a value", hint=f"write {flag} {field.metavar or field.kind.metavar}")
            value = following
        yield field, value


def _no_option(word: str, flag: str) -> BadInput:
    if not word.startswith("-"):
        return BadInput(f"'{shown(word)}' is no option", hint="write options as for 'rota add', such as --mem 4G")
    close = get_close_matches(flag, _flags(), n=1)
    hint = f"did you mean {close[0]}?" if close else "see 'rota add --help'"
    return BadInput(f"a job has no option '{shown(flag)}'", hint=hint)


def _flags() -> dict[str, tuple[JobField, bool | None]]:
    """Every option with its field, and what it sets if it is a flag."""
    found: dict[str, tuple[JobField, bool | None]] = {}
    for field in FIELDS.values():
        takes_value = bool(field.metavar or field.kind.metavar)
        for word in field.flags or (field.option,):
            on, _, off = word.partition("/")
            found[on] = field, None if takes_value else True
            if off:
                found[off] = field, False
    return found


def _interpreter(text: str) -> list[str]:
    """The words of the `#!` line, as the kernel and `env` take them; none: there is no such line."""
    if not text.startswith("#!"):
        return []
    program, _, argument = text.partition("\n")[0][2:].strip().partition(" ")
    words = argument.split() if os.path.basename(program) == "env" else [argument.strip()]
    if words[:1] == ["-S"]:
        words = words[1:]
    return [program, *(word for word in words if word not in ("", "-", "--"))] if program else []


def _program(interpreter: list[str]) -> str:
    first = interpreter[0]
    named = [word for word in interpreter[1:] if not word.startswith("-") and "=" not in word]
    return named[0] if os.path.basename(first) == "env" and named else first


# ------------------------------------------------------------------ lists of commands


def not_a_list(line: str, source: str) -> BadInput:
    """The refusal of a list of commands with this line, which only a script has."""
    script = "-" if source == "stdin" else source
    what = "begins with" if line.startswith("#!") else "has the line"
    return BadInput(
        f"this is a script, not a list of commands: it {what} '{shown(line)}'",
        hint=f"give --script {script} to run it as one job, or --lines if each line is a job of its own",
    )
