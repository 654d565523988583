"""The thread that commits: one batch at a time, synced, then reported back to the loop.

If the disk is full, the same batch is tried again until there is room. Any other failure of the store stops the
manager, since nothing may be acknowledged after a failed sync. Output that cannot be synced is lost, and recorded
as lost with the ends of its jobs: stopping would not help, for the next manager would get the same ends again.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

import msgspec

from rota.core.output.output_report import not_kept
from rota.core.rows import EndRow
from rota.core.turn import Batch
from rota.errors import StoreFull
from rota.manager.loop import clock
from rota.manager.metrics.counters import QUICK, Histogram
from rota.manager.output.outputs import SegmentFiles
from rota.store.base import Store

log = logging.getLogger("rota.manager.writer")

_FULL_RETRY_S = 1.0


class Writer:
    """Owns the write connection of the store."""

    def __init__(
        self,
        store: Store,
        output_dir: Path,
        loop: asyncio.AbstractEventLoop,
        *,
        committed: Callable[[Batch], None],
        failed: Callable[[BaseException], None],
        filled: Callable[[], None] = lambda: None,
    ) -> None:
        self._store = store
        self._outputs = SegmentFiles(output_dir, open_files=4)
        self._loop = loop
        self._committed = committed
        self._failed = failed
        self._filled = filled
        self._queue: queue.SimpleQueue[tuple[Batch, Callable[[], None] | None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)
        self.full = False  #: the disk is full and a batch waits for room
        self.commits = 0
        self.times: deque[float] = deque(maxlen=100)
        self.histogram = Histogram(QUICK)
        self.last_at = 0.0  #: wall time of the last commit; 0: there was none

    def start(self) -> None:
        self._thread.start()

    def submit(self, batch: Batch, *, then: Callable[[], None] | None = None) -> None:
        """Commit a batch. `then` is called in the writer's thread after the commit, before it is reported."""
        self._queue.put((batch, then))

    def stop(self, timeout_s: float) -> bool:
        """Commit what was submitted, then end the thread. Blocks; False: it took too long."""
        self._queue.put(None)
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while (submitted := self._queue.get()) is not None:
            batch, then = submitted
            begun = time.monotonic()
            try:
                self._commit(batch)
            except BaseException as error:
                self._loop.call_soon_threadsafe(self._failed, error)
                return
            self.commits += 1
            took = time.monotonic() - begun
            self.times.append(took)
            self.histogram.add(took)
            self.last_at = clock.now()
            if then is not None:
                then()
            self._loop.call_soon_threadsafe(self._committed, batch)

    def _commit(self, batch: Batch) -> None:
        segments = {row.segment for row in batch.changes.ends if row.segment}
        if segments:
            lost = self._outputs.sync(segments)
            if lost:
                batch.changes.ends = [
                    _without(row, lost[row.segment]) if row.segment is not None and row.segment in lost else row
                    for row in batch.changes.ends
                ]
        while True:
            try:
                self._store.commit(batch.changes)
            except StoreFull:
                if not self.full:
                    log.error("the disk is full; waiting for free space")  # noqa: TRY400
                    self.full = True
                    self._loop.call_soon_threadsafe(self._filled)
                time.sleep(_FULL_RETRY_S)
            else:
                if self.full:
                    log.warning("the disk has free space again")
                self.full = False
                return


def _without(row: EndRow, error: OSError) -> EndRow:
    """The end of an attempt whose output could not be synced."""
    kept = msgspec.json.encode(not_kept(error)).decode()
    return msgspec.structs.replace(row, segment=None, offset=0, out_len=0, err_len=0, kept=kept)
