"""The program that a command runs: its learning group by default.

A guess from the text alone. It is right for what people write (`cd x && env A=b nice python -u fit.py`) and
harmless otherwise: nothing is expanded or run, every text has a name, and the time is bounded. The first program
counts, also in a pipeline. Text with nothing but shell commands (`true`, `exit 3`, a loop over arithmetic) belongs
to the shell. For a plain `program arguments` it is a dictionary lookup, because every job needs it.
"""

from __future__ import annotations

import re
from typing import Final, assert_never

from rota.core.jobs.command import Call, Command
from rota.core.learning.wrapper_programs import (
    KEYWORDS,
    LOOPS,
    MINOR,
    OPEN,
    PREPARE,
    WITH_VERB,
    WRAPPERS,
    Interpreter,
    Wrapper,
    interpreter_called,
)

#: The name of a command without a recognisable program: the shell that runs it.
NAMELESS: Final = "sh"

MAX_NAME_BYTES: Final = 255
#: The program is near the beginning; a hundred kilobytes of arguments may follow.
_SEEN_CHARS: Final = 4096
_SEEN_WORDS: Final = 400
_MAX_NESTING: Final = 4

# Only single characters are repeated possessively: before Python 3.11.5, `re` fails on groups.
_TOKEN: Final = re.compile(
    r"""(?:[ \t\r\f\v]|\\\n)*(?:
        (?P<function>[^\W\d][\w.:-]*+[ \t]*+\([ \t]*+\))
      | (?P<arithmetic>\(\([^();&|\n'"./]*+\)\))
      | (?P<end>&&|\|\||;;|[;&|\n()])
      | (?P<here><<-?+[ \t]*+(?P<quote>['"]?)(?P<until>\w++)(?P=quote))
      | (?P<redirect>\d*+[<>]+[&|]?)
      | (?P<comment>\#[^\n]*+)
      | (?P<word>(?:[^\s'"\\;&|()<>$`]++|'[^']*+'|"(?:[^"\\]|\\.)*"|\\.|(?<==)\([^()]*+\)
          |\$\((?:[^()]|\((?:[^()]|\([^()]*+\))*\))*\)|\$\{[^{}]*+\}|`[^`]*+`|["'\\$`])+)
      | (?P<other>.)
    )""",
    re.VERBOSE | re.DOTALL,
)
_QUOTED: Final = re.compile(r"""'([^']*+)'|"((?:[^"\\]|\\.)*)"|\\(.)""", re.DOTALL)
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*+(?:\[[^]]*\])?\+?=", re.ASCII)
_PLAIN_WORD: Final = re.compile(r"[\w./+:@%,-]+", re.ASCII)

#: Cache: first word → program, for words that are programs themselves.
_plain: dict[str, str] = {}
#: Cache: interpreter and file → program.
_pairs: dict[str, str] = {}
#: Cache: whole text → program. A job's program is asked for several times in a row.
_texts: dict[str, str] = {}
_CACHED: Final = 4096
_CACHED_TEXTS: Final = 64


def program_of(cmd: Command) -> str:
    """The name of the program, or function, of this command: never empty, never over 255 bytes."""
    if isinstance(cmd, str):
        blank = cmd.find(" ")
        if blank < 0:
            return _plain.get(cmd) or _pairs.get(cmd) or _parsed(cmd)
        if name := _plain.get(cmd[:blank]):
            return name
        blank = cmd.find(" ", blank + 1)
        return _pairs.get(cmd if blank < 0 else cmd[:blank]) or _parsed(cmd)
    if isinstance(cmd, Call):
        return _shortened(cmd.call) or NAMELESS
    if not isinstance(cmd, list):
        assert_never(cmd)
    if not cmd:
        return NAMELESS
    return _plain.get(cmd[0]) or _remembered(_shortened(_executed([*cmd[:_SEEN_WORDS]])), cmd[0], "")


def _parsed(text: str) -> str:
    found = _texts.get(text)
    if found is None:
        found = _read(text)
        if len(text) <= _SEEN_CHARS:
            _keep(_texts, text, found, most=_CACHED_TEXTS)
    return found


