"""`rota accounting` and the history of throughput, from the sums in the store and the running attempts."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from itertools import pairwise
from typing import Final

from rota.core.accounts.accounting import (
    ACCOUNT_COLUMNS,
    ASKED,
    ASKED_STEP,
    ATTEMPTS,
    CORE_HOUR_US,
    CPU,
    FAILED,
    GIVEN,
    GIVEN_STEP,
    HOUR_S,
    JOBS,
    MINUTE_COLUMNS,
    MINUTES_KEPT,
    UNASKED,
    USED,
    USED_STEP,
    WAIT,
    Key,
    asked_us,
    given_us,
    micros,
    spread,
    suspended_us,
)
from rota.core.accounts.amounts import cores_of
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

AccountOwner = tuple[str, str, str]
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
    shown = tuple(name in by for name in BY)
    sums: dict[tuple[int, AccountOwner], list[int]] = defaultdict(lambda: [0] * ACCOUNT_COLUMNS)
    steps: dict[AccountOwner, list[UsageStep]] = defaultdict(list)
    unknown: set[tuple[int, AccountOwner]] = set()  #: sums of which it is not known what was asked for
    first, end = edges[0], edges[-1]
    for (hour, *names), row, stored in _rows(found, specs, now):
        if hour >= end:
            continue
        owner: AccountOwner = tuple(name if want else "" for name, want in zip(names, shown, strict=True))  # type: ignore[assignment]
        if row[USED_STEP] or row[GIVEN_STEP] or row[ASKED_STEP]:
            steps[owner].append((max(hour, first), row[USED_STEP], row[GIVEN_STEP], row[ASKED_STEP]))
        if hour >= first:  # running attempts may have started earlier
            window = bisect_right(edges, hour) - 1
            total = sums[window, owner]
            for column in range(ACCOUNT_COLUMNS):
                total[column] += row[column]
            if stored and hour < found.asked_since and row[GIVEN]:
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


def _rows(found: Accounts, specs: Mapping[int, Spec], now: float) -> Iterable[tuple[Key, list[int], bool]]:
    """The stored sums, then those of running attempts up to now; each with whether it is stored."""
    for hour, user, project, queue, *row in found.rows:
        yield (hour, user, project, queue), row, True
    running: dict[Key, list[int]] = {}
    for attempt in found.running:
        _add_running(running, specs[attempt.spec], attempt, micros(now))
    for key, row in running.items():
        yield key, row, False


def _add_running(rows: dict[Key, list[int]], spec: Spec, attempt: RunningAttempt, now: int) -> None:
    size, given = attempt.size or spec.size, attempt.given
    owner, cpus, start = (spec.user, spec.project, spec.queue), cores_of(size, given), micros(attempt.started_at)
    if start:
        start = min(now, start + suspended_us(given, now))
        spread(rows, owner, start, now, cpus, USED)
        spread(rows, owner, start, min(now, start + given_us(spec, size, given)), cpus, GIVEN)
        spread(rows, owner, start, min(now, start + (asked_us(spec, given) or 0)), cpus, ASKED)


def _between(
    sums: dict[tuple[int, AccountOwner], list[int]],
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
            total[USED] += its * used * CORE_HOUR_US
            total[GIVEN] += its * given * CORE_HOUR_US
            total[ASKED] += its * asked * CORE_HOUR_US
            touched.add(window)
    return touched


def _says(total: list[int]) -> bool:
    return any(total[column] for column in (ATTEMPTS, JOBS, USED, GIVEN, ASKED, CPU, WAIT))


def _row(hour: int, until: int, owner: AccountOwner, total: list[int], *, known: bool) -> AccountRow:
    return AccountRow(
        at=datetime.fromtimestamp(hour * HOUR_S, UTC),
        until=datetime.fromtimestamp(until * HOUR_S, UTC),
        user=owner[0],
        project=owner[1],
        queue=owner[2],
        attempts=total[ATTEMPTS],
        jobs=total[JOBS],
        failed=total[FAILED],
        used_s=total[USED] / 1e6,
        asked_s=total[ASKED] / 1e6 if known else None,
        cpu_s=total[CPU] / 1e6,
        wait_s=total[WAIT] / 1e6,
        given_s=total[GIVEN] / 1e6,
        unasked=total[UNASKED] if known else None,
    )


def history(store: Store, ask: m.GetHistory) -> HistoryView:
    """The last so many minutes, this one included. Raises `BadInput`."""
    if not 0 < ask.minutes <= MINUTES_KEPT:
        raise BadInput(f"'minutes' must be between 1 and {MINUTES_KEPT}", hint="a week is kept")
    last = int(clock.now() // 60)
    first = last - ask.minutes + 1
    found = {minute: row for minute, *row in store.minutes(since=first)}
    nothing = [0] * MINUTE_COLUMNS
    return HistoryView([_minute(minute, found.get(minute, nothing)) for minute in range(first, last + 1)])


def _minute(minute: int, row: list[int]) -> MinuteView:
    started, complete, failed, cancelled, wait_us, run_us = row
    return MinuteView(
        at=datetime.fromtimestamp(minute * 60, UTC),
        started=started,
        complete=complete,
        failed=failed,
        cancelled=cancelled,
        wait_s=wait_us / 1e6,
        run_s=run_us / 1e6,
    )
