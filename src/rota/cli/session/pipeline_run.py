"""`rota pipeline run`: watches a session to its end, asks what a failure means, and acts on signals.

The session is the manager's: it goes on when this process ends, whatever the reason, unless it was told to end.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from types import FrameType
from typing import TYPE_CHECKING, Final

from rota.cli.command import Invocation
from rota.cli.render.printing import print_err
from rota.cli.render.text import harmless, is_terminal
from rota.cli.session.interrupts import Interrupts
from rota.cli.session.pipeline_board import Board
from rota.cli.session.pipeline_keys import Keys
from rota.cli.session.pipeline_shows import JsonShow, LinesShow, SessionShow
from rota.errors import NoManager, NotFound, RotaError

if TYPE_CHECKING:
    from rota.cli.session.pipeline_question import Question
    from rota.client.blocking import Client
    from rota.client.blocking.watching import Watching
    from rota.wire.client_messages import RunPipeline
    from rota.wire.pipeline_views import PipelineItem, PipelineView

_TICK_S: Final = 0.1
#: How long to wait for a manager that is away, and between two tries.
_AWAY_S: Final = 300.0
_TRY_S: Final = 0.5


class _Left(Exception):
    """We leave, and the session goes on."""


class PipelineRun:
    """One `rota pipeline run`, from its start to its end."""

    def __init__(
        self,
        call: Invocation,
        client: Client,
        request: RunPipeline,
        *,
        stage_names: list[str],
        asks: bool,
        started: bool,
    ) -> None:
        self.stage_names = stage_names
        self._call = call
        self.client = client
        self.request = request
        self._asks = asks
        self._started = started  #: the manager, by us
        self.keys = Keys()
        self.board = Board()
        self._show = self._how()
        self._interrupts = Interrupts(self._leave_terminal)
        self._question: Question | None = None
        self._stop = False  #: Ctrl-Z was pressed
        self._paused = False  #: by us
        self._status: int | None = None

    def _how(self) -> SessionShow:
        """JSON, nothing, lines or a screen."""
        from rota.cli.session.pipeline_failures import Failures

        if self._call.json:
            return JsonShow(self.board)
        if self._call.quiet:
            return SessionShow(self.board)
        failures = Failures(self.client)
        if is_terminal(sys.stdout) and os.environ.get("TERM") not in (None, "", "dumb"):
            from rota.cli.session.pipeline_screen import ScreenShow

            return ScreenShow(self.board, failures)
        return LinesShow(self.board, failures)

    def status(self) -> int:
        """Watch it; what the command exits with."""
        before = signal.getsignal(signal.SIGTSTP)
        if before is not signal.SIG_IGN:
            signal.signal(signal.SIGTSTP, self._stopping)
        try:
            with self._interrupts:
                if self._drawing:
                    self.keys.take()
                try:
                    view = self._to_the_end()
                finally:
                    self._leave_terminal()
        except _Left:
            return self._status or 0
        finally:
            signal.signal(signal.SIGTSTP, before)
        self._show.end(view)
        return self._status if self._status is not None else 1 if view.failed else 0

    @property
    def _drawing(self) -> bool:
        from rota.cli.session.pipeline_screen import ScreenShow

        return isinstance(self._show, ScreenShow)

    def _leave_terminal(self) -> None:
        with contextlib.suppress(OSError):
            self._show.leave()
        self.keys.restore()

    # -------------------------------------------------------------- watching

    def _to_the_end(self) -> PipelineView:
        while True:
            try:
                return self._watch(self._watching())
            except NoManager:
                if not self.board.session:
                    raise
                self._show.say("the connection to the manager was lost; the session is kept; waiting")
                self._reconnect()
            except NotFound:
                if not self.board.session:
                    raise
                raise self._replaced() from None

    def _replaced(self) -> NotFound:
        """The session ended while the manager was away, and only the latest one of a file is kept."""
        return NotFound(
            f"session {self.board.session} is over, and a later one of {harmless(self.request.file)} has taken"
            " its place",
            hint=f"{self._how_to_come_back.removesuffix(' shows it again')} shows that one",
        )

    def _watching(self) -> Watching[PipelineItem, PipelineView]:
        if self.board.session:
            return self.client.watch_pipeline(self.board.session, answers=self._asks)
        return self.client.run_pipeline(self.request, answers=self._asks)

    def _watch(self, watching: Watching[PipelineItem, PipelineView]) -> PipelineView:
        with watching:
            while watching.settled is None:
                item = watching.poll(_TICK_S)
                if item is not None:
                    first = not self.board.session
                    self.board.take(item, time.monotonic())
                    if first:
                        self._tell_how_to_come_back()
                    self._show.take(item)
                self._attend()
            return watching.settled

    def _tell_how_to_come_back(self) -> None:
        if self._drawing:
            self._show.say(
                f"session {self.board.session} goes on if this terminal is closed; {self._how_to_come_back}"
            )

    @property
    def _how_to_come_back(self) -> str:
        name = os.path.relpath(self.request.file)
        name = name if len(name) < len(self.request.file) else self.request.file
        return f"'rota pipeline run {harmless(name)}' shows it again"

    def _attend(self) -> None:
        """Everything that is not from the manager: signals, keys, the time."""
        if self._stop:
            self._suspend()
        self._signalled()
        if self._asks:
            self._answer()
        if not self._drawing:
            return
        self.keys.take()  # we may have come to the foreground
        if not self.keys.background:
            self._show.tick()

    def _reconnect(self) -> None:
        """Until there is a manager again; one that we started is started again if it died."""
        from rota.client import connect

        until = time.monotonic() + _AWAY_S
        while True:
            number = self._interrupts.take()
            if number is not None:
                self._status = 128 + number
                self._leave()
            died = self._call.home.manager_file.exists()  # one that was stopped on purpose has none
            try:
                if self._started and died:
                    connect(self._call.home.path, address=self._call.address, start=True).close()
                self.client.connect()
            except NoManager:
                if time.monotonic() >= until:
                    raise
            else:
                return
            self._show.tick()
            time.sleep(_TRY_S)

    def _act(self, verb: str) -> int:
        """Do something to the session; how much was changed. Raises `NoManager`."""
        if not self.board.session:
            return 0
        try:
            return self.client.act_on_pipeline(verb, session=self.board.session)
        except NoManager:
            raise
        except RotaError as error:
            self._show.say(error.message)
            return 0

    # -------------------------------------------------------------- questions

    def _answer(self) -> None:
        """Ask what a failure means, and do what a key says."""
        from rota.cli.session.pipeline_question import Failure

        asked = self.board.question
        if isinstance(self._question, Failure) and self._question.about != asked:
            self._close_question()  # another client has answered
        if self._question is None and asked is not None:
            self._open_question(Failure(self, asked))
        if self._question is not None and (key := self.keys.pressed()):
            self._question.pressed(key)

    def _open_question(self, question: Question) -> None:
        self._question = question
        self.keys.forget()
        self.ask(question.prompt)
        self.tell(*question.opening())

    def _close_question(self) -> None:
        self._question = None
        self.ask("")

    def answered(self, verb: str, word: str) -> None:
        """The question was answered: do this to the session. Empty: nothing."""
        self.tell(f"→ {word}")
        self.board.question = None
        self._close_question()
        if verb == "resume" and not self._paused:
            return
        self._paused = False
        if verb:
            self._act(verb)

    def detach(self, word: str) -> None:
        """The question was answered: leave, and let the session go on."""
        self.tell(f"→ {word}")
        self._status = 128 + signal.SIGINT
        self._leave()

    def tell(self, *lines: str) -> None:
        from rota.cli.session.pipeline_screen import ScreenShow

        assert isinstance(self._show, ScreenShow)  # nobody else is asked
        self._show.message(*lines)

    def ask(self, prompt: str) -> None:
        from rota.cli.session.pipeline_screen import ScreenShow

        assert isinstance(self._show, ScreenShow)
        self._show.ask(prompt)

    def clear(self) -> None:
        self._show.leave()

    # -------------------------------------------------------------- signals

    def _stopping(self, _number: int, _frame: FrameType | None) -> None:
        self._stop = True

    def _suspend(self) -> None:
        """Ctrl-Z: the session stands still while we do."""
        self._stop = False
        try:
            paused = self._act("pause")
        except NoManager:
            paused = 0
        if not self._call.json and not self._call.quiet:
            self._show.say("all jobs are suspended; 'fg' resumes them")
        self._leave_terminal()
        os.kill(os.getpid(), signal.SIGSTOP)
        if self._drawing:
            self.keys.take()
        if paused:
            self._act_surely("resume")

    def _act_surely(self, verb: str) -> None:
        """The same, also if the connection was lost meanwhile."""
        try:
            self._act(verb)
        except NoManager:
            self._reconnect()
            self._act(verb)

    def _signalled(self) -> None:
        number = self._interrupts.take()
        if number is None:
            return
        if number == signal.SIGHUP:
            self._status = 128 + number
            if self._paused:
                self._act("resume")
            raise _Left  # there is nobody to tell
        if number == signal.SIGINT and self._asks and self._question is None and self.keys.foreground:
            from rota.cli.session.pipeline_question import Interruption

            self._paused = bool(self._act("pause"))
            self._open_question(Interruption(self))
            return
        self._status = 128 + number
        self._terminate()

    def interrupted(self) -> None:
        """The user wants all to end."""
        self._status = 128 + signal.SIGINT

    def _terminate(self) -> None:
        if self._question is not None:
            self.board.question = None
            self._close_question()
        self._paused = False
        self._interrupts.cancelling = True
        self._show.say("terminating the session; again to leave at once")
        self._act("terminate")

    def _leave(self) -> None:
        if self._paused:
            self._paused = False
            self._act("resume")
        self._leave_terminal()
        if not self._call.json:
            print_err(f"rota: session {self.board.session} goes on; {self._how_to_come_back}")
        raise _Left
