"""`rota share list`: how users and projects stand in queues that go by fair share."""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec import structs

from rota.core.accounts.fair_share_usage import usage_now
from rota.core.attempts.parts import all_leased
from rota.core.site.policy import policy_of
from rota.core.world import World
from rota.errors import NotFound
from rota.plan.policy.decay import Usage
from rota.plan.policy.fair_share import Targets, project_weight
from rota.plan.policy.fair_share_report import ShareReport, share_reports
from rota.plan.policy.policy import FairShare, Queue
from rota.plan.policy.usage_history import UserProject
from rota.wire.sums import (
    FairShareView,
    ProjectShareView,
    QueueSharesView,
    SharePartView,
    SharesView,
    StandingView,
)


def view(world: World, wall: float, *, queue: str = "") -> SharesView:
    """Of one queue, or of all in which shares were given or matter. Raises `NotFound`."""
    policy = policy_of(world.site)
    if queue and queue not in policy.queues:
        names = ", ".join(policy.queues)
        raise NotFound(f"there is no queue '{queue[:64]}'", hint=f"use one of {names}")
    shown = {
        name: each
        for name, each in policy.queues.items()
        if (name == queue if queue else each.order != "fifo" or each.shares)
    }
    usage = usage_now(world, policy.fair_share, wall)
    active = usage.active(_with_jobs(world))
    return SharesView(
        at=datetime.fromtimestamp(wall, UTC),
        version=world.site_version,
        fair_share=FairShareView(**structs.asdict(policy.fair_share)),
        queues=[
            _queue(name, each, usage=usage, active=active, fair_share=policy.fair_share, wall=wall)
            for name, each in shown.items()
        ],
    )


def _with_jobs(world: World) -> set[UserProject]:
    """Users and projects with running or planned jobs."""
    found = {(job.spec.user, job.spec.project) for job, _host in all_leased(world)}
    planner = world.placement.planner
    if planner is not None:
        found |= {(entry.ask.user, entry.ask.project) for entry in planner.plan.entries.values()}
    return found


def _queue(
    name: str, queue: Queue, *, usage: Usage, active: set[UserProject], fair_share: FairShare, wall: float
) -> QueueSharesView:
    targets = Targets(queue, active)
    found = share_reports(active, usage=usage, targets=targets, fair_share=fair_share)
    return QueueSharesView(
        queue=name,
        order=queue.order,
        project_weight=project_weight(fair_share, targets),
        shares=dict(queue.shares),
        users=[_standing(each, usage=usage, targets=targets, wall=wall) for each in found],
        projects=[
            ProjectShareView(
                project=project,
                used_s=usage.used_by_project(project, wall),
                share=usage.share_of_project(project),
                target=targets.project(project),
                target_by=targets.project_by(project),
            )
            for project in sorted({project for _user, project in active} | set(targets.projects))
        ],
    )


def _standing(each: ShareReport, *, usage: Usage, targets: Targets, wall: float) -> StandingView:
    user, project = each.who
    return StandingView(
        user=user,
        project=project,
        karma=each.karma,
        used_s=usage.used(user, wall),
        asked_s=usage.asked(user, wall),
        target=targets.user(user, project),
        target_by=targets.user_by(user),
        parts=[
            SharePartView(
                name=part.name, weight=part.weight, share=part.share, target=part.target, value=part.value
            )
            for part in each.parts
        ],
        why=each.why,
    )
