"""What needs a person though no state tells so: jobs that never fit, and reservations in danger."""

from __future__ import annotations

from heapq import nsmallest
from typing import Final

# The planner loads it when it is first asked why. `rota manager stop` asks, too, and must not meet the files of a
# newer version that was installed meanwhile.
import rota.plan.explain.why_waiting  # noqa: F401
from rota.core.world import World
from rota.plan.planner.endangered import endangered
from rota.wire.views import AttentionView

#: Of each kind only so many are told one by one.
_MOST: Final = 20
_IDS: Final = 10


def attention(world: World) -> list[AttentionView]:
    """Belongs to the loop's thread. Looks at job classes and reservations, never at all jobs."""
    alike: dict[str, AttentionView] = {}
    for job_class, message in world.placement.never_fit():
        view = alike.setdefault(message, AttentionView("never_fits", [], 0, message))
        view.total += len(job_class)
        view.jobs = sorted({*view.jobs, *nsmallest(_IDS, job_class.jobs())})[:_IDS]
    found = sorted(alike.values(), key=lambda each: each.jobs)[:_MOST]
    planner = world.placement.planner
    if planner is not None:
        risks = sorted(endangered(planner))[:_MOST]
        found += [AttentionView("reservation", [each.job], 1, each.message) for each in risks]
    return found
