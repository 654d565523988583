"""What a job in a delegated pool may ask for: a size on one host, and units of limits of the whole deployment. The
machines belong to another engine, which does not know our resources, reservations and plans.
"""

from __future__ import annotations

from typing import Final

import msgspec

from rota.core.jobs.job import Spec
from rota.errors import BadInput
from rota.plan.ask import Request, planned_type
from rota.plan.language.request import Alternative
from rota.plan.language.request_parser import parse_request
from rota.plan.policy.limits import Limits
from rota.plan.size import CORE

_HOSTS: Final = ("host", "node", "nodes")
_HINT: Final = "leave it out, or name another pool, such as local or nodes"


def delegated(spec: Spec) -> Spec:
    """The specification of a job that names a delegated pool: a request for cores of one host becomes its size.

    Raises `BadInput` for what only a planned pool can do.
    """
    if spec.request:
        spec = _of_one_host(spec)
    found = unfit(spec)
    if found is not None:
        field, why = found
        raise BadInput(f"pool '{spec.pool}' belongs to another engine: {why}", field=field, hint=_HINT)
    return spec


def unfit(request: Request) -> tuple[str, str] | None:
    """Why jobs like this cannot run in a delegated pool: the field, and a sentence; None: they can."""
    if request.at is not None:
        return "at", "it grants no reservations"
    if request.request:
        return "request", "it has no resources that could be requested one by one"
    if request.where:
        return "where", "it has no properties"
    if word := planned_type(request):
        return "type", f"it plans nothing, so it has no jobs of type '{word.partition('=')[0]}'"
    return None


def of_hosts(request: Request, limits: Limits) -> str:
    """The first per-host limit of the job; empty: it has none. Such limits mean nothing on hosts of another
    engine."""
    return next((use.name for use in request.limits if limits.per_host(use.name)), "")


def _of_one_host(spec: Spec) -> Spec:
    """Write a request for cores of one host as a size. Raises `BadInput` for any other."""
    if len(spec.request) > 1:
        raise _refused(spec, "there is no choice between alternatives")
    alternative = parse_request(spec.request[0])
    cores = _cores(alternative)
    if cores is None:
        raise _refused(spec, "a request there is a number of cores on one host")
    walltime_s = alternative.walltime_s or spec.walltime_s
    size = msgspec.structs.replace(spec.size, cpus=cores * CORE)
    return msgspec.structs.replace(spec, request=(), size=size, walltime_s=walltime_s)


def _cores(alternative: Alternative) -> int | None:
    """The number of cores on one host that the request asks for; None: it asks for something else."""
    if len(alternative.groups) != 1 or alternative.groups[0].where:
        return None
    levels = list(alternative.groups[0].levels)
    if levels and levels[0].name in _HOSTS and levels[0].number == 1:
        levels = levels[1:]
    if len(levels) != 1 or levels[0].name != "core" or not isinstance(levels[0].number, int):
        return None
    return levels[0].number


def _refused(spec: Spec, why: str) -> BadInput:
    return BadInput(
        f"pool '{spec.pool}' belongs to another engine: {why}",
        field="request",
        hint="ask for one host, such as nodes=1/core=4, or name another pool, such as nodes",
    )
