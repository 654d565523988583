"""Fair share: the target shares of users and projects, and their karma: how far their use exceeds its target.

Plans and reports both use these functions, so that they never disagree.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from rota.plan.ask import Ask
from rota.plan.policy.decay import Usage
from rota.plan.policy.policy import PROJECT, FairShare, Queue
from rota.plan.policy.usage_history import UserProject

_WEEK_S: Final = 7 * 86400.0


class Targets:
    """The target shares of users and projects in one queue."""

    def __init__(self, queue: Queue, active: Iterable[UserProject]) -> None:
        self._shares = queue.shares
        users: set[str] = set()
        self._of_project: dict[str, set[str]] = {}  #: its active users
        self._of_user: dict[str, set[str]] = {}  #: the projects that a user is active in
        projects = {name.removeprefix(PROJECT) for name in queue.shares if name.startswith(PROJECT)}
        for user, project in active:
            users.add(user)
            if projects:
                self._of_project.setdefault(project, set()).add(user)
                self._of_user.setdefault(user, set()).add(project)
        self._equal = 1 / max(1, len(users))
        self.projects = projects  #: that have shares here
        self.by_project = bool(projects)
        given = sum(queue.shares[f"{PROJECT}{name}"] for name in projects)
        self._scale = 1 / given if given > 1 else 1.0
        others = len(self._of_project.keys() - projects)
        self._left = max(0.0, 1 - given) / max(1, others)

    def project(self, name: str) -> float:
        """The target of a project: its share, or an equal part of what other shares leave."""
        share = self._shares.get(f"{PROJECT}{name}")
        if share is not None:
            return share * self._scale
        return self._left if self.by_project else self._equal

    def user(self, name: str, project: str) -> float:
        """The target of a user: the share, or an equal part; of the active projects if projects have shares."""
        share = self._shares.get(name)
        if share is not None:
            return share
        if not self.by_project:
            return self._equal
        projects = self._of_user.get(name) or {project}
        return sum(self.project(each) / max(1, len(self._of_project.get(each, ()))) for each in projects)

    def user_by(self, name: str) -> str:
        """Where a user's target comes from, in a word."""
        if name in self._shares:
            return "share"
        return "projects" if self.by_project else "equal"

    def project_by(self, name: str) -> str:
        """Where a project's target comes from, in a word."""
        if f"{PROJECT}{name}" in self._shares:
            return "share"
        return "rest" if self.by_project else "equal"


class ShareTarget(NamedTuple):
    """One of the three terms of karma: a weight, a share and its target."""

    name: str  #: project, used or asked
    weight: float
    share: float
    target: float

    @property
    def value(self) -> float:
        return self.weight * (self.share - self.target)


def project_weight(fair_share: FairShare, targets: Targets) -> float:
    """The weight of a project's use; by default 1 if projects have shares, else 0."""
    return fair_share.project if fair_share.project is not None else float(targets.by_project)


def share_targets(
    who: UserProject, *, usage: Usage, targets: Targets, fair_share: FairShare
) -> tuple[ShareTarget, ShareTarget, ShareTarget]:
    """The three terms of a user's karma in a project."""
    user, project = who
    goal = targets.user(user, project)
    return (
        ShareTarget(
            "project",
            project_weight(fair_share, targets),
            usage.share_of_project(project),
            targets.project(project),
        ),
        ShareTarget("used", fair_share.used, usage.share_used(user), goal),
        ShareTarget("asked", fair_share.asked, usage.share_asked(user), goal),
    )


def karma(ask: Ask, *, usage: Usage, targets: Targets, fair_share: FairShare) -> float:
    """How far the user and the project are above their targets; the lowest goes first."""
    of_project, used, asked = share_targets(
        (ask.user, ask.project), usage=usage, targets=targets, fair_share=fair_share
    )
    return of_project.value + used.value + asked.value


def multifactor(ask: Ask, *, waited_s: float, usage: Usage, targets: Targets, fair_share: FairShare) -> float:
    """Wait, share and priority in one number; the highest goes first. A target of 0 is always exceeded."""
    of_project, used, _asked = share_targets(
        (ask.user, ask.project), usage=usage, targets=targets, fair_share=fair_share
    )
    share = _left(used)
    if of_project.weight > 0:
        whole = of_project.weight + used.weight
        share = (of_project.weight * _left(of_project) + used.weight * share) / whole
    return 1000 * min(1.0, max(0.0, waited_s) / _WEEK_S) + 1000 * share + 100 * ask.priority / 255


def _left(part: ShareTarget) -> float:
    return 2.0 ** -(part.share / part.target) if part.target > 0 else 0.0
