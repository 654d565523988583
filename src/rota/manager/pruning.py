"""Keep what jobs printed within its bounds of age and space: the oldest segments go first.

Only whole segment files are removed, never one that a runner may still be writing to, and not before it is
recorded that they are. A job whose output is gone keeps everything else.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path

log = logging.getLogger("rota.manager")

#: A segment that was written to this recently may still be in use.
_SETTLED_S = 3600.0


def outdated(directory: Path, *, now: float, keep_s: float, keep_bytes: int) -> list[str]:
    """The names of the segments that must go: those that are too old, then the oldest until the rest fits."""
    found = []
    for entry in os.scandir(directory):
        if entry.is_file(follow_symlinks=False):
            facts = entry.stat(follow_symlinks=False)
            # Copies of what nodes have may have holes.
            found.append((facts.st_mtime, min(facts.st_size, facts.st_blocks * 512), entry.name))
    total = sum(size for _written, size, _name in found)
    names = []
    for written, size, name in sorted(found):
        age = now - written
        if age < _SETTLED_S or (age <= keep_s and total <= keep_bytes):
            break
        total -= size
        names.append(name)
    return names


def remove(directory: Path, names: list[str]) -> None:
    """Remove these segments. What cannot be removed is found again."""
    for name in names:
        try:
            (directory / name).unlink(missing_ok=True)
        except OSError as error:
            log.warning("output cannot be pruned: %s", error)
    log.info("removed %d segments of old output", len(names))
