"""Accounting: sums of use by hour, and of the pace of jobs by minute, written in the commit of what they count.

All amounts are whole microseconds, so sums are exact in any order. Use over many hours is not written hour by
hour: see `spread`. How an attempt is accounted depends only on stored data.
"""

from __future__ import annotations

from typing import Final, Literal

from rota.core.accounts.amounts import asked_s, cores_of, given_s
from rota.core.accounts.sums import AccountKey, AccountSums, MinuteSums
from rota.core.jobs.job import Job, Lease, Spec
from rota.core.states import State
from rota.core.turn import Turn
from rota.plan.placement.given import Given
from rota.plan.policy.usage_history import KEPT_S, History
from rota.plan.size import CORE, Size
from rota.units import MAX_SECONDS

HOUR_S: Final = 3600
HOUR_US: Final = HOUR_S * 1_000_000
#: A hundredth of a core for an hour, in core-microseconds.
CORE_HOUR_US: Final = HOUR_US // CORE
#: A core for a second, in hundredths of cores times microseconds.
_CORE_S: Final = CORE * 1e6
#: Fair share ignores older use.
_KEPT_US: Final = int(KEPT_S * 1e6)

#: What `spread` adds to.
Amount = Literal["used", "given", "asked"]

#: Minutes kept: a week.
MINUTES_KEPT: Final = 7 * 24 * 60

#: The end of the year 9999.
_LATEST: Final = 253_402_300_799.0


def micros(at: float | None) -> int:
    """Convert seconds to whole microseconds; 0 if the value is impossible."""
    return int(at * 1e6) if at is not None and 0.0 <= at <= _LATEST else 0


def suspended_us(given: Given | None, now: int) -> int:
    """How long an attempt has been suspended up to now."""
    pause = given.pause if given is not None else None
    if pause is None:
        return 0
    return micros(pause.before_s) + (max(0, now - micros(pause.since)) if pause.since is not None else 0)


def given_us(spec: Spec, size: Size, given: Given | None) -> int:
    """How long an attempt was given its cores for."""
    seconds = given_s(spec, size, given)
    return micros(seconds if seconds < MAX_SECONDS else MAX_SECONDS)


def asked_us(spec: Spec, given: Given | None) -> int | None:
    """The time asked for; None: none was."""
    seconds = asked_s(spec, given)
    return None if seconds is None else micros(seconds if seconds < MAX_SECONDS else MAX_SECONDS)


def spread(
    rows: dict[AccountKey, AccountSums],
    owner: tuple[str, str, str],
    start: int,
    end: int,
    cpus: int,
    amount: Amount,
) -> None:
    """Add cores from `start` to `end` to the sums of the hours in between.

    Only the first and the last hour get their share. Whole hours between them are recorded as a step up and a step
    down, so a job of a month takes at most four rows.
    """
    if not cpus or end <= start:
        return
    first, last = start // HOUR_US, end // HOUR_US
    whole = cpus * (end - start) // CORE
    if first == last:
        _add(_row(rows, AccountKey(first, *owner)), amount, whole)
        return
    head = cpus * ((first + 1) * HOUR_US - start) // CORE
    _add(_row(rows, AccountKey(first, *owner)), amount, head)
    between = last - first - 1
    tail = whole - head - between * cpus * CORE_HOUR_US
    _add(_row(rows, AccountKey(last, *owner)), amount, tail, step=-cpus if between else 0)
    if between:
        _add(_row(rows, AccountKey(first + 1, *owner)), amount, 0, step=cpus)


def _add(sums: AccountSums, amount: Amount, more: int, *, step: int = 0) -> None:
    match amount:
        case "used":
            sums.used += more
            sums.used_step += step
        case "given":
            sums.given += more
            sums.given_step += step
        case "asked":
            sums.asked += more
            sums.asked_step += step


