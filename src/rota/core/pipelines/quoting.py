"""Where in a shell command a placeholder stands, and how a value is quoted there so that it stays literal.

Quotes are followed as a POSIX shell follows them. Where nothing can be quoted safely (here-documents, backquotes,
`${…}`, arithmetic) placeholders are refused: a value must never be read as part of the program.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Final

from rota.errors import BadInput


class Context(Enum):
    """What is around a placeholder."""

    PLAIN = "no quotes"
    DOUBLE = "double quotes"
    SINGLE = "single quotes"


#: What no shell gives a meaning, anywhere in a word.
_SAFE: Final = re.compile(r"[A-Za-z0-9_./:@%+-]+", re.ASCII)
_RESERVED: Final = frozenset(
    "if then else elif fi do done case esac while until for in function select time".split()
)
#: What a shell removes first.
_CONTINUED: Final = "\\\n"
#: Text before a bare value that would swallow it: a variable or a home directory.
_SWALLOWS: Final = re.compile(r"(?:\$[A-Za-z0-9_]*|~[A-Za-z0-9_.-]*)\Z", re.ASCII)

_LETTERS_BEFORE: Final = re.compile(r"[a-z]{1,8}\Z")
_LETTERS_AFTER: Final = re.compile(r"[a-z]{1,8}")

_NAME: Final = r"[A-Za-z_][A-Za-z0-9_-]*"
#: A placeholder, or one in double braces, which stand for single ones.
_BRACES: Final = re.compile(rf"\{{\{{(?P<literal>{_NAME})\}}\}}|\{{(?P<name>{_NAME})\}}", re.ASCII)
PLACEHOLDER: Final = re.compile(_NAME, re.ASCII)
#: `${…}` and `$((…))` that are simple enough to be passed over.
_PARAMETER: Final = re.compile(r"\$\{(?:[^{}'\"\\`$]|\$(?![({]))*\}")
_ARITHMETIC: Final = re.compile(r"\$\(\((?:[^()'\"\\`{}]|\([^()'\"\\`{}]*\))*\)\)")
_BACKQUOTES: Final = re.compile(r"`[^`\\]*`")
_CASE: Final = re.compile(r"case[ \t\n]")
_VARIABLE: Final = "set a variable first (x={name}) and use it there: $x"

#: A literal text, or the name of a placeholder with its context.
Part = str | tuple[str, Context]


def parts_of_path(text: str) -> tuple[Part, ...]:
    """The parts of a text that no shell reads."""
    parts: list[Part] = []
    at = 0
    for match in _BRACES.finditer(text):
        parts.append(text[at : match.start()])
        literal = match["literal"]
        parts.append(f"{{{literal}}}" if literal else (match["name"], Context.PLAIN))
        at = match.end()
    return (*parts, text[at:])


def parts_of_command(text: str) -> tuple[Part, ...]:
    """The parts of a shell command. Raises `BadInput` for a placeholder where nothing can be quoted."""
    return _Reader(text).read()


def quoted(value: str, context: Context, *, before: str, after: str) -> str:
    """The value as it is written into a command, between these texts. What is harmless there stays as it is."""
    if context is Context.SINGLE:
        return value.replace("'", "'\\''")
    if _CONTINUED in before or _CONTINUED in after:
        before, after = before.replace(_CONTINUED, ""), after.replace(_CONTINUED, "")
    if _SAFE.fullmatch(value) and not _SWALLOWS.search(before):
        if context is Context.DOUBLE:
            return value
        # A number before a redirection is a file descriptor, a name before `=` or `(` a variable or a function.
        syntax = after.startswith(("<", ">", "=", "+=", "(", "["))
        if not syntax and not (value.isalpha() and _is_reserved(value, before, after)):
            return value
    literal = "'" + value.replace("'", "'\\''") + "'"
    return f'"{literal}"' if context is Context.DOUBLE else literal


def _is_reserved(value: str, before: str, after: str) -> bool:
    """Would the value be part of a word that is syntax?"""
    head, tail = _LETTERS_BEFORE.search(before), _LETTERS_AFTER.match(after)
    return (head[0] if head else "") + value + (tail[0] if tail else "") in _RESERVED


class _Reader:
    """Follows quotes and substitutions through a command."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.parts: list[Part] = []
        self.literal: list[str] = []
        #: The quotes and substitutions that are open, innermost last; of a substitution, its open parentheses.
        self.open: list[str | int] = []
        #: Why nothing can be said any more about the rest of the text, and what to do.
        self.unclear: tuple[str, str] | None = None

    def read(self) -> tuple[Part, ...]:
        fresh = True  # a word could begin here
        while self.at < len(self.text):
            fresh = self._step(fresh)
        self._flush()
        return tuple(self.parts)

    def _step(self, fresh: bool) -> bool:
        """Pass over one thing. Returns whether a word could begin behind it."""
        char = self.text[self.at]
        inside = self.open[-1] if self.open else 0
        if char == "{":
            return self._brace(inside)
        if self.unclear:
            return self._take(1)
        if inside == "'":
            if char == "'":
                self.open.pop()
            return self._take(1)
        if char == "\\":
            # A line that is continued is as if there had been no end of line.
            continued = self.text.startswith(_CONTINUED, self.at)
            self._take(2)
            return fresh and continued
        if char == "`":
            return self._pass_over(_BACKQUOTES, "backquotes", "write $(…) instead of backquotes")
        if char == "$" and (found := self._dollar(inside)) is not None:
            return found
        if inside == '"':
            if char == '"':
                self.open.pop()
            return self._take(1)
        return self._plain(char, inside, fresh)

    def _plain(self, char: str, inside: str | int, fresh: bool) -> bool:
        """Outside quotes."""
        if char in "'\"":
            self.open.append(char)
        elif char == "#" and fresh:
            end = self.text.find("\n", self.at)
            return self._take((len(self.text) if end < 0 else end) - self.at)
        elif self.text.startswith("<<", self.at):
            self.unclear = ("a here-document or what follows one", _VARIABLE)
        elif isinstance(inside, int) and self.open:
            if fresh and _CASE.match(self.text, self.at):
                self.unclear = ("what follows 'case' inside $(…)", _VARIABLE)
            elif char in "()":
                self.open[-1] = inside + (1 if char == "(" else -1)
                if not self.open[-1]:
                    self.open.pop()
                    self._take(1)
                    return False
        self._take(1)
        return char in " \t\n;&|()<>"

    def _dollar(self, inside: str | int) -> bool | None:
        """What begins with a dollar sign; None: nothing special."""
        following = self.text[self.at + 1 : self.at + 3]
        if following.startswith("{"):
            return self._pass_over(_PARAMETER, "${…}", _VARIABLE)
        if following == "((":
            return self._pass_over(_ARITHMETIC, "$((…))", _VARIABLE)
        if following.startswith("("):
            self.open.append(1)
            self._take(2)
            return True
        if following.startswith("'") and inside != '"':
            self.unclear = ("what follows $'…'", "use quotes without a dollar sign")
        return None

    def _pass_over(self, what: re.Pattern[str], name: str, hint: str) -> bool:
        """Something that is taken as a whole, if there is no placeholder in it."""
        opening = 1 if what is _BACKQUOTES else 2
        match = what.match(self.text, self.at)
        if match is None or _BRACES.search(match[0][opening:]):
            self.unclear = (name, hint)
            return self._take(opening)
        return self._take(len(match[0]))

    def _brace(self, inside: str | int) -> bool:
        match = _BRACES.match(self.text, self.at)
        if match is None:
            return self._take(1)
        if match["literal"]:
            self.literal.append(f"{{{match['literal']}}}")
            self.at = match.end()
            return False
        if self.unclear:
            what, hint = self.unclear
            raise BadInput(
                f"the placeholder {match[0]} is in {what}, where it cannot be quoted",
                hint=hint.replace("{name}", match[0]),
            )
        self._flush()
        context = {"'": Context.SINGLE, '"': Context.DOUBLE}.get(str(inside), Context.PLAIN)
        self.parts.append((match["name"], context))
        self.at = match.end()
        return False

    def _take(self, length: int) -> bool:
        self.literal.append(self.text[self.at : self.at + length])
        self.at += length
        return False

    def _flush(self) -> None:
        if self.literal:
            self.parts.append("".join(self.literal))
            self.literal.clear()
