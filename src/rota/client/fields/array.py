"""The elements of arrays: one entry expands to many jobs, each with an index and optionally a line of parameters.

With a parameter file each line is a job, and a specification picks lines by their number among the jobs. The file
is read elsewhere.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from rota.core.fields.array import MAX_ELEMENTS, Array
from rota.core.fields.limits import WantedLimit
from rota.core.fields.values import check_command, shown
from rota.core.jobs.command import Command, length, with_parameters
from rota.errors import BadInput


class Elements:
    """Index and command of each element of one array; commands are built on demand."""

    def __init__(self, cmd: Command, spec: Array | None, lines: list[str] | None) -> None:
        """`lines`: the parameters, if there is a file of them. Raises `BadInput` if an index has no line."""
        self._cmd = cmd
        self._lines = lines
        if spec is not None and spec.parts:
            self._indexes: Sequence[int] = spec.parts[0] if len(spec.parts) == 1 else list(spec)
            if lines is not None:
                beyond = next((index for index in self._indexes if not 1 <= index <= len(lines)), None)
                if beyond is not None:
                    raise BadInput(
                        f"there are no parameters for index {beyond}",
                        hint=f"the file has {len(lines)}, counted from 1, without blank lines and comments",
                    )
        else:
            assert lines is not None
            self._indexes = range(1, len(lines) + 1)

    def __len__(self) -> int:
        return len(self._indexes)

    def indexes(self, first: int, count: int) -> Sequence[int]:
        """The indexes of `count` elements, beginning with element number `first`."""
        return self._indexes[first : first + count]

    def commands(self, first: int, count: int, *, room: int) -> list[Command]:
        """The commands of these elements: at least one, then as many as fit into `room` characters.

        Raises `BadInput` for an invalid command.
        """
        indexes = self.indexes(first, count)
        if self._lines is None:
            return [self._cmd] * max(1, min(len(indexes), room // length(self._cmd)))
        found: list[Command] = []
        for index in indexes:
            found.append(self._with(index))
            room -= length(found[-1])
            if room <= 0:
                break
        return found

    def _with(self, index: int) -> Command:
        assert self._lines is not None
        line = self._lines[index - 1]
        try:
            return check_command(with_parameters(self._cmd, line))
        except ValueError as error:  # an unterminated quotation
            reason = str(error).lower()
            raise BadInput(f"parameters {index} ('{shown(line)}'): {reason}", hint="close the quotation") from None
        except BadInput as error:
            raise BadInput(f"parameters {index}: {error.message}", hint=error.hint) from None


def parameters(data: bytes) -> list[str]:
    """The lines of a parameter file that are jobs. Raises `BadInput`."""
    try:
        text = data.removeprefix(b"\xef\xbb\xbf").decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise BadInput(f"line {line} is not valid UTF-8", hint="convert the file with iconv") from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise BadInput(f"line {line} contains a NUL byte", hint="is this a text file?")
    stripped = (line.removesuffix("\r").lstrip(" \t\f\v") for line in text.split("\n"))
    found = [line for line in stripped if line and line[0] != "#"]
    if not found:
        raise BadInput("has no lines of parameters", hint="put the parameters of one job on each line")
    if len(found) > MAX_ELEMENTS:
        raise BadInput(f"has more than {MAX_ELEMENTS} lines", hint="make several files of it")
    return found


def throttle(spec: Array) -> WantedLimit | None:
    """The limit on how many elements of this array run at once; no other array uses it."""
    if spec.at_once is None:
        return None
    return WantedLimit(f"array-{os.urandom(6).hex()}", spec.at_once)
