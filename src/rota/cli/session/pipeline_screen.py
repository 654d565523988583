"""A session of a pipeline on a terminal: messages scroll by above, stages and running jobs are drawn below them.

Nothing is cleared first, so nothing flickers; at most ten pictures a second are drawn, whatever happens.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from rota.cli.render.pipeline_text import JobCell, clock, event_line, running_lines, stage_lines
from rota.cli.render.printing import draw
from rota.cli.render.status_text import Canvas
from rota.cli.render.text import SafeText, cells, coloured, cut, harmless, literal, paint
from rota.cli.session.pipeline_shows import LinesShow, blocked_line, print_session

if TYPE_CHECKING:
    from rota.cli.session.pipeline_board import Board
    from rota.cli.session.pipeline_failures import Failures
    from rota.wire.pipeline_views import PipelineEvent, PipelineItem, PipelineView

_REDRAW_S: Final = 0.1
#: Times are shown in whole seconds.
_IDLE_S: Final = 0.5
#: So many lines at most show running jobs, and so many messages are printed at once.
_MOST_RUNNING: Final = 12
_MOST_MESSAGES: Final = 200
#: What one failure blocks is told at once up to so many elements, then when there are so many times more.
_FEW: Final = 20
_MORE: Final = 4
_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")
_UP: Final = literal("\x1b[A")
_BEGIN: Final = literal("\r")
_REST: Final = literal("\x1b[K")
_BELOW: Final = literal("\x1b[J")
_NEXT: Final = literal("\r\n")
_HIDE: Final = literal("\x1b[?25l")
_SHOW: Final = literal("\x1b[?25h")


class Region:
    """The last lines of a terminal, drawn again and again in their place."""

    def __init__(self) -> None:
        self._widths: list[int] = []  #: of the lines that are drawn

    @property
    def drawn(self) -> bool:
        return bool(self._widths)

    def picture(self, above: Iterable[SafeText], lines: list[SafeText], *, columns: int) -> SafeText:
        """What to write to replace the region: lines that scroll by above it, then its new lines."""
        text = self._home(columns) + (_HIDE if lines else literal(""))
        for line in above:
            text += line + _REST + _NEXT
        for at, line in enumerate(lines):
            text += line + _REST + (_NEXT if at < len(lines) - 1 else literal(""))
        self._widths = [cells(_COLOUR.sub("", line)) for line in lines]
        return text + _BELOW

    def _home(self, columns: int) -> SafeText:
        """To its first line. Lines that were wider than the terminal is now have been wrapped by it."""
        rows = sum(max(1, -(-width // max(columns, 1))) for width in self._widths)
        text = _BEGIN
        for _row in range(rows - 1):
            text += _UP
        return text


class ScreenShow(LinesShow):
    """Messages and the region."""

    def __init__(self, board: Board, failures: Failures) -> None:
        super().__init__(board, failures)
        self.prompt = ""  #: a question that is open: the last line
        self._region = Region()
        self._messages: list[SafeText] = []
        self._told_blocked: set[str] = set()
        self._blocked: dict[str, list[str]] = {}  #: what failed → what it blocks, of which nothing was said yet
        self._blocks: dict[str, int] = {}  #: what failed → of so many that it blocks something was said
        self._last = 0.0
        self._changed = True
        self._size = os.terminal_size((80, 24))
        self._colour = coloured(sys.stdout)

    def take(self, item: PipelineItem) -> None:
        self._changed = True
        for event in item.events:
            self._message(event)

    def _message(self, event: PipelineEvent) -> None:
        if event.event == "ended" and event.outcome in ("failed", "failed-permanently"):
            self._messages.append(paint(event_line(event), "failed", on=self._colour))
            self._messages += [harmless(line) for line in self._failures.lines(event)]
        elif event.event == "blocked" and event.element and event.by and event.by != event.element:
            if event.element not in self._told_blocked:
                self._told_blocked.add(event.element)
                self._blocked.setdefault(event.by, []).append(event.element)
        elif event.lacks:
            self._messages.append(paint(f"  {event_line(event)}", "blocked", on=self._colour))
        elif event.event == "retried":
            self._told_blocked.clear()
            self._blocked.clear()
            self._blocks.clear()
            self._messages.append(harmless(event_line(event)))
        elif event.event in ("suspended", "resumed") and not event.element:
            self._messages.append(harmless(event_line(event)))

    def say(self, line: str) -> None:
        self.message(harmless(line))

    def message(self, *lines: str) -> None:
        """Let these scroll by at the next picture."""
        self._messages += map(harmless, lines)
        self._changed = True

    def ask(self, prompt: str) -> None:
        """Show a question as the last line; empty: none."""
        if prompt != self.prompt:
            self.prompt, self._changed, self._last = prompt, True, 0.0

    def tick(self) -> None:
        """Draw, if it is time."""
        now = time.monotonic()
        size = _size()
        due = now - self._last >= (_REDRAW_S if self._changed or size != self._size else _IDLE_S)
        if due:
            self._size = size
            self._draw(now)

    def _draw(self, now: float) -> None:
        columns = max(20, self._size.columns) - 1  # a full line would wrap on some terminals
        lines = self._lines(now, columns, max(3, self._size.lines - 1))
        above = self._take_messages(columns)
        picture = self._region.picture(above, lines, columns=self._size.columns)
        draw(picture + _SHOW if self.prompt else picture)
        self._last, self._changed = now, False

    def _take_messages(self, columns: int) -> list[SafeText]:
        """What is to scroll by. Thousands of lines would only hide each other."""
        above, self._messages = self._messages, []
        for culprit, elements in list(self._blocked.items()):
            said = self._blocks.get(culprit, 0)
            # A line at every picture would hide all other messages.
            if said < _FEW or len(elements) >= _MORE * said:
                self._blocks[culprit] = said + len(elements)
                line = blocked_line(culprit, elements, columns)
                above.append(paint(line, "blocked", on=self._colour))
                del self._blocked[culprit]
        if len(above) > _MOST_MESSAGES:
            left_out = len(above) - _MOST_MESSAGES
            above = [*above[:_MOST_MESSAGES], harmless(f"… and {left_out:,} more lines")]
        return above

    def _lines(self, now: float, columns: int, most: int) -> list[SafeText]:
        """The region: a rule with the state, the stages, the running jobs, the question."""
        board = self.board
        if not board.started:
            return []
        room = most - (1 if self.prompt else 0)
        stages = stage_lines(board.stages, Canvas(columns, None, self._colour)) if board.stages else []
        lines = [self._rule(now, columns), *stages][:room]
        elapsed = board.elapsed_s(now)
        jobs = (
            JobCell(job.element or "session", job.stage, elapsed - job.began_s, job.progress)
            for job in board.running.values()
        )
        free = min(room - len(lines), _MOST_RUNNING)
        lines += running_lines(jobs, len(board.running), columns=columns, lines=free, colour=self._colour)
        if self.prompt:
            lines.append(paint(cut(self.prompt, columns), "bold", on=self._colour))
        return lines

    def _rule(self, now: float, columns: int) -> SafeText:
        board = self.board
        name = os.path.basename(board.file)
        tail = f" session {board.session} {board.state} {clock(board.elapsed_s(now))} "
        name = cut(harmless(name), max(columns - cells(tail) - 6, 4))
        text = cut(f"── {name}{tail}", columns)
        kind = "held" if board.state in ("paused", "asking") else "bold"
        return paint(text + "─" * (columns - cells(text)), kind, on=self._colour)

    def leave(self) -> None:
        """Erase the region; messages stay."""
        above = self._take_messages(self._size.columns - 1)
        if self._region.drawn or above:
            draw(self._region.picture(above, [], columns=self._size.columns) + _SHOW)
        self._changed, self._last = True, 0.0

    def end(self, view: PipelineView) -> None:
        self._size = _size()
        self.leave()
        print_session(view, self.board)
        sys.stdout.flush()


def _size() -> os.terminal_size:
    try:
        size = os.get_terminal_size(sys.stdout.fileno())
    except OSError:
        return os.terminal_size((80, 24))
    return os.terminal_size((size.columns or 80, size.lines or 24))
