"""Tries the admission rules of a site on a job. Needs only the records of the site; nothing is submitted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from rota.client.fields.new_spec import new_spec
from rota.client.submission import base_wanted
from rota.core.admission.admission_rules import Verdict
from rota.core.admission.rule_facts import SubmissionContext
from rota.core.admission.rule_syntax import shown_value
from rota.core.admission.rulebook import Rulebook
from rota.core.jobs.job import Spec
from rota.errors import BadInput
from rota.plan.language import expression
from rota.plan.language.request_parser import check_alternative, parse_request
from rota.plan.site.records import kinds_of, levels_of
from rota.users import groups_of
from rota.wire.specs import spec_from
from rota.wire.views import SizeView, size_view

#: The kinds of records that a trial needs.
KINDS = ("rule", "queue", "setting", "property")

Records = Mapping[str, dict[str, Any]]


class RuleStep(Struct, rename={"old": "from", "new": "to"}):
    """What a rule changed."""

    rule: str
    action: str
    field: str
    old: Any
    new: Any


class TriedJob(Struct):
    """What the job would have."""

    user: str
    queue: str
    project: str
    name: str
    type: list[str]
    priority: int
    walltime_s: float | None
    request: list[str] | None
    size: SizeView
    retries: int
    retry_on: list[str] | None = None
    where: str = ""
    pool: str = ""


class TrialView(Struct):
    """Would it be taken in, by which rules was it changed, and what would it be?"""

    admitted: bool
    rejected_by: str | None
    message: str | None
    matched: list[str]
    changes: list[RuleStep]
    job: TriedJob


class RuleTrial(Struct):
    """The outcome of admission for one job."""

    spec: Spec  #: as admission would accept it
    verdict: Verdict
    error: str  #: why it is refused
    rejected_by: str  #: by which rule; empty: by none

    def view(self) -> TrialView:
        spec, verdict = self.spec, self.verdict
        steps = [
            RuleStep(
                each.rule,
                each.does,
                each.field,
                shown_value(each.field, each.old),
                shown_value(each.field, each.new),
            )
            for each in verdict.steps
        ]
        job = TriedJob(
            spec.user, spec.queue, spec.project, spec.name, list(spec.types), spec.priority, spec.walltime_s,
            list(spec.request) or None, size_view(spec.size), spec.retries,
            None if spec.retry_on is None else list(spec.retry_on), spec.where, spec.pool,
        )  # fmt: skip
        return TrialView(
            not self.error, self.rejected_by or None, self.error or None, list(verdict.matched), steps, job
        )


def try_rules(
    records: Records,
    fields: dict[str, Any],
    *,
    user: str,
    interactive: bool,
    system: bool,
    reservations: int,
    text: bool = True,
    admin: bool = False,
    unix_groups: Sequence[str] | None = None,
) -> RuleTrial:
    """Judge a job with the fields of `rota add`, as admission does it. `text`: they are words of the command line;
    `unix_groups`: of the user, None: those that this machine knows.

    Raises `BadInput` if they are no job, whatever the rules say.
    """
    spec = spec_from(new_spec(base_wanted(fields, text=text), 0), (), user=user, env=0)
    if interactive:
        spec = msgspec.structs.replace(spec, interactive=True)
    _check_words(spec, records)
    by = SubmissionContext(admin, groups_of(user) if unix_groups is None else tuple(unix_groups))
    judged = Rulebook(records, system=system).judge(spec, reservations=reservations, by=by)
    error, verdict, rule = judged.error, judged.verdict, judged.rejected_by
    said = "" if error is None else verdict.message if rule else str(error)
    return RuleTrial(judged.spec, verdict, said, rule)


def _check_words(spec: Spec, records: Records) -> None:
    """Raise `BadInput` for levels and properties that the site has not."""
    kinds, levels = kinds_of(records), levels_of(records)
    field = "request"
    try:
        for written in spec.request:
            check_alternative(parse_request(written), written, levels=levels, kinds=kinds)
        field = "where"
        if spec.where:
            expression.check(expression.parse(spec.where), kinds)
    except BadInput as error:
        raise error.at(field=field) from None
