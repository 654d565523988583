"""What a job asked for, and what an attempt was given: the only place that defines them.

Asked is what the user wrote: None where a default applies, and before the site's rules changed it. Given is what
an attempt started with. Learned sizes are in `core.learning.sizing`; used amounts are measured by the runner.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from rota.core.jobs.as_written import AsWritten
from rota.core.jobs.job import Spec
from rota.plan.language.request_parser import parse_request
from rota.plan.placement.given import Given
from rota.plan.size import CORE, Size


class AskedAmounts(NamedTuple):
    """What was asked for; None: nothing."""

    cpus: int | None  #: hundredths of cores in all; None: a request that does not count cores, such as whole hosts
    mem: int | None  #: with a request, per host
    disk: int | None
    time_s: float | None  #: estimate
    walltime_s: float | None  #: limit


def asked_of(spec: Spec, given: Given | None = None) -> AskedAmounts:
    """What the user wrote; among differing alternatives, the one that was `given`."""
    written = spec.wrote or spec
    return AskedAmounts(
        cpus=_cores(written.request) if written.request else written.size.cpus,
        mem=written.size.mem if "mem" in written.given else None,
        disk=written.size.disk if "disk" in written.given else None,
        time_s=written.size.time_s if "time" in written.given else None,
        walltime_s=_walltime(written, given),
    )


def asked_s(spec: Spec, given: Given | None) -> float | None:
    """The time asked for: the walltime, else the estimate; None: neither."""
    written = spec.wrote or spec
    walltime_s = written.walltime_s if not written.request else _walltime(written, given)
    if walltime_s is not None:
        return walltime_s
    return written.size.time_s if "time" in written.given else None


def observed_asked(spec: Spec, given: Given | None) -> tuple[int | None, int | None, float | None]:
    """Memory, disk and time as in `asked_of`, for an observation. Fast: called at the end of every attempt."""
    written = spec.wrote or spec
    given_fields, size = written.given, written.size
    if not given_fields and not written.request:
        return None, None, written.walltime_s
    return (
        size.mem if "mem" in given_fields else None,
        size.disk if "disk" in given_fields else None,
        asked_s(spec, given),
    )


def attempt_walltime(spec: Spec, given: Given | None) -> float | None:
    """The walltime of an attempt; None: none."""
    return given.walltime_s if given is not None and given.walltime_s is not None else spec.walltime_s


def given_s(spec: Spec, size: Size, given: Given | None) -> float:
    """The time an attempt was given its cores for: its walltime, else its expected duration."""
    if given is not None and given.walltime_s is not None:
        return given.walltime_s or size.time_s
    return spec.walltime_s or size.time_s


def cores_of(size: Size, given: Given | None) -> int:
    """Hundredths of cores that an attempt holds."""
    if given is None or not given.nodes:
        return size.cpus
    if len(given.nodes) == 1 and not given.elsewhere:
        return given.size.cpus  # it may be a fraction of a core
    return CORE * sum(cores for _host, cores in given.nodes)


def walltime_of(spec: Spec) -> float | None:
    """The walltime of a job, the longest of its alternatives; None: none."""
    return _longest(spec.request, spec.walltime_s) if spec.request else spec.walltime_s


def _walltime(written: Spec | AsWritten, given: Given | None) -> float | None:
    if not written.request:
        return written.walltime_s
    if given is not None and given.walltime_s in _walltimes(written.request, written.walltime_s):
        return given.walltime_s
    return _longest(written.request, written.walltime_s)


def _longest(request: tuple[str, ...], otherwise: float | None) -> float | None:
    longest = 0.0
    for each in _walltimes(request, otherwise):
        if each is None:
            return None
        longest = max(longest, each)
    return longest


@lru_cache(maxsize=1024)
def _walltimes(request: tuple[str, ...], otherwise: float | None) -> tuple[float | None, ...]:
    return tuple(parse_request(each).walltime_s or otherwise for each in request)


@lru_cache(maxsize=1024)
def _cores(request: tuple[str, ...]) -> int | None:
    """The number of cores of a request, if all alternatives count cores and agree."""
    found = {_counted(each) for each in request}
    return found.pop() if len(found) == 1 else None


def _counted(text: str) -> int | None:
    total = 0
    for group in parse_request(text).groups:
        cores = CORE
        for level in group.levels:
            if not isinstance(level.number, int):
                return None
            cores *= level.number
        if group.levels[-1].name != "core":
            return None
        total += cores
    return total
