"""Who goes first within a queue: by submission, by fair share, or by several things together.

Use fades: after a half-life it counts half. As all of it fades alike, everything is kept as of one moment and
shares never need to be worked out anew while time passes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from rota.plan.ask import Ask
from rota.plan.policy import FairShare, Queue

_WEEK_S: Final = 7 * 86400.0
_MOST_HALVINGS: Final = 64.0


class Usage:
    """Resource-seconds that users and projects have used and asked for, as they fade."""

    def __init__(self, half_life_s: float) -> None:
        self.half_life_s = half_life_s
        self._as_of = 0.0
        self._used: dict[str, float] = {}
        self._asked: dict[str, float] = {}
        self._by_project: dict[str, float] = {}
        self._all_used = 0.0
        self._all_asked = 0.0

    def add(self, user: str, project: str, used: float, asked: float, at: float) -> None:
        """This was used, and so much asked for, at that time."""
        halvings = (at - self._as_of) / self.half_life_s
        if abs(halvings) > _MOST_HALVINGS:
            # Numbers would grow beyond measure: everything as of now.
            if not self._all_used and not self._all_asked:
                self._as_of, halvings = at, 0.0
            elif halvings > 0:
                self._fade(0.5**halvings)
                self._as_of, halvings = at, 0.0
        weight = 2.0**halvings
        self._used[user] = self._used.get(user, 0.0) + weight * used
        self._asked[user] = self._asked.get(user, 0.0) + weight * asked
        self._by_project[project] = self._by_project.get(project, 0.0) + weight * used
        self._all_used += weight * used
        self._all_asked += weight * asked

    def _fade(self, factor: float) -> None:
        for amounts in (self._used, self._asked, self._by_project):
            for name in amounts:
                amounts[name] *= factor
        # From the parts: a total that loses to rounding differently would make shares of more than all.
        self._all_used, self._all_asked = sum(self._used.values()), sum(self._asked.values())

    def used(self, user: str, at: float) -> float:
        """Resource-seconds used by a user, as they count at a time."""
        return self._used.get(user, 0.0) * self._faded(at)

    def asked(self, user: str, at: float) -> float:
        """The same of what was asked for."""
        return self._asked.get(user, 0.0) * self._faded(at)

    def used_by_project(self, project: str, at: float) -> float:
        """The same of what a project used."""
        return self._by_project.get(project, 0.0) * self._faded(at)

    def _faded(self, at: float) -> float:
        halvings = (at - self._as_of) / self.half_life_s
        return float(0.5 ** max(-_MOST_HALVINGS, halvings))

    def share_used(self, user: str) -> float:
        """The user's part of all use, at whatever time; 0 if there is none."""
        return _share(self._used.get(user, 0.0), self._all_used)

    def share_asked(self, user: str) -> float:
        """The user's part of all that was asked for."""
        return _share(self._asked.get(user, 0.0), self._all_asked)

    def share_of_project(self, project: str) -> float:
        """The project's part of all use."""
        return _share(self._by_project.get(project, 0.0), self._all_used)

    def active(self, users: Iterable[str]) -> int:
        """How many users have use, or are among these, who have waiting or running jobs."""
        with_use = {user for user, used in self._used.items() if used > 0 or self._asked[user] > 0}
        return len(with_use.union(users))


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0


def target(queue: Queue, name: str, active_users: int) -> float:
    """The share that a user, or `project:NAME`, should have."""
    return queue.shares.get(name, 1 / max(1, active_users))


def karma(queue: Queue, ask: Ask, *, usage: Usage, active_users: int, fair_share: FairShare) -> float:
    """How far above their share the user and the project are; the lowest goes first."""
    goal = target(queue, ask.user, active_users)
    project_goal = target(queue, f"project:{ask.project}", active_users)
    return (
        fair_share.project * (usage.share_of_project(ask.project) - project_goal)
        + fair_share.used * (usage.share_used(ask.user) - goal)
        + fair_share.asked * (usage.share_asked(ask.user) - goal)
    )


def multifactor(queue: Queue, ask: Ask, *, waited_s: float, usage: Usage, active_users: int) -> float:
    """Waiting, share and priority in one number; the highest goes first. A target of 0 is always exceeded."""
    goal = target(queue, ask.user, active_users)
    share = 2.0 ** -(usage.share_used(ask.user) / goal) if goal > 0 else 0.0
    return 1000 * min(1.0, max(0.0, waited_s) / _WEEK_S) + 1000 * share + 100 * ask.priority / 255


def order_key(
    queue: Queue, ask: Ask, *, submitted: float, now: float, usage: Usage, active_users: int, fair_share: FairShare
) -> float:
    """By the order of the queue; lower goes first, and of equals whoever was submitted first."""
    if queue.order == "fairshare":
        return karma(queue, ask, usage=usage, active_users=active_users, fair_share=fair_share)
    if queue.order == "multifactor":
        return -multifactor(queue, ask, waited_s=now - submitted, usage=usage, active_users=active_users)
    return 0.0


def starves(queue: Queue, *, submitted: float, now: float) -> bool:
    """Has it waited for longer than anybody should?"""
    return now - submitted > queue.max_wait_s


Rank = tuple[int, int, int, float, float]


def rank(
    queue: Queue, ask: Ask, *, submitted: float, now: float, usage: Usage, active_users: int, fair_share: FairShare
) -> Rank:
    """Queue, starvation, the job's priority, the order of the queue, submission; the lowest goes first."""
    if starves(queue, submitted=submitted, now=now):
        return (-queue.priority, 0, 0, 0.0, submitted)
    key = order_key(
        queue,
        ask,
        submitted=submitted,
        now=now,
        usage=usage,
        active_users=active_users,
        fair_share=fair_share,
    )
    return (-queue.priority, 1, -ask.priority, key, submitted)