def account_attempt(
    turn: Turn,
    use: History,
    job: Job,
    lease: Lease,
    *,
    failed: bool,
    started_at: float | None,
    ended_at: float,
    cpu_s: float,
    suspended_s: float = 0.0,
) -> None:
    """Account for an ended attempt: what it used, was given and asked for.

    Suspended time is cut from its beginning.

    Time given or asked for beyond its end counts in the hour of its end: no future hour is ever charged, so every
    window that ends now has the same sums. `use`, for fair share, gets the same amounts.
    """
    spec, given = job.spec, lease.given
    start, end = micros(started_at), micros(ended_at) or micros(turn.wall)
    hour = end // HOUR_US
    row = _row_of(turn, spec, hour)
    row.attempts += 1
    row.failed += failed
    if cpu_s:
        row.cpu += micros(cpu_s)
    if not start:
        return
    if job.ready_at is not None and (waited := start - micros(job.ready_at)) > 0:
        row.wait += waited
    if suspended_s:
        start = min(end, start + micros(suspended_s))
    size = job.learned or spec.size
    cpus = size.cpus if given is None else cores_of(size, given)
    held, lent, asked = max(0, end - start), given_us(spec, size, given), asked_us(spec, given)
    if asked is None:
        row.unasked += 1
        asked = 0
    if start // HOUR_US == hour and start < end:
        # The usual case, equal to what `spread` would do.
        row.used += cpus * held // CORE
        row.given += cpus * lent // CORE
        row.asked += cpus * asked // CORE
        use.add((spec.user, spec.project), cpus * held / _CORE_S, cpus * lent / _CORE_S, end / 1e6)
    else:
        owner = (spec.user, spec.project, spec.queue)
        spread(turn.changes.accounts, owner, start, end, cpus, "used")
        amounts: tuple[tuple[Amount, int], ...] = (("given", lent), ("asked", asked))
        for amount, whole in amounts:
            while_held = min(whole, held)
            spread(turn.changes.accounts, owner, start, start + while_held, cpus, amount)
            _add(row, amount, cpus * whole // CORE - cpus * while_held // CORE)
        _spread_use(use, spec, start, end, cpus, lent)
    if held:
        _minute(turn).ran += held
    if lease.started_at is None:
        count_start(turn, job, started_at)  # its start was not reported before


def account_hold(
    turn: Turn, use: History, owner: tuple[str, str, str], *, cpus: int, since: float, until: float
) -> None:
    """Account for machines that an ended job has kept: used and given, though not asked for as time of the job."""
    start, end = micros(since), micros(until)
    if end <= start:
        return
    spread(turn.changes.accounts, owner, start, end, cpus, "used")
    spread(turn.changes.accounts, owner, start, end, cpus, "given")
    at = max(start, end - _KEPT_US)
    while at < end:
        later = min(end, (at // HOUR_US + 1) * HOUR_US)
        held = cpus * (later - at) / _CORE_S
        use.add((owner[0], owner[1]), held, held, at / 1e6)
        at = later


def _spread_use(use: History, spec: Spec, start: int, end: int, cpus: int, lent: int) -> None:
    """The same for fair share, which has no steps: hour by hour."""
    owner = (spec.user, spec.project)
    at = max(start, end - _KEPT_US)
    while at < end:
        until = min(end, (at // HOUR_US + 1) * HOUR_US)
        lent_now = max(0, min(until, start + lent) - at)
        use.add(owner, cpus * (until - at) / _CORE_S, cpus * lent_now / _CORE_S, at / 1e6)
        at = until
    beyond = lent - max(0, end - start)
    if beyond > 0:
        use.add(owner, 0.0, cpus * beyond / _CORE_S, end / 1e6)


def count_start(turn: Turn, job: Job, started_at: float | None) -> None:
    """Count the start of an attempt."""
    row = _minute(turn)
    row.started += 1
    # `ready_at` may be unknown.
    if job.ready_at is not None and (start := micros(started_at)) and (waited := start - micros(job.ready_at)) > 0:
        row.waited += waited


def count_end(turn: Turn, job: Job, state: State) -> None:
    """Count the end of a job, not merely of an attempt."""
    _row_of(turn, job.spec, int(turn.wall // HOUR_S)).jobs += 1
    minute = _minute(turn)
    if state is State.COMPLETE:
        minute.complete += 1
    elif state is State.FAILED:
        minute.failed += 1
    else:
        minute.cancelled += 1


def _row_of(turn: Turn, spec: Spec, hour: int) -> AccountSums:
    """The row for jobs of this specification in an hour. Cached: many jobs of a batch share it."""
    sums = turn.batch.sums
    found = sums.get(hour)
    if found is not None and found[0] is spec:
        return found[1]
    row = _row(turn.changes.accounts, AccountKey(hour, spec.user, spec.project, spec.queue))
    sums[hour] = (spec, row)
    return row


def _row(rows: dict[AccountKey, AccountSums], key: AccountKey) -> AccountSums:
    row = rows.get(key)
    if row is None:
        row = rows[key] = AccountSums()
    return row


def _minute(turn: Turn) -> MinuteSums:
    row = turn.minute
    if row is None:
        at = int(turn.wall // 60)
        row = turn.minute = turn.changes.minutes.setdefault(at, MinuteSums())
    return row
