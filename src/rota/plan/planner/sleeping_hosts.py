"""Sleeping hosts in a plan: usable from the moment at which they can be awake.

They are last in the order of preference (`plan.site.resources`), so a plan takes them only where no host that is
awake would do. `core.machines.energy` wakes them, and asks here when they are needed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from rota.plan.language.hostlist import fold
from rota.plan.reasons import Waits
from rota.plan.schedule.expected_end import new_end
from rota.plan.schedule.plan import Plan
from rota.plan.schedule.plan_entry import WAITING, PlanEntry
from rota.plan.site.resources import Site
from rota.units import about_duration

#: How many hosts are named.
_NAMED: Final = 5


def ready_times(site: Site, now: float) -> list[tuple[float, int]]:
    """When sleeping hosts could be used if they were woken now: (moment, resources). Always later than now."""
    found = []
    for since, mask in site.sleeping.items():
        if since is None:
            found.append((now + site.wake_s, mask))
            continue
        expected = since + site.wake_s
        # It should be awake by now. Guess as for a job that has overrun.
        found.append((expected if expected > now else new_end(since, now), mask))
    return found


def next_starts(plan: Plan, hosts: Iterable[str]) -> dict[str, float]:
    """The first planned start on each of these hosts; hosts without one are left out."""
    site = plan.site
    left = 0  #: resources of hosts that no start was found for yet
    for host in hosts:
        left |= site.hosts.get(host, 0)
    planned = [
        (entry.start, entry.resources)
        for entry in plan.entries.values()
        if entry.state == WAITING and entry.start is not None and entry.resources & left
    ]
    # With strict FCFS the first job has no place in the plan.
    planned += [
        klass.prospect for klass in plan.classes if klass.prospect is not None and klass.prospect[1] & left
    ]
    found: dict[str, float] = {}
    for start, resources in sorted(planned):
        for host in site.hosts_of(resources & left):
            found[host] = start
            left &= ~site.hosts[host]
    return found


def why(plan: Plan, entry: PlanEntry) -> Waits | None:
    """The reason of a job that waits for its hosts to wake; None: it waits for something else."""
    site, start = plan.site, entry.start
    if plan.counted or start is None or not (sleeping := entry.resources & site.asleep):
        return None
    latest = max(ready for ready, mask in ready_times(site, plan.now) if mask & sleeping)
    if start > latest + 1.0:
        return None  # it waits for another job, and its hosts will be woken in time
    hosts = site.hosts_of(sleeping)
    named = ", ".join(hosts) if len(hosts) <= _NAMED else fold(hosts)
    left = max(start, latest if start <= plan.now else start) - plan.now
    return Waits("waking", f"waking {named}; expected in {about_duration(left)}", hint="rota node list")
