"""`rota show`: everything about one job."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import click

from rota.cli.command import Invocation, command, print_json
from rota.cli.input.selectors import one_job
from rota.cli.render.printing import print_out

if TYPE_CHECKING:
    from rota.cli.render.text import SafeText
    from rota.wire.results import ResultView
    from rota.wire.views import AmountsView, AttemptView, BehavedView, BytesView, JobView, QuantityView, SizeView

#: Characters of a result that are shown with all the rest.
_SHOWN: Final = 1000


@command("show")
@click.argument("id", metavar="ID")
def show(call: Invocation, id: str) -> int:
    """Show everything about one job: what it asked for, every attempt, and its history.

    \b
    Examples:
      rota show 17
      rota show 17 --json
    """
    from rota.core.jobs.command import Call
    from rota.errors import Denied

    result = None
    with call.connect_to_read() as client:
        job = client.job(one_job(client, id))
        if isinstance(job.cmd, Call) and not call.json and not call.quiet:
            with contextlib.suppress(Denied):  # only the owner may read a result, as with output
                (result,) = client.results(job.id)
    if call.json:
        print_json(job)
    elif call.quiet:
        print_out(str(job.id))
    else:
        print_out(_card(job, result))
    return 0


def _card(job: JobView, result: ResultView | None = None) -> SafeText:
    from rota.cli.commands.jobs.output_paths import output_file
    from rota.cli.render.job_text import types_text
    from rota.cli.render.text import block, coloured, command_text, harmless, paint
    from rota.core.fields.table import FIELDS
    from rota.units import about_size

    def declared(*names: str) -> list[tuple[str, str]]:
        fields = [FIELDS[name] for name in names]
        return [(each.label, harmless(each.kind.text(getattr(job, each.view_name)))) for each in fields]

    colour = coloured(sys.stdout)
    ended = job.state in ("complete", "failed", "cancelled")
    rows = [
        ("state", paint(job.state, job.state, on=colour) + _reason(job)),
        ("replaced by", _successor(job)),
        ("command", command_text(job.cmd)),
        *_call(job, result),
        ("directory", harmless(job.cwd or "a private one")),
        *declared("name"),
        ("group", harmless(", ".join(job.groups) or job.group)),
        ("user", harmless(job.user)),
        *declared("project"),
        ("queue", f"{harmless(job.queue)}, priority {job.priority}{_asked_priority(job)}"),
        ("array", f"{job.array_id}_{job.array_index}" if job.array_id is not None else ""),
        *declared("request", "where"),
        ("type", harmless(types_text(job.type))),
        ("reserved for", _when(job.at)),
        ("learning", harmless(job.learn)),
        *declared("override"),
        ("takes", _size(job.size, spread=bool(job.request)) if job.started_at is None and not ended else ""),
        ("walltime", _pending(job)),
        ("checkpoint", _checkpoint(job)),
        ("suspended", _suspended(job)),
        ("limits", harmless(", ".join(_limits(job)))),
        ("after", harmless(", ".join(map(str, job.after)))),
        *declared("dep_groups"),
        ("input", about_size(job.input_bytes) if job.input_bytes is not None else ""),
        ("stdout", harmless(output_file(job, 1))),
        ("stderr", harmless(output_file(job, 2))),
        *declared("pipefail", "on_success", "on_failure", "on_exit"),
        *declared(*(name for name, field in FIELDS.items() if field.number and field.label)),
        ("retries", _retries(job)),
        ("hosts", harmless(", ".join(job.hosts))) if len(job.hosts) > 1 else ("host", harmless(job.host or "")),
        ("pool", harmless(job.pool) if job.host else ""),
        ("resources", harmless(job.resources or "")),
        ("promised", harmless(job.promised.message) if job.promised is not None else ""),
        ("submitted", _when(job.submitted_at)),
        ("starts", f"{_when(job.expected_start)} (expected)" if job.expected_start and not job.started_at else ""),
        ("started", _when(job.started_at)),
        ("ends", f"{_when(job.expected_end)} (expected)" if job.expected_end and not ended else ""),
        ("ended", _when(job.ended_at)),
        ("time", _times(job)),
        ("key", job.key),
    ]
    lines: list[str] = [paint(f"job {job.id}", "bold", on=colour)]
    lines += [harmless(f"  {label:<12} ") + text for label, text in rows if text]
    if job.amounts is not None:
        lines += ["", *_amounts(job.amounts, spread=bool(job.request))]
    if isinstance(job.attempts, list) and job.attempts:
        lines += ["", paint("attempts", "bold", on=colour), *_attempts(job.attempts)]
    if job.story:
        lines += ["", paint("story", "bold", on=colour)]
        for line in job.story:
            number = f" [{line.attempt}]" if line.attempt else ""
            lines.append(harmless(f"  {_when(line.at)}{number} {line.event} {line.text}".rstrip()))
    return block(lines)


def _call(job: JobView, result: ResultView | None) -> list[tuple[str, str]]:
    """How a function was called, and what came of it."""
    from rota.cli.render.text import harmless
    from rota.core.jobs.command import Call

    if result is None or not isinstance(job.cmd, Call):
        return []
    how = []
    if result.result is not None or result.error is not None:
        how.append("a fork of a template" if result.warm else "an interpreter of its own")
        how.append("arguments converted by msgspec" if result.typed else "arguments as plain JSON")
    how += [result.note] if result.note else []
    value = result.result or ""
    if len(value) > _SHOWN:
        value = f"{value[:_SHOWN]} … ({len(value):,} characters; see 'rota result')"
    return [
        ("python", harmless(job.cmd.python)),
        ("called in", harmless("; ".join(how))),
        (
            "result",
            harmless(value),
        ),
    ]


def _times(job: JobView) -> str:
    """How it spent its time, if that is more than waiting and running."""
    from rota.units import about_duration

    if not job.provision_s and not job.hold_s:
        return ""
    parts = (("waited", job.wait_s), ("provisioned", job.provision_s), ("kept its machines for", job.hold_s))
    return ", ".join(f"{word} {about_duration(seconds)}" for word, seconds in parts if seconds)


def _asked_priority(job: JobView) -> str:
    return "" if job.asked_priority is None else f" ({job.asked_priority} was asked for)"


def _reason(job: JobView) -> str:
    """Why it is in its state, unless that only says the state once more."""
    reason = job.reason
    if reason is None or reason.message in (job.state, ""):
        return ""
    if reason.message.startswith(f"{job.state} "):
        return reason.message.removeprefix(job.state)
    return f" ({reason.message})"


def _size(size: SizeView, *, spread: bool) -> str:
    """What a waiting job would get. `spread`: cores are given by the request."""
    from rota.cli.render.text import count
    from rota.units import about_size, format_duration

    parts = [] if spread else [f"{size.cpus:g} cpus" if size.cpus != 1 else "1 cpu"]
    each = " on each host" if spread else ""
    parts.append(f"{about_size(size.mem_bytes)} memory{each}")
    if size.disk_bytes:
        parts.append(f"{about_size(size.disk_bytes)} disk{each}")
    if size.gpus:
        parts.append(count(size.gpus, "GPU"))
    return ", ".join([*parts, f"about {format_duration(size.time_s)}"])


def _amounts(amounts: AmountsView, *, spread: bool) -> Sequence[str]:
    """The four values of all that the job takes."""
    from rota.cli.render.text import table_lines
    from rota.units import about_duration, about_size, format_duration

    each = " a host" if spread else ""
    rows = [
        _four("cores", amounts.cores, "{:.3g}".format),
        _four(f"memory{each}", amounts.mem_bytes, about_size),
        _four("time", amounts.time_s, format_duration, about_duration),
    ]
    if amounts.walltime_s.asked is not None or amounts.walltime_s.given is not None:
        rows.append(_four("walltime", amounts.walltime_s, format_duration, about_duration))
    if any(
        (amounts.disk_bytes.asked, amounts.disk_bytes.learned, amounts.disk_bytes.given, amounts.disk_bytes.used)
    ):
        rows.append(_four(f"disk{each}", amounts.disk_bytes, about_size))
    return table_lines(["", "ASKED", "LEARNED", "GIVEN", "USED"], rows, right="lrrrr")


def _four(
    name: str,
    amounts: QuantityView | BytesView,
    text: Callable[[float], str],
    measured: Callable[[float], str] | None = None,
) -> list[str]:
    found = ["-" if value is None else text(value) for value in (amounts.asked, amounts.learned, amounts.given)]
    return [f"  {name}", *found, "-" if amounts.used is None else (measured or text)(amounts.used)]


def _successor(job: JobView) -> str:
    """The job that replaced this one."""
    if job.replaced_by is None:
        return ""
    return f"job {job.replaced_by}" if job.replaced_by else "no job; its input has no such line any more"


def _checkpoint(job: JobView) -> str:
    from rota.units import format_duration

    if job.checkpoint_s is None and not job.checkpoint_signal:
        return ""
    name = job.checkpoint_signal or "USR2"
    return name if job.checkpoint_s is None else f"{name} {format_duration(job.checkpoint_s)} before the walltime"


def _suspended(job: JobView) -> str:
    from rota.units import format_duration

    if job.suspended_s is None:
        return ""
    return f"{format_duration(max(1.0, round(job.suspended_s)))}{' so far' if job.suspended_at else ' in all'}"


def _pending(job: JobView) -> str:
    """What was asked for with `rota walltime` and is not granted yet."""
    from rota.units import format_duration

    return f"{format_duration(job.pending_walltime_s)} more pending" if job.pending_walltime_s else ""


def _limits(job: JobView) -> list[str]:
    """The job's limits; the internal limit of an array is shown by the array's id."""
    if job.array_id is None:
        return job.limits
    from rota.plan.policy.limits import ARRAY_LIMIT

    return [f"that of array {job.array_id}" if ARRAY_LIMIT.fullmatch(each) else each for each in job.limits]


def _retries(job: JobView) -> str:
    from rota.cli.render.text import harmless
    from rota.units import format_duration

    parts = [f"{job.retries}, {job.retries_left} left"]
    if job.retries and job.backoff_s is not None:
        parts.append(f"back-off {format_duration(job.backoff_s)}")
    if job.no_retry_over_s is not None:
        parts.append(f"none after {format_duration(job.no_retry_over_s)}")
    if job.retry_on is not None:
        parts.append(f"on {', '.join(map(harmless, job.retry_on)) or 'nothing'}")
    return ", ".join(parts)


def _attempts(attempts: list[AttemptView]) -> list[str]:
    """A table that fits a narrow screen: what takes more room follows below its row."""
    from rota.cli.render.text import table_lines
    from rota.plan.language.hostlist import fold
    from rota.units import about_duration, about_size

    today = datetime.now(UTC).astimezone().date()
    all_today = all(each.started_at is None or each.started_at.astimezone().date() == today for each in attempts)
    style = "%H:%M:%S" if all_today else "%Y-%m-%d %H:%M"
    rows = [
        [
            str(each.attempt),
            each.state,
            each.signal or ("-" if each.exit_code is None else str(each.exit_code)),
            "-" if each.started_at is None else f"{each.started_at.astimezone():{style}}",
            "-" if each.wall_s is None else about_duration(each.wall_s),
            "-" if each.cpu_s is None else about_duration(each.cpu_s),
            "-" if each.peak_mem_bytes is None else about_size(each.peak_mem_bytes),
            "-" if each.size is None else about_size(each.size.mem_bytes),
            fold(each.hosts) or "-",
        ]
        for each in attempts
    ]
    head = ["  TRY", "STATE", "EXIT", "STARTED", "TIME", "CPU", "MEMORY", "GIVEN", "HOST"]
    title, *drawn = table_lines(head, rows, right="rlrlrrrr", state=1)
    lines: list[str] = [title]
    for each, row in zip(attempts, drawn, strict=True):
        lines.append(row)
        # That it ended with this exit code is in the row.
        if each.reason and each.reason.message not in ("", f"exit {each.exit_code}"):
            lines.append(f"       {each.reason.message}")
        if each.output_missing:
            wrote = (each.out_bytes or 0) + (each.err_bytes or 0)
            size = f" ({about_size(wrote)} were written)" if wrote else ""
            lines.append(f"       output missing{size}: {each.output_missing.message}")
    for each in attempts:
        lines += [f"  after try {each.attempt}: {_behaved(done)}" for done in each.behaviours]
    return lines


def _behaved(done: BehavedView) -> str:
    """`'exit 9' failed (exit 9)`."""
    from rota.cli.render.text import harmless

    kind, colon, command = done.behaviour.partition(":")
    what = f"'{harmless(command.strip())}'" if colon and kind == "run" else harmless(done.behaviour)
    why = f" ({harmless(done.message)})" if done.message else ""
    return f"{what} {'done' if done.ok else 'failed'}{why}"


def _when(at: datetime | None) -> str:
    return "" if at is None else f"{at.astimezone():%Y-%m-%d %H:%M:%S}"
