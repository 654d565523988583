"""The syntax of quota rules: `queue,project,type,user: [resources, jobs, resource-hours]`.

Each of the four fields is a name, `*` for all together, or `/` for each separately. A value is a number, `ALL`
(the resources of the site) or a fraction such as `0.5*ALL`; -1, or a missing value, is no limit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import product
from math import isfinite
from typing import Final, NamedTuple

from rota.errors import BadInput
from rota.plan.ask import Ask
from rota.plan.language.type_parser import TYPES, is_free
from rota.plan.language.types import Types
from rota.plan.policy.policy import BESTEFFORT
from rota.plan.site.clock import SECOND

TOGETHER: Final = "*"
EACH: Final = "/"
NO_LIMIT: Final = -1

NO_QUOTAS: Final = "no_quotas"
TYPE_NAMES: Final = frozenset(TYPES)

FIELDS: Final = ("queue", "project", "type", "user")
_VALUES: Final = ("resources", "jobs", "resource-hours")
_SHARE: Final = re.compile(r"(?:(\d{1,9}(?:\.\d{1,9})?)\s*\*\s*)?ALL", re.ASCII | re.IGNORECASE)
_NO_TYPES: Final[frozenset[str]] = frozenset()
_PLAIN: Final = Types()

Pattern = tuple[str, str, str, str]


class QuotaSubject(NamedTuple):
    """The fields of a job that quotas match."""

    queue: str = "default"
    project: str = ""
    types: frozenset[str] = _NO_TYPES
    user: str = ""


def quota_subject(ask: Ask) -> QuotaSubject:
    """The job's queue, project, types and user."""
    return QuotaSubject(ask.queue, ask.project, type_names(ask.types), ask.user)


def type_names(types: Types) -> frozenset[str]:
    """The names of a job's types; the site's own types without their values."""
    if types == _PLAIN:
        return _NO_TYPES
    free = (word.partition("=")[0] for word in types.free)
    return frozenset((*(name for name in TYPE_NAMES if _has(getattr(types, name))), *free))


def _has(value: object) -> bool:
    """Is the type set? A time of 0 counts."""
    return value is not None and value is not False and value != ""


class QuotaRule(NamedTuple):
    """One quota rule, permanent or of a rule set of the calendar. -1: no limit."""

    pattern: Pattern
    set: str  #: of the calendar; empty: it applies always
    resources: int
    jobs: int
    area: int  #: resources × microseconds
    hours: float  #: the same, as it was written

    def __str__(self) -> str:
        key = ",".join(self.pattern)
        return f"{key} of '{self.set}'" if self.set else key

    def tight(self, resources: int, jobs: int, length: int) -> bool:
        """Could so many jobs of this size alone exceed it?"""
        return (
            0 <= self.resources < resources
            or 0 <= self.jobs < jobs
            or (0 <= self.area < resources * length and resources > 0)
        )


def parse_rules(rules: Mapping[str, Sequence[float | str]], *, total: int, name: str = "") -> list[QuotaRule]:
    """The rules of one set. `total`: the number of resources, for ALL. Raises `BadInput`."""
    return [_parse_rule(key, values, total=total, name=name) for key, values in rules.items()]


def _parse_rule(key: str, values: object, *, total: int, name: str) -> QuotaRule:
    quota = f"quota '{key}'" + (f" of '{name}'" if name else "")
    parts = [part.strip() for part in key.split(",")]
    if len(parts) != len(FIELDS):
        raise BadInput(
            f"{quota} has {len(parts)} parts, not queue,project,type,user", hint="write it like '*,*,*,/'"
        )
    for field, part in zip(FIELDS, parts, strict=True):
        if not part:
            raise BadInput(f"{quota}: its {field} is empty", hint="write a name, * for all together or / for each")
    if parts[2] == NO_QUOTAS:
        raise BadInput(f"{quota}: jobs of type '{NO_QUOTAS}' are in no quota", hint="name another type")
    if parts[2] not in (TOGETHER, EACH) and parts[2] not in TYPE_NAMES and not is_free(parts[2]):
        hint = f"types are {', '.join(sorted(TYPE_NAMES - {NO_QUOTAS}))}, and type:NAME for one of the site's own"
        raise BadInput(f"{quota}: no type '{parts[2]}'", hint=hint)
    if isinstance(values, str) or not isinstance(values, Sequence) or not 1 <= len(values) <= len(_VALUES):
        raise BadInput(
            f"{quota}: {values!r} is not [resources, jobs, resource-hours]", hint="write it like [16, -1, -1]"
        )
    padded = [*values, *[NO_LIMIT] * (len(_VALUES) - len(values))]
    limits = [
        _parse_value(value, f"{quota}, {what}", total=total) for what, value in zip(_VALUES, padded, strict=True)
    ]
    for what, limit in zip(_VALUES[:2], limits, strict=False):
        if limit != int(limit):
            raise BadInput(f"{quota}, {what}: {limit:g} is not a whole number", hint=f"write {int(limit)}")
    resources, jobs, hours = limits
    area = NO_LIMIT if hours == NO_LIMIT else round(hours * 3600 * SECOND)
    pattern = (parts[0], parts[1], parts[2], parts[3])
    return QuotaRule(pattern, name, int(resources), int(jobs), area, hours)


def _parse_value(value: object, where: str, *, total: int) -> float:
    if isinstance(value, str) and (match := _SHARE.fullmatch(value.strip())):
        return int(Fraction(match[1] or 1) * total)
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise BadInput(f"{where}: {value!r} is not a number", hint="write a number, ALL, 0.5*ALL, or -1 for none")
    if value < 0 and value != NO_LIMIT:
        raise BadInput(f"{where}: {value:g} is negative", hint="write -1 for no limit")
    return value


def counters_of(pattern: Pattern, who: QuotaSubject) -> list[Pattern]:
    """The counters in which a rule counts such a job; empty if the rule does not match it.

    Containers are not counted, but their inner jobs are. Exempt jobs are not counted. Besteffort jobs are counted
    in their own queue only, never under `*`.
    """
    if "container" in who.types or NO_QUOTAS in who.types:
        return []
    if pattern[0] == TOGETHER and (who.queue == BESTEFFORT or BESTEFFORT in who.types):
        return []
    names: list[list[str]] = []
    for part, values in zip(pattern, ((who.queue,), (who.project,), sorted(who.types), (who.user,)), strict=True):
        if part == TOGETHER:
            names.append([TOGETHER])
        elif part == EACH:
            # Marked, so that a user named * is not taken for all users.
            names.append([EACH + value for value in values])
        else:
            names.append([part] if part in values else [])
    return [(queue, project, kind, user) for queue, project, kind, user in product(*names)]
