"""`rota import`: jobs that were written for other tools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from rota.cli.command import Group, Invocation
from rota.cli.input.job_options import given, job_options
from rota.cli.input.selectors import files
from rota.cli.render.printing import print_err, print_out

if TYPE_CHECKING:
    from rota.client.wr.reader import Conversion

#: What wr does by default and Rota does not: commands are for bash, a pipeline fails with any part
#: of it, each job has a directory of its own, and what was learned counts more than what was asked.
WR_DEFAULTS: Final[Mapping[str, object]] = {"pipefail": True, "scratch": True, "override": "no"}

_NUMBERS: Final = ("cpus", "gpus", "priority", "retries")


@click.group("import", cls=Group)
def importing() -> None:
    """Import jobs that were written for other tools."""


@importing.command("wr")
@click.argument("file", metavar="FILE|-", shell_complete=files)
@click.option("--cwd-matters", is_flag=True, help="Run in --cwd itself, as 'wr add --cwd_matters' does.")
@click.option(
    "--drop", metavar="FIELD", multiple=True,
    help="Ignore this field, which has no equivalent, instead of refusing the file; 'all': every such field.",
)  # fmt: skip
@click.option("--strict", is_flag=True, help="Treat warnings as errors.")
@job_options
@click.option("--sync", is_flag=True, help="Wait for the jobs; the exit status is as with 'rota run'.")
@click.option("--dry-run", is_flag=True, help="Print the jobs as input for 'rota add'; add nothing.")
@click.option("--no-start", is_flag=True, help="Do not start a manager if there is none.")
def wr(
    call: Invocation,
    file: str,
    cwd_matters: bool,
    drop: tuple[str, ...],
    strict: bool,
    sync: bool,
    dry_run: bool,
    no_start: bool,
    **options: Any,
) -> int:
    """Add jobs from a file that was written for 'wr add'.

    The file holds one command a line, a command with a tab and a JSON object behind it, or one JSON object
    a line, with wr's fields. They mean what they mean to wr: a command runs under bash, in a directory of its
    own unless cwd_matters is set; equal commands are one job; limits that a line declares are set first.
    Options are defaults for lines without that field. Dates (datetime) become the types postpone and expire;
    commands of earlier files (cmd_deps) are found among your jobs. A file with a bad line, or with a field that
    has no equivalent, adds nothing: --drop FIELD accepts the loss, which is then listed.

    \b
    Examples:
      rota import wr commands.txt
      rota import wr commands.txt --cwd-matters -g mapping --retries 1
      rota import wr commands.txt --drop cloud_os --drop mounts
      rota import wr commands.txt --dry-run > jobs.jsonl; rota add jobs.jsonl
    """
    from rota.cli.commands.jobs.add import finish
    from rota.cli.session.interrupts import explain_interrupt
    from rota.cli.session.wr_submission import WrSubmission
    from rota.core.jobs.report_groups import names_of
    from rota.errors import BadInput

    fields = given(options)
    if cwd_matters and fields.get("scratch"):
        raise BadInput("--cwd-matters and --scratch contradict each other", hint="give one of them")
    defaults = {**WR_DEFAULTS, "scratch": not cwd_matters, **fields}
    with explain_interrupt(lambda: "nothing was added"):
        jobs = WrSubmission(
            call, file=file, fields=defaults, cwd_matters=cwd_matters, strict=strict, drop=drop,
            may_start=not no_start,
        )  # fmt: skip
    _warn(jobs.source, jobs.conversion)
    if dry_run:
        if file != "-":
            defaults.setdefault("group", names_of(jobs.base.group))
        _print(call, jobs.conversion, defaults)
        return 0
    jobs.declare_limits()
    return finish(call, jobs, sync=sync)


def _warn(source: str, found: Conversion) -> None:
    """Print a warning once if it applies to many lines."""
    lines: dict[str, list[int]] = {}
    for job in found.jobs:
        for warning in job.warnings:
            lines.setdefault(warning, []).append(job.line)
    if found.repeated:
        lines["repeats the command of another line, so it is the same job to wr"] = found.repeated
    for warning, where in lines.items():
        more = f" (and {len(where) - 1:,} more like it)" if len(where) > 1 else ""
        print_err(f"rota: warning: {source} line {where[0]}: {warning}{more}")


def _print(call: Invocation, found: Conversion, defaults: Mapping[str, object]) -> None:
    """The jobs as `rota add` reads them; with --json one array, else one object a line."""
    from rota.cli.render.text import json_text

    jobs = _converted(found, {name: _json_of(name, value) for name, value in defaults.items()})
    if call.json:
        print_out(json_text(list(jobs)))
    else:
        for job in jobs:
            print_out(json_text(job))
    if found.limits:
        needed = "; ".join(f"rota limit {limit}" for limit in found.limits)
        print_err(f"rota: note: the jobs need limits, to be declared first: {needed}")


def _converted(found: Conversion, defaults: Mapping[str, object]) -> Iterator[dict[str, object]]:
    from rota.cli.session.wr_submission import with_types

    # Blank lines and comments are gone, so lines have other numbers than in wr's file.
    number_of = {job.line: number for number, job in enumerate(found.jobs, 1)}
    for job in found.jobs:
        fields = {"cmd": job.cmd, **defaults, **job.fields_with(number_of)}
        if isinstance(env := defaults.get("env"), dict) and isinstance(own := job.fields.get("env"), dict):
            fields["env"] = env | own
        if defaults.get("type") and "type" in job.fields:
            fields["type"] = with_types(defaults["type"], job.fields["type"])
        yield fields


def _json_of(name: str, value: object) -> object:
    """A value of an option, which was checked, as a field of a JSON object has it."""
    if name in _NUMBERS and isinstance(value, str):
        return float(value) if "." in value else int(value)
    if isinstance(value, tuple):
        words = [str(word) for word in value]
        if name == "group" and len(words) == 1:
            return words[0]
        if name == "env":
            return dict(word.split("=", 1) for word in words)
        return [] if words == ["none"] else words
    return value
