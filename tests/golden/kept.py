"""Reads the golden files, and says what of a golden value is missing or different in today's."""

from __future__ import annotations

import json
import lzma
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
#: The releases that today's code continues.
RELEASES = sorted(path.name for path in HERE.iterdir() if (path / "commit").exists())


def golden(release: str, name: str) -> Any:
    return json.loads(lzma.decompress((HERE / release / f"{name}.json.xz").read_bytes()))


def unpack(release: str, name: str, top: Path) -> dict[str, Any]:
    """Put a home to TOP/home; what its users knew of it."""
    with tarfile.open(HERE / release / f"{name}.tar.xz") as archive:
        if hasattr(tarfile, "tar_filter"):
            archive.extractall(top, filter="tar")
        else:
            archive.extractall(top)  # before Python 3.11.4
    told: dict[str, Any] = json.loads((top / "told.json").read_bytes())
    return told


def lacking(old: Any, new: Any, where: str = "") -> Iterator[str]:
    """In what a plain value (`samples.plain`) differs, but for fields that came to structs."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key, value in old.items():
            if key not in new:
                yield f"{where}.{key} is gone"
            else:
                yield from lacking(value, new[key], f"{where}.{key}")
        if "is" not in old and new.keys() - old.keys():
            yield f"{where} has more: {new.keys() - old.keys()}"
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for n, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from lacking(one, other, f"{where}[{n}]")
    elif old != new or type(old) is not type(new):
        yield f"{where} was {old!r}, and is {new!r}"


def moved(old: Any, new: Any, where: str = "") -> Iterator[str]:
    """Where arrays and maps of messages, as they are on the wire, do not begin as they did. Decoders of the
    release leave out what comes behind; anything else they would take for what it is not."""
    if isinstance(old, list) and isinstance(new, list) and len(old) <= len(new):
        for n, one in enumerate(old):
            yield from moved(one, new[n], f"{where}[{n}]")
    elif isinstance(old, dict) and isinstance(new, dict):
        for key, one in old.items():
            if key not in new:
                yield f"{where}.{key} is gone"
            else:
                yield from moved(one, new[key], f"{where}.{key}")
    elif old != new or type(old) is not type(new):
        yield f"{where} was {old!r}, and is {new!r}"
