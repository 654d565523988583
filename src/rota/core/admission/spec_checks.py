"""Validates specifications, independently of the rules of the site."""

from __future__ import annotations

import re
from typing import Final

from rota.core.attempts.signal_names import signal_name
from rota.core.jobs.job import Spec
from rota.core.jobs.report_groups import MOST as MOST_GROUPS
from rota.core.jobs.report_groups import names_of
from rota.core.site.limits import MOST_UNITS
from rota.errors import BadInput
from rota.plan.language.reading import shown
from rota.plan.language.retry_codes import retry_codes

#: An argument may not be longer than the kernel takes.
MAX_ARGUMENT: Final = 128 * 1024 - 1
LONGEST_NAME: Final = 4096
_LONGEST_PROJECT: Final = 255
_MOST_GROUPS: Final = 1000
_MOST_BEHAVIOURS: Final = 100
#: SHA-256 of the secret of a key.
_HASH: Final = re.compile(r"[0-9a-f]{64}")
_NAMES: Final = ("group", "name", "learn", "stdout", "stderr")


def check_texts(spec: Spec) -> None:
    """Raise `BadInput` for unusable paths and names."""
    if not spec.cwd.startswith("/") or "\0" in spec.cwd or len(spec.cwd) > LONGEST_NAME:
        raise BadInput(f"field 'cwd': {shown(spec.cwd)} is not an absolute path, or a very long one")
    names = names_of(spec.group)
    if not all(names) or len(names) > MOST_GROUPS:
        raise BadInput(f"field 'group': needs names, at most {MOST_GROUPS}")
    if not all(spec.dep_groups) or len(set(spec.dep_groups)) > _MOST_GROUPS:
        raise BadInput(f"field 'dep_groups': needs names, at most {_MOST_GROUPS}")
    for text in (spec.group, spec.name, spec.learn, spec.stdout, spec.stderr, *spec.dep_groups):
        if "\0" in text or len(text) > LONGEST_NAME:
            field = next((name for name in _NAMES if getattr(spec, name) == text), "dep_groups")
            raise BadInput(
                f"field '{field}': {shown(text)} is longer than {LONGEST_NAME} characters or contains a NUL byte",
                hint="give a shorter one",
            )
    # Shares and quotas are given by project.
    if spec.project and (not spec.project.isprintable() or len(spec.project.encode()) > _LONGEST_PROJECT):
        raise BadInput(
            f"field 'project': {shown(spec.project)} is not printable or longer than {_LONGEST_PROJECT} bytes",
            hint="use letters, digits and . _ -",
        )


def check_spec(spec: Spec) -> None:
    """Raise `BadInput` for an invalid specification, from a client or made by rules."""
    size = spec.size
    numbers = (size.cpus, size.mem, size.disk, size.time_s, size.gpus, spec.retries, spec.backoff_s)
    if any(not 0 <= number < 2**62 for number in numbers) or not 0 <= spec.priority <= 255:
        raise BadInput("a size, a priority or a number of retries is out of range")
    if spec.walltime_s is not None and not 0 < spec.walltime_s < 2**53:
        raise BadInput("field 'walltime' is out of range", hint="give a time above 0, or none")
    if spec.interactive and spec.retries:
        raise BadInput("an interactive job is not tried again", hint="leave out its retries")
    if spec.no_retry_over_s is not None and not 0 <= spec.no_retry_over_s < 2**53:
        raise BadInput("field 'no_retry_over' is out of range")
    if spec.retry_on is not None and retry_codes(spec.retry_on) != spec.retry_on:
        raise BadInput("field 'retry_on': its codes are not in order", hint="give each once")
    if spec.checkpoint_s is not None and not 0 < spec.checkpoint_s < 2**53:
        raise BadInput("field 'checkpoint' is out of range", hint="give a time above 0, or none")
    if spec.signal and signal_name(spec.signal) != spec.signal:
        raise BadInput("field 'signal': it is not the name of a signal", hint="write it like USR1")
    check_texts(spec)
    if spec.job_key and not _HASH.fullmatch(spec.job_key):
        raise BadInput("field 'job_key': this is not the hash of a key", hint="give the file of a key")
    if len(spec.limits) > _MOST_GROUPS or any(not 0 < use.units <= MOST_UNITS for use in spec.limits):
        raise BadInput("field 'limits': a number of units is out of range")
    if len({use.name for use in spec.limits}) < len(spec.limits):
        raise BadInput("field 'limits': a limit is named twice")
    if spec.override not in ("", "no", "higher", "always") or not set(spec.given) <= {"mem", "disk", "time"}:
        raise BadInput("field 'override': must be no, higher or always")
    behaviours = (*spec.on_success, *spec.on_failure, *spec.on_exit)
    if len(behaviours) > _MOST_BEHAVIOURS:
        raise BadInput(f"a job has at most {_MOST_BEHAVIOURS} behaviours", hint="put them into a script")
    if "cleanup" in behaviours and not spec.scratch:
        raise BadInput("behaviour 'cleanup' needs 'scratch'", hint="only a private directory is removed")
    for behaviour in behaviours:
        if "\0" in behaviour or len(behaviour.encode()) > MAX_ARGUMENT:
            raise BadInput("a behaviour is too long or contains a NUL byte", hint="put it into a script")
        if behaviour not in ("cleanup", "remove") and not behaviour.startswith("run: "):
            raise BadInput(f"'{behaviour[:40]}' is no behaviour", hint="use 'run: CMD', 'cleanup' or 'remove'")
