"""`rota status --watch`: refreshed every second, in place on a terminal, otherwise block after block.

The terminal is always restored. If the manager stops, the command waits for it to come back.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Final

from rota.cli.command import print_json
from rota.cli.render.printing import draw, print_err, print_out
from rota.cli.render.status_text import Canvas, status_text
from rota.cli.render.text import SafeText, block, coloured, cut, is_terminal, literal, paint, rows_ended, width
from rota.core.states import SETTLED
from rota.errors import NoManager

if TYPE_CHECKING:
    from rota.client.blocking import Client
    from rota.wire.views import StatusView

_EVERY_S: Final = 1.0
_SETTLED: Final = frozenset(state.label for state in SETTLED)


def watch_status(client: Client, selectors: tuple[str, ...], *, as_json: bool, until_done: bool) -> int:
    """Show the status until interrupted, or with `until_done` until no job is left to run."""
    show = StatusBlocks(as_json=as_json) if as_json or not _can_redraw() else StatusScreen()
    with show:
        gone = False
        while True:
            try:
                if gone:
                    client.connect()
                found = client.status(*selectors)
            except NoManager as error:
                if not gone:
                    show.lost(error)
                gone = True
            else:
                if gone:
                    show.back()
                gone = False
                show.show(found)
                if until_done and found.counts.keys() <= _SETTLED:
                    return 0
            show.pause(_EVERY_S)


def _can_redraw() -> bool:
    return is_terminal(sys.stdout) and os.environ.get("TERM") not in (None, "", "dumb")


class StatusBlocks:
    """Prints one block after another, for pipes and files."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._first = True
        self._states: set[str] = set()  #: states keep their columns once seen, so that the table does not jump

    def __enter__(self) -> StatusBlocks:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def show(self, found: StatusView) -> None:
        self._states.update(found.counts)
        if self._as_json:
            print_json(found)
        else:
            space = Canvas(width(sys.stdout), None, coloured(sys.stdout))
            print_out(*([] if self._first else [""]), self._text(found, space))
        self._first = False
        sys.stdout.flush()

    def _text(self, found: StatusView, space: Canvas) -> SafeText:
        return status_text(found, space, states=self._states)

    def lost(self, error: NoManager) -> None:
        print_err(f"rota: {error.message}; waiting for it to come back")

    def back(self) -> None:
        print_err("rota: the manager is back")

    def pause(self, seconds: float) -> None:
        time.sleep(seconds)


class StatusScreen(StatusBlocks):
    """Redraws in place on the terminal's alternate screen, which is left at the end."""

    _ENTER: Final = literal("\x1b[?1049h\x1b[?25l\x1b[H\x1b[2J")
    _LEAVE: Final = literal("\x1b[?25h\x1b[?1049l")

    def __init__(self) -> None:
        super().__init__(as_json=False)
        self._found: StatusView | None = None
        self._trouble = ""
        self._wake, self._woken = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._old: dict[int, object] = {}
        self._old_wakeup = -1

    def __enter__(self) -> StatusScreen:
        # The pipe ends a pause when a signal comes: a new size of the terminal is drawn at once.
        self._old_wakeup = signal.set_wakeup_fd(self._woken, warn_on_full_buffer=False)
        for number, handler in (
            (signal.SIGWINCH, _nothing),
            (signal.SIGTERM, _leave),
            (signal.SIGHUP, _leave),
            (signal.SIGTSTP, self._stop),
        ):
            self._old[number] = signal.signal(number, handler)
        draw(self._ENTER)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            draw(self._LEAVE + (block([self._table(0), ""]) if self._found else ""))
        except OSError:
            pass  # the terminal is gone
        signal.set_wakeup_fd(self._old_wakeup)
        for number, handler in self._old.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        os.close(self._wake)
        os.close(self._woken)

    def show(self, found: StatusView) -> None:
        self._states.update(found.counts)
        self._found = found
        self._draw()

    def lost(self, error: NoManager) -> None:
        self._trouble = f"rota: {error.message}; waiting for it to come back"
        self._draw()

    def back(self) -> None:
        self._trouble = ""

    def pause(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if select.select([self._wake], [], [], left)[0]:
                os.read(self._wake, 4096)
                self._draw()

    def _table(self, above: int) -> SafeText:
        """As much of the table as fits below `above` lines."""
        if self._found is None:
            return literal("")
        size = os.get_terminal_size(sys.stdout.fileno())
        space = Canvas(size.columns or 80, max(3, (size.lines or 24) - above), coloured(sys.stdout))
        return self._text(self._found, space)

    def _draw(self) -> None:
        room = os.get_terminal_size(sys.stdout.fileno()).columns or 80
        title = cut(self._trouble or f"rota status  {time.strftime('%H:%M:%S')}  Ctrl-C ends", room)
        head = paint(title, "failed" if self._trouble else "dim", on=coloured(sys.stdout))
        lines = block([head, self._table(1)])
        # Cursor home, then each line with its rest erased: without clearing the screen first, nothing flickers.
        draw(literal("\x1b[H") + rows_ended(lines, literal("\x1b[K\r\n")) + literal("\x1b[K\x1b[J"))

    def _stop(self, _number: int, _frame: FrameType | None) -> None:
        """Ctrl-Z: leave the alternate screen while the process is stopped."""
        draw(self._LEAVE)
        os.kill(os.getpid(), signal.SIGSTOP)
        draw(self._ENTER)


def _nothing(_number: int, _frame: FrameType | None) -> None:
    pass


def _leave(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)
