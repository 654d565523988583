"""`rota pipeline`: run pipelines, look at their sessions, and act on them."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

import click

from rota.cli.command import Group, Invocation, print_json
from rota.cli.render.printing import print_err, print_out
from rota.errors import NoManager

if TYPE_CHECKING:
    from rota.client import Client

_ON_ERROR: Final = ("continue", "quit", "terminate", "ask")


@click.group("pipeline", cls=Group)
def pipeline() -> None:
    """Pipelines: elements with dependencies that flow through stages."""


@pipeline.command("run")
@click.argument("file")
@click.argument("elements", nargs=-1)
@click.option(
    "--on-error",
    type=click.Choice(_ON_ERROR),
    help="What a failure means for everything else (default: ask on a terminal, elsewhere continue).",
)
@click.option("--only", multiple=True, metavar="ELEMENT…", help="Only these elements, with all that they need.")
@click.option("--stages", metavar="a,b", help="Only these stages.")
@click.option("--restart", is_flag=True, help="If the file has changed, end its running session and begin anew.")
@click.option("--rerun", is_flag=True, help="Do all again that was done before; only conditions decide.")
@click.option("--yes", is_flag=True, help="Ask nothing, on a terminal neither.")
@click.option("--no-start", is_flag=True, help="Do not start a manager if there is none.")
def run(
    call: Invocation,
    file: str,
    elements: tuple[str, ...],
    on_error: str | None,
    only: tuple[str, ...],
    stages: str | None,
    restart: bool,
    rerun: bool,
    yes: bool,
    no_start: bool,
) -> int:
    """Run a pipeline, or watch its session if it runs already.

    On a terminal it shows the stages and the running jobs, and messages above them; elsewhere it prints one line
    an event. When an element fails, all jobs are suspended and a key decides: continue, quit, terminate, retry,
    log or shell. With --yes, with --json and where stdin or stdout is no terminal, nothing is asked.

    Ctrl-C asks what to do; without questions it terminates the session, as a second Ctrl-C does. Ctrl-Z suspends
    all jobs, 'fg' resumes them, and the time in between does not count. The session goes on if the terminal is
    closed: the same command shows it again. After a session has ended, the same command runs only what is missing
    or has failed. The exit status is 1 if anything failed.

    \b
    Examples:
      rota pipeline run build.yaml
      rota pipeline run build.yaml --only app tests --on-error quit
      rota pipeline run build.yaml --stages fetch,build --yes
      rota pipeline run build.yaml --json
    """
    from rota.cli.session.pipeline_run import PipelineRun
    from rota.client import pipelines
    from rota.client.submit_environment import default_memory
    from rota.pipeline.yaml_file import load

    if elements and not only:
        raise click.UsageError(f"one file at a time: use --only {' '.join(elements)} for elements")
    wanted = [name.strip() for name in stages.split(",") if name.strip()] if stages is not None else []
    if "" in (*only, *elements) or (stages is not None and not wanted):
        # An empty variable of a script must not mean everything.
        raise click.UsageError("--only and --stages need names; leave them out for all")
    settings = call.settings()
    path = os.path.realpath(file)
    definition = load(file)
    asks = not yes and can_ask(call)
    request = pipelines.request(
        definition,
        file=path,
        cwd=os.path.dirname(path),
        only=[*only, *elements],
        stages=wanted,
        on_error=on_error or ("ask" if asks else "continue"),
        restart=restart,
        rerun=rerun,
        mem=default_memory(cores=settings.cores, memory=settings.mem),
    )
    client, started = _connected(call, may_start=not no_start)
    with client:
        names = [stage.name for stage in definition.stages]
        return PipelineRun(call, client, request, stage_names=names, asks=asks, started=started).status()


def can_ask(call: Invocation) -> bool:
    """Can questions be shown at a terminal, and answered there?"""
    from rota.cli.render.text import is_terminal
    from rota.cli.session.pipeline_keys import Keys

    if call.json or call.quiet or os.environ.get("TERM") in (None, "", "dumb"):
        return False
    return is_terminal(sys.stdout) and Keys().foreground


def _connected(call: Invocation, *, may_start: bool) -> tuple[Client, bool]:
    """A connection, and whether a manager was started for it."""
    from rota.client import connect

    try:
        return call.connect(), False
    except NoManager:
        if not may_start:
            raise
    return connect(call.home.path, address=call.address, start=True), True


@pipeline.command("show")
@click.argument("file", required=False)
def show(call: Invocation, file: str | None) -> int:
    """Show the latest session of a file, or the session with a number; without one, list all sessions.

    \b
    Examples:
      rota pipeline show build.yaml
      rota pipeline show build.yaml --json
    """
    from rota.cli.session.pipeline_shows import print_now, summary_json

    with call.connect_to_read() as client:
        if file is None:
            _print_all(call, client)
            return 0
        path, session = _named(file)
        view = client.pipeline(path, session=session)
    if call.json:
        print_json(summary_json(view, now=True))
    elif call.quiet:
        print_out(str(view.session))
    else:
        print_now(view)
    return 0


@pipeline.command("list")
def list_(call: Invocation) -> int:
    """List the sessions that are known: those that run, and the latest one of each file.

    \b
    Examples:
      rota pipeline list
      rota pipeline list --json
    """
    with call.connect_to_read() as client:
        _print_all(call, client)
    return 0


def _print_all(call: Invocation, client: Client) -> None:
    from rota.cli.render.text import harmless, table
    from rota.units import about_duration

    listed = client.pipelines()
    if call.json:
        print_json(listed)
    elif call.quiet:
        print_out(*(str(each.session) for each in listed))
    elif not listed:
        print_err("no sessions; start one with 'rota pipeline run FILE'")
    else:
        several = len({each.user for each in listed}) > 1
        rows = [
            [
                str(each.session),
                each.state,
                f"{each.total - each.left:,}/{each.total:,}",
                about_duration(each.elapsed_s),
                harmless(each.file),
                *([harmless(each.user)] if several else []),
            ]
            for each in listed
        ]
        heads = ["SESSION", "STATE", "ELEMENTS", "TIME", "FILE", *(["USER"] if several else [])]
        print_out(table(heads, rows, right="rlrrll"[: len(heads)], state=1))


@pipeline.command("retry")
@click.argument("file")
@click.argument("elements", nargs=-1)
def retry(call: Invocation, file: str, elements: tuple[str, ...]) -> int:
    """Take elements that failed (default: all) back to where they failed, and go on.

    \b
    Examples:
      rota pipeline retry build.yaml
      rota pipeline retry build.yaml app
    """
    return _act(call, "retry", file, elements)


@pipeline.command("pause")
@click.argument("file")
def pause(call: Invocation, file: str) -> int:
    """Suspend all jobs of a session, which keep what they have, and start nothing more.

    \b
    Examples:
      rota pipeline pause build.yaml
    """
    return _act(call, "pause", file)


@pipeline.command("resume")
@click.argument("file")
def resume(call: Invocation, file: str) -> int:
    """Let a session go on that was paused. The pause is not part of its time.

    \b
    Examples:
      rota pipeline resume build.yaml
    """
    return _act(call, "resume", file)


def _act(call: Invocation, verb: str, file: str, elements: tuple[str, ...] = ()) -> int:
    path, session = _named(file)
    with call.connect() as client:
        changed = client.act_on_pipeline(verb, file=path, session=session, elements=elements)
    if call.json:
        print_json({"changed": changed})
    elif not call.quiet:
        print_out(f"{changed} changed")
    return 0


def _named(file: str) -> tuple[str, int]:
    """The path of a file, or the number of a session: those of others are known by it alone."""
    if file.isdecimal() and file.isascii() and len(file) < 19 and int(file) and not os.path.exists(file):
        return "", int(file)
    return os.path.realpath(file), 0
