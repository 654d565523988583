"""`rota plan`: when and where a job would run, from its specification as a client sends it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from rota.core.asking import ask_of, refuse_unplannable
from rota.core.job import Spec
from rota.core.pausing import why_nothing_starts
from rota.core.world import World
from rota.errors import BadInput, NeverFits
from rota.manager.admission import Admission
from rota.manager.limits import resolve
from rota.manager.specs import check_spec, check_texts, spec_from
from rota.plan.placement import Waits
from rota.plan.whatif import Answer, ask_copy
from rota.wire import messages as m
from rota.wire.views import PlanView, WhyReason

_LONGEST_USER = 256


def question(
    world: World, admission: Admission, ask: m.PlanFor, *, user: str, wall: float, admin: bool = False
) -> Callable[[], PlanView]:
    """Take what must be known from the world now; the answer may be worked out in another thread.

    Raises `BadInput` for a job that would be refused.
    """
    if len(ask.user) > _LONGEST_USER or "\0" in ask.user:
        raise BadInput("field 'user' is too long or contains a NUL byte")
    uses = resolve(ask.spec.limits, world.placement.limits, {})
    wished = spec_from(ask.spec, uses, user=ask.user or user, env=0)
    check_texts(wished)
    admitted = admission.admit(wished, admin=admin)
    spec, notices = admitted.spec, list(admitted.notices)
    check_spec(spec)
    if spec.at is not None:
        admission.refuse_reservation(wished, admission.waiting_reservations(spec.user) + 1, admin=admin)
    try:
        refuse_unplannable(world, spec)
    except NeverFits as never:
        reason = WhyReason(never.code, never.message, [], never.hint or "")
        return lambda: _none(reason, notices)
    stopped = why_nothing_starts(world)
    still = None if stopped is None else WhyReason(stopped.code, stopped.message, [], "rota manager resume")
    if not spec.on_terms and not spec.size.cpus:  # it takes no core, and is in no plan
        alone = _view(Answer(wall, wall + (spec.walltime_s or spec.size.time_s), 0, 0, [], []), spec, wall)
        alone.reason, alone.notices = still, notices
        return lambda: alone
    wanted, planner_of, job = ask_of(spec, spec.size), world.placement.outlook(wall), world.next_job
    planner = planner_of.planner

    def answer() -> PlanView:
        found = ask_copy(planner, wanted, wall, job=job)
        view = _view(found, spec, wall)
        view.reason = still or view.reason
        if found.start is not None:
            view.resources = planner.site.spans(found.resources)
            view.hosts = planner.site.hosts_of(found.resources)
        view.behind, view.notices = planner_of.behind, notices
        return view

    return answer


def _none(reason: WhyReason | None, notices: list[str]) -> PlanView:
    return PlanView(
        start=None, end=None, resources=None, hosts=[], alternative=None, reason=reason, moves=[], notices=notices
    )


def _view(found: Answer, spec: Spec, wall: float) -> PlanView:
    reason = _reason(found.reasons[0]) if found.reasons else None
    view = _none(reason, [])
    view.moves = found.moves
    if found.start is not None:
        view.start, view.end = _time(max(found.start, wall)), _time(found.end)
        view.alternative = found.alternative + 1
        view.request = spec.request[found.alternative] if spec.request else None
    return view


def _reason(waits: Waits) -> WhyReason:
    return WhyReason(waits.code, waits.message, list(waits.blockers), waits.hint)


def _time(moment: float | None) -> datetime | None:
    return None if moment is None else datetime.fromtimestamp(moment, UTC)
