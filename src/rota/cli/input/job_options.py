"""The options that give fields of jobs: with `add` and `run` the defaults, with `modify` what to change."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

_MANY: Final = {"multiple": True}
#: Not given is None, so that a flag can also say no.
_FLAG: Final = {"is_flag": True, "default": None}

#: Field → how its option is called, what it is and what the help says.
_OPTIONS: Final[dict[str, tuple[tuple[str, ...], dict[str, Any], str]]] = {
    "name": (("-n", "--name"), {"metavar": "TEXT"}, "A label."),
    "group": (
        ("-g", "--group"),
        {"metavar": "TEXT", **_MANY},
        "Report group; repeat it for several (default: the file's name, or 'default').",
    ),
    "cwd": (("--cwd",), {"metavar": "DIR"}, "Working directory (default: here)."),
    "scratch": (
        ("--scratch",),
        _FLAG,
        "A new private directory, removed afterwards, with its own TMPDIR.",
    ),
    "env": (
        ("--env",),
        {"metavar": "K=V", **_MANY},
        "Add to the environment, which is captured now.",
    ),
    "cpus": (("--cpus",), {"metavar": "N"}, "Cores; may be 0 or a fraction (default: 1)."),
    "mem": (("--mem",), {"metavar": "SIZE"}, "Memory (default: 1G, or less on small machines)."),
    "disk": (("--disk",), {"metavar": "SIZE"}, "Disk (default: none)."),
    "time": (("--time",), {"metavar": "TIME"}, "Expected duration; never kills (default: 1h)."),
    "gpus": (("--gpus",), {"metavar": "N"}, "GPUs (default: 0)."),
    "request": (
        ("-l", "--request"),
        {"metavar": "REQUEST", **_MANY},
        "Resources instead of --cpus and --gpus: {gpu='YES'}/switch=1/nodes=4/core=2,walltime=2h; repeat it for "
        "alternatives.",
    ),
    "where": (
        ("-p", "--where"),
        {"metavar": "EXPRESSION"},
        "Only resources with these properties: gpu='YES' and mem_gb >= 64.",
    ),
    "walltime": (
        ("--walltime",),
        {"metavar": "TIME"},
        "Hard limit on the duration, where the request has none (default: none).",
    ),
    "type": (
        ("-t", "--type"),
        {"metavar": "TYPE", **_MANY},
        "besteffort, idempotent, container, inner=ID, timesharing=user|*,name|*, placeholder=NAME, allowed=NAME, "
        "deploy, cosystem, noop, deadline=WHEN, postpone=WHEN, expire=WHEN, no_quotas (for administrators), or "
        "type:NAME for one of the site's own.",
    ),
    "priority": (("--priority",), {"metavar": "N"}, "0 to 255, higher first (default: 0)."),
    "project": (("--project",), {"metavar": "TEXT"}, "Project to account to."),
    "queue": (("-q", "--queue"), {"metavar": "NAME"}, "Queue (default: 'default')."),
    "at": (
        ("-r", "--at"),
        {"metavar": "WHEN"},
        "Reserve the resources for then: 2026-11-16T08:00 (local, or with a zone), now+10m or @1700000000.",
    ),
    "array": (
        ("--array",),
        {"metavar": "SPEC"},
        "Make each command an array of jobs: 1-100, 0-99:2, 1,3,7-9; with %5 behind, five at once.",
    ),
    "array_file": (
        ("--array-file",),
        {"metavar": "PATH"},
        "One job for each line of this file, which is appended to the command; --array picks lines.",
    ),
    "after": (
        ("--after",),
        {"metavar": "IDS", **_MANY},
        "Wait for jobs: ids, ranges, @GROUP, afterok:ID (default), afterany:ID, afternotok:ID; with commas.",
    ),
    "dep_groups": (
        ("--dep-group", "dep_groups"),
        {"metavar": "NAME", **_MANY},
        "Join a group that others may wait for.",
    ),
    "live": (
        ("--live/--no-live",),
        {"default": None},
        "Whether jobs that join a group later are waited for as well (default: yes).",
    ),
    "allow_empty_group": (
        ("--allow-empty-group",),
        _FLAG,
        "Wait for a group that nothing has joined yet.",
    ),
    "limits": (
        ("--limit", "limits"),
        {"metavar": "NAME[:N][!]", **_MANY},
        "Take units of a limit (default: 1); with ! alone. NAME:N on a limit nobody declared declares it.",
    ),
    "learn": (
        ("--learn",),
        {"metavar": "NAME"},
        "Learning group, whose jobs need about the same (default: the program's name).",
    ),
    "override": (
        ("--override",),
        {"metavar": "no|higher|always"},
        "Use what was learned, the higher of that and what is given, or always what is given, "
        "never a default (without it what you give is a lower bound, and what you leave out is learned).",
    ),
    "input_bytes": (
        ("--input-bytes",),
        {"metavar": "SIZE"},
        "Size of the input, on which the needs may depend; a plain number is bytes.",
    ),
    "input_file": (("--input-file",), {"metavar": "PATH"}, "The same, taken from a file."),
    "retries": (
        ("--retries",),
        {"metavar": "N"},
        "Further attempts after a failure (default: 3 with add, 0 with run).",
    ),
    "backoff": (
        ("--backoff",),
        {"metavar": "TIME"},
        "Wait before a retry (default: 30s; doubles each time, at most 30 min, plus up to 30 s).",
    ),
    "no_retry_over": (
        ("--no-retry-over",),
        {"metavar": "TIME"},
        "Do not retry an attempt that ran longer.",
    ),
    "retry_on": (
        ("--retry-on",),
        {"metavar": "CODE", **_MANY},
        "Retry only attempts that ended for one of these reasons: exit, signal, memory, time, walltime, disk, "
        "lost, not_found, output_file (default: all but walltime, where another attempt can help).",
    ),
    "pipefail": (
        ("--pipefail/--no-pipefail",),
        {"default": None},
        "Whether a pipeline fails if any part of it does (default: no).",
    ),
    "on_success": (
        ("--on-success",),
        {"metavar": "WHAT", **_MANY},
        "When the job is complete: 'run: CMD', 'cleanup' of its scratch directory, or 'remove'.",
    ),
    "on_failure": (("--on-failure",), {"metavar": "WHAT", **_MANY}, "Likewise when an attempt has failed."),
    "on_exit": (("--on-exit",), {"metavar": "WHAT", **_MANY}, "Likewise after every attempt, last."),
    "stdout": (
        ("-o", "--stdout"),
        {"metavar": "FILE"},
        "Write the output there; %j id, %A array, %a index, %x name, %u user, %N host (default: kept by Rota).",
    ),
    "stderr": (("-e", "--stderr"), {"metavar": "FILE"}, "Likewise what is printed to stderr."),
    "job_key": (
        ("--job-key",),
        {"metavar": "FILE"},
        "Whoever has the key in this file (made if it is not there) may enter the job with 'rota exec --job-key'.",
    ),
    "checkpoint": (
        ("--checkpoint",),
        {"metavar": "TIME"},
        "Send --signal this long before the walltime is over, and before it is ended for another job.",
    ),
    "signal": (
        ("--signal",),
        {"metavar": "SIGNAL"},
        "The signal that asks the job for a checkpoint (default: USR2).",
    ),
    "rerun": (
        ("--rerun",),
        _FLAG,
        "Run jobs again that have ended: new jobs take their place. Those that have not ended are left alone.",
    ),
    "once": (("--once",), _FLAG, "With a command after --: not if it was added before."),
    "allow_unsatisfiable": (
        ("--allow-unsatisfiable",),
        _FLAG,
        "Keep jobs that no machine could run now.",
    ),
}

NAMES: Final = tuple(_OPTIONS)


def job_options(function: F) -> F:
    """Decorator: add all of them."""
    return options_for(NAMES)(function)


def options_for(names: Collection[str], *, hidden: Collection[str] = ()) -> Callable[[F], F]:
    """Decorator: add these, and others that the help does not show because they are refused."""

    def decorate(function: F) -> F:
        for name in reversed(NAMES):
            if name in names or name in hidden:
                words, attributes, text = _OPTIONS[name]
                function = click.option(*words, **attributes, help=text, hidden=name not in names)(function)
        return function

    return decorate


def given(options: dict[str, Any]) -> dict[str, object]:
    """Take the job options out of a command's arguments: those that were given."""
    found = {name: options.pop(name) for name in NAMES if name in options}
    return {name: value for name, value in found.items() if value is not None and value != ()}


#: Of commands that take an input.
input_option: Final = click.option(
    "--input",
    "source",
    metavar="NAME",
    help="What this input is called, in place of its path: added again, it replaces what came to nothing.",
)
