"""The details of one job, with its live output."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar, Final

from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import Footer, Log, Static

from rota.cli.render.job_text import exit_text, ran_s
from rota.cli.render.status_text import span_text
from rota.cli.render.text import command_text, harmless
from rota.cli.screen.job_output import OutputOver, OutputTail, OutputText
from rota.cli.screen.rows import STYLES
from rota.core.jobs.reason_texts import sentence
from rota.units import about_duration, about_size

if TYPE_CHECKING:
    from rota.client.blocking import Client
    from rota.wire.views import JobView

_LINES: Final = 10_000
_COMMAND: Final = 2000


class Details(Screen[None]):
    """Opened by Enter, closed by Escape. The keys that act on a job act on this one."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,backspace", "dismiss", "Back"),
        Binding("k", "app.act('kill')", "Kill"),
        Binding("h", "app.act('hold')", "Hold"),
        Binding("u", "app.act('release')", "Release"),
        Binding("r", "app.act('retry')", "Retry"),
    ]

    def __init__(self, job: int, connect: Callable[[], Client]) -> None:
        super().__init__()
        self.job = job
        self._connect = connect
        self._tail = OutputTail(connect, job, self.post_message)
        self._last_state = ""
        self._facts = Static(Text(f"job {self.job}…"), id="facts", markup=False)
        self._title = Static(Text("OUTPUT", "bold"), id="output-title", markup=False)
        self._log = Log(max_lines=_LINES, id="output")

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="card"):
            yield self._facts
        yield self._title
        yield self._log
        yield Footer()

    def on_mount(self) -> None:
        self._log.focus()
        self._tail.start()

    def on_unmount(self) -> None:
        self._tail.stop()

    def show(self, job: JobView, now: datetime) -> None:
        """Show the job's new state."""
        at_end = self._log.is_vertical_scroll_end
        self._facts.update(facts(job, now))
        if at_end:  # also when there is less room for it now
            self.call_after_refresh(self._log.scroll_end, animate=False)
        ended = ("complete", "failed", "cancelled")
        if self._last_state in ended and job.state not in ended:
            # It was retried: follow the output of the new attempt.
            self._tail.stop()
            self._tail = OutputTail(self._connect, self.job, self.post_message)
            self._tail.start()
        self._last_state = job.state

    def on_output_text(self, message: OutputText) -> None:
        self._log.write(message.text, scroll_end=self._log.is_vertical_scroll_end)

    def on_output_over(self, message: OutputOver) -> None:
        words = f"OUTPUT  {harmless(message.trouble)}" if message.trouble else "OUTPUT  to the end"
        self._title.update(Text(words, "bold"))


def facts(job: JobView, now: datetime) -> Table:
    """A table with a line for each fact."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    state = Text(harmless(job.state), f"bold {STYLES.get(job.state, '')}")
    if job.reason:
        state.append(f"  {harmless(sentence(job.reason.code, job.reason.message))}", "not bold")
    grid.add_row(Text(f"job {job.id}", "bold"), state)
    for label, words in _lines(job, now):
        if words:
            grid.add_row(Text(label, "dim"), Text(harmless(words)))
    for line in job.story or []:
        attempt = f" [{line.attempt}]" if line.attempt else ""
        event = Text(f"{harmless(line.event)}{attempt}").append(f" {harmless(line.text)}", "dim")
        grid.add_row(Text(_clock(line.at, now), "dim"), event)
    return grid


def _lines(job: JobView, now: datetime) -> list[tuple[str, str]]:
    asked, given = _asked_and_given(job)
    ran = ""
    if job.started_at and (seconds := ran_s(job, now)) is not None:
        ran = f"{span_text(seconds)}, begun {_clock(job.started_at, now)}"
        if job.peak_mem_bytes:
            ran += f", used {about_size(job.peak_mem_bytes)} memory"
        if exit_text(job) != "-":
            ran += f", exit {exit_text(job)}"
    where = harmless(job.cwd) if job.cwd else "a private directory"
    return [
        ("command", command_text(job.cmd)[:_COMMAND]),
        ("name", harmless(job.name)),
        ("group", f"{harmless(job.group)}, user {harmless(job.user)}, priority {job.priority}"),
        ("where", f"{harmless(job.host)}, {where}" if job.host else where),
        ("asked", asked),
        ("given" if job.started_at else "would get", given),
        ("ran", ran),
        ("attempt", f"{job.attempt}, {job.retries_left} of {job.retries} retries left" if job.attempt else ""),
        ("after", harmless(", ".join(job.after))),
    ]


def _asked_and_given(job: JobView) -> tuple[str, str]:
    """The amounts a job asked for, and what its attempt was given; a waiting job: what it would be given."""
    amounts, size = job.amounts, job.size
    if amounts is None:
        return "", ""
    time_s = amounts.time_s.asked if amounts.walltime_s.asked is None else amounts.walltime_s.asked
    asked = _parts(amounts.cores.asked, amounts.mem_bytes.asked, time_s)
    if job.started_at is None:
        return asked, _parts(None if job.request else size.cpus, size.mem_bytes, size.time_s)
    return asked, _parts(amounts.cores.given, amounts.mem_bytes.given, amounts.time_s.given)


def _parts(cpus: float | None, mem: int | None, time_s: float | None) -> str:
    parts = [] if cpus is None else ["1 cpu" if cpus == 1 else f"{cpus:g} cpus"]
    parts += [] if mem is None else [f"{about_size(mem)} memory"]
    return ", ".join([*parts, *([] if time_s is None else [about_duration(time_s)])])


def _clock(at: datetime, now: datetime) -> str:
    local = at.astimezone()
    same_day = local.date() == now.astimezone().date()
    return f"{local:%H:%M:%S}" if same_day else f"{local:%Y-%m-%d}"
