"""`rota plan`: when and where a job would run, from its specification as a client sends it."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from rota.core.admission.admission import Admission
from rota.core.admission.limit_uses import resolve
from rota.core.forecast.expectation import ForecastSnapshot
from rota.core.forecast.expected_times import Expectations
from rota.core.jobs.job import Job, Spec
from rota.core.machines.hosts import site_now
from rota.core.site.manager_pause import why_nothing_starts
from rota.core.site.plan_facts import inform
from rota.core.site.planning_terms import refuse_unplannable
from rota.core.states import State
from rota.core.world import World
from rota.errors import BadInput, NeverFits
from rota.manager.views.expected_times import expected_views
from rota.manager.views.rows import why_reason
from rota.plan.ask import ask_of
from rota.plan.explain.whatif import WhatIfAnswer, ask_snapshot
from rota.plan.forecast import planned_jobs
from rota.plan.placement.explanation import Waiting
from rota.plan.planner.endangered import unanswered
from rota.plan.reasons import Waits
from rota.plan.size import CORE
from rota.wire import messages as m
from rota.wire.specs import spec_from, wanted_limits
from rota.wire.views import PlanView, WhyReason

_LONGEST_USER = 256
#: The learning group of a job of which no command is known.
_NOBODY = "\0"
#: Whatever begins within this begins at once.
_AT_ONCE_S = 1.0


def question(
    world: World, admission: Admission, ask: m.PlanFor, *, user: str, taken: ForecastSnapshot, admin: bool = False
) -> Callable[[], PlanView]:
    """Take what must be known from the world now; the answer may be worked out in another thread.

    Raises `BadInput` for a job that would be refused.
    """
    wall = taken.wall
    if len(ask.user) > _LONGEST_USER or "\0" in ask.user:
        raise BadInput("field 'user' is too long or contains a NUL byte")
    uses = resolve(wanted_limits(ask.spec.limits), world.placement.limits, {}, user=user, admin=admin)
    wished = spec_from(ask.spec, uses, user=ask.user or user, env=0)
    admitted = admission.admit(wished, admin=admin)
    spec, notices = admitted.spec, list(admitted.notices)
    if spec.at is not None:
        admission.refuse_reservation(wished, admission.waiting_reservations(spec.user) + 1, admin=admin)
    try:
        refuse_unplannable(world, spec)
    except NeverFits as never:
        reason = WhyReason(never.code, never.message, [], never.hint or "")
        return lambda: _none(reason, notices)
    if spec.at is not None and (waits := unanswered(site_now(world))) is not None:
        reason = _reason(waits)
        return lambda: _none(reason, notices)
    stopped = why_nothing_starts(world)
    still = None if stopped is None else WhyReason(stopped.code, stopped.message, [], "rota manager resume")
    job = _as_if_added(world, spec, wall)
    if not spec.on_terms and not spec.size.cpus:  # it takes no core, and is in no plan
        alone = _none(still, notices)
        _foretell(alone, Expectations(_with(taken, job), job), job)
        return lambda: alone
    inform(world, wall, anew=world.placement.planner is None)
    wanted, planner_of = ask_of(spec, spec.size), world.placement.outlook(wall)
    planner = planner_of.planner

    def answer() -> PlanView:
        found = ask_snapshot(planner, wanted, wall, job=job.id)
        view = _view(found, spec)
        view.reason = still or view.reason
        if found.start is not None:
            view.resources = planner.plan.site.spans(found.resources)
            view.hosts = planner.plan.site.hosts_of(found.resources)
        if taken.plan is None and not spec.on_terms:
            asked = _with(taken, job)  # it would be packed, like all others
        else:
            lanes = [_planned(lane) for lane in taken.waiting]
            asked = taken._replace(plan=planned_jobs.snapshot(planner.plan), waiting=lanes)
        if found.start is not None or asked.plan is None:
            _foretell(view, Expectations(asked, job), job)
        if view.start is not None and still is None and (view.start.timestamp() - wall) < _AT_ONCE_S:
            view.reason = None
        view.behind, view.notices = planner_of.behind, notices
        return view

    return answer


def _none(reason: WhyReason | None, notices: list[str]) -> PlanView:
    return PlanView(
        start=None, end=None, resources=None, hosts=[], alternative=None, reason=reason, moves=[], notices=notices
    )


def _as_if_added(world: World, spec: Spec, wall: float) -> Job:
    """The job as it would be, of which no command is known: it learns from nobody but those that it names."""
    spec = replace(spec, learn=spec.learn or _NOBODY)
    return Job(world.next_job, "", spec, 0, "", State.READY, "", wall)


def _with(taken: ForecastSnapshot, job: Job) -> ForecastSnapshot:
    """A snapshot in which a job waits as well."""
    lane = Waiting(job.spec.priority, job.need, [job.id], frozenset(), 0)
    return taken._replace(waiting=[*taken.waiting, lane])


def _planned(lane: Waiting) -> Waiting:
    """Were there a plan, all that take a core would be in it."""
    cores = -(-lane.need.size.cpus // CORE)
    return lane if lane.width or not cores else lane._replace(width=cores)


def _foretell(view: PlanView, expected: Expectations, job: Job) -> None:
    """The job begins and ends when everybody would be told so, were it there."""
    view.start, view.end, view.expected_reason = expected_views(expected.of(job))


def _view(found: WhatIfAnswer, spec: Spec) -> PlanView:
    reason = _reason(found.reasons[0]) if found.reasons else None
    view = _none(reason, [])
    view.moves = found.moves
    if found.start is not None:
        view.alternative = found.alternative + 1
        view.request = spec.request[found.alternative] if spec.request else None
    return view


def _reason(waits: Waits) -> WhyReason:
    """Of a job that is not there nobody can change anything: only what it should be given is said."""
    reason = why_reason(waits)
    command, _, options = reason.hint.partition(" --")
    if command.startswith("rota modify "):
        reason.hint = f"--{options}"
    return reason
