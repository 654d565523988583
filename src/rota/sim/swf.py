"""Parses traces in the Standard Workload Format: one job per line, 18 numbers, −1 for unknown values.

Errors name the line and the field.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from rota.errors import BadInput
from rota.sim.unpacking import pieces

#: Bounded, because all jobs are held in memory; far above any published trace.
_MOST_JOBS: Final = 10_000_000
_LONGEST_LINE: Final = 1 << 20
_LONGEST_HEADER: Final = 1 << 20

_FIELDS: Final = (
    "job number", "submit time", "wait time", "run time", "allocated processors", "average CPU time",
    "used memory", "requested processors", "requested time", "requested memory", "status", "user", "group",
    "executable", "queue", "partition", "preceding job", "think time",
)  # fmt: skip
_HEADER: Final = re.compile(r";\s*([A-Za-z][A-Za-z0-9_ ]*?)\s*:\s*(.*)")
_WHOLE: Final = re.compile(r"[0-9]{1,15}(?![0-9]|[.,][0-9])", re.ASCII)
_UNKNOWN: Final = -1
#: Beyond this, seconds are no longer exact.
_MOST: Final = 2**53


class SwfJob(Struct, frozen=True, gc=False):
    """The fields of one line that a simulation uses. Times are in seconds."""

    id: int  #: as the trace numbers it; not always unique
    submit: float
    procs: int  #: requested processors; allocated ones if that is unknown
    run: float  #: not longer than was requested
    requested: float  #: the user's estimate; the run time if there is none
    user: str = ""  #: empty: not known


class SwfTrace(Struct, frozen=True):
    """A whole trace: its header, and its jobs by submission, ties as in the file."""

    header: dict[str, str]  #: lower-case names; lines with the same name are joined
    jobs: list[SwfJob]

    def processors(self) -> int | None:
        """The number of processors in the header; None: not given."""
        for name in ("maxprocs", "maxnodes"):
            found = _WHOLE.match(self.header.get(name, ""))
            if found and int(found[0]) > 0:
                return int(found[0])
        return None


def parse_swf(data: bytes, name: str) -> SwfTrace:
    """The trace in these bytes, which may be gzipped; `name` is used in errors. Raises `BadInput`."""
    header: dict[str, list[str]] = {}
    header_length = 0
    jobs: list[SwfJob] = []
    for number, line in enumerate(_lines(data, name), 1):
        line = line.strip()
        if line.startswith(";"):
            if found := _HEADER.match(line):
                header.setdefault(found[1].lower(), []).append(found[2])
                header_length += len(line)
                if header_length > _LONGEST_HEADER:
                    raise BadInput(f"{name} has a header of more than 1 MiB", hint="leave most of it out")
        elif line:
            jobs.append(_job(line, f"{name}, line {number}"))
            if len(jobs) > _MOST_JOBS:
                raise BadInput(f"{name} has more than {_MOST_JOBS:,} jobs", hint="give a part of it")
    if not jobs and not header:
        raise BadInput(
            f"there is nothing in {name}", hint="give a trace in the Standard Workload Format, or in JSON"
        )
    jobs.sort(key=lambda job: job.submit)
    return SwfTrace({key: "\n".join(values) for key, values in header.items()}, jobs)


def _lines(data: bytes, name: str) -> Iterator[str]:
    """The lines of the text, unpacked piece by piece."""
    number = 0
    begun = b""
    for piece in pieces(data, name):
        if b"\0" in piece:
            raise BadInput(
                f"{name} is not a text file", hint="give a trace in the Standard Workload Format, or in JSON"
            )
        *whole, begun = (begun + piece).split(b"\n")
        for line in whole:
            text = line.decode("utf-8", "replace")
            yield text if number else text.removeprefix("\ufeff")
            number += 1
        if len(begun) > _LONGEST_LINE:
            raise BadInput(f"{name}, line {number + 1}: longer than 1 MiB", hint="correct the trace")
    text = begun.decode("utf-8", "replace")
    yield text if number else text.removeprefix("\ufeff")


def _job(line: str, where: str) -> SwfJob:
    words = line.partition(";")[0].split()
    if len(words) < len(_FIELDS):
        raise BadInput(
            f"{where}: {len(words)} of the {len(_FIELDS)} fields of the Standard Workload Format",
            hint="write -1 for what is not known, and ';' before a comment",
        )
    values = [_number(word, field, where) for field, word in enumerate(words[: len(_FIELDS)])]
    run, requested = values[3], values[8]
    allocated, asked = _whole(values, 4, where), _whole(values, 7, where)
    user = words[11] if values[11] >= 0 else ""
    if requested > 0:
        run = min(run, requested)
    return SwfJob(
        id=_whole(values, 0, where),
        submit=values[1],
        procs=asked if asked > 0 else allocated,
        run=run,
        requested=requested if requested > 0 else run,
        user=user,
    )


def _number(word: str, field: int, where: str) -> float:
    try:
        value = float(word)
    except ValueError:
        value = _MOST
    # The comparison also refuses nan; Python alone accepts underscores in numbers.
    if -_MOST < value < _MOST and "_" not in word:
        return value
    shown = word if len(word) <= 40 else f"{word[:37]}..."
    raise BadInput(
        f"{where}: field {field + 1} ({_FIELDS[field]}) is '{shown}', not a number",
        hint="correct the trace; -1 means not known",
    )


def _whole(values: list[float], field: int, where: str) -> int:
    value = values[field]
    if value != int(value):
        raise BadInput(
            f"{where}: field {field + 1} ({_FIELDS[field]}) is {value:g}, not a whole number",
            hint="correct the trace",
        )
    return int(value)


def why_skipped(job: SwfJob, processors: int) -> str:
    """Why a job cannot be simulated on so many processors; empty: it can."""
    if job.submit == _UNKNOWN:
        return "its submit time is not known"
    if job.run <= 0:
        return "its run time is not known" if job.run == _UNKNOWN else "it did not run"
    if job.procs <= 0:
        return "its number of processors is not known" if job.procs == _UNKNOWN else "it has no processors"
    if job.procs > processors:
        return f"it has {job.procs} processors, and there are {processors}"
    return ""
