"""Specifications as admission rules see them: converted to facts, and back with what the rules changed."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import msgspec
from msgspec import Struct

from rota.core.admission.admission_rules import JobFacts
from rota.core.jobs.as_written import AsWritten
from rota.core.jobs.job import Spec
from rota.core.jobs.report_groups import names_of
from rota.errors import BadInput
from rota.plan.language import expression
from rota.plan.language.request import Alternative
from rota.plan.language.request_parser import parse_request, request_text
from rota.plan.language.type_parser import parse_types, type_words


class SubmissionContext(Struct, frozen=True):
    """What rules may know of a submission besides its specifications."""

    admin: bool = False  #: it comes from an administrator
    unix_groups: tuple[str, ...] = ()  #: of the user
    exempt: bool = False  #: the job is exempt from quotas already
    queue: str = ""  #: the present queue of a job that is modified


ANY_USER: Final = SubmissionContext()
ADMINISTRATOR: Final = SubmissionContext(admin=True)


def facts_of(
    spec: Spec, *, reservations: int = 1, system: bool = False, by: SubmissionContext = ANY_USER
) -> JobFacts:
    """A specification as rules see it. Raises `BadInput` for a request that cannot be read."""
    alternatives = _alternatives(spec)
    wheres = dict.fromkeys(group.where for each in alternatives for group in each.groups)
    return JobFacts(
        user=spec.user,
        queue=spec.queue,
        project=spec.project,
        group=names_of(spec.group),
        name=spec.name,
        type=spec.types,
        walltime=spec.walltime_s,
        priority=spec.priority,
        cpus=spec.size.cpus,
        mem=spec.size.mem,
        disk=spec.size.disk,
        time=spec.size.time_s,
        gpus=spec.size.gpus,
        retries=spec.retries,
        retry_on=spec.retry_on,
        given=spec.given,
        uses=tuple(
            dict.fromkeys(level.name for each in alternatives for group in each.groups for level in group.levels)
        ),
        walltimes=tuple(each.walltime_s for each in alternatives),
        interactive=spec.interactive,
        reservation=spec.at is not None,
        reservations=reservations if spec.at is not None else 0,
        system=system,
        where=_where(spec) if spec.where else "",
        wheres=tuple(where for where in wheres if where),
        unix_group=by.unix_groups,
        admin=by.admin,
        pool=spec.pool,
    )


def _where(spec: Spec) -> str:
    try:
        return expression.text(expression.parse(spec.where))
    except BadInput as error:
        raise error.at(field="where") from None


def respecified(spec: Spec, facts: JobFacts) -> Spec:
    """The specification as the rules want it."""
    size = msgspec.structs.replace(
        spec.size, cpus=facts.cpus, mem=facts.mem, disk=facts.disk, time_s=facts.time, gpus=facts.gpus
    )
    request = spec.request
    if request:
        read = _alternatives(spec)
        request = tuple(
            text if each.walltime_s == own else request_text(msgspec.structs.replace(each, walltime_s=own))
            for text, each, own in zip(spec.request, read, facts.walltimes, strict=True)
        )
    found = msgspec.structs.replace(
        spec,
        queue=facts.queue,
        project=facts.project,
        name=facts.name,
        types=spec.types if facts.type == spec.types else _ordered(facts.type),
        walltime_s=facts.walltime,
        priority=facts.priority,
        size=size,
        retries=facts.retries,
        retry_on=facts.retry_on,
        given=tuple(word for word in ("mem", "disk", "time") if word in facts.given),
        request=request,
        where=facts.where if spec.where == "" or facts.where != _where(spec) else spec.where,
        pool=facts.pool,
    )
    wish = spec.wrote or _wrote(spec)
    return msgspec.structs.replace(found, wrote=None if wish == _wrote(found) else wish)


def _wrote(spec: Spec) -> AsWritten:
    return AsWritten(spec.size, spec.walltime_s, spec.given, spec.request, spec.priority)


def _ordered(types: tuple[str, ...]) -> tuple[str, ...]:
    """The types in canonical order. Raises `BadInput` if they contradict each other."""
    try:
        return type_words(parse_types(types))
    except BadInput as error:
        raise error.at(field="type") from None


_parse = lru_cache(maxsize=4096)(parse_request)


def _alternatives(spec: Spec) -> list[Alternative]:
    try:
        return [_parse(text) for text in spec.request]
    except BadInput as error:
        raise error.at(field="request") from None
