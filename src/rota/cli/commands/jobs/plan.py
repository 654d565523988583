"""`rota plan`: what if. When and where a job would run; nothing is submitted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from rota.cli.command import Invocation, command, print_json
from rota.cli.input.job_options import given, options_for
from rota.cli.render.printing import print_out

if TYPE_CHECKING:
    from rota.wire.views import PlanView

#: Options of `add` on which it depends when and where a job runs.
_FIELDS: Final = frozenset(
    {"name", "project", "queue", "priority", "cpus", "mem", "disk", "time", "gpus", "walltime", "limits"}
    | {"request", "where", "type", "at"}
)


@command("plan")
@options_for(_FIELDS)
@click.option("--user", metavar="NAME", help="Whose job it would be (default: yours).")
def plan(call: Invocation, user: str | None, **options: Any) -> int:
    """Show when and where a job would run if it were added now. Nothing is submitted.

    The options are those of 'rota add'. The answer is what the planner would decide at this moment: start,
    expected end, resources, which of several requests, why not at once, and which waiting jobs would start later.

    \b
    Examples:
      rota plan -l nodes=4,walltime=2h
      rota plan -l core=8,walltime=1h -l core=2,walltime=3h
      rota plan --cpus 2 --mem 8G --time 30m --json
      rota plan -l nodes=1 -r 2030-01-01T08:00 --walltime 1h --user bob
    """
    from rota.cli.session.submission import warn_of_hours
    from rota.client.submission import spec_of
    from rota.client.submit_environment import default_memory

    settings = call.settings()
    memory = default_memory(cores=settings.cores, memory=settings.mem)
    spec = spec_of(given(options), text=True, mem=memory)
    warn_of_hours(spec.request)
    with call.connect_to_read() as client:
        found = client.plan_for(spec, user=user or "")
    if call.json:
        print_json(found)
    elif not call.quiet:
        print_out(*_lines(found))
    return 0


def _lines(found: PlanView) -> list[str]:
    from datetime import UTC, datetime

    from rota.cli.render.text import count, few_ranges, harmless
    from rota.plan.language.hostlist import fold
    from rota.units import about_duration

    lines = []
    rows: list[tuple[str, str]] = []
    if found.start is None:
        lines.append("it would have no planned start")
    else:
        wait = (found.start - datetime.now(UTC)).total_seconds()
        lines.append("it would start " + (f"in {about_duration(wait)}" if wait >= 1 else "now"))
        rows.append(("start", f"{found.start.astimezone():%Y-%m-%d %H:%M:%S}"))
        if found.end is not None:
            length = about_duration((found.end - found.start).total_seconds())
            rows.append(("end", f"{found.end.astimezone():%Y-%m-%d %H:%M:%S} (after {length})"))
        elif found.expected_reason is not None:
            rows.append(("end", f"not known: {found.expected_reason.message}"))
        rows.append(("resources", found.resources or "none of its own"))
        rows.append(("hosts", harmless(fold(found.hosts))))
        if found.request is not None:
            rows.append(("request", f"{harmless(found.request)} (alternative {found.alternative})"))
    if found.reason is not None:
        rows.append(("why", harmless(found.reason.message)))
        if found.reason.blockers:
            rows.append(("held up by", few_ranges(found.reason.blockers)))
        if found.reason.hint:
            rows.append(("try", harmless(found.reason.hint)))
    if found.moves:
        verb = "starts" if len(found.moves) == 1 else "start"
        rows.append(("moves", f"{count(len(found.moves), 'job')} {verb} later: {few_ranges(found.moves)}"))
    if found.behind:
        verb = "waits" if found.behind == 1 else "wait"
        rows.append(("beyond", f"{count(found.behind, 'job')} {verb} that no plan has yet; it may start later"))
    rows += [("rule", harmless(notice)) for notice in found.notices]
    return lines + [f"  {label:<12} {text}" for label, text in rows if text]
