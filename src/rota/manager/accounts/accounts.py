"""`rota accounting` and the history of throughput, from the sums in the store and the running attempts."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from itertools import pairwise
from typing import Final, NamedTuple

from rota.core.accounts.accounting import (
    CORE_HOUR_US,
    HOUR_S,
    MINUTES_KEPT,
    asked_us,
    given_us,
    micros,
    spread,
    suspended_us,
)
from rota.core.accounts.amounts import cores_of
from rota.core.accounts.sums import AccountKey, AccountSums, MinuteSums
from rota.core.jobs.job import Spec
from rota.errors import BadInput
from rota.manager.accounts import windows
from rota.manager.loop import clock
from rota.store.base import Accounts, RunningAttempt, Store
from rota.time_zones import zone_of
from rota.wire import messages as m
from rota.wire.sums import AccountingView, AccountRow, HistoryView, MinuteView

BY: Final = ("user", "project", "queue")
DAY_S: Final = 24 * HOUR_S
#: Windows that are shown without a start time.
_WINDOWS: Final = 30
#: Limits of one answer.
_MOST_WINDOWS: Final = 50_000
_MOST_ROWS: Final = 50_000


class AccountOwner(NamedTuple):
    """Whose use is shown together; empty: not told apart."""

    user: str
    project: str
    queue: str


#: Hour, and the changes of cores used, given and asked for from then on.
UsageStep = tuple[int, int, int, int]


def accounting(store: Store, specs: Mapping[int, Spec], ask: m.GetAccounts) -> AccountingView:
    """What was used from when to when, in windows. Raises `BadInput`."""
    now = clock.now()
    if unknown := [name for name in ask.by if name not in BY]:
        raise BadInput(f"there is no accounting by '{unknown[0][:40]}'", hint=f"use some of {', '.join(BY)}")
    if ask.window or ask.zone:
        zone = zone_of(ask.zone)
        edges = windows.edges(ask.window or "day", since=ask.since, until=ask.until, now=now, zone=zone)
    else:
        if not HOUR_S <= ask.window_s <= 366 * DAY_S or ask.window_s % HOUR_S:
            raise BadInput("a window must have whole hours", hint="use 3600 or 86400 seconds")
        begin, end = _bounds(ask, now)
        hours = ask.window_s // HOUR_S
        edges = [window * hours for window in range(begin, end + 1)]
    found = store.accounts(first=edges[0], end=edges[-1])
    made = in_windows(found, specs, edges=edges, by=ask.by, now=now)
    made.window, made.zone = ask.window, ask.zone or "UTC"
    if not ask.apart:
        for row in made.rows:  # earlier clients expect this meaning, and no null
            row.asked_s = row.given_s
    return made


def _bounds(ask: m.GetAccounts, now: float) -> tuple[int, int]:
    """Numbers of the first window, and of the one after the last."""
    window_s = ask.window_s
    last = now if ask.until is None else ask.until
    until = -(-last // window_s)
    since = until - _WINDOWS if ask.since is None else ask.since // window_s
    if not (abs(since) <= 1 << 31 and abs(until) <= 1 << 31):  # NaN, too
        raise BadInput("this time is out of range", hint="give a date of this century")
    if until <= since:
        raise BadInput("'to' is not after 'from'", hint="give a later end, or none")
    if until - since > _MOST_WINDOWS:
        raise BadInput(
            f"these are more than {_MOST_WINDOWS:,} windows", hint="ask for a shorter time, or for days"
        )
    return max(0, int(since)), max(1, int(until))


def view(
    found: Accounts,
    specs: Mapping[int, Spec],
    *,
    begin: int,
    end: int,
    window_s: int,
    by: Iterable[str],
    now: float,
) -> AccountingView:
    """Hours as windows of one length, from the window of number `begin` up to that of number `end`."""
    hours = window_s // HOUR_S
    edges = [window * hours for window in range(begin, end + 1)]
    return in_windows(found, specs, edges=edges, by=by, now=now)


def in_windows(
    found: Accounts, specs: Mapping[int, Spec], *, edges: list[int], by: Iterable[str], now: float
) -> AccountingView:
    """Hours as windows that begin at all of these hours but the last, which ends the last one."""
    by_user, by_project, by_queue = (name in by for name in BY)
    sums: dict[tuple[int, AccountOwner], AccountSums] = defaultdict(AccountSums)
    steps: dict[AccountOwner, list[UsageStep]] = defaultdict(list)
    unknown: set[tuple[int, AccountOwner]] = set()  #: sums of which it is not known what was asked for
    first, end = edges[0], edges[-1]
    for key, row, stored in _rows(found, specs, now):
        hour = key.hour
        if hour >= end:
            continue
        owner = AccountOwner(
            key.user if by_user else "", key.project if by_project else "", key.queue if by_queue else ""
        )
        if row.used_step or row.given_step or row.asked_step:
            steps[owner].append((max(hour, first), row.used_step, row.given_step, row.asked_step))
        if hour >= first:  # running attempts may have started earlier
            window = bisect_right(edges, hour) - 1
            sums[window, owner].add(row)
            if stored and hour < found.asked_since and row.given:
                unknown.add((window, owner))
    for owner, changes in steps.items():
        touched = _between(sums, owner, changes, edges=edges)
        unknown.update((window, owner) for window in touched if edges[window] < found.asked_since)
    rows = [
        _row(edges[window], edges[window + 1], owner, total, known=(window, owner) not in unknown)
        for (window, owner), total in sorted(sums.items())
        if _says(total)
    ]
    if len(rows) > _MOST_ROWS:
        raise BadInput(f"these are more than {_MOST_ROWS:,} rows", hint="ask for a shorter time, or for days")
    lengths = {until - at for at, until in pairwise(edges)}
    return AccountingView(
        window_s=max(lengths) * HOUR_S,
        rows=rows,
        since=datetime.fromtimestamp(first * HOUR_S, UTC),
        until=datetime.fromtimestamp(end * HOUR_S, UTC),
    )


def _rows(
    found: Accounts, specs: Mapping[int, Spec], now: float
) -> Iterable[tuple[AccountKey, AccountSums, bool]]:
    """The stored sums, then those of running attempts up to now; each with whether it is stored."""
    for row in found.rows:
        yield row.key, row.sums, True
    running: dict[AccountKey, AccountSums] = {}
    for attempt in found.running:
        _add_running(running, specs[attempt.spec], attempt, micros(now))
    for key, sums in running.items():
        yield key, sums, False


def _add_running(rows: dict[AccountKey, AccountSums], spec: Spec, attempt: RunningAttempt, now: int) -> None:
    size, given = attempt.size or spec.size, attempt.given
    owner, cpus, start = (spec.user, spec.project, spec.queue), cores_of(size, given), micros(attempt.started_at)
    if start:
        start = min(now, start + suspended_us(given, now))
        spread(rows, owner, start, now, cpus, "used")
        spread(rows, owner, start, min(now, start + given_us(spec, size, given)), cpus, "given")
        spread(rows, owner, start, min(now, start + (asked_us(spec, given) or 0)), cpus, "asked")


def _between(
    sums: dict[tuple[int, AccountOwner], AccountSums],
    owner: AccountOwner,
    changes: list[UsageStep],
    *,
    edges: list[int],
) -> set[int]:
    """Add the hours that are stored as steps only. Returns the windows that they are in."""
    used = given = asked = 0
    touched: set[int] = set()
    changes.sort()
    ends = [*(hour for hour, *_ in changes[1:]), edges[-1]]
    for (hour, more_used, more_given, more_asked), until in zip(changes, ends, strict=True):
        used, given, asked = used + more_used, given + more_given, asked + more_asked
        if not used and not given and not asked:
            continue
        for window in range(bisect_right(edges, hour) - 1, bisect_left(edges, until)):
            its = min(until, edges[window + 1]) - max(hour, edges[window])
            total = sums[window, owner]
            total.used += its * used * CORE_HOUR_US
            total.given += its * given * CORE_HOUR_US
            total.asked += its * asked * CORE_HOUR_US
            touched.add(window)
    return touched


def _says(total: AccountSums) -> bool:
    return any((total.attempts, total.jobs, total.used, total.given, total.asked, total.cpu, total.wait))


def _row(hour: int, until: int, owner: AccountOwner, total: AccountSums, *, known: bool) -> AccountRow:
    return AccountRow(
        at=datetime.fromtimestamp(hour * HOUR_S, UTC),
        until=datetime.fromtimestamp(until * HOUR_S, UTC),
        user=owner.user,
        project=owner.project,
        queue=owner.queue,
        attempts=total.attempts,
        jobs=total.jobs,
        failed=total.failed,
        used_s=total.used / 1e6,
        asked_s=total.asked / 1e6 if known else None,
        cpu_s=total.cpu / 1e6,
        wait_s=total.wait / 1e6,
        given_s=total.given / 1e6,
        unasked=total.unasked if known else None,
    )


def history(store: Store, ask: m.GetHistory) -> HistoryView:
    """The last so many minutes, this one included. Raises `BadInput`."""
    if not 0 < ask.minutes <= MINUTES_KEPT:
        raise BadInput(f"'minutes' must be between 1 and {MINUTES_KEPT}", hint="a week is kept")
    last = int(clock.now() // 60)
    first = last - ask.minutes + 1
    found = {row.minute: row.sums for row in store.minutes(since=first)}
    nothing = MinuteSums()
    return HistoryView([_minute(minute, found.get(minute, nothing)) for minute in range(first, last + 1)])


def _minute(minute: int, sums: MinuteSums) -> MinuteView:
    return MinuteView(
        at=datetime.fromtimestamp(minute * 60, UTC),
        started=sums.started,
        complete=sums.complete,
        failed=sums.failed,
        cancelled=sums.cancelled,
        wait_s=sums.waited / 1e6,
        run_s=sums.ran / 1e6,
    )
