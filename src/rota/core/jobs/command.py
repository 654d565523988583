"""The command of a job: one of several kinds, told apart by their form, and what is done with every kind.

| kind | in memory, messages and JSON | stored | identity |
|---|---|---|---|
| text for `/bin/sh -c` | a text | as it is | `s` |
| arguments to execute directly | a list of texts | a mark, then a JSON array | `l` |
| call of a Python function | a `Call`, an object in messages and JSON | a mark, then a JSON object | `c`, `e` |

The form is the tag, so the commonest kind costs one text and nothing else. Functions end with `assert_never`, so
the type checker refuses each that forgets a kind. Besides this module, only what starts commands and what finds
their programs asks for the kind.
"""

from __future__ import annotations

from typing import Any, Final, assert_never

import msgspec


class Call(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The call of a Python function. Its arguments are values of JSON."""

    call: str  #: module:function, or path.py:function
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    python: str = ""  #: the interpreter; empty: the `python3` that the job finds
    each: bool = False  #: `args` are lists of arguments: call it once with each; the result is the list of results

    @property
    def module(self) -> str:
        """The module, or the path of its file."""
        return self.call.rpartition(":")[0]


#: Names of the fields of a job whose command is a call.
CALL_FIELDS: Final = Call.__struct_fields__
#: A command of any kind.
Command = str | list[str] | Call

#: Marks of stored commands: JSON follows, and a text that happens to begin with a mark.
_JSON, _TEXT = "\x01", "\x02"
_SEPARATOR = b"\0"
#: How a script reaches an interpreter that wants a file: as a descriptor, so that no file is left behind.
FROM_DESCRIPTOR: Final = 'text=$1; shift; exec "$@" 9<<END\n$text\nEND\n'
DESCRIPTOR: Final = "/dev/fd/9"
_stored: msgspec.json.Decoder[list[str] | Call] = msgspec.json.Decoder(list[str] | Call)


def is_shell(cmd: Command) -> bool:
    """Is it text for a shell?"""
    return isinstance(cmd, str)


def command_to_text(cmd: Command) -> str:
    """Encode a command as one text column. `command_from_text` restores it exactly."""
    if isinstance(cmd, str):
        return _TEXT + cmd if cmd[:1] in (_JSON, _TEXT) else cmd
    if isinstance(cmd, list | Call):
        return _JSON + msgspec.json.encode(cmd).decode()
    assert_never(cmd)


def command_from_text(text: str) -> Command:
    """Decode a stored command."""
    mark = text[:1]
    if mark == _JSON:
        return _stored.decode(text[1:])
    return text[1:] if mark == _TEXT else text


def identity_bytes(cmd: Command, n: int) -> bytes:
    """What of the n-th equal command goes into identity keys. Changed bytes would run every complete job again."""
    # n comes before the command: after a list it could be taken for one more argument.
    if isinstance(cmd, str):
        return b"s%d\0" % n + cmd.encode()
    if isinstance(cmd, list):
        return b"l%d\0" % n + b"".join([part.encode() + _SEPARATOR for part in cmd])
    if isinstance(cmd, Call):
        # Keyword arguments have no order; that of the keys in a value is part of it.
        named = dict(sorted(cmd.kwargs.items()))
        parts = cmd.call.encode(), msgspec.json.encode(cmd.args), msgspec.json.encode(named), cmd.python.encode()
        return b"%s%d\0" % (b"e" if cmd.each else b"c", n) + _SEPARATOR.join(parts)
    assert_never(cmd)


def texts_of(cmd: Command) -> list[str]:
    """The texts that it consists of."""
    if isinstance(cmd, str):
        return [cmd]
    if isinstance(cmd, list):
        return cmd
    if isinstance(cmd, Call):
        return [cmd.call, *map(_json, (cmd.args, cmd.kwargs)), cmd.python]
    assert_never(cmd)


def length(cmd: Command) -> int:
    """The length of a command in characters."""
    return len(cmd) if isinstance(cmd, str) else sum(map(len, texts_of(cmd)))


def one_line(cmd: Command) -> str:
    """A command to look for or to recognise: its words with blanks between them."""
    if isinstance(cmd, str):
        return cmd
    return call_text(cmd) if isinstance(cmd, Call) else " ".join(texts_of(cmd))


def call_text(cmd: Call) -> str:
    """A call as it would be written, with its arguments as JSON: `module:function(1, "a", k=3)`."""
    named = [f"{name}={_json(value)}" for name, value in cmd.kwargs.items()]
    if cmd.each:
        return f"{cmd.call}({', '.join(['*each', *named])}) for each in {_json(cmd.args)}"
    return f"{cmd.call}({', '.join([*map(_json, cmd.args), *named])})"


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def shell_line(cmd: Command) -> str:
    """A command as it would be typed: arguments are quoted for a shell. A call is as in Python."""
    if isinstance(cmd, str):
        return cmd
    if isinstance(cmd, list):
        from shlex import join  # late: runners do without it

        return join(cmd)
    if isinstance(cmd, Call):
        return call_text(cmd)
    assert_never(cmd)


def brief(cmd: Command) -> str:
    """A command for a row of a table: a script by its name and arguments, other long text by its first line."""
    if isinstance(cmd, str):
        return _first_line(cmd)
    if isinstance(cmd, Call) or not any("\n" in text for text in texts_of(cmd)):
        return shell_line(cmd)
    called = _script_call(texts_of(cmd))
    return shell_line(["script", *called] if called else [_first_line(text) for text in texts_of(cmd)])


def _first_line(text: str) -> str:
    """The first line that is neither blank nor a comment, and a mark if there are others."""
    if "\n" not in text:
        return text
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    first = next((line for line in lines if not line.startswith("#")), lines[0] if lines else "")
    return f"{first} …" if len(lines) > 1 else first


def _script_call(words: list[str]) -> list[str]:
    """The name and arguments of a script that was submitted with its text; none: it is another command."""
    at = words.index("-c") + 1 if "-c" in words else len(words)
    if len(words) < at + 2:
        return []
    text, name, *arguments = words[at:]
    if text == FROM_DESCRIPTOR and DESCRIPTOR in arguments:
        return [name, *arguments[arguments.index(DESCRIPTOR) + 1 :]]
    return [name, *arguments] if text.startswith("#!") or words[: at - 1] == ["/bin/sh"] else []


def with_parameters(cmd: Command, line: str) -> Command:
    """The command of an array's element: with a line of parameters. Raises ValueError if a quotation is open."""
    if isinstance(cmd, str):
        return f"{cmd} {line}"
    if isinstance(cmd, list):
        from shlex import split

        return [*cmd, *split(line)]
    if isinstance(cmd, Call):
        from shlex import split

        return msgspec.structs.replace(cmd, args=[*cmd.args, *split(line)])
    assert_never(cmd)
