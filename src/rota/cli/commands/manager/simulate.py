"""`rota simulate`: what would have become of the jobs of a trace. Needs no manager."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import click

from rota.cli.command import Invocation, command, print_json
from rota.cli.input.numbers import WholeNumber
from rota.cli.input.selectors import files
from rota.cli.render.printing import print_out

if TYPE_CHECKING:
    from rota.sim.replay import ReplayResult

_POLICIES: Final = ("fcfs", "easy", "easy-sjbf", "conservative")
_DEFAULT: Final = "conservative"
_MOST_PROCS: Final = 1_000_000
#: A JSON document is read as a whole, which takes many times its size.
_MOST_JSON: Final = 256 << 20


@command("simulate")
@click.argument("trace", metavar="TRACE|-", shell_complete=files)
@click.option(
    "--procs",
    type=WholeNumber(1, _MOST_PROCS),
    metavar="P",
    help="Number of processors (default: from the trace).",
)
@click.option(
    "--policy",
    "policies",
    multiple=True,
    type=click.Choice(_POLICIES),
    help=f"Planning policy (default: {_DEFAULT}, or that of a JSON trace); repeat it to compare.",
)
@click.option(
    "--estimates",
    type=click.Choice(["requested", "exact"]),
    help="Plan with the times that users asked for (default), or with the exact run times.",
)
@click.option(
    "--processors",
    type=click.Choice(["numbered", "count"]),
    help="Assign processors by number, lowest first (default), or only count them.",
)
@click.option(
    "--gantt", metavar="FILE", shell_complete=files, help="Write a Gantt chart to this file: .png, .svg or .html."
)
@click.option("--plan-only", is_flag=True, help="With a JSON trace: print the plan at time 0 and run nothing.")
def simulate(
    call: Invocation,
    trace: str,
    procs: int | None,
    policies: tuple[str, ...],
    estimates: str | None,
    processors: str | None,
    gantt: str | None,
    plan_only: bool,
) -> int:
    """Replay a trace of jobs through the planner, on a virtual clock.

    TRACE is a file in the Standard Workload Format, plain or compressed by gzip, or a JSON document that
    describes a whole site. Jobs without a run time or processors, or with more processors than there are,
    are skipped and reported. With --json several policies give {"policies": {NAME: {...}}}.

    \b
    Examples:
      rota simulate kth.swf.gz --policy easy
      rota simulate kth.swf --procs 100 --policy easy --policy conservative --estimates exact
      rota simulate kth.swf --policy easy --gantt kth.html
      rota simulate site.json --plan-only --json
    """
    from rota.cli.input.files import read_input
    from rota.cli.render.picture_file import check_writable
    from rota.errors import BadInput
    from rota.sim.unpacking import MAX_BYTES, pieces, unpacked

    chosen = list(dict.fromkeys(policies))
    if gantt is not None:
        if len(chosen) > 1:
            raise BadInput("--gantt draws one policy", hint="give one --policy, or no --gantt")
        check_writable(gantt)
    name = "stdin" if trace == "-" else os.path.basename(trace) or trace
    data = read_input(trace, most=MAX_BYTES, what="a trace", too_large="give a part of it")
    beginning = next(pieces(data, name), b"")
    if trace.lower().endswith((".json", ".json.gz")) or beginning.lstrip()[:1] == b"{":
        for flag, value in (("--procs", procs), ("--estimates", estimates), ("--processors", processors)):
            if value is not None:
                raise BadInput(f"{flag} is for traces in the Standard Workload Format", hint=f"leave {flag} out")
        data = unpacked(data, name, most=_MOST_JSON)
        return _site(call, data, name, chosen, plan_only=plan_only, gantt=gantt)
    if plan_only:
        raise BadInput("--plan-only is for JSON traces", hint="leave --plan-only out")
    return _swf(
        call,
        data,
        name,
        chosen or [_DEFAULT],
        procs=procs,
        exact=estimates == "exact",
        counted=processors == "count",
        gantt=gantt,
    )


def _swf(
    call: Invocation,
    data: bytes,
    name: str,
    policies: Sequence[str],
    *,
    procs: int | None,
    exact: bool,
    counted: bool,
    gantt: str | None,
) -> int:
    from rota.cli.render.simulation_text import ReplayLine, note, tell_replays
    from rota.errors import BadInput
    from rota.sim.replay import replay
    from rota.sim.swf import parse_swf

    trace = parse_swf(data, name)
    processors = procs or trace.processors()
    if processors is None:
        raise BadInput(f"{name} does not say how many processors there are", hint="give --procs")
    if processors > _MOST_PROCS:
        raise BadInput(f"{name} has {processors} processors, too many to simulate", hint="give --procs")
    results: dict[str, ReplayResult] = {}
    for policy in policies:
        with ReplayLine(policy) as line:
            results[policy] = replay(
                trace, processors=processors, policy=policy, exact=exact, counted=counted, progress=line.tell
            )
    first = results[policies[0]]
    if gantt is not None:
        from rota.cli.render.picture_file import write_picture
        from rota.sim.drawing import picture_of_replay

        title = f"{name}: {policies[0]} on {processors} processors"
        about = note(len(first.ran), first.metrics)
        write_picture(picture_of_replay(first, title=title, note=about, processors=processors), gantt)
    if call.json:
        by_policy = {policy: each.as_json() for policy, each in results.items()}
        print_json(by_policy[policies[0]] if len(policies) == 1 else {"policies": by_policy})
    elif call.quiet:
        print_out(*(str(each.job.id) for each in first.ran))
    else:
        tell_replays(name, processors, results)
    return 0


def _site(
    call: Invocation, data: bytes, name: str, policies: Sequence[str], *, plan_only: bool, gantt: str | None
) -> int:
    from rota.cli.render.simulation_text import jobs_of, metrics_of, note, tell_site, tell_sites
    from rota.sim.site_run import simulate as simulate_site

    # Without a policy: as the trace says.
    results = {policy: simulate_site(data, plan_only=plan_only, policy=policy) for policy in (policies or (None,))}
    first = next(iter(results.values()))
    if gantt is not None:
        from rota.cli.render.picture_file import write_picture
        from rota.sim.drawing import picture_of_site

        about = note(len(jobs_of(first)), metrics_of(first))
        write_picture(picture_of_site(jobs_of(first), title=name, note=about), gantt)
    if call.json:
        print_json(first if len(results) == 1 else {"policies": results})
    elif call.quiet:
        print_out(*(str(job["id"]) for job in jobs_of(first)))
    elif len(results) > 1:
        tell_sites({str(policy): each for policy, each in results.items()})
    else:
        tell_site(first, plan_only=plan_only)
    return 0
