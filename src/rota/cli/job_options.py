"""The options of `add` and `run` that give the defaults of the jobs' fields."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS: Final = (
    click.option("-n", "--name", metavar="TEXT", help="A label."),
    click.option("-g", "--group", metavar="TEXT", help="Report group (default: the file's name, or 'default')."),
    click.option("--cwd", metavar="DIR", help="Working directory (default: here)."),
    click.option(
        "--scratch", is_flag=True, help="A new private directory, removed afterwards, with its own TMPDIR."
    ),
    click.option("--env", metavar="K=V", multiple=True, help="Add to the environment, which is captured now."),
    click.option("--cpus", metavar="N", help="Cores; may be 0 or a fraction (default: 1)."),
    click.option("--mem", metavar="SIZE", help="Memory (default: 1G, or less on small machines)."),
    click.option("--disk", metavar="SIZE", help="Disk (default: none)."),
    click.option("--time", metavar="TIME", help="Expected duration; never kills (default: 1h)."),
    click.option("--gpus", metavar="N", help="GPUs (default: 0)."),
    click.option("--walltime", metavar="TIME", help="Hard limit on the duration (default: none)."),
    click.option("--priority", metavar="N", help="0 to 255, higher first (default: 0)."),
    click.option("--project", metavar="TEXT", help="Project to account to."),
    click.option("-q", "--queue", metavar="NAME", help="Queue (default: 'default')."),
    click.option(
        "--after",
        metavar="IDS",
        multiple=True,
        help="Wait for jobs: ids, ranges, afterok:ID (default), afterany:ID, afternotok:ID; with commas.",
    ),
    click.option(
        "--retries", metavar="N", help="Further attempts after a failure (default: 3 with add, 0 with run)."
    ),
    click.option("--backoff", metavar="TIME", help="Wait before a retry; doubles each time (default: 30s)."),
    click.option("--no-retry-over", metavar="TIME", help="Do not retry an attempt that ran longer."),
    click.option("--pipefail", is_flag=True, help="A pipeline fails if any part of it does."),
    click.option("--rerun", is_flag=True, help="Run jobs again that were added before, as new jobs."),
    click.option("--once", is_flag=True, help="With a command after --: not if it was added before."),
    click.option("--allow-unsatisfiable", is_flag=True, help="Keep jobs that no machine could run now."),
)

NAMES: Final = (
    *("name", "group", "cwd", "scratch", "env", "cpus", "mem", "disk", "time", "gpus", "walltime", "priority"),
    *("project", "queue", "after", "retries", "backoff", "no_retry_over", "pipefail", "rerun", "once"),
    "allow_unsatisfiable",
)


def job_options(function: F) -> F:
    """Decorator: add all of them."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def given(options: dict[str, Any]) -> dict[str, object]:
    """Take the job options out of a command's arguments: those that were given."""
    found = {name: options.pop(name) for name in NAMES}
    return {name: value for name, value in found.items() if value not in (None, False, ())}
