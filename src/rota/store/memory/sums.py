"""The sums of a `MemoryStore`, in plain dictionaries, with the same answers as SQL."""

from __future__ import annotations

from copy import copy

from msgspec import Struct

from rota.core.accounts.accounting import MINUTES_KEPT
from rota.core.accounts.sums import AccountKey, AccountSums, HourAccount, MinuteRow, MinuteSums
from rota.core.changes import Changes
from rota.core.machines.machine_states import GONE
from rota.core.machines.usage_sums import state_of
from rota.core.rows import MachineRow


class StoredSums(Struct):
    """The sums in a backup."""

    accounts: list[tuple[AccountKey, AccountSums]]
    minutes: dict[int, MinuteSums]
    machines: dict[str, dict[int, MachineRow]]


class MemorySums:
    """The sums so far."""

    def __init__(self) -> None:
        self._accounts: dict[AccountKey, AccountSums] = {}
        self._minutes: dict[int, MinuteSums] = {}
        self._machines: dict[str, dict[int, MachineRow]] = {}

    def stored(self) -> StoredSums:
        """Everything, as a backup holds it."""
        return StoredSums(list(self._accounts.items()), self._minutes, self._machines)

    def restore(self, stored: StoredSums) -> None:
        """Replace everything by what a backup holds."""
        self._accounts, self._minutes = dict(stored.accounts), stored.minutes
        self._machines = stored.machines

    def add(self, changes: Changes) -> None:
        for key, more in changes.accounts.items():
            self._accounts.setdefault(key, AccountSums()).add(more)
        for minute, happened in changes.minutes.items():
            self._minutes.setdefault(minute, MinuteSums()).add(happened)
        if changes.minutes:
            oldest = max(changes.minutes) - MINUTES_KEPT
            self._minutes = {minute: row for minute, row in self._minutes.items() if minute >= oldest}
        for row in changes.machines:
            self._machines.setdefault(row.host, {})[row.at] = row

    def last_machine_rows(self) -> dict[str, MachineRow]:
        last = {host: rows[max(rows)] for host, rows in self._machines.items()}
        return {host: row for host, row in last.items() if state_of(row) != GONE}

    def accounts(self, first: int, end: int) -> list[HourAccount]:
        going_on: dict[AccountKey, AccountSums] = {}
        for key, row in self._accounts.items():
            if key.hour < first:
                steps = going_on.setdefault(key._replace(hour=first), AccountSums())
                steps.used_step += row.used_step
                steps.given_step += row.given_step
                steps.asked_step += row.asked_step
        found = [(key, row) for key, row in going_on.items() if row != AccountSums()]
        found += [(key, copy(row)) for key, row in self._accounts.items() if first <= key.hour < end]
        return [HourAccount(*key, row) for key, row in sorted(found, key=lambda each: each[0])]

    def minutes(self, since: int) -> list[MinuteRow]:
        return [MinuteRow(minute, copy(row)) for minute, row in sorted(self._minutes.items()) if minute >= since]

    def machine_hosts(self) -> list[str]:
        return sorted(self._machines)

    def machine_rows(self, host: str, since: int, until: int) -> list[MachineRow]:
        found = []
        for name in sorted([host] if host else self._machines):
            rows = self._machines.get(name, {})
            before = max((at for at in rows if at <= since), default=None)
            found += [row for at, row in sorted(rows.items()) if at == before or since < at < until]
        return found
