"""Sessions of pipelines as text: the lines of the screen, of logs, and the table at the end. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from rota.cli.render.status_text import Canvas, bar
from rota.cli.render.text import SafeText, cells, count, cut, harmless, paint, side_by_side
from rota.units import about_duration

if TYPE_CHECKING:
    from rota.wire.pipeline_views import PipelineEvent, ProgressView, StageSums

#: A sum → its title and colour. Those in `_RARE` get a column once there is one.
_SUMS: Final = {
    "processed": ("DONE", "complete"),
    "skipped": ("SKIPPED", "dim"),
    "failed": ("FAILED", "failed"),
    "blocked": ("BLOCKED", "blocked"),
    "terminated": ("TERMINATED", "cancelled"),
    "waiting": ("WAITING", ""),
    "running": ("RUNNING", "running"),
}
_RARE: Final = ("terminated",)
_SETTLED: Final = ("processed", "skipped", "failed", "blocked", "terminated")
#: A job is shown in a column of about so many cells.
_COLUMN: Final = 38
#: Escape sequences of compilers and test programs, which colour what they print.
_SEQUENCE: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_TAB: Final = 8


def clock(seconds: float) -> str:
    """A running time: `0:07`, `12:34`, `1:02:03`."""
    whole = int(max(0.0, seconds))
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


# ------------------------------------------------------------------ stages


def stage_lines(stages: Mapping[str, StageSums], space: Canvas) -> list[SafeText]:
    """One line a stage, under a head. On a narrow terminal the bar goes first, then lines are cut."""
    shown = [word for word in _SUMS if word not in _RARE or any(getattr(s, word) for s in stages.values())]
    if space.columns is None:
        return _stage_lines(stages, shown, space, bar_size=0)
    for bar_size in (20, 10, 0):
        bare = _stage_lines(stages, shown, space._replace(colour=False), bar_size=bar_size)
        if max(map(cells, bare)) <= space.columns:
            return _stage_lines(stages, shown, space, bar_size=bar_size) if space.colour else bare
    return [harmless(cut(line, space.columns)) for line in bare]


def _stage_lines(
    stages: Mapping[str, StageSums], shown: Sequence[str], space: Canvas, *, bar_size: int
) -> list[SafeText]:
    most = None if space.columns is None else max(8, space.columns // 6)
    names = [cut(harmless(name), most or cells(name)) for name in stages]
    width = max(map(cells, ("STAGE", *names)))
    titles = [_SUMS[word][0] for word in shown]
    rows = [[getattr(sums, word) for word in shown] for sums in stages.values()]
    widths = [max(len(title), *(len(f"{row[at]:,}") for row in rows)) for at, title in enumerate(titles)]
    heads = ["STAGE".ljust(width), *([" " * bar_size] if bar_size else [])]
    heads += [title.rjust(size) for title, size in zip(titles, widths, strict=True)]
    lines = [side_by_side((paint(head, "bold", on=space.colour) for head in heads), gap="  ")]
    for name, sums, row in zip(names, stages.values(), rows, strict=True):
        parts = [harmless(name + " " * (width - cells(name)))]
        if bar_size:
            parts.append(_bar(sums, bar_size, space))
        for word, number, size in zip(shown, row, widths, strict=True):
            kind = _SUMS[word][1] if number else "dim"
            shown_as = f"{number:,}" if number else "."
            parts.append(" " * (size - len(shown_as)) + paint(shown_as, kind, on=space.colour))
        lines.append(side_by_side(parts, gap="  "))
    return lines


def _bar(sums: StageSums, size: int, space: Canvas) -> SafeText:
    total = sum(getattr(sums, word) for word in _SUMS) or 1
    text = bar(sum(getattr(sums, word) for word in _SETTLED) / total, size)
    return paint(text, "failed" if sums.failed else "complete", on=space.colour)


# ------------------------------------------------------------------ running jobs


class JobCell(NamedTuple):
    """What is shown of a running job, in the order in which it is left out where there is no room."""

    element: str
    stage: str
    run_s: float
    progress: ProgressView | None

    def text(self, room: int) -> str:
        """So many cells at most, without colours."""
        head = f"{clock(self.run_s):>5} {harmless(self.stage)} "
        name, said = harmless(self.element), progress_text(self.progress)
        left = room - cells(head)
        if said and cells(name) + 1 + cells(said) > left:
            # The name gets at least half of the room, and the number more than the words.
            said = cut(said, max(left - 1 - cells(name), left // 2 - 1, 0)) if left > 16 else ""
            name = harmless(cut(name, max(left - cells(said) - 1, 1)))
        return cut(head + name + (f" {said}" if said else ""), room)


def progress_text(progress: ProgressView | None) -> str:
    """`34/120 compiling`."""
    if progress is None:
        return ""
    number = f"{progress.done:g}" + (f"/{progress.of:g}" if progress.of is not None else "")
    return f"{number} {harmless(progress.text)}".rstrip()


def running_lines(
    jobs: Iterable[JobCell], number: int, *, columns: int, lines: int, colour: bool
) -> list[SafeText]:
    """Running jobs in columns, oldest first, in at most so many lines; the last says how many are left out."""
    if not number or lines < 1:
        return []
    across = max(1, (columns + 2) // (_COLUMN + 2))
    room = (columns - 2 * (across - 1)) // across
    fit = across * lines
    left_out = 0
    if number > fit:
        fit = across * (lines - 1)
        left_out = number - fit
    texts = [job.text(room) for job in islice(jobs, fit)]
    made = []
    for first in range(0, len(texts), across):
        row = texts[first : first + across]
        padded = [text + " " * (room - cells(text)) for text in row]
        made.append(side_by_side((paint(text, "running", on=colour) for text in padded), gap="  "))
    if left_out:
        more = f"{'… and ' if fit else ''}{count(left_out, 'job')}{' more' if fit else ''} running"
        made.append(paint(cut(more, columns), "dim", on=colour))
    return made


# ------------------------------------------------------------------ messages


def event_line(event: PipelineEvent) -> str:
    """An event as a line of a log."""
    what = event.outcome if event.event == "ended" else event.event
    words = [f"{event.at.astimezone():%H:%M:%S}", what or event.event, harmless(event.stage or "")]
    words.append(harmless(event.element or ("" if event.stage else "session")))
    if event.event == "progress":
        words.append(progress_text(event.progress))
    if event.lacks:
        words.append(f"because its {{{event.lacks}}} is not known")
    elif event.by:
        words.append(f"because of {harmless(event.by)}")
    elif event.job:
        attempt = f", attempt {event.attempt}" if event.attempt and event.attempt > 1 else ""
        words.append(f"(job {event.job}{attempt})")
    return " ".join(word for word in words if word)


def output_lines(printed: bytes, *, most: int, whole: bool) -> list[str]:
    """The last lines of what a job printed, as a terminal would show them, escaped. Unless it is `whole`, it
    begins in the middle of a line."""
    text = printed.decode("utf-8", "replace").replace("\r\n", "\n")
    lines = text.split("\n")
    if not whole and len(lines) > 1:
        lines = lines[1:]
    shown = []
    for line in lines:
        last = line.rstrip("\r").rpartition("\r")[2]  # a progress bar is written over itself
        plain = _SEQUENCE.sub("", last).expandtabs(_TAB).rstrip()
        if plain:
            shown.append(str(harmless(plain)))
    return shown[-most:]


def title(text: str) -> SafeText:
    """A line above and below what is not ours."""
    shown = harmless(text)
    return harmless(f"── {shown} " + "─" * max(2, 60 - cells(shown)))


# ------------------------------------------------------------------ the end


def outcome_line(elements: Mapping[str, str], elapsed_s: float) -> str:
    """`12 elements: 7 ok, 3 skipped, 2 failed; 1m20s`."""
    counts: dict[str, int] = {}
    for outcome in elements.values():
        counts[outcome] = counts.get(outcome, 0) + 1
    order = ("ok", "skipped", "failed", "blocked", "terminated", "running", "waiting")
    parts = [f"{counts[word]:,} {word}" for word in order if word in counts]
    said = f": {', '.join(parts)}" if parts else ""
    return f"{count(len(elements), 'element')}{said}; {about_duration(elapsed_s)}"
