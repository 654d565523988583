"""The rulebook of a site: its queues and admission rules, applied to specifications.

Rules look at specifications, never at single jobs, so what many jobs share is judged once.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import msgspec
from msgspec import Struct

from rota.core.admission.admission_rules import LAST_QUEUE, AdmissionRule, FieldChange, Verdict, judge
from rota.core.admission.rule_facts import ANY_USER, SubmissionContext, facts_of, respecified
from rota.core.admission.rule_records import rules_of
from rota.core.admission.rule_syntax import shown_value
from rota.core.admission.spec_checks import check_fields, check_spec
from rota.core.admission.terms import agreed
from rota.core.jobs.job import Spec
from rota.core.site.policy import queues_of
from rota.errors import BadInput
from rota.plan.policy.policy import BESTEFFORT, Queue
from rota.plan.policy.quota_rules import NO_QUOTAS
from rota.plan.site.records import Records, levels_of

_COUNTED: Final = "reservations_over"
_UNIX_GROUP: Final = "unix_group"
#: Prefix in place of a rule's name, for a change made by the queue itself.
_OF_QUEUE: Final = "queue:"


class Admitted(Struct, frozen=True):
    """A specification as it is taken in."""

    spec: Spec
    notices: tuple[str, ...] = ()  #: what the rules reduced of the user's wishes


class Judged(Struct, frozen=True, kw_only=True):
    """What the rules make of a specification."""

    spec: Spec  #: as it would be taken in; if it is refused, as far as that was decided
    verdict: Verdict
    error: BadInput | None = None  #: why it is refused
    rejected_by: str = ""  #: the rule that refuses it; empty: nothing does, or something before the rules


class Rulebook:
    """Queues and rules as records of a site have them."""

    def __init__(self, records: Records, *, system: bool = False, pools: Collection[str] | None = None) -> None:
        """`pools`: the names of all pools; None: they are not known here, and any is taken."""
        self.queues: dict[str, Queue] = queues_of(records)
        self.rules: list[AdmissionRule] = rules_of(records)
        self.counts_reservations = any(_COUNTED in rule.match for rule in self.rules)
        self.asks_for_unix_groups = any(_UNIX_GROUP in rule.match for rule in self.rules)
        self._levels = levels_of(records)
        self._walltimes = {name: s for name, queue in self.queues.items() if (s := queue.walltime_s) is not None}
        self._system = system
        self._pools = pools
        self._plain = self._find_plain()

    def _find_plain(self) -> dict[str, str]:
        """Asked queue → queue, where the rules change nothing else of jobs without request, types and reservation.
        Most jobs are such, and a submission may have a hundred thousand specifications."""
        may_match = [rule for rule in self.rules if not _passes_by(rule, system=self._system)]
        if any(rule.match or rule.does != "default" or rule.values.keys() != {"queue"} for rule in may_match):
            return {}
        known = {name: name for name in self.queues if name != BESTEFFORT}
        first = next((str(rule.values["queue"]) for rule in may_match), LAST_QUEUE)
        known |= {"": first} if first in known else {}
        limited = {name for name, each in self.queues.items() if _is_limited(each)}
        limited |= self._walltimes.keys()
        return {asked: name for asked, name in known.items() if name not in limited}

    def judge(self, spec: Spec, *, reservations: int = 1, by: SubmissionContext = ANY_USER) -> Judged:
        """What the rules make of a specification. `reservations`: the user's that would wait, with this one.

        The one entry for adding, modifying and planning jobs and for `rota rule test`. The number of reservations
        can only lead to a refusal, since jobs share specifications. Raises `BadInput` for an invalid job, even if
        the rules would accept it.
        """
        check_fields(spec)
        first = self._judge(spec, 1, by)
        if reservations > 1 and spec.at is not None and self.counts_reservations and first.error is None:
            counted = self._judge(spec, reservations, by)
            return first if counted.error is None else counted
        return first

    def _judge(self, spec: Spec, reservations: int, by: SubmissionContext) -> Judged:
        self._check_pool(spec)
        found = spec = agreed(spec)
        facts = facts_of(spec, reservations=reservations, system=self._system, by=by)
        verdict = judge(self.rules, facts, queue_walltimes=self._walltimes, levels=self._levels)
        if not by.admin:
            verdict = self._capped(verdict)
        error: BadInput | None = None
        rejected_by = ""
        try:
            self._refuse_queue(spec, by)
            found = respecified(spec, verdict.facts)
            _refuse_exemption(spec, by)
            rejected_by = verdict.rejected_by
            refuse(verdict)
            self._check_pool(found)
            found = agreed(found)
            if found.interactive and found.retries:  # its user is not there for another attempt
                found = msgspec.structs.replace(found, retries=0)
            self.check_queue(found, stays_in=by.queue)
            check_spec(found, checked=spec)
        except BadInput as refused:
            error = refused
        return Judged(spec=found, verdict=verdict, error=error, rejected_by=rejected_by)

    def admit(self, spec: Spec, by: SubmissionContext = ANY_USER) -> Admitted:
        """The specification as it is taken in. Raises `BadInput` if it is invalid or refused."""
        if not (spec.request or spec.types or spec.where or spec.interactive or spec.pool) and spec.at is None:
            queue = self._plain.get(spec.queue)
            if queue is not None:
                check_spec(spec)
                return Admitted(spec if queue == spec.queue else msgspec.structs.replace(spec, queue=queue))
        judged = self.judge(spec, by=by)
        if judged.error is not None:
            raise judged.error
        return Admitted(judged.spec, notices(judged.verdict))

    def _refuse_queue(self, spec: Spec, by: SubmissionContext) -> None:
        """Raise `BadInput` if a user names a queue that is for administrators. Rules may put the job there."""
        queue = self.queues.get(spec.queue)
        if queue is not None and queue.admins_only and not by.admin and by.queue != spec.queue:
            raise BadInput(
                f"only administrators may use queue '{spec.queue}'",
                field="queue",
                hint="leave it out, or ask an administrator",
                code="denied",
            )

    def _capped(self, verdict: Verdict) -> Verdict:
        """No higher priority than the queue allows."""
        facts = verdict.facts
        queue = self.queues.get(facts.queue)
        most = queue.max_priority if queue is not None else None
        if most is None or facts.priority <= most:
            return verdict
        step = FieldChange(f"{_OF_QUEUE}{facts.queue}", "cap", "priority", facts.priority, most, warn=True)
        return msgspec.structs.replace(
            verdict, facts=msgspec.structs.replace(facts, priority=most), steps=(*verdict.steps, step)
        )

    def _check_pool(self, spec: Spec) -> None:
        """Raise `BadInput` if there is no such pool."""
        if spec.pool and self._pools is not None and spec.pool not in self._pools:
            names = ", ".join(self._pools)
            raise BadInput(f"there is no pool '{spec.pool[:64]}'", field="pool", hint=f"use one of {names}")

    def check_queue(self, spec: Spec, *, stays_in: str = "") -> None:
        """Raise `BadInput` if there is no such queue, or if it is closed and the job is not in it yet."""
        queue = self.queues.get(spec.queue)
        if queue is None:
            names = ", ".join(self.queues)
            raise BadInput(f"there is no queue '{spec.queue[:64]}'", field="queue", hint=f"use one of {names}")
        if queue.closed and spec.queue != stays_in:
            why = f": {queue.closed_reason}" if queue.closed_reason else ""
            hint = "give another one, or wait until it is open; see 'rota queue list'"
            raise BadInput(f"queue '{spec.queue}' is closed{why}", field="queue", hint=hint)


def _is_limited(queue: Queue) -> bool:
    """Does the queue refuse some jobs, or limit their priority?"""
    return queue.closed or queue.admins_only or queue.max_priority is not None


def _passes_by(rule: AdmissionRule, *, system: bool) -> bool:
    """Is it a rule that never matches jobs without request, types and reservation?"""
    match = rule.match
    if match.get("reservation") is True or match.get("interactive") is True:
        return True
    if match.get("system") is (not system):
        return True
    named = (match.get("uses"), match.get("type"))
    return any(isinstance(words, tuple) and not words[0].startswith("!") for words in named)


def _refuse_exemption(spec: Spec, by: SubmissionContext) -> None:
    """Raise `BadInput` if a user exempts a job from quotas without permission."""
    if NO_QUOTAS in spec.types and not (by.admin or by.exempt):
        raise BadInput(
            f"only an administrator or a rule may give '{NO_QUOTAS}'",
            field="type",
            hint="leave it out, or ask an administrator",
        )


def refuse(verdict: Verdict) -> None:
    """Raise `BadInput` if a rule has refused the job."""
    if verdict.rejected_by:
        raise BadInput(
            f"{verdict.message} (rule '{verdict.rejected_by}')",
            hint=f"see 'rota rule show {verdict.rejected_by}'",
        )


def notices(verdict: Verdict) -> tuple[str, ...]:
    """One notice for each wish of the user that the rules reduced."""
    return tuple(
        f"{step.field} {shown_value(step.field, step.old)} is more than allowed; "
        f"it is {shown_value(step.field, step.new)} ({_source(step)})"
        for step in verdict.steps
        if step.warn
    )


def _source(step: FieldChange) -> str:
    if step.rule.startswith(_OF_QUEUE):
        return f"queue '{step.rule.removeprefix(_OF_QUEUE)}'"
    return f"rule '{step.rule}'"
