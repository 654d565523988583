"""Keep what jobs printed within its bounds of age and space: the oldest segments go first.

Only whole segment files are removed, and never one that a runner may still be writing to. A job whose
output is gone keeps everything else.
"""

from __future__ import annotations

import os
from pathlib import Path

#: A segment that was written to this recently may still be in use.
_SETTLED_S = 3600.0


def prune(directory: Path, *, now: float, keep_s: float, keep_bytes: int) -> list[str]:
    """Remove segments that are too old, then the oldest until the rest fits; the names of those removed."""
    found = []
    for entry in os.scandir(directory):
        if entry.is_file(follow_symlinks=False):
            facts = entry.stat(follow_symlinks=False)
            # Copies of what nodes have may have holes.
            found.append((facts.st_mtime, min(facts.st_size, facts.st_blocks * 512), entry.name))
    total = sum(size for _written, size, _name in found)
    removed = []
    for written, size, name in sorted(found):
        age = now - written
        if age < _SETTLED_S or (age <= keep_s and total <= keep_bytes):
            break
        (directory / name).unlink(missing_ok=True)
        total -= size
        removed.append(name)
    return removed
