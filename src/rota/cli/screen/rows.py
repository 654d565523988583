"""What a row of each table says, and how wide its columns are. Pure: from views to `Text`, never markup."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from rich.text import Text

from rota.cli.render.job_text import exit_text, ran_s
from rota.cli.render.status_text import done, done_parts, left_text, rate_text, span_text
from rota.cli.render.text import brief_command, cells, harmless
from rota.core.jobs.reason_texts import sentence
from rota.units import about_duration, about_size

if TYPE_CHECKING:
    from rota.wire.views import JobView, StatusView

#: More than this of a command is not drawn anyway.
_LONG: Final = 500
_WIDE: Final = 140

#: Light enough to be read also without colour, when NO_COLOR turns them into greys.
CYAN: Final = "#56d4dd"
GREEN: Final = "#7ee787"
RED: Final = "#ff7b72"
PINK: Final = "#d2a8ff"
YELLOW: Final = "#e3b341"

STYLES: Final = {
    "running": CYAN,
    "starting": CYAN,
    "finishing": CYAN,
    "complete": GREEN,
    "failed": RED,
    "lost": PINK,
    "blocked": PINK,
    "cancelled": YELLOW,
    "delayed": YELLOW,
    "held": YELLOW,
}


class Column(NamedTuple):
    """A column with a fixed width, or (0) a share of the rest."""

    title: str
    size: int
    right: bool = False
    least: int = 0  #: left out on screens narrower than this
    wide: int = 0  #: the cells on a wide screen, if that differs

    def cells(self, room: int, needed: int | None) -> int:
        """No more than is needed for what is in it, if that is known."""
        most = self.wide if self.wide and room >= _WIDE else self.size
        return most if needed is None else min(most, max(needed, len(self.title)))


class Tab(NamedTuple):
    """One of the tables."""

    name: str
    title: str
    states: tuple[str, ...]
    columns: tuple[Column, ...]
    row: Callable[[JobView, datetime], list[Text]] | None
    empty: str


def needs(columns: Sequence[Column], rows: Sequence[Sequence[Text]]) -> list[int]:
    """The cells that the widest text of each column takes."""
    return [max((cells(row[place].plain) for row in rows), default=0) for place in range(len(columns))]


def widths(
    columns: Sequence[Column], room: int, *, needed: Sequence[int] | None = None, padding: int = 1
) -> list[int]:
    """The cells of each column, 0 for one that is left out, so that all fit the room."""
    wanted = [
        column.cells(room, None if needed is None else needed[place]) if room >= column.least else -1
        for place, column in enumerate(columns)
    ]
    fixed = sum(size + 2 * padding for size in wanted if size >= 0)
    shares = wanted.count(0)
    share, more = divmod(max(room - fixed, 8 * shares), shares or 1)
    sizes = []
    for size in wanted:
        sizes.append(max(size, 0) if size else share + (1 if more > 0 else 0))
        more -= 1 if size == 0 else 0
    return sizes


def two_coloured(counts: Mapping[str, int], size: int) -> Text:
    """A bar of what has ended, with what went wrong in its own colours."""
    return Text.assemble(*((piece, STYLES.get(state, state)) for piece, state in done_parts(counts, size)))


def number(job: JobView) -> Text:
    return Text(str(job.id), justify="right")


def command(job: JobView) -> Text:
    """Its name, if it has one, and what it runs."""
    text = Text(no_wrap=True, overflow="ellipsis")
    if job.name:
        text.append(harmless(job.name[:_LONG]), style="bold").append("  ")
    return text.append(brief_command(job.cmd)[:_LONG])


def plain(words: str, style: str = "", *, right: bool = False) -> Text:
    return Text(
        harmless(words[:_LONG]), style, no_wrap=True, overflow="ellipsis", justify="right" if right else "left"
    )


def state(job: JobView) -> Text:
    return Text(harmless(job.state), STYLES.get(job.state, ""))


def reason(job: JobView) -> Text:
    if job.reason is None:
        return plain("waits for room" if job.state == "ready" else "-", "dim")
    return plain(sentence(job.reason.code, job.reason.message))


def running_row(job: JobView, now: datetime) -> list[Text]:
    seconds = ran_s(job, now)
    memory = job.peak_mem_bytes or job.size.mem_bytes
    return [
        number(job),
        state(job),
        command(job),
        plain(job.group),
        plain(job.host or "-"),
        plain("-" if seconds is None else span_text(seconds), right=True),
        plain(about_size(memory) if memory else "-", right=True),
        plain(str(job.attempt), right=True),
    ]


def waiting_row(job: JobView, now: datetime) -> list[Text]:
    return [number(job), state(job), command(job), plain(job.group), reason(job)]


def failed_row(job: JobView, now: datetime) -> list[Text]:
    ago = span_text((now - job.ended_at).total_seconds()) if job.ended_at else "-"
    return [
        number(job),
        command(job),
        plain(job.group),
        plain(exit_text(job), right=True),
        plain(str(job.attempt), right=True),
        plain(ago, right=True),
        reason(job),
    ]


def complete_row(job: JobView, now: datetime) -> list[Text]:
    ago = span_text((now - job.ended_at).total_seconds()) if job.ended_at else "-"
    return [
        number(job),
        command(job),
        plain(job.group),
        plain(job.host or "-"),
        plain("-" if job.wall_s is None else about_duration(job.wall_s), right=True),
        plain(about_size(job.peak_mem_bytes) if job.peak_mem_bytes else "-", right=True),
        plain(str(job.attempt), right=True),
        plain(ago, right=True),
    ]


def group_row(group: str, found: StatusView, now: datetime) -> list[Text]:
    counts = found.groups[group]
    total = sum(counts.values())
    share = done(counts) / total if total else 0.0
    rate = found.group_rates.get(group)

    def sum_of(states: tuple[str, ...], style: str) -> Text:
        n = sum(counts.get(each, 0) for each in states)
        return plain(f"{n:,}" if n else "·", style if n else "dim", right=True)

    return [
        plain(group),
        two_coloured(counts, 10),
        plain(f"{int(100 * share)}%", right=True),
        sum_of(WAITING.states, ""),
        sum_of(RUNNING.states, CYAN),
        sum_of(("complete",), GREEN),
        sum_of(FAILED.states, RED),
        sum_of(CANCELLED.states, YELLOW),
        plain(rate_text(rate) if rate else "-", "" if rate else "dim", right=True),
        plain(left_text(found.group_expected_end.get(group), now), right=True),
    ]


_ID: Final = Column("ID", 7, right=True)
_TRY: Final = Column("TRY", 3, right=True)

RUNNING: Final = Tab(
    "running",
    "Running",
    ("running", "starting", "suspended", "finishing", "lost"),
    (
        _ID,
        Column("STATE", 9, least=98),
        Column("COMMAND", 0),
        Column("GROUP", 12, wide=24),
        Column("HOST", 10, least=98, wide=20),
        Column("TIME", 7, right=True),
        Column("MEMORY", 6, right=True),
        _TRY,
    ),
    running_row,
    "Nothing is running.",
)
WAITING: Final = Tab(
    "waiting",
    "Waiting",
    ("ready", "dependent", "delayed", "held", "blocked", "scheduled"),
    (_ID, Column("STATE", 9), Column("COMMAND", 0), Column("GROUP", 12, wide=24), Column("REASON", 0)),
    waiting_row,
    "Nothing is waiting.",
)
_ENDED: Final = (
    _ID,
    Column("COMMAND", 0),
    Column("GROUP", 12, least=98, wide=24),
    Column("EXIT", 5, right=True),
    _TRY,
    Column("AGO", 7, right=True),
    Column("REASON", 0),
)
FAILED: Final = Tab("failed", "Failed", ("failed",), _ENDED, failed_row, "Nothing has failed.")
CANCELLED: Final = Tab("cancelled", "Cancelled", ("cancelled",), _ENDED, failed_row, "Nothing was cancelled.")
COMPLETE: Final = Tab(
    "complete",
    "Complete",
    ("complete",),
    (
        _ID,
        Column("COMMAND", 0),
        Column("GROUP", 12, wide=24),
        Column("HOST", 10, least=98, wide=20),
        Column("TIME", 7, right=True),
        Column("MEMORY", 6, right=True),
        _TRY,
        Column("AGO", 7, right=True),
    ),
    complete_row,
    "Nothing is complete yet.",
)
GROUPS: Final = Tab(
    "groups",
    "Groups",
    (),
    (
        Column("GROUP", 0),
        Column("PROGRESS", 10, least=110),
        Column("ENDED", 5, right=True),
        Column("WAITING", 9, right=True),
        Column("RUNNING", 7, right=True),
        Column("COMPLETE", 9, right=True),
        Column("FAILED", 9, right=True),
        Column("CANCELLED", 9, right=True),
        Column("RATE", 7, right=True, least=98),
        Column("ENDS IN", 7, right=True),
    ),
    None,
    "There are no groups.",
)
TABS: Final = (RUNNING, WAITING, FAILED, CANCELLED, COMPLETE, GROUPS)
