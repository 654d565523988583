"""The files of a simulation: the trace it reads and the picture it draws."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from rota.errors import BadInput, EnvironmentFault

if TYPE_CHECKING:
    from rota.pictures.schedule import Picture


def read_trace(path: str) -> bytes:
    """The bytes of a file, or of stdin. Raises `BadInput`."""
    from rota.sim.unpacking import MAX_BYTES

    try:
        if path == "-":
            data = sys.stdin.buffer.read(MAX_BYTES + 1)
        else:
            with open(path, "rb") as file:
                data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise BadInput(f"cannot read {path}: {reason}", hint="give a trace, or '-' for stdin") from None
    if len(data) > MAX_BYTES:
        raise BadInput(f"{path} is larger than 1 GiB", hint="give a part of it")
    return data


def check_writable(path: str) -> None:
    """Find out before a long simulation, not after it, that its picture could not be kept. Raises `BadInput`."""
    from rota.pictures.rendering import suffix_of

    suffix_of(path)
    directory = os.path.dirname(path) or "."
    if os.path.isdir(path):
        raise BadInput(f"cannot write {path}: it is a directory", hint="give it another name")
    if not os.path.isdir(directory):
        raise BadInput(f"cannot write {path}: there is no directory {directory}", hint="make it first")
    if not os.access(directory, os.W_OK | os.X_OK):
        raise BadInput(f"cannot write {path}: no permission", hint="give it another name")


def write_picture(picture: Picture, path: str) -> None:
    """Draw into a file, which is there whole or not at all. Raises `EnvironmentFault`."""
    from rota.pictures.rendering import rendered, suffix_of

    data = rendered(picture, suffix_of(path))
    target = os.path.realpath(path)
    partial = f"{target}.{os.getpid()}.tmp"
    try:
        try:
            with open(partial, "wb") as file:
                file.write(data)
            os.replace(partial, target)
        except BaseException:
            if os.path.exists(partial):
                os.unlink(partial)
            raise
    except OSError as error:
        raise EnvironmentFault(f"cannot write {path}: {error.strerror}", hint="give it another name") from None
