"""The dialogs of `rota top`: confirmation and help."""

from __future__ import annotations

from typing import ClassVar, Final

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static

_KEYS: Final = (
    ("↑ ↓ PgUp PgDn", "move; past the end of the table comes its next page"),
    ("← → Tab 1-6", "running, waiting, failed, cancelled, complete, groups"),
    ("/", "filter: text, @group, host=x, user=x, 12-20, last"),
    ("Esc", "clear the filter"),
    ("Enter", "details of the job, with its output as it comes"),
    ("", "on a group: its jobs"),
    ("k", "kill the job, or the whole group"),
    ("h  u", "hold it; release it (u for unhold)"),
    ("r", "retry it: for failed and cancelled jobs"),
    ("q  Ctrl-C", "quit; jobs go on"),
)


class Question(ModalScreen[bool]):
    """Asks for confirmation before an action that cannot be undone."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y,enter", "answer(True)", "Yes"),
        Binding("n,escape,q", "answer(False)", "No"),
    ]

    def __init__(self, question: Text) -> None:
        super().__init__()
        self._question = question

    def compose(self) -> ComposeResult:
        keys = Text.assemble(("y", "bold"), " yes    ", ("n", "bold"), " no", style="dim")
        with Vertical(classes="dialog"):
            yield Static(self._question, id="question", markup=False)
            yield Static(keys, classes="keys", markup=False)

    def action_answer(self, answer: bool) -> None:
        self.dismiss(answer)


class Help(ModalScreen[None]):
    """The keys."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,enter,question_mark,space", "dismiss", "Close")]

    def compose(self) -> ComposeResult:
        text = Text()
        for keys, meaning in _KEYS:
            text.append(f"{keys:<15}", "bold").append(f"{meaning}\n")
        text.append("\nMEMORY is what a job asked for. Rates are of the last minute.\n", "dim")
        text.append("A dash: not known.", "dim")
        with Vertical(classes="dialog wide"):
            yield Static(text, markup=False)
