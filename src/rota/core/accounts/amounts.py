"""What a job asked for and what an attempt of it was given, each by itself.

Asked is what somebody wrote: nothing (None) where a default stands in, and not what the rules of the site made of
it. Given is what an attempt was started with. Whoever shows or adds up one of them asks here. (What was learned is
`core.learning.sizing`'s; what was used is measured by the runner.)
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from rota.core.jobs.job import Spec, Wrote
from rota.plan.language.request_parser import parse_request
from rota.plan.placement import Given
from rota.plan.size import CORE, Size


class Asked(NamedTuple):
    """What was asked for; None: nothing."""

    cpus: int | None  #: hundredths of cores in all; None: a request says it in other words, like whole hosts
    mem: int | None  #: with a request, on each host
    disk: int | None
    time_s: float | None  #: an estimate
    walltime_s: float | None  #: a limit


def asked_of(spec: Spec, given: Given | None = None) -> Asked:
    """What was written in the specification; of alternatives that differ that which was `given`, if any."""
    wish = spec.wrote or spec
    return Asked(
        cpus=_cores(wish.request) if wish.request else wish.size.cpus,
        mem=wish.size.mem if "mem" in wish.given else None,
        disk=wish.size.disk if "disk" in wish.given else None,
        time_s=wish.size.time_s if "time" in wish.given else None,
        walltime_s=_walltime(wish, given),
    )


def asked_s(spec: Spec, given: Given | None) -> float | None:
    """For how long it was asked: the walltime, else the estimate; None: nobody said."""
    wish = spec.wrote or spec
    walltime_s = wish.walltime_s if not wish.request else _walltime(wish, given)
    if walltime_s is not None:
        return walltime_s
    return wish.size.time_s if "time" in wish.given else None


def observed_asked(spec: Spec, given: Given | None) -> tuple[int | None, int | None, float | None]:
    """Memory, disk and time of `asked_of`, as an observation has them: for the end of every attempt."""
    wish = spec.wrote or spec
    said, size = wish.given, wish.size
    if not said and not wish.request:
        return None, None, wish.walltime_s
    return size.mem if "mem" in said else None, size.disk if "disk" in said else None, asked_s(spec, given)


def limit_of(spec: Spec, given: Given | None) -> float | None:
    """The walltime that an attempt was given; None: nothing ends it."""
    return given.walltime_s if given is not None and given.walltime_s is not None else spec.walltime_s


def given_s(spec: Spec, size: Size, given: Given | None) -> float:
    """For how long an attempt was given its cores: its walltime, else the time it was expected to take."""
    if given is not None and given.walltime_s is not None:
        return given.walltime_s or size.time_s
    return spec.walltime_s or size.time_s


def cores_of(size: Size, given: Given | None) -> int:
    """Hundredths of cores that an attempt holds."""
    if given is None or not given.nodes:
        return size.cpus
    if len(given.nodes) == 1 and not given.elsewhere:
        return given.size.cpus  # perhaps a part of a core
    return CORE * sum(cores for _host, cores in given.nodes)


def walltime_of(spec: Spec) -> float | None:
    """For how long a job may run at most, of several alternatives the longest; None: as long as it likes."""
    return _longest(spec.request, spec.walltime_s) if spec.request else spec.walltime_s


def _walltime(wish: Spec | Wrote, given: Given | None) -> float | None:
    if not wish.request:
        return wish.walltime_s
    if given is not None and given.walltime_s in _walltimes(wish.request, wish.walltime_s):
        return given.walltime_s
    return _longest(wish.request, wish.walltime_s)


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
    """How many cores a request is, if it counts them and all its alternatives agree."""
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
