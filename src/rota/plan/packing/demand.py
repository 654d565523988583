"""What waiting jobs would take, were there room: how many of each need, and how many use each limit."""

from __future__ import annotations

from collections.abc import Iterable

from rota.plan.need import LimitUse, Need
from rota.plan.packing.lanes import Lane
from rota.plan.policy.limits import Limits


def demand(lanes: Iterable[Lane], limits: Limits) -> dict[Need, int]:
    """How many jobs of each need could begin at once, were there room: by rank, as limits leave."""
    wanted: dict[Need, int] = {}
    taken: list[tuple[tuple[LimitUse, ...], int]] = []
    for lane in sorted((lane for lane in lanes if lane.head() is not None), key=Lane.rank):
        uses = lane.need.limits
        number = len(lane)
        if uses:
            if limits.stopped(uses) is not None:
                continue
            room = limits.fitting(uses)
            number = number if room is None else min(number, room)
            limits.take(uses, "", times=number)
            taken.append((uses, number))
        if number:
            wanted[lane.need] = wanted.get(lane.need, 0) + number
    for uses, number in taken:
        limits.give(uses, "", times=number)
    return wanted


def wanting(lanes: Iterable[Lane]) -> dict[str, int]:
    """Limit → how many of the waiting jobs use it."""
    wanted: dict[str, int] = {}
    for lane in lanes:
        for use in lane.need.limits:
            wanted[use.name] = wanted.get(use.name, 0) + len(lane)
    return wanted