def _read(text: str) -> str:
    name = _shortened(_program(_words(text), 0))
    if not _is_name(name):
        name = NAMELESS
    first, blank, rest = text[: 2 * MAX_NAME_BYTES].partition(" ")
    if not blank and len(text) < MAX_NAME_BYTES:
        _keep(_pairs, text, name)  # for example `true`
    return _remembered(name, first, rest.partition(" ")[0])


def _remembered(name: str, first: str, second: str) -> str:
    """Cache the name for commands that begin with the same words, if these words decide it."""
    if len(first) > MAX_NAME_BYTES or not _PLAIN_WORD.fullmatch(first):
        return name
    if name == (base := _base(first)):
        if (
            not (base in PREPARE or base in MINOR or base in KEYWORDS or base in WRAPPERS or base in WITH_VERB)
            and interpreter_called(base) is None
        ):
            _keep(_plain, first, name)
    elif interpreter_called(base) is not None and name == _base(second) and _PLAIN_WORD.fullmatch(second):
        _keep(_pairs, f"{first} {second}", name)
    return name


def _keep(cache: dict[str, str], words: str, name: str, *, most: int = _CACHED) -> None:
    if len(cache) >= most:
        cache.clear()
    cache[words] = name


def _words(text: str) -> list[str | None]:
    """Split shell text into unquoted words, with None where a command ends.

    Leaves out function names, `case` patterns, arithmetic, redirections and here-documents.
    """
    text = text[:_SEEN_CHARS]
    words: list[str | None] = []
    redirected = False
    cases = 0  # number of open `case` statements
    pattern = False  # inside a `case` pattern, which ends at a parenthesis
    until = ""  # the word that ends the here-document
    at = 0
    while at < len(text) and len(words) < _SEEN_WORDS and (token := _TOKEN.match(text, at)):
        at = token.end()
        if (end := token["end"]) is not None:
            if end == "\n" and until:
                at, until = _after_here(text, at, until), ""
            if pattern:
                pattern = end != ")"
                continue
            words.append(None)
            redirected, pattern = False, end == ";;" and cases > 0
        elif token["here"] is not None:
            until = token["until"]
        elif token["redirect"] is not None:
            redirected = True
        elif token["word"] is not None:
            word = _unquoted(token["word"])
            if word == "esac" and cases:
                cases, pattern = cases - 1, False
            elif word == "in" and words[-2:-1] == ["case"] and words[-3:-2] in ([], [None]):
                del words[-2:]
                cases, pattern = cases + 1, True
            elif not pattern and not redirected:
                words.append(word)
            redirected = False
    return words


def _after_here(text: str, at: int, until: str) -> int:
    """The position after the here-document that begins here."""
    while at < len(text):
        line, _, _ = text[at:].partition("\n")
        at += len(line) + 1
        if line.strip("\t") == until:
            break
    return at


def _unquoted(word: str) -> str:
    if "'" not in word and '"' not in word and "\\" not in word:
        return word
    return _QUOTED.sub(lambda match: match[1] or match[2] or (match[3] or "").strip("\n"), word)


def _executed(words: list[str | None]) -> str:
    """The program of an argument list. No shell reads it, so its first word is a program."""
    first = words[0] or ""
    base = _base(first)
    if base in WRAPPERS or base in WITH_VERB or interpreter_called(base) is not None:
        return _program(words, 0) or base
    return base


