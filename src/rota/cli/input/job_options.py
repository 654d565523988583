"""The options for fields of jobs: defaults for `add` and `run`, changes for `modify`."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

_MANY: Final = {"multiple": True}
#: None if the flag is not given, so that a default differs from an explicit no.
_FLAG: Final = {"is_flag": True, "default": None}

#: Field → names of its option, click attributes, help text.
_OPTIONS: Final[dict[str, tuple[tuple[str, ...], dict[str, Any], str]]] = {
    "name": (("-n", "--name"), {"metavar": "TEXT"}, "A label."),
    "group": (
        ("-g", "--group"),
        {"metavar": "TEXT", **_MANY},
        "Report group; repeatable (default: the file's name, or 'default').",
    ),
    "cwd": (("--cwd",), {"metavar": "DIR"}, "Working directory (default: here)."),
    "scratch": (
        ("--scratch",),
        _FLAG,
        "Run in a new private directory with its own TMPDIR, removed afterwards.",
    ),
    "env": (
        ("--env",),
        {"metavar": "K=V", **_MANY},
        "Set a variable, in addition to the current environment.",
    ),
    "cpus": (("--cpus",), {"metavar": "N"}, "Cores; may be 0 or a fraction (default: 1)."),
    "mem": (("--mem",), {"metavar": "SIZE"}, "Memory (default: 1G, or less on small machines)."),
    "disk": (("--disk",), {"metavar": "SIZE"}, "Disk (default: none)."),
    "time": (
        ("--time",),
        {"metavar": "TIME"},
        "Expected duration; a job that runs longer is not killed (default: 1h).",
    ),
    "gpus": (("--gpus",), {"metavar": "N"}, "GPUs (default: 0)."),
    "request": (
        ("-l", "--request"),
        {"metavar": "REQUEST", **_MANY},
        "Resources instead of --cpus and --gpus: {gpu='YES'}/switch=1/nodes=4/core=2,walltime=2h; repeat it "
        "for alternatives.",
    ),
    "where": (
        ("-p", "--where"),
        {"metavar": "EXPRESSION"},
        "Only resources with these properties: gpu='YES' and mem_gb >= 64.",
    ),
    "walltime": (
        ("--walltime",),
        {"metavar": "TIME"},
        "Hard limit on the duration, if --request has none (default: none).",
    ),
    "type": (
        ("-t", "--type"),
        {"metavar": "TYPE", **_MANY},
        "Job type: besteffort, idempotent, container, inner=ID, timesharing=user|*,name|*, placeholder=NAME, "
        "allowed=NAME, deploy, cosystem, noop, deadline=WHEN, postpone=WHEN, expire=WHEN, no_quotas "
        "(for administrators), or type:NAME for one of the site's own.",
    ),
    "priority": (("--priority",), {"metavar": "N"}, "0 to 255, higher first (default: 0)."),
    "project": (("--project",), {"metavar": "TEXT"}, "Project to account to."),
    "queue": (("-q", "--queue"), {"metavar": "NAME"}, "Queue (default: 'default')."),
    "at": (
        ("-r", "--at"),
        {"metavar": "WHEN"},
        "Reserve the resources for this time: 2026-11-16T08:00 (local, or with a zone), now+10m or @1700000000.",
    ),
    "array": (
        ("--array",),
        {"metavar": "SPEC"},
        "Make each command an array of jobs: 1-100, 0-99:2, 1,3,7-9; append %5 to run at most five at once.",
    ),
    "array_file": (
        ("--array-file",),
        {"metavar": "PATH"},
        "One job per line of this file; the line is appended to the command, and --array selects lines.",
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
        "Also wait for jobs that join a group later (default: yes).",
    ),
    "allow_empty_group": (
        ("--allow-empty-group",),
        _FLAG,
        "Wait for a group that nothing has joined yet.",
    ),
    "limits": (
        ("--limit", "limits"),
        {"metavar": "NAME[:N][!]", **_MANY},
        "Take units of a limit (default: 1); with !, exclusively. NAME:N declares a limit that does not exist.",
    ),
    "learn": (
        ("--learn",),
        {"metavar": "NAME"},
        "Learning group: jobs with similar needs (default: the program's name).",
    ),
    "override": (
        ("--override",),
        {"metavar": "no|higher|always"},
        "Which amounts count: the learned ones (no), the higher of learned and given (higher), or the given ones "
        "(always). Without it, given amounts are lower bounds, and the others are learned.",
    ),
    "input_bytes": (
        ("--input-bytes",),
        {"metavar": "SIZE"},
        "Size of the input, used to predict what the job needs; a plain number is bytes.",
    ),
    "input_file": (("--input-file",), {"metavar": "PATH"}, "File whose size is that of the input."),
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
        "Do not retry an attempt that ran longer than this.",
    ),
    "retry_on": (
        ("--retry-on",),
        {"metavar": "CODE", **_MANY},
        "Retry only attempts that ended for one of these reasons: exit, signal, memory, time, walltime, disk, "
        "lost, not_found, output_file (default: all but walltime, if another attempt can help).",
    ),
    "pipefail": (
        ("--pipefail/--no-pipefail",),
        {"default": None},
        "Fail if any part of a pipeline fails (default: no).",
    ),
    "on_success": (
        ("--on-success",),
        {"metavar": "WHAT", **_MANY},
        "When the job is complete: 'run: CMD', 'cleanup' of its scratch directory, or 'remove'.",
    ),
    "on_failure": (("--on-failure",), {"metavar": "WHAT", **_MANY}, "The same, when an attempt has failed."),
    "on_exit": (
        ("--on-exit",),
        {"metavar": "WHAT", **_MANY},
        "The same, after every attempt and after the others.",
    ),
    "stdout": (
        ("-o", "--stdout"),
        {"metavar": "FILE"},
        "Write stdout to this file; %j id, %A array, %a index, %x name, %u user, %N host (default: kept by Rota).",
    ),
    "stderr": (("-e", "--stderr"), {"metavar": "FILE"}, "The same for stderr."),
    "job_key": (
        ("--job-key",),
        {"metavar": "FILE"},
        "File with a key that lets its holder enter the job with 'rota exec --job-key'; created if missing.",
    ),
    "checkpoint": (
        ("--checkpoint",),
        {"metavar": "TIME"},
        "Send --signal this long before the walltime is over, and before a preemption.",
    ),
    "signal": (
        ("--signal",),
        {"metavar": "SIGNAL"},
        "The signal that asks the job for a checkpoint (default: USR2).",
    ),
    "rerun": (
        ("--rerun",),
        _FLAG,
        "Run ended jobs again, as new jobs that replace them. Other jobs are left alone.",
    ),
    "once": (("--once",), _FLAG, "With a command after --: do not add it twice."),
    "allow_unsatisfiable": (
        ("--allow-unsatisfiable",),
        _FLAG,
        "Accept jobs that no host can run now.",
    ),
}

NAMES: Final = tuple(_OPTIONS)


def job_options(function: F) -> F:
    """Decorator: add the options of all fields."""
    return options_for(NAMES)(function)


def options_for(names: Collection[str], *, hidden: Collection[str] = ()) -> Callable[[F], F]:
    """Decorator: add the options of these fields; `hidden` ones are parsed, to be refused with a good message."""

    def decorate(function: F) -> F:
        for name in reversed(NAMES):
            if name in names or name in hidden:
                words, attributes, text = _OPTIONS[name]
                function = click.option(*words, **attributes, help=text, hidden=name not in names)(function)
        return function

    return decorate


def given(options: dict[str, Any]) -> dict[str, object]:
    """Remove the job options from a command's arguments; returns the given ones."""
    found = {name: options.pop(name) for name in NAMES if name in options}
    return {name: value for name, value in found.items() if value is not None and value != ()}


#: Of commands that take an input.
input_option: Final = click.option(
    "--input",
    "source",
    metavar="NAME",
    help="Name of this input, instead of its path; adding it again replaces jobs that did not complete.",
)
