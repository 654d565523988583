"""The ledger of DataJoint 2.x: a jobs table beside each table."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from typing import Any

from . import datajoint_table as dj
from . import faults
from .datajoint_table import DataJointTable
from .jobs_table import JobsTable
from .ledger import ERROR, TRIES, Bin, Key, Look, Policy, Unusable, described


class DataJoint2:
    """Of one table. Raises `Unusable` if it cannot be populated in batches."""

    def __init__(self, cls: Any, *, bins: bool, policy: Policy) -> None:
        self.table = DataJointTable(cls)
        self.policy = policy
        self.table.check()
        jobs = self.table.table.jobs
        keys = set(self.table.key_source().primary_key)
        if not keys <= set(jobs.primary_key):
            finer = ", ".join(sorted(keys - set(jobs.primary_key)))
            raise Unusable(f"its jobs table does not tell keys apart that differ in {finer}")
        self.config = self.table.connection._config
        # Asked once, not for each key.
        self.user = str(self.table.connection.get_user())
        self.connection_id = int(self.table.connection.connection_id or 0)
        self.jobs = JobsTable(
            dialect=self.table.dialect,
            execute=lambda sql, values: self.table.execute(sql, self.table.stored(values)),
            jobs=jobs.full_table_name,
            key=jobs.primary_key,
            source=self.table.source(joined=bins),
            target=self.table.table.full_table_name,
            priority=min(int(self.config.jobs.default_priority), 127),
            value=self.table.value,
        )

    def look(self, bins: Sequence[Bin]) -> Look:
        return self.jobs.look(bins)

    def claim(self, batches: dict[str, list[Key]], lease_s: float) -> dict[str, list[Key]]:
        return self.jobs.claim(batches, lease_s)

    def release(self, token: str, on_lost: str, why: str) -> tuple[int, int]:
        freed, failed = self.jobs.free_queued(token), 0
        for key in self.jobs.running(token):
            if self.table.is_made(key):
                self._complete(key, token, None)
            elif on_lost == ERROR or not self.jobs.give_back(key, token, why=why, tries=self.policy.attempts):
                failed += self.jobs.error(key, token, message=why, stack=None)
            else:
                freed += 1
        return freed, failed

    def warnings(self) -> list[str]:
        coarser = [name for name in self.table.heading.primary_key if name not in self.jobs.key]
        if not coarser:
            return []
        return [f"its jobs table has no {', '.join(coarser)}: one job computes all rows that differ in it"]

    def migrate(self) -> list[str]:
        return []

    def lock(self, name: str) -> bool:
        return self.table.lock(name)

    # ------------------------------------------------------------------ one batch

    def extend(self, token: str, lease_s: float) -> int:
        return self.jobs.extend(token, lease_s)

    def run(self, key: Key, token: str) -> str:
        return self.table.run(key, _Reservation(self, token))

    def settle(self, key: Key, token: str, error: BaseException) -> str:
        self.table.reconnect()
        if self.table.is_made(key):
            self._complete(key, token, None)
            return "done"
        return self._failed(key, token, error, message=described(error), stack=_stack(error))

    def _failed(self, key: Key, token: str, error: BaseException | None, *, message: str, stack: str) -> str:
        self.table.reconnect()
        made = error is not None and faults.kind_of(error) == faults.DUPLICATE and self.table.is_made(key)
        outcome, tries = dj.judged(error, policy=self.policy, made=made)
        if outcome == "done":
            self._complete(key, token, None)
            return outcome
        message = dj.message_of(error, message)
        if outcome == "released" and self.jobs.give_back(key, token, why=message, tries=tries or TRIES):
            return outcome
        self.jobs.error(key, token, message=message, stack=dj.library().blob.pack(stack, compress=True))
        return "error"

    def _complete(self, key: Key, token: str, duration: float | None) -> None:
        self.jobs.complete(key, token, keep=bool(self.config.jobs.keep_completed), duration=duration)

    def close(self) -> None:
        self.table.close()


class _Reservation:
    """In the place of the library's jobs, for one key."""

    def __init__(self, ledger: DataJoint2, token: str) -> None:
        self.ledger = ledger
        self.token = token
        self.outcome = "skipped"
        self.timed_out = False  #: the library keeps such an exception to itself

    def reserve(self, key: Key) -> bool:
        ledger = self.ledger
        got = ledger.jobs.reserve(key, self.token, user=ledger.user, connection=ledger.connection_id)
        self.outcome = "reserved" if got else "skipped"
        return got

    def complete(self, key: Key, duration: float | None = None) -> None:
        self.ledger._complete(key, self.token, duration)
        self.outcome = "done"

    def error(self, key: Key, error_message: str, error_stack: str | None = None) -> None:
        error = dj.handled()
        self.timed_out = error is not None and faults.kind_of(error) == faults.TIMEOUT
        self.outcome = self.ledger._failed(key, self.token, error, message=error_message, stack=error_stack or "")


def _stack(error: BaseException) -> str:
    return "".join(traceback.format_exception(type(error), error, error.__traceback__))