def _program(words: list[str | None], nesting: int) -> str:
    """The program in the words of a command; empty: none."""
    at, last = 0, ""
    while at < len(words):
        word = words[at]
        if not word or word in OPEN or _ASSIGNMENT.match(word):
            at += 1
            continue
        base = _base(word)
        if base == "[[":
            at = _after_word(words, at, "]]")
        elif base in PREPARE or (base == "command" and _next(words, at) in ("-v", "-V")):
            at = _after_end(words, at)
        elif base in MINOR:
            last = last or base
            end = _after_end(words, at)
            if base == "eval" and nesting < _MAX_NESTING:
                rest = " ".join(each for each in words[at + 1 : end] if each)
                if found := _program(_words(rest), nesting + 1):
                    return found
            at = end
        elif base in LOOPS:
            at = _after_word(words, at, "do")
        elif base == "function":
            at += 2
        elif (wrapper := WRAPPERS.get(base)) is not None:
            if base == "env" and (text := _split_string(words, at)) is not None and nesting < _MAX_NESTING:
                return _program(_words(text), nesting + 1) or base
            last = base
            at = _after_options(words, at + 1, wrapper)
        elif base in WITH_VERB and _next(words, at) in ("run", "exec"):
            verb, wrapper = WITH_VERB[base]
            # `singularity run image` names no program but the image.
            skip = wrapper if words[at + 1] == verb else wrapper._replace(skip=0)
            last = base
            at = _after_options(words, at + 2, skip)
        elif (interpreter := interpreter_called(base)) is not None:
            return _interpreted(words, at + 1, interpreter, nesting) or base
        elif _is_name(base):
            return base
        else:
            at = _after_end(words, at) if any(map(str.isalnum, base)) else at + 1
    return last


def _is_name(base: str) -> bool:
    """Can this be the name of a program, and not a word of the shell?"""
    return (
        any(letter.isalnum() for letter in base)
        and base not in KEYWORDS
        and base not in PREPARE
        and not _ASSIGNMENT.match(base)
    )


def _next(words: list[str | None], at: int) -> str | None:
    return words[at + 1] if at + 1 < len(words) else None


def _after_end(words: list[str | None], at: int) -> int:
    while at < len(words) and words[at] is not None:
        at += 1
    return at


def _after_word(words: list[str | None], at: int, last: str) -> int:
    while at < len(words) and words[at] != last:
        at += 1
    return at + 1


def _split_string(words: list[str | None], at: int) -> str | None:
    """The text of `env -S TEXT`, which env itself splits into words."""
    text = words[at + 2] if _next(words, at) in ("-S", "--split-string") and at + 2 < len(words) else None
    return text or None


def _after_options(words: list[str | None], at: int, wrapper: Wrapper) -> int:
    """The position after the wrapper's own arguments."""
    while at < len(words) and (word := words[at]) is not None and word.startswith("-"):
        at += 1
        if word == "--":
            break
        if word in wrapper.doubly:
            at += 2
        elif word in wrapper.valued:
            at += 1
        elif wrapper.values_look_like_numbers and word.startswith("--") and "=" not in word:
            follower = words[at] if at < len(words) else None
            at += 1 if follower and follower[0].isdigit() else 0
    for _ in range(wrapper.skip):
        if at < len(words) and words[at] is not None:
            at += 1
    return at


def _interpreted(words: list[str | None], at: int, interpreter: Interpreter, nesting: int) -> str:
    """The interpreted file or module; empty: only inline code, or nothing."""
    while at < len(words):
        word = words[at]
        at += 1
        if word is None:
            return ""
        if word in interpreter.named:
            given = words[at] if at < len(words) else None
            return _base(given) if given else ""
        if word in ("-", "--", "CMD") or word in interpreter.valued:
            at += word in interpreter.valued
        elif word.startswith(("--", "+")):
            name, _, value = word.partition("=")
            if name in interpreter.named and value:
                return _base(value)
            if name in ("--eval", "--print"):
                return ""
        elif word.startswith("-"):
            if word[1] in interpreter.attached:
                continue
            if any(letter in word for letter in interpreter.code) and (
                len(word) == 2 or interpreter.is_shell or word[-1] in interpreter.code
            ):
                text = words[at] if interpreter.is_shell and at < len(words) else None
                return _program(_words(text), nesting + 1) if text and nesting < _MAX_NESTING else ""
        elif not interpreter.is_shell or word:
            return _base(word)
    return ""


def _base(word: str) -> str:
    """The last component of a path."""
    if "/" in word:
        word = word.rstrip("/")
        word = word[word.rfind("/") + 1 :]
    return word


def _shortened(name: str) -> str:
    """Make the name fit for storage and for use in a URL: not empty and not too long."""
    if not name.isascii() or len(name) > MAX_NAME_BYTES:
        name = name[:MAX_NAME_BYTES].encode("utf-8", "replace")[:MAX_NAME_BYTES].decode("utf-8", "ignore")
    return NAMELESS if name in ("", ".", "..") else name
