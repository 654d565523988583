"""Questions of a session of a pipeline to the person at the terminal, answered by one key."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Protocol

from rota.cli.render.pipeline_text import title
from rota.cli.render.printing import print_out
from rota.cli.render.text import count, harmless

if TYPE_CHECKING:
    from rota.cli.session.pipeline_board import Board
    from rota.cli.session.pipeline_keys import Keys
    from rota.client.blocking import Client
    from rota.wire.client_messages import RunPipeline
    from rota.wire.pipeline_views import QuestionView

#: Word → what it means. The first letter is its key.
_MEANINGS: Final[Mapping[str, str]] = {
    "continue": "go on with everything that does not need a failed element",
    "quit": "begin nothing more; what is built already goes through its last stages",
    "terminate": "end all jobs now",
    "retry": "run the failed job again, and go on",
    "log": "show all that the failed job has printed",
    "shell": "open a shell where the jobs run, with their environment",
    "detach": "leave; the session goes on",
}


class Asking(Protocol):
    """Who asks, and carries out the answer."""

    request: RunPipeline
    stage_names: list[str]
    board: Board
    client: Client
    keys: Keys

    def tell(self, *lines: str) -> None:
        """Let these lines scroll by."""

    def clear(self) -> None:
        """Erase what is drawn, so that something else can be printed."""

    def answered(self, verb: str, word: str) -> None:
        """Do this to the session, and ask no more."""

    def interrupted(self) -> None:
        """The user wants all to end."""

    def detach(self, word: str) -> None:
        """Leave, and let the session go on."""


class Question:
    """What is asked, and what the keys do."""

    words: tuple[str, ...] = ()

    def __init__(self, run: Asking) -> None:
        self._run = run

    @property
    def prompt(self) -> str:
        return "  ".join(f"[{word[0]}]{word[1:]}" for word in self.words) + "  [?] "

    def opening(self) -> list[str]:
        """What is said before."""
        return []

    def pressed(self, key: str) -> None:
        """Do what this key says."""
        for word in self.words:
            if word[0] == key:
                self.chosen(word)
                return
        width = max(map(len, self.words))
        self._run.tell(*(f"  {word[0]}  {word:<{width}}  {_MEANINGS[word]}" for word in self.words))

    def chosen(self, word: str) -> None:
        raise NotImplementedError


class Interruption(Question):
    """Ctrl-C: all jobs are suspended until this is answered."""

    words = ("continue", "quit", "terminate", "detach")

    def opening(self) -> list[str]:
        return ["interrupted; the session stands still until you choose; Ctrl-C terminates it"]

    def chosen(self, word: str) -> None:
        match word:
            case "continue":
                self._run.answered("resume", word)
            case "detach":
                self._run.detach(word)
            case "terminate":
                self._run.interrupted()
                self._run.answered(word, word)
            case _:
                self._run.answered(word, word)


class Failure(Question):
    """An element has failed: all jobs are suspended until this is answered."""

    words = ("continue", "quit", "terminate", "retry", "log", "shell")

    def __init__(self, run: Asking, about: QuestionView) -> None:
        super().__init__(run)
        self.about = about

    def opening(self) -> list[str]:
        jobs = len(self._run.board.running)
        others = f"; {count(jobs, 'job')} stand{'s' if jobs == 1 else ''} still" if jobs else ""
        name = harmless(self.about.element or "the session")
        return [f"{name} has failed at {harmless(self.about.stage)}{others}. What now?"]

    def chosen(self, word: str) -> None:
        match word:
            case "log":
                self._show_log()
            case "shell":
                self._open_shell()
            case _:
                self._run.answered(word, word)

    def _show_log(self) -> None:
        from rota.cli.session.pipeline_log import print_log

        if self.about.job is None:
            self._run.tell("it has failed before a job could begin: there is no log")
            return
        self._run.clear()
        print_log(self._run.client, self.about.job)

    def _open_shell(self) -> None:
        from rota.cli.session.interactive import own_shell

        run = self._run
        cwd = run.board.cwd or os.getcwd()
        run.clear()
        print_out(title(f"a shell in {cwd}; 'exit' brings you back"))
        sys.stdout.flush()
        try:
            run.keys.shell([own_shell()], cwd=cwd, env=self._environment())
        except OSError as error:
            run.tell(f"no shell could be started: {(error.strerror or str(error)).lower()}")

    def _environment(self) -> dict[str, str]:
        """The environment of the jobs of the stage, as it was sent when the session was started from here."""
        request = self._run.request
        number = request.specs[self._run.stage_names.index(self.about.stage)].env
        blob = request.envs[number - 1] if number else request.env
        pairs = (entry.partition(b"=") for entry in blob.split(b"\0") if entry)
        env = {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}
        return env | {"ROTA_JOB_ID": str(self.about.job or ""), "ROTA_JOB_NAME": self.about.stage}
