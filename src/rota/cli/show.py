"""`rota show`: everything about one job."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from rota.cli.command import Invocation, command
from rota.cli.selecting import one_job

if TYPE_CHECKING:
    from datetime import datetime

    from rota.wire.views import AttemptView, JobView


@command("show")
@click.argument("id", metavar="ID")
def show(call: Invocation, id: str) -> int:
    """Show everything about one job: what it asked for, every attempt, and its story.

    \b
    Examples:
      rota show 17
      rota show 17 --json
    """
    with call.connect() as client:
        job = client.job(one_job(client, id))
    if call.json:
        import msgspec

        sys.stdout.write(msgspec.json.encode(job).decode() + "\n")
    elif call.quiet:
        print(job.id)
    else:
        print(_card(job))
    return 0


def _card(job: JobView) -> str:
    from rota.cli.terminal import coloured, command_text, harmless, paint
    from rota.units import format_duration, format_size

    colour = coloured(sys.stdout)
    reason = f" ({job.reason.code}: {harmless(job.reason.message)})" if job.reason else ""
    size = job.size
    rows = [
        ("state", paint(job.state, job.state, on=colour) + reason),
        ("command", command_text(job.cmd)),
        ("directory", harmless(job.cwd or "a private one")),
        ("name", harmless(job.name)),
        ("group", harmless(job.group)),
        ("user", harmless(job.user)),
        ("project", harmless(job.project)),
        ("queue", f"{harmless(job.queue)}, priority {job.priority}"),
        ("asks for", _size(size.cpus, size.mem_bytes, size.disk_bytes, size.time_s, size.gpus)),
        ("walltime", format_duration(job.walltime_s) if job.walltime_s is not None else ""),
        ("after", harmless(", ".join(map(str, job.after)))),
        ("retries", f"{job.retries}, {job.retries_left} left"),
        ("host", harmless(job.host or "")),
        ("submitted", _when(job.submitted_at)),
        ("started", _when(job.started_at)),
        ("ended", _when(job.ended_at)),
        ("peak memory", format_size(job.peak_mem_bytes) if job.peak_mem_bytes else ""),
        ("key", job.key),
    ]
    lines = [paint(f"job {job.id}", "bold", on=colour)]
    lines += [f"  {label:<12} {text}" for label, text in rows if text]
    if isinstance(job.attempts, list) and job.attempts:
        lines += ["", paint("attempts", "bold", on=colour), _attempts(job.attempts)]
    if job.story:
        lines += ["", paint("story", "bold", on=colour)]
        for line in job.story:
            number = f" [{line.attempt}]" if line.attempt else ""
            lines.append(f"  {_when(line.at)}{number} {harmless(line.event)} {harmless(line.text)}".rstrip())
    return "\n".join(lines)


def _size(cpus: float, mem: int, disk: int, time_s: float, gpus: int) -> str:
    from rota.cli.terminal import count
    from rota.units import about_size, format_duration

    parts = [f"{cpus:g} cpus" if cpus != 1 else "1 cpu", f"{about_size(mem)} memory"]
    if disk:
        parts.append(f"{about_size(disk)} disk")
    if gpus:
        parts.append(count(gpus, "GPU"))
    return ", ".join([*parts, f"about {format_duration(time_s)}"])


def _attempts(attempts: list[AttemptView]) -> str:
    from rota.cli.terminal import harmless, table
    from rota.units import about_duration, about_size

    rows = [
        [
            str(each.attempt),
            each.state,
            each.signal or ("-" if each.exit_code is None else str(each.exit_code)),
            _when(each.started_at) or "-",
            "-" if each.wall_s is None else about_duration(each.wall_s),
            "-" if each.cpu_s is None else about_duration(each.cpu_s),
            "-" if each.peak_mem_bytes is None else about_size(each.peak_mem_bytes),
            harmless(each.host or "-"),
            harmless(each.reason.message) if each.reason else "",
        ]
        for each in attempts
    ]
    head = ["  TRY", "STATE", "EXIT", "STARTED", "TIME", "CPU", "MEMORY", "HOST", "REASON"]
    return table(head, rows, right="rlrlrrrl", state=1)


def _when(at: datetime | None) -> str:
    return "" if at is None else f"{at.astimezone():%Y-%m-%d %H:%M:%S}"
