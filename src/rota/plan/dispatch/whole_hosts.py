"""Hosts that due jobs have provisioned: such a job takes them when no other job is there.

The plan sees to jobs that take cores. Jobs that take none are in no plan: those that are there are waited for, and
no other begins there meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence

from rota.plan.language.hostlist import fold
from rota.plan.packing.packing import Packing
from rota.plan.placement.given import Given


class WholeHosts:
    """Which due jobs, or gangs, wait until nothing is on their hosts."""

    def __init__(self, packing: Packing) -> None:
        self._packing = packing
        self._waiting: dict[int, Sequence[str]] = {}
        self._tried: set[int] = set()  #: jobs that found no better hosts as things are

    def take(self, job: int, hosts: Sequence[str]) -> bool:
        """Take these hosts for a due job, which has them provisioned at once. False: others are there."""
        if not self._packing.coreless.isdisjoint(hosts):
            return False
        self._packing.provisioned(hosts, True)
        self.forget(job)
        return True

    def wait(self, job: int, hosts: Sequence[str]) -> str:
        """A due job waits until others have left these hosts. Returns a sentence that says so."""
        self._waiting[job] = hosts
        self._clear_out()
        number = sum(self._packing.in_use(host)[-1] for host in set(hosts))
        there = "1 job that takes no core is" if number == 1 else f"{number} jobs that take no core are"
        busy = [host for host in hosts if host in self._packing.coreless]
        return f"{fold(busy)} must be free of other jobs to be provisioned: {there} there"

    def forget(self, job: int) -> None:
        """The job does not wait any more."""
        if self._waiting.pop(job, None) is not None:
            self._clear_out()

    def forget_all(self) -> None:
        self._waiting.clear()
        self._clear_out()

    def try_again(self, job: int) -> bool:
        """Is it worth looking for other hosts for a job that would have to wait?"""
        first = job not in self._tried
        self._tried.add(job)
        return first

    def may_try_again(self) -> None:
        """Other hosts may be free by now."""
        self._tried.clear()

    def _clear_out(self) -> None:
        self._packing.clear_out({host for hosts in self._waiting.values() for host in hosts})


def whole_of(gives: Given) -> list[str]:
    """The hosts of an allocation, if its job begins there."""
    return [] if gives.elsewhere else [host for host, _cores in gives.nodes]
