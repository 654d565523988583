"""The progress line on stderr: redrawn in place on a terminal, never printed to a pipe."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from rota.cli.render.printing import redraw, wipe
from rota.cli.render.text import SafeText, coloured, cut, is_terminal, paint, width
from rota.units import about_duration

_REDRAW_S: Final = 0.1
_WINDOW_S: Final = 15.0
_ASK_S: Final = 1.0
_ASK_MAX: Final = 10_000
_BAR: Final = 20

_DONE: Final = ("complete", "failed", "cancelled", "blocked")
_BUSY: Final = ("starting", "running", "suspended", "finishing")


class ProgressLine:
    """Counts, rate and time left of some jobs."""

    def __init__(self, *, show: bool = True) -> None:
        self.shown = show and is_terminal(sys.stderr)
        self._skipped = 0
        self._counts: dict[str, int] = {}
        self._drawn = False
        self._last = 0.0
        self._asked = time.monotonic()
        self._samples: deque[tuple[float, int]] = deque()
        self.begun = time.monotonic()

    def expect(self, counts: dict[str, int], *, skipped: int = 0) -> None:
        """Set the first counts; `skipped` jobs were complete from the beginning."""
        self._counts = counts
        self._skipped = skipped

    def refresh(self, ask: Callable[[], dict[str, int]]) -> None:
        """No job has ended lately: ask for counts now and then, if there are few enough jobs."""
        now = time.monotonic()
        if self.shown and now - self._asked > _ASK_S and sum(self._counts.values()) <= _ASK_MAX:
            self._asked = now
            counts = ask()
            if sum(counts.values()) == sum(self._counts.values()):
                self._counts = counts
        self.tick()

    def update(self, counts: dict[str, int]) -> None:
        """Take new counts, and draw if it is time."""
        self._counts = counts
        self.tick()

    def tick(self) -> None:
        if not self.shown:
            return
        now = time.monotonic()
        if now - self._last < _REDRAW_S:
            return
        self._last = now
        line = self.text(now)
        redraw(line)
        self._drawn = True

    def clear(self) -> None:
        """Erase the line, so that something else can be printed."""
        if self._drawn:
            wipe()
            self._drawn = False
            self._last = 0.0

    def text(self, now: float) -> SafeText:
        """The line as it would be drawn now."""
        counts = self._counts
        total = sum(counts.values()) - self._skipped
        done = sum(counts.get(state, 0) for state in _DONE) - self._skipped
        busy = sum(counts.get(state, 0) for state in _BUSY)
        failed = counts.get("failed", 0) + counts.get("cancelled", 0) + counts.get("blocked", 0)
        self._samples.append((now, done))
        while len(self._samples) > 2 and now - self._samples[0][0] > _WINDOW_S:
            self._samples.popleft()
        filled = _BAR * done // total if total > 0 else 0
        parts = [f"[{'#' * filled}{'.' * (_BAR - filled)}] {done:,}/{total:,}", f"{busy:,} running"]
        if failed:
            parts.append(f"{failed:,} failed")
        for state in ("lost", "delayed", "held"):
            if counts.get(state):
                parts.append(f"{counts[state]:,} {state}")
        (then, before), (_, latest) = self._samples[0], self._samples[-1]
        rate = (latest - before) / (now - then) if now > then else 0.0
        if rate > 0:
            parts.append(f"{rate:.0f}/s" if rate >= 10 else f"{rate:.1f}/s")
            if total > done:
                parts.append(f"{about_duration((total - done) / rate)} left")
        parts.append(about_duration(now - self.begun))
        line = cut("  ".join(parts), (width(sys.stderr) or 80) - 1)
        left, found, right = line.partition(f"{failed:,} failed") if failed else (line, "", "")
        return left + paint(found, "failed", on=coloured(sys.stderr) and bool(found)) + right
