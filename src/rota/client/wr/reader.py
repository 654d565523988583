"""Reads the input of `wr add` as jobs of Rota. Pure: opens no file and makes no request.

A line is a command; a command, a tab and a JSON object; or a JSON object. Values that wr takes from its defaults
are left to the caller's; `wr.fields` converts each field. The whole input is read before the first job is
returned: a command may depend on one further down, and a bad line refuses the whole input.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec
from msgspec import Struct

from rota.client.intake import MAX_LINE
from rota.client.wr.fields import Parsed, WrPlace, parse
from rota.errors import BadInput


class WrJob(Struct, frozen=True, gc=False):
    """One job: its line in wr's input, and its form in Rota."""

    line: int
    cmd: str
    fields: dict[str, object]
    parents: tuple[int, ...]  #: lines of the jobs it waits for
    warnings: tuple[str, ...]  #: what was lost, each beginning with wr's name of the field
    lost: tuple[tuple[str, str], ...] = ()  #: fields among these that were dropped
    earlier: tuple[tuple[str, str], ...] = ()  #: commands and directories of parents that are not in the input

    def fields_with(self, number_of: Mapping[int, int] | None = None) -> dict[str, object]:
        """The fields including dependencies on other lines, which may be renumbered."""
        if not self.parents and not self.earlier:
            return dict(self.fields)
        after = self.fields.get("after", [])
        assert isinstance(after, list)
        lines = [f"line:{number_of[line] if number_of else line}" for line in self.parents]
        earlier = [{"cmd": cmd, "cwd": cwd} if cwd else {"cmd": cmd} for cmd, cwd in self.earlier]
        return {**self.fields, "after": [*after, *lines, *earlier]}


class Conversion(Struct, frozen=True):
    """The content of an input."""

    jobs: list[WrJob]
    #: limits declared in the lines, in the syntax of `rota limit`; as in wr, the last of one name counts
    limits: list[str]
    #: lines that repeat another line's command: to wr they are the same job
    repeated: list[int]


def convert(blocks: Iterable[bytes], *, source: str, place: WrPlace, waits: bool = True) -> Conversion:
    """All jobs of an input. `waits`: keep dependencies on commands outside the input. Raises `BadInput` that names
    the source, the line and the field."""
    seen: dict[tuple[str, str], Parsed] = {}
    known: dict[tuple[str, str], int] = {}
    first_member: dict[str, int] = {}
    repeated: list[int] = []
    limits: dict[str, str] = {}
    found: list[tuple[int, Parsed]] = []
    for number, line in _lines(blocks, source):
        try:
            job = _job(line, place)
        except BadInput as error:
            raise error.at(line=number, source=source) from None
        if job is None:
            continue
        if (same := seen.get((job.cmd, job.cwd))) is not None:
            if _joins(same, job):
                repeated.append(number)
            continue
        seen[job.cmd, job.cwd] = job
        known.setdefault((job.said, job.cwd), number)
        for group in _words(job, "dep_groups"):
            first_member.setdefault(group, number)
        limits.update(job.declared)
        found.append((number, job))
    jobs = [_resolved(number, job, known, first_member, waits=waits) for number, job in found]
    return Conversion(jobs=jobs, limits=list(limits.values()), repeated=repeated)


def _job(line: str, place: WrPlace) -> Parsed | None:
    """The job of one line, if there is one."""
    if not line.strip() or line.lstrip().startswith("#"):
        return None
    columns = line.split("\t")
    while len(columns) > 1 and not columns[-1].strip():
        columns.pop()
    if len(columns) > 2:
        hint = "wr reads a command, a tab and a JSON object; write a tab in a command as \\t in JSON"
        raise BadInput(f"has {len(columns)} columns", hint=hint)
    if not columns[0].strip():
        raise BadInput("there is no command before the tab", hint="begin the line with it")
    if len(columns) == 2:
        return parse(columns[0], _object(columns[1]), place)
    if line.startswith("{"):
        return parse(None, _object(line), place)
    return parse(columns[0], {}, place)


def _object(text: str) -> dict[str, object]:
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise BadInput(f"is not valid JSON: {error}", hint="correct it, or quote it") from None
    if not isinstance(value, dict):
        raise BadInput("is not a JSON object", hint='write it like {"cmd": "sleep 1"}')
    return value


def _joins(job: Parsed, again: Parsed) -> bool:
    """Merge a repeated command: to wr it is the same job, also in the report group of the repeating line. Returns
    whether the repetition should be reported."""
    own, other = job.fields.get("group"), again.fields.get("group")
    names = own if isinstance(own, list) else [own]
    if not isinstance(other, str) or own is None or other in names:
        return True
    job.fields["group"] = [*names, other]
    return False


def _words(job: Parsed, name: str) -> list[str]:
    words = job.fields.get(name)
    return words if isinstance(words, list) else []


def _resolved(
    number: int, job: Parsed, known: dict[tuple[str, str], int], first_member: dict[str, int], *, waits: bool
) -> WrJob:
    """The job with its references to other lines resolved."""
    parents = [known[parent] for parent in job.parents if parent in known]
    earlier = [parent for parent in job.parents if parent not in known]
    if not waits:
        for cmd, _cwd in earlier:
            shown = cmd if cmd.isprintable() else ascii(cmd)
            job.warn(f"field 'cmd_deps': '{shown[:60]}' is not in this input, so it is not waited for")
        earlier = []
    if any(first_member.get(word[1:], 0) > number for word in _words(job, "after")):
        # Its members come later in this same input.
        job.fields["allow_empty_group"] = True
    return WrJob(
        number,
        job.cmd,
        job.fields,
        tuple(dict.fromkeys(parents)),
        job.warnings,
        job.lost,
        tuple(dict.fromkeys(earlier)),
    )


def _lines(blocks: Iterable[bytes], source: str) -> Iterator[tuple[int, str]]:
    number = 1
    rest = b""
    for block in blocks:
        *whole, rest = (rest + block).split(b"\n")
        for line in whole:
            yield number, _decoded(line, number, source)
            number += 1
        if len(rest) > MAX_LINE:
            break
    if rest:
        yield number, _decoded(rest, number, source)


def _decoded(line: bytes, number: int, source: str) -> str:
    what = hint = ""
    if len(line) > MAX_LINE:
        what, hint = f"has more than {MAX_LINE} bytes", "put the command in a script file"
    elif b"\0" in line:
        what, hint = "contains a NUL byte", "is this a text file?"
    try:
        text = line.decode()
    except UnicodeDecodeError:
        what, hint = what or "is not valid UTF-8", hint or "convert the file with iconv"
        text = ""
    if what:
        raise BadInput(what, hint=hint).at(line=number, source=source)
    return text.removeprefix("\ufeff" if number == 1 else "").removesuffix("\r")
