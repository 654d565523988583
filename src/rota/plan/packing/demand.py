"""Demand: how many waiting jobs of each need could start if there were room, and how many use each limit."""

from __future__ import annotations

from collections.abc import Iterable

from rota.plan.need import LimitUse, Need
from rota.plan.packing.job_classes import JobClass
from rota.plan.policy.limits import Limits


def demand(job_classes: Iterable[JobClass], limits: Limits) -> dict[Need, int]:
    """How many jobs of each need could start at once if there were room: limits serve the best rank first."""
    wanted: dict[Need, int] = {}
    taken: list[tuple[tuple[LimitUse, ...], int]] = []
    for job_class in sorted(
        (job_class for job_class in job_classes if job_class.head() is not None), key=JobClass.rank
    ):
        uses = job_class.need.limits
        number = len(job_class)
        if uses:
            if limits.stopped(uses) is not None:
                continue
            room = limits.fitting(uses)
            number = number if room is None else min(number, room)
            limits.take(uses, "", times=number)
            taken.append((uses, number))
        if number:
            wanted[job_class.need] = wanted.get(job_class.need, 0) + number
    for uses, number in taken:
        limits.give(uses, "", times=number)
    return wanted


def wanting(job_classes: Iterable[JobClass]) -> dict[str, int]:
    """Limit → how many of the waiting jobs use it."""
    wanted: dict[str, int] = {}
    for job_class in job_classes:
        for use in job_class.need.limits:
            wanted[use.name] = wanted.get(use.name, 0) + len(job_class)
    return wanted
