"""The karma of users in a fair-share queue and what it comes from, in numbers and in words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from rota.plan.policy.decay import Usage
from rota.plan.policy.fair_share import ShareTarget, Targets, share_targets
from rota.plan.policy.policy import FairShare
from rota.plan.policy.usage_history import UserProject


class ShareReport(NamedTuple):
    """The karma of a user in a project. Jobs with lower karma go first."""

    who: UserProject
    karma: float
    parts: tuple[ShareTarget, ShareTarget, ShareTarget]

    @property
    def why(self) -> str:
        """What the karma comes from, as a sentence."""
        user, project = self.who
        of_project, used, asked = self.parts
        words = []
        if used.weight:
            words.append(f"{user} used {_percent(used)}")
        if asked.weight and (not used.weight or f"{asked.share:.0%}" != f"{used.share:.0%}"):
            words.append(f"{'' if used.weight else f'{user} '}asked for {_percent(asked)}")
        if of_project.weight:
            name = f"project {project}" if project else "jobs without a project"
            words.append(f"{name} used {_percent(of_project)}")
        return "; ".join(words) or "no weight is above 0"


def _percent(part: ShareTarget) -> str:
    return f"{part.share:.0%} of all (target {part.target:.0%})"


def share_report(who: UserProject, *, usage: Usage, targets: Targets, fair_share: FairShare) -> ShareReport:
    """The report on one user and project."""
    found = share_targets(who, usage=usage, targets=targets, fair_share=fair_share)
    return ShareReport(who, sum(each.value for each in found), found)


def share_reports(
    active: Iterable[UserProject], *, usage: Usage, targets: Targets, fair_share: FairShare
) -> list[ShareReport]:
    """Reports on all of these, lowest karma first."""
    found = [share_report(who, usage=usage, targets=targets, fair_share=fair_share) for who in active]
    return sorted(found, key=lambda each: (each.karma, each.who))
