"""The sums that accounting keeps, as records. A batch adds to them; a store adds batches up.

All amounts are whole microseconds, or core-microseconds, so sums are exact in any order.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct


class AccountKey(NamedTuple):
    """Whose use, and when."""

    hour: int  #: since 1970
    user: str
    project: str
    queue: str


class AccountSums(Struct, array_like=True, gc=False):
    """The sums of one hour of one owner. `*_step`: change, in hundredths of cores, of the use in all whole hours
    from then on."""

    attempts: int = 0
    jobs: int = 0
    failed: int = 0
    used: int = 0
    used_step: int = 0
    given: int = 0
    given_step: int = 0
    cpu: int = 0
    wait: int = 0
    asked: int = 0
    asked_step: int = 0
    unasked: int = 0  #: attempts without a requested time

    def add(self, more: AccountSums) -> None:
        """Add all columns."""
        self.attempts += more.attempts
        self.jobs += more.jobs
        self.failed += more.failed
        self.used += more.used
        self.used_step += more.used_step
        self.given += more.given
        self.given_step += more.given_step
        self.cpu += more.cpu
        self.wait += more.wait
        self.asked += more.asked
        self.asked_step += more.asked_step
        self.unasked += more.unasked


class HourAccount(Struct, array_like=True, gc=False):
    """A stored row of the accounts."""

    hour: int
    user: str
    project: str
    queue: str
    sums: AccountSums

    @property
    def key(self) -> AccountKey:
        return AccountKey(self.hour, self.user, self.project, self.queue)


class MinuteSums(Struct, array_like=True, gc=False):
    """What happened in one minute, by the manager's clock."""

    started: int = 0
    complete: int = 0
    failed: int = 0
    cancelled: int = 0
    waited: int = 0  #: microseconds that the started ones had waited
    ran: int = 0  #: microseconds that the ended ones had run

    def add(self, more: MinuteSums) -> None:
        """Add all columns."""
        self.started += more.started
        self.complete += more.complete
        self.failed += more.failed
        self.cancelled += more.cancelled
        self.waited += more.waited
        self.ran += more.ran


class MinuteRow(Struct, array_like=True, gc=False):
    """A stored minute."""

    minute: int  #: since 1970
    sums: MinuteSums
