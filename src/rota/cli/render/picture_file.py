"""The file that a picture is drawn into."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rota.errors import BadInput, EnvironmentFault

if TYPE_CHECKING:
    from rota.pictures.schedule import Picture


def check_writable(path: str) -> None:
    """Refuse a bad path before a long simulation, not after it. Raises `BadInput`."""
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
    """Draw into a file, which appears complete or not at all. Raises `EnvironmentFault`."""
    from rota.pictures.rendering import rendered, suffix_of

    write_file(rendered(picture, suffix_of(path)), path)


def write_file(data: bytes, path: str) -> None:
    """Write a file, which appears complete or not at all. Raises `EnvironmentFault`."""
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
