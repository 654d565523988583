"""A machine whose engine meets bugs: at any line of its code, so before, between and after changes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import rota
from rota.core import effects as e
from rota.core import events
from rota.core.bugs.ledger import BUGS, with_bug
from rota.core.bugs.undecided import Undecided
from rota.core.changes import Changes
from rota.core.turn import Batch, Turn
from rota.errors import NotDone, RotaError
from tests.core.machine import Machine

_TOP = str(Path(rota.__file__).parent)
_WITHIN = (f"{_TOP}/core/", f"{_TOP}/plan/")


class InjectedBugError(Exception):
    """Met on purpose."""


class Lines:
    """Counts the lines of the engine that are executed, and raises at one of them."""

    def __init__(self, fatal: int) -> None:
        self.count = 0
        self.met = False
        self.fatal = fatal  #: 0: count no lines

    @contextmanager
    def counted(self) -> Iterator[None]:
        sys.settrace(self._called)
        try:
            yield
        finally:
            sys.settrace(None)

    def _called(self, frame: FrameType, event: str, _arg: Any) -> Any:
        name = frame.f_code.co_filename
        if not name.startswith(_WITHIN) or (name.endswith("/engine.py") and frame.f_code.co_name == "step"):
            return None  # what notices a bug and tells of it is not tried
        return self._line

    def _line(self, frame: FrameType, event: str, _arg: Any) -> Any:
        if event == "line" and not self.met:
            self.count += 1
            if self.count == self.fatal:
                self.met = True
                raise InjectedBugError(f"{frame.f_code.co_filename}:{frame.f_lineno}")
        return self._line


class FaultyMachine(Machine):
    """Meets the bugs that it is told to, and starts anew after each, as the manager does."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.lines: Lines | None = None  #: for the next step
        self.met: list[Undecided] = []
        self._outdated = False  #: what is in memory is not what is on disk
        self._asked: dict[int, Callable[[], int]] = {}  #: requests without an answer yet

    def ask(self, request: Callable[[], int]) -> None:
        """Make a request as a client does: again, if it was told that nothing was done."""
        self._asked[self._requests + 1] = request
        try:
            request()
        except NotDone:
            pass  # `_start_anew` made it again
        self._forget_answered()

    def unanswered(self) -> list[int]:
        """The requests that nobody has been told anything about."""
        self._forget_answered()
        return list(self._asked)

    def _forget_answered(self) -> None:
        self._asked = {n: each for n, each in self._asked.items() if n not in self.replies}

    def happened(self, *what: events.Event) -> None:
        lines, self.lines = self.lines or Lines(0), None
        engine = self.engine
        step = engine.step

        def counted(happened: list[events.Event], turn: Turn) -> list[RotaError]:
            with lines.counted():
                return step(happened, turn)

        if lines.fatal:
            engine.step = counted  # type: ignore[method-assign]
        try:
            super().happened(*what)
        except Undecided as bug:
            assert isinstance(bug.__cause__, InjectedBugError)
            self.start_anew(bug)
            raise NotDone from None
        finally:
            engine.__dict__.pop("step", None)

    def commit(self, *, perform: bool = True) -> bool:
        done = super().commit(perform=perform)
        if self._outdated:
            self._outdated, self.open = False, Batch()
            self._begin_again()
        return done

    def _perform(self, effect: e.Effect) -> None:
        if isinstance(effect, e.StartAnew):
            self._outdated = True
        else:
            super()._perform(effect)

    def start_anew(self, bug: Undecided) -> None:
        """Finish the commit in flight, drop the open batch, note the bug, and begin again; clients ask again."""
        self.met.append(bug)
        batch, self.committing, self.open = self.committing, None, Batch()
        if batch is not None:
            self._record(batch)
            self.store.commit(batch.changes)
            self._nothing_outlives_its_record()
            for effect in batch.effects:
                self._perform(effect)
        changes = Changes()
        changes.meta[BUGS] = with_bug(self.world.bugs, bug, at=self.wall, ready_s=0.0, version="").text()
        self.store.commit(changes)
        self._begin_again()

    def _begin_again(self) -> None:
        """Recover from the store; runners join and clients ask again."""
        self.crash()
        self._forget_answered()
        asked, self._asked = self._asked, {}
        for runner in self.runners.values():
            if not runner.dead:
                self.join(runner)
                runner.repeat()
        for request in asked.values():
            self.ask(request)
