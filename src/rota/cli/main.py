"""The `rota` command: finds the subcommand, runs it, and turns every error into one line and a status.

Only click and `rota.errors` are imported here; a subcommand's module is loaded when it is called.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from typing import Final, NoReturn

# Ctrl-C while modules are being loaded must not end in a traceback; `main` deals with it from then on.
_loading = __name__ != "__main__" and signal.getsignal(signal.SIGINT) is signal.default_int_handler
if _loading:
    try:
        signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    except ValueError:  # not the main thread, so this is not the `rota` command
        _loading = False
_collecting = gc.isenabled()
gc.disable()  # what is loaded stays, so to look for garbage in it is time lost
try:
    import click

    from rota.cli.command import LazyGroup
    from rota.cli.render.errors import explain, report
finally:
    if _loading:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if _collecting:
        gc.freeze()
        gc.enable()

#: Every command and where it is defined.
COMMANDS: Final = {
    "run": "rota.cli.commands.jobs.run:run",
    "add": "rota.cli.commands.jobs.add:add",
    "jobs": "rota.cli.commands.jobs.jobs:jobs",
    "status": "rota.cli.commands.jobs.status:status",
    "top": "rota.cli.commands.jobs.top:top",
    "show": "rota.cli.commands.jobs.show:show",
    "why": "rota.cli.commands.jobs.why:why",
    "plan": "rota.cli.commands.jobs.plan:plan",
    "gantt": "rota.cli.commands.reports.gantt:gantt",
    "result": "rota.cli.commands.jobs.result:result",
    "logs": "rota.cli.commands.jobs.logs:logs",
    "exec": "rota.cli.commands.jobs.exec:exec_",
    "connect": "rota.cli.commands.jobs.exec:connect",
    "rsh": "rota.cli.rsh:rsh",
    "wait": "rota.cli.commands.jobs.wait:wait",
    "kill": "rota.cli.commands.jobs.kill_retry_hold:kill",
    "retry": "rota.cli.commands.jobs.kill_retry_hold:retry",
    "remove": "rota.cli.commands.jobs.kill_retry_hold:remove",
    "hold": "rota.cli.commands.jobs.kill_retry_hold:hold",
    "release": "rota.cli.commands.jobs.kill_retry_hold:release",
    "suspend": "rota.cli.commands.jobs.suspend:suspend",
    "resume": "rota.cli.commands.jobs.suspend:resume",
    "signal": "rota.cli.commands.jobs.suspend:signal",
    "checkpoint": "rota.cli.commands.jobs.suspend:checkpoint",
    "walltime": "rota.cli.commands.jobs.walltime:walltime",
    "confirm-dead": "rota.cli.commands.jobs.kill_retry_hold:confirm_dead",
    "import": "rota.cli.commands.jobs.import_jobs:importing",
    "modify": "rota.cli.commands.jobs.modify:modify",
    "limit": "rota.cli.commands.site.limit:limit",
    "learn": "rota.cli.commands.reports.learn:learn",
    "accounting": "rota.cli.commands.reports.accounting:accounting",
    "usage": "rota.cli.commands.reports.usage:usage",
    "simulate": "rota.cli.commands.manager.simulate:simulate",
    "node": "rota.cli.commands.nodes.node:node",
    "gang": "rota.cli.commands.jobs.gang:gang",
    "machine-group": "rota.cli.commands.site.machine_group:machine_group",
    "pipeline": "rota.cli.commands.pipelines.pipeline:pipeline",
    "pool": "rota.cli.commands.site.pool:pool",
    "populate": "rota.cli.commands.pipelines.populate:populate",
    "resource": "rota.cli.commands.site.resource:resource",
    "property": "rota.cli.commands.site.property:property_",
    "queue": "rota.cli.commands.site.queue:queue",
    "share": "rota.cli.commands.site.share:share",
    "quota": "rota.cli.commands.site.quota:quota",
    "calendar": "rota.cli.commands.site.calendar:calendar",
    "rule": "rota.cli.commands.site.rule:rule",
    "manager": "rota.cli.commands.manager.manager:manager",
    "config": "rota.cli.commands.manager.config:config",
    "doctor": "rota.cli.commands.manager.doctor:doctor",
    "version": "rota.cli.commands.manager.version:version",
    "completion": "rota.cli.commands.manager.completion:completion",
}

BROKEN_PIPE: Final = 141
INTERRUPTED: Final = 130

rota = LazyGroup(
    "rota",
    members=COMMANDS,
    help="""A job scheduler for one machine or many.

    Give it commands; it keeps them in a durable queue, runs them as resources become free, and records how
    each ended.

    \b
    Examples:
      rota run commands.txt          run the commands of a file and wait
      rota run -- make -j4           run one command, see its output
      rota add --mem 4G jobs.txt     add jobs and return
      rota jobs state=failed         what has failed
      rota logs 17                   what job 17 printed

    Selectors name jobs: 12, 12-20, @group, @part*, state=failed, name=x, cmd~text, exit=1, older=1d, user=x,
    host=x, queue=x, project=x, pool=x, last, all; and elements of array 12: 12_3, 12_1-5 and 12_*. Commas within a
    word mean AND, several words mean OR. Actions refuse a group, name or element that no job has.
    """,
)


def main(argv: list[str] | None = None) -> NoReturn:
    """Run the command line and exit with its status."""
    if argv is None:
        # Most commands end before there is any garbage worth looking for.
        gc.set_threshold(50_000, 20, 100)
    arguments = sys.argv[1:] if argv is None else argv
    _fill_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        # Printing a name must not fail, whatever characters it has.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    status = _status(arguments)
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        status = BROKEN_PIPE
    if status == BROKEN_PIPE:
        # The rest of the buffer has no reader; without this Python would complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    if argv is None:
        gc.freeze()  # the process ends: do not search all of it for cycles, which takes longer than many commands
    sys.exit(status)


def _fill_closed_streams() -> None:
    """Replace closed standard streams, so that no file opened later gets their descriptors."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8"))


def _status(arguments: list[str]) -> int:
    try:
        result = rota.main(arguments, prog_name="rota", standalone_mode=False)
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except BrokenPipeError:
        return BROKEN_PIPE
    except SystemExit as leaving:  # click's way when a pipe has closed
        return leaving.code if isinstance(leaving.code, int) and leaving.code != 1 else BROKEN_PIPE
    except Exception as error:
        plain = arguments[: arguments.index("--")] if "--" in arguments else arguments
        if "--debug" in plain:
            import traceback

            from rota.cli.render.printing import print_err

            print_err(*traceback.format_exc().splitlines())
        return report(explain(error), as_json="--json" in plain)
    return result if isinstance(result, int) else 0
