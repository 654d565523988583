"""How a session of a pipeline is shown where nothing is drawn: events as JSON, as lines, or not at all."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from rota.cli.command import print_json
from rota.cli.render.pipeline_text import clock, event_line, outcome_line, progress_text, stage_lines
from rota.cli.render.printing import print_err, print_out
from rota.cli.render.status_text import Canvas
from rota.cli.render.text import block, coloured, count, cut, harmless, json_text, table, width
from rota.cli.session.pipeline_board import Board
from rota.wire.pipeline_views import PipelineEvent, PipelineItem, PipelineView

if TYPE_CHECKING:
    from rota.cli.session.pipeline_failures import Failures

#: So many failed and blocked elements are named at the end.
_NAMED: Final = 10
_RUNNING: Final = 20
_IN_A_LINE: Final = 3
#: So many lines say what one failure blocks.
_BLOCKED: Final = 20
_SUMS: Final = ("processed", "skipped", "failed", "blocked", "terminated")
_SUMS_NOW: Final = ("waiting", "running")


class SessionShow:
    """Shows nothing but the number of the session, at the end: `--quiet`."""

    def __init__(self, board: Board) -> None:
        self.board = board

    def take(self, item: PipelineItem) -> None:
        """The board has taken this."""

    def tick(self) -> None:
        """Some time has passed."""

    def say(self, line: str) -> None:
        """Tell the user something that is not about elements."""
        print_err(f"rota: {line}")

    def leave(self) -> None:
        """Leave the terminal as it was; `tick` draws again."""

    def end(self, view: PipelineView) -> None:
        print_out(str(view.session))
        sys.stdout.flush()


class JsonShow(SessionShow):
    """One object a line, the last is the summary."""

    def take(self, item: PipelineItem) -> None:
        print_out(*(json_text(event_json(event)) for event in item.events))
        sys.stdout.flush()

    def end(self, view: PipelineView) -> None:
        print_json(summary_json(view))
        sys.stdout.flush()


class LinesShow(SessionShow):
    """A line an event, failures with the end of what they printed: for logs."""

    def __init__(self, board: Board, failures: Failures) -> None:
        super().__init__(board)
        self._failures = failures
        self._lines_of: dict[str, int] = {}  #: what failed → lines about what it blocks

    def take(self, item: PipelineItem) -> None:
        for event in item.events:
            if event.event == "progress":
                continue
            if event.event == "blocked" and event.by and not event.lacks:
                self._tell_blocked(event, event.by)
                continue
            if event.event == "retried":
                self._lines_of.clear()
            print_out(event_line(event))
            print_out(*self._failures.lines(event))
        sys.stdout.flush()

    def _tell_blocked(self, event: PipelineEvent, culprit: str) -> None:
        """One failure may block thousands."""
        told = self._lines_of[culprit] = self._lines_of.get(culprit, 0) + 1
        if told <= _BLOCKED:
            print_out(event_line(event))
        elif told == _BLOCKED + 1:
            print_out(f"(what else {harmless(culprit)} blocks is counted at the end)")

    def say(self, line: str) -> None:
        sys.stdout.flush()
        super().say(line)

    def end(self, view: PipelineView) -> None:
        print_session(view, self.board)
        sys.stdout.flush()


def event_json(event: PipelineEvent) -> dict[str, object]:
    """An event as `--json` prints it."""
    said: dict[str, object] = {
        "event": event.event,
        "element": event.element,
        "stage": event.stage,
        "job": event.job,
        "attempt": event.attempt,
        "outcome": event.outcome,
        "at": event.at,
    }
    if event.by is not None:
        said["by"] = event.by
    if event.lacks is not None:
        said["lacks"] = event.lacks
    if event.progress is not None:
        said["progress"] = event.progress
    return said


def summary_json(view: PipelineView, *, now: bool = False) -> dict[str, object]:
    """The last line of `rota pipeline run --json`; with `now`, what `rota pipeline show` adds."""
    words = (*_SUMS, *_SUMS_NOW) if now else _SUMS
    said: dict[str, object] = {
        "event": "summary",
        "total": view.total,
        "stages": {name: {word: getattr(sums, word) for word in words} for name, sums in view.stages.items()},
        "elements": view.elements,
        "elapsed_s": view.elapsed_s,
    }
    if now:
        said |= {
            "state": view.state,
            "session": view.session,
            "file": view.file,
            "user": view.user,
            "started_at": view.started_at,
            "ended_at": view.ended_at,
            "question": view.question,
            "blocked_by": view.failures,
        }
    return said


def print_session(view: PipelineView, board: Board | None = None) -> None:
    """A table of the stages, and what has failed."""
    space = Canvas(width(sys.stdout), None, coloured(sys.stdout))
    lines = [*stage_lines(view.stages, space)] if view.stages else []
    lines.append(harmless(outcome_line(view.elements, view.elapsed_s)))
    lines += [harmless(line) for line in _failed_lines(view, board)]
    print_out(block(lines))


def print_now(view: PipelineView) -> None:
    """A session that may be going on."""
    head = f"{harmless(view.file)}: session {view.session} {view.state}"
    print_out(cut(head, width(sys.stdout) or len(head) * 2))
    print_session(view)
    if view.question is not None:
        name = harmless(view.question.element or "the session")
        print_out(f"it asks what to do: {name} has failed at {harmless(view.question.stage)}")
    now = [
        [each.stage, each.element or "session", str(each.job), clock(each.run_s), progress_text(each.progress)]
        for each in view.running[:_RUNNING]
    ]
    if now:
        print_out("", table(["RUNNING", "ELEMENT", "JOB", "TIME", "PROGRESS"], now, right="llrrl"))
    if len(view.running) > len(now):
        print_out(f"… and {count(len(view.running) - len(now), 'job')} more")


def _failed_lines(view: PipelineView, board: Board | None) -> list[str]:
    """Failed elements, each with the command that shows more, and blocked ones."""
    room = width(sys.stdout)
    lines = []
    failed = [*board.failed.items()] if board is not None else []
    for (element, stage), job in failed[:_NAMED]:
        tail = f"  → rota logs {job}" if job else ""
        lines.append(_fitted(f"  failed at {harmless(stage)}: ", harmless(element or "the session"), tail, room))
    named = {element for (element, _stage), _job in failed}
    others = [name for name, outcome in view.elements.items() if outcome == "failed" and name not in named]
    if len(failed) > _NAMED:
        lines.append(f"  … and {len(failed) - _NAMED:,} more failed")
    if others:
        lines.append(_named("  failed: ", others, room))
    blocked: dict[str, list[str]] = {}
    for element, culprit in view.failures.items():
        if culprit != element:
            blocked.setdefault(culprit, []).append(element)
    for culprit, elements in [*blocked.items()][:_NAMED]:
        ended = "failed" if view.elements.get(culprit) == "failed" else "was terminated"
        lines.append(blocked_line(culprit, elements, room, ended=ended))
    if len(blocked) > _NAMED:
        lines.append(f"  … and {count(len(blocked) - _NAMED, 'failure')} more that others wait for")
    unnamed = sum(outcome == "blocked" for outcome in view.elements.values()) - len(view.failures)
    if unnamed > 0:
        lines.append(f"  … and {unnamed:,} more are blocked")
    return lines


def blocked_line(culprit: str, elements: list[str], room: int | None, *, ended: str = "failed") -> str:
    """`  blocked, because base failed: app, lib and 3 more`."""
    return _named(f"  blocked, because {harmless(culprit)} {ended}: ", elements, room)


def _named(head: str, elements: list[str], room: int | None) -> str:
    named = elements[:_IN_A_LINE]
    more = f" and {len(elements) - len(named):,} more" if len(elements) > len(named) else ""
    return _fitted(head, ", ".join(map(harmless, named)), more, room)


def _fitted(head: str, text: str, tail: str, room: int | None) -> str:
    if room is None:
        return head + text + tail
    return cut(head + cut(text, max(room - len(head) - len(tail), 12)) + tail, room)
