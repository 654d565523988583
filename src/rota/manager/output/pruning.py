"""Keeps the output of jobs within its limits of age and space: the oldest segments are removed first.

Only whole segment files are removed, never one that a runner may still write to, and only after the removal is
recorded. A job without its output keeps everything else.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable
from pathlib import Path

from rota.core import events
from rota.manager.loop import clock
from rota.manager.loop.readers import Readers
from rota.manager.output.outputs import SegmentFiles
from rota.settings import Settings

log = logging.getLogger("rota.manager")

#: A segment that was written to this recently may still be in use.
_SETTLED_S = 3600.0
_PRUNE_EVERY_S = 3600.0


class Pruner:
    """Looks for outdated segments every hour. The engine records them; only then are they removed."""

    def __init__(
        self,
        directory: Path,
        settings: Settings,
        *,
        outputs: SegmentFiles,
        readers: Readers,
        happened: Callable[[events.Event], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._directory = directory
        self._settings = settings
        self._outputs = outputs
        self._readers = readers
        self._happened = happened
        self._looked_at = time.monotonic()

    def tick(self, at: float) -> None:
        if at - self._looked_at > _PRUNE_EVERY_S:
            self._looked_at = at
            self._readers.submit(self._look)

    def _look(self) -> None:
        settings = self._settings
        try:
            names = outdated(
                self._directory,
                # File times are of the wall clock, which may have been set back since.
                now=min(clock.now(), time.time()),
                keep_s=settings.output_days,
                keep_bytes=settings.output_space,
            )
        except OSError as error:
            log.warning("output cannot be pruned: %s", error)
        else:
            if names:
                self._loop.call_soon_threadsafe(self._happened, events.OutputOutdated(names))

    def remove(self, names: list[str]) -> None:
        """Remove what is recorded as pruned."""
        self._outputs.close()  # closes the files to be removed
        self._readers.submit(lambda: remove(self._directory, names))


def outdated(directory: Path, *, now: float, keep_s: float, keep_bytes: int) -> list[str]:
    """Names of segments to remove: all that are too old, then the oldest until the rest fits."""
    found = []
    for entry in os.scandir(directory):
        if entry.is_file(follow_symlinks=False):
            facts = entry.stat(follow_symlinks=False)
            # Copies from nodes may be sparse.
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
    """Remove these segments. One that cannot be removed is found again next time."""
    for name in names:
        try:
            (directory / name).unlink(missing_ok=True)
        except OSError as error:
            log.warning("output cannot be pruned: %s", error)
    log.info("removed %d segments of old output", len(names))
