"""Reads files named in fields of jobs at submission: sizes of inputs, and parameters."""

from __future__ import annotations

import os
import stat
from typing import Final

from rota.client.fields.array import parameters
from rota.core.fields.values import shown
from rota.errors import BadInput

MAX_PARAMETERS: Final = 512 << 20


class InputFiles:
    """Looks at each file once, even if many jobs name it."""

    def __init__(self) -> None:
        self._sizes: dict[str, int] = {}
        self._parameters: dict[str, list[str]] = {}

    def size(self, path: str) -> int:
        """The size of an input. Raises `BadInput`."""
        known = self._sizes.get(path)
        if known is None:
            try:
                status = os.stat(path)
            except (OSError, ValueError) as error:
                raise _unusable(path, error, "give a file that is there, or 'input_bytes'") from None
            if stat.S_ISDIR(status.st_mode):
                raise BadInput(f"{shown(path, 200)} is a directory", hint="give a file, or 'input_bytes'")
            known = self._sizes[path] = status.st_size
        return known

    def parameters(self, path: str) -> list[str]:
        """The parameter lines in a file; a relative path starts at the directory of the submission.

        Raises `BadInput`.
        """
        known = self._parameters.get(path)
        if known is None:
            try:
                with open(path, "rb") as file:
                    data = file.read(MAX_PARAMETERS + 1)
            except (OSError, ValueError) as error:
                raise _unusable(path, error, "give a file of parameters, one job a line") from None
            if len(data) > MAX_PARAMETERS:
                raise BadInput(f"{shown(path, 200)} has more than 512 MiB", hint="make several files of it")
            try:
                known = self._parameters[path] = parameters(data)
            except BadInput as error:
                raise BadInput(f"{shown(path, 200)} {error.message}", hint=error.hint) from None
        return known


def _unusable(path: str, error: Exception, hint: str) -> BadInput:
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return BadInput(f"cannot read {shown(path, 200)}: {reason}", hint=hint)
