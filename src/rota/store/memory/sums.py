"""The sums of a `MemoryStore`, in plain dictionaries, with the same answers as SQL."""

from __future__ import annotations

from typing import Any

from rota.core.accounts.accounting import ACCOUNT_COLUMNS, ASKED_STEP, GIVEN_STEP, MINUTES_KEPT, USED_STEP, Key
from rota.core.changes import Changes
from rota.core.machines.host_usage import GONE


class MemorySums:
    """The sums so far."""

    def __init__(self) -> None:
        self._accounts: dict[Key, list[int]] = {}
        self._minutes: dict[int, list[int]] = {}
        self._host_states: dict[str, dict[int, str]] = {}

    def add(self, changes: Changes) -> None:
        for key, more in changes.accounts.items():
            self._accounts[key] = _plus(self._accounts.get(key), more)
        for minute, more in changes.minutes.items():
            self._minutes[minute] = _plus(self._minutes.get(minute), more)
        if changes.minutes:
            oldest = max(changes.minutes) - MINUTES_KEPT
            self._minutes = {minute: row for minute, row in self._minutes.items() if minute >= oldest}
        for host, at, state in changes.host_states:
            self._host_states.setdefault(host, {})[at] = state

    def last_host_states(self) -> dict[str, tuple[str, int]]:
        last = {host: max(rows.items()) for host, rows in self._host_states.items()}
        return {host: (state, at) for host, (at, state) in last.items() if state != GONE}

    def accounts(self, first: int, end: int) -> list[tuple[Any, ...]]:
        before: dict[Key, list[int]] = {}
        for (hour, *who), row in self._accounts.items():
            if hour < first:
                steps = before.setdefault((first, *who), [0] * ACCOUNT_COLUMNS)  # type: ignore[arg-type]
                for step in (USED_STEP, GIVEN_STEP, ASKED_STEP):
                    steps[step] += row[step]
        within = {key: row for key, row in self._accounts.items() if first <= key[0] < end}
        going_on = {key: row for key, row in before.items() if any(row)}
        return sorted((*key, *row) for rows in (going_on, within) for key, row in rows.items())

    def minutes(self, since: int) -> list[tuple[int, ...]]:
        return sorted((minute, *row) for minute, row in self._minutes.items() if minute >= since)

    def host_states(self, host: str, since: int, until: int) -> list[tuple[str, int, str]]:
        found = []
        for name in [host] if host else list(self._host_states):
            rows = self._host_states.get(name, {})
            before = max((at for at in rows if at <= since), default=None)
            found += [(name, at, state) for at, state in rows.items() if at == before or since < at < until]
        return sorted(found)


def _plus(row: list[int] | None, more: list[int]) -> list[int]:
    return list(more) if row is None else [a + b for a, b in zip(row, more, strict=True)]
