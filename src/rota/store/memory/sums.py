"""The sums of a `MemoryStore`, in plain dictionaries, with the same answers as SQL."""

from __future__ import annotations

from copy import copy

from msgspec import Struct

from rota.core.accounts.accounting import MINUTES_KEPT
from rota.core.accounts.sums import AccountKey, AccountSums, HourAccount, MinuteRow, MinuteSums
from rota.core.changes import Changes
from rota.core.machines.host_usage import GONE
from rota.core.rows import HostState, HostStateRow


class StoredSums(Struct):
    """The sums in a backup."""

    accounts: list[tuple[AccountKey, AccountSums]]
    minutes: dict[int, MinuteSums]
    host_states: dict[str, dict[int, str]]


class MemorySums:
    """The sums so far."""

    def __init__(self) -> None:
        self._accounts: dict[AccountKey, AccountSums] = {}
        self._minutes: dict[int, MinuteSums] = {}
        self._host_states: dict[str, dict[int, str]] = {}

    def stored(self) -> StoredSums:
        """Everything, as a backup holds it."""
        return StoredSums(list(self._accounts.items()), self._minutes, self._host_states)

    def restore(self, stored: StoredSums) -> None:
        """Replace everything by what a backup holds."""
        self._accounts, self._minutes = dict(stored.accounts), stored.minutes
        self._host_states = stored.host_states

    def add(self, changes: Changes) -> None:
        for key, more in changes.accounts.items():
            self._accounts.setdefault(key, AccountSums()).add(more)
        for minute, happened in changes.minutes.items():
            self._minutes.setdefault(minute, MinuteSums()).add(happened)
        if changes.minutes:
            oldest = max(changes.minutes) - MINUTES_KEPT
            self._minutes = {minute: row for minute, row in self._minutes.items() if minute >= oldest}
        for row in changes.host_states:
            self._host_states.setdefault(row.host, {})[row.at] = row.state

    def last_host_states(self) -> dict[str, HostState]:
        last = {host: max(rows.items()) for host, rows in self._host_states.items()}
        return {host: HostState(state, at) for host, (at, state) in last.items() if state != GONE}

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

    def host_states(self, host: str, since: int, until: int) -> list[HostStateRow]:
        found = []
        for name in sorted([host] if host else self._host_states):
            rows = self._host_states.get(name, {})
            before = max((at for at in rows if at <= since), default=None)
            found += [
                HostStateRow(name, at, state)
                for at, state in sorted(rows.items())
                if at == before or since < at < until
            ]
        return found
