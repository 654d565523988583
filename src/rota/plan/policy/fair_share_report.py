"""Who stands how in a queue that goes by fair share, and why, in numbers and in words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from rota.plan.policy.decay import Usage
from rota.plan.policy.fair_share import Part, Targets, parts
from rota.plan.policy.policy import FairShare
from rota.plan.policy.usage_history import Who


class Standing(NamedTuple):
    """A user in a project: the lower the karma, the earlier the jobs go."""

    who: Who
    karma: float
    parts: tuple[Part, Part, Part]

    @property
    def why(self) -> str:
        """What the karma comes from, in words."""
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


def _percent(part: Part) -> str:
    return f"{part.share:.0%} of all (target {part.target:.0%})"


def standing(who: Who, *, usage: Usage, targets: Targets, fair_share: FairShare) -> Standing:
    """How one stands."""
    found = parts(who, usage=usage, targets=targets, fair_share=fair_share)
    return Standing(who, sum(each.value for each in found), found)


def standings(crowd: Iterable[Who], *, usage: Usage, targets: Targets, fair_share: FairShare) -> list[Standing]:
    """All of them, whoever goes first at the top."""
    found = [standing(who, usage=usage, targets=targets, fair_share=fair_share) for who in crowd]
    return sorted(found, key=lambda each: (each.karma, each.who))
