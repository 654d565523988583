"""Shadow times: when the first job in rank will fit on a host, and which jobs may pass it without delaying it."""

from __future__ import annotations

from rota.plan.need import Need
from rota.plan.packing.hosts import Host, amounts, fits, parts
from rota.plan.packing.job_classes import JobClass
from rota.plan.size import Size


class Shadows:
    """What the first job that waits for room leaves to later ones on each host."""

    __slots__ = ("_first", "_found", "now")

    def __init__(self) -> None:
        self.now = 0.0
        self._first: JobClass | None = None
        self._found: dict[str, tuple[float, list[int]]] = {}  #: host → shadow time, and what is left then

    def protect(self, job_class: JobClass | None) -> None:
        """This job class is now the first that waits for room; None: no job class waits."""
        self._first = job_class
        self._found.clear()

    def may_pass(self, job_class: JobClass, host: Host) -> bool:
        """May its first job start here without delaying the protected one?"""
        first = self._first
        if first is None or job_class.rank() < first.rank():
            return True
        shadow, spare = self._shadow(host, first.need)
        return self.now + job_class.need.size.time_s <= shadow or fits(job_class.need.size, spare)

    def passed(self, host: Host, size: Size) -> None:
        """A job of this size starts on this host; `may_pass` has allowed it."""
        shadow, spare = self._found[host.name]
        if self.now + size.time_s > shadow:
            self._found[host.name] = shadow, [s - n for s, n in zip(spare, parts(size), strict=True)]

    def _shadow(self, host: Host, need: Need) -> tuple[float, list[int]]:
        """When this need will fit on the host, and what is left beside it then."""
        known = self._found.get(host.name)
        if known is None:
            known = self._found[host.name] = self._estimate(host, need)
        return known

    def _estimate(self, host: Host, need: Need) -> tuple[float, list[int]]:
        size, now = need.size, self.now
        if not fits(size, amounts(host.capacity)) or not host.takes(need) or not host.admits(size):
            return float("inf"), list(host.free)
        free = list(host.free)
        when = now
        for seat in sorted(host.seats.values(), key=lambda seat: seat.expected_end(now)):
            if fits(size, free):
                break
            free = [f + n for f, n in zip(free, parts(seat.size), strict=True)]
            when = seat.expected_end(now)
        return when, [f - n for f, n in zip(free, parts(size), strict=True)]
