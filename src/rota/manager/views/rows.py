"""From rows of the store to jobs in memory, and to the views that clients see."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from operator import attrgetter
from signal import Signals
from typing import Any

from rota.core.accounts.amounts import attempt_walltime, walltime_of
from rota.core.attempts.parts import lease_hosts
from rota.core.fields.table import IN_SPEC
from rota.core.forecast.expectation import Expected
from rota.core.jobs.explain import MOST_BLOCKERS, Explanation
from rota.core.jobs.job import Condition, Job, Parent, Reason, Spec, name_of
from rota.core.jobs.outcome import Outcome
from rota.core.jobs.reason_texts import sentence
from rota.core.jobs.report_groups import names_of
from rota.core.machines.phase_times import phase_times
from rota.core.rows import EventRow
from rota.core.site import promised_starts
from rota.core.states import TERMINAL, WAITING, State
from rota.core.stored import StoredAttempt, StoredJob, job_from_row
from rota.manager.loop import clock
from rota.manager.views.amounts import Attempted, amounts
from rota.manager.views.expected_times import expected_views
from rota.plan.language.hostlist import fold
from rota.plan.placement.explanation import Planned
from rota.plan.placement.given import Given
from rota.plan.reasons import Waits
from rota.plan.size import Size
from rota.pool_names import pool_of_runner
from rota.store.segments import Missing
from rota.wire.views import (
    AmountsView,
    AttemptView,
    BehavedView,
    CauseView,
    JobView,
    PromisedView,
    ReasonView,
    SizeView,
    StoryLine,
    WhyReason,
    size_view,
)

_CONDITIONS = {Condition.OK: "", Condition.ANY: "afterany:", Condition.NOT_OK: "afternotok:"}


#: Fields of specifications that views have, as they are and in another form.
_SHOWN = [field for field in IN_SPEC if field.view_name]
_PLAIN = [field for field in _SHOWN if field.kind.shown is None]
_plain_names = tuple(field.view_name for field in _PLAIN)
_plain_values = attrgetter(*(field.spec_name for field in _PLAIN))
_CONVERTED = [
    (field.view_name, attrgetter(field.spec_name), shown)
    for field in _SHOWN
    if (shown := field.kind.shown) is not None
]


@lru_cache(maxsize=1024)
def shown_fields(spec: Spec) -> dict[str, Any]:
    """The fields of a specification as views have them. Jobs that follow each other mostly share one."""
    found = dict(zip(_plain_names, _plain_values(spec), strict=True))
    for name, value, shown in _CONVERTED:
        found[name] = shown(value(spec))
    return found


def _shown_of_element(spec: Spec, pipeline_element: str) -> dict[str, Any]:
    return {**shown_fields(spec), "name": name_of(spec, pipeline_element)}


def view(
    row: StoredJob,
    spec: Spec,
    live: Job | None,
    *,
    host: str | None,
    pool_of: Callable[[str], str] = pool_of_runner,
    planned: Planned | None = None,
    expected: Expected | None = None,
    ran: Spec | None = None,
) -> JobView:
    """What a client sees of a job: the stored row, corrected by what memory knows better, and what is planned and
    expected. `pool_of` tells the pool of a host; `ran` is the specification of its newest attempt, if it was
    another one."""
    job = live or job_from_row(row, spec)
    attempt = row.newest if row.newest is not None and row.newest.number == job.attempt else None
    lease = job.lease
    started_at = attempt.started_at if attempt else None
    scheduled_at = attempt.leased_at if attempt else None
    if lease is not None:
        started_at, scheduled_at = lease.started_at, lease.leased_at
    ended_at = attempt.ended_at if attempt and lease is None else None
    reason, spec = job.reason, job.spec
    if reason is None and job.state is State.DEPENDENT and job.after:
        others = f" and {len(job.after) - 1} more" if len(job.after) > 1 else ""
        reason = Reason("dependency", f"waits for {_parent(job.after[0].parent)}{others}")
    size = job.size
    if live is None and attempt is not None:
        size = attempt.size or spec.size
    element, walltime_s = job.element, walltime_of(spec)
    given = lease.given if lease is not None else attempt.given if attempt is not None else None
    suspended = _suspended(given, ended_at)
    wall_s = _wall(started_at, ended_at, suspended)
    tried = _attempted(job, attempt, ran or spec, given, wall_s)
    first = host if lease is not None else (attempt.host if attempt else None)
    hosts = hosts_of(first or "", given)
    over = job.state in TERMINAL
    times = phase_times(
        submitted_at=job.submitted_at, started_at=started_at, over=over, given=given, now=clock.now(),
        ended_at=job.ended_at if over and ended_at is None else ended_at,
    )  # fmt: skip
    if job.state in WAITING:
        given = None  # of an attempt that is over
    starts, ends, why = expected_views(expected) if expected is not None else (None, None, None)
    resources = given.resources if given is not None else ""
    resources = resources or (planned.resources if planned is not None else "")
    return JobView(
        id=job.id,
        key=job.key,
        cmd=job.cmd,
        cwd=None if job.spec.scratch else job.spec.cwd,
        groups=list(names_of(job.spec.group)),
        user=job.spec.user,
        state=job.state.label,
        reason=ReasonView(reason.code, sentence(reason.code, reason.message)) if reason else None,
        size=taken(size, spec, walltime_s),
        after=[_CONDITIONS[each.condition] + _after(each.parent) for each in job.after],
        attempts=job.attempt,
        attempt=job.attempt,
        exit_code=attempt.exit_code if attempt and lease is None else None,
        signal=_signal_name(attempt.signal) if attempt and lease is None else None,
        host=first,
        hosts=list(hosts),
        pool=(pool_of(first) if first else "") or spec.pool,
        resources=resources or None,
        submitted_at=_time(job.submitted_at) or datetime.fromtimestamp(clock.now(), UTC),
        ready_at=_time(job.ready_at),
        scheduled_at=_time(scheduled_at),
        started_at=_time(started_at),
        ended_at=_time(ended_at if ended_at is not None else job.ended_at),
        expected_start=starts if job.state in WAITING else None,
        wall_s=wall_s,
        cpu_s=attempt.cpu_s if attempt else None,
        peak_mem_bytes=attempt.peak_mem if attempt else None,
        peak_disk_bytes=attempt.peak_disk if attempt else None,
        retries_left=job.retries_left,
        walltime_s=walltime_s,
        array_id=element.array if element else None,
        array_index=element.index if element else None,
        asked=taken(spec.size, spec, walltime_s),
        asked_priority=_asked_priority(job.spec),
        learn=job.learning_group,
        input_bytes=job.input_bytes,
        given=[*spec.given, *(("time",) if walltime_s is not None and "time" not in spec.given else ())],
        expected_end=ends,
        given_walltime_s=attempt_walltime(spec, given) if tried is not None and job.state not in WAITING else None,
        pending_walltime_s=(given.more_s or None) if given is not None and lease is not None else None,
        suspended_s=suspended,
        suspended_at=_time(given.pause.since) if lease is not None and given is not None and given.pause else None,
        replaced_by=row.replaced_by,
        expected_reason=why,
        amounts=amounts(spec, tried),
        promised=_promised(given),
        phase=times.phase or None,
        wait_s=round(times.wait_s, 6),
        provision_s=round(times.provision_s, 6),
        hold_s=round(times.hold_s, 6),
        **(shown_fields(spec) if row.pipeline_element is None else _shown_of_element(spec, row.pipeline_element)),
    )


def _attempted(
    job: Job, row: StoredAttempt | None, spec: Spec, given: Given | None, wall_s: float | None
) -> Attempted | None:
    """The newest attempt of a job; None: it has none, or only a lease that was never executed."""
    if job.lease is not None:
        return Attempted(spec, job.size, given)
    if row is None or row.outcome == "void":
        return None
    return Attempted(spec, row.size or spec.size, given, row.cpu_s, row.peak_mem, row.peak_disk, wall_s)


def _promised(given: Given | None) -> PromisedView | None:
    if given is None or given.promised is None:
        return None
    cores = sum(number for _host, number in given.nodes)
    return PromisedView(given.promised.cores, list(given.promised.nodes), cores, given.fewer)


def hosts_of(first: str, given: Given | None) -> tuple[str, ...]:
    """All hosts of an attempt, from the first of them, where its command is, and what it was given."""
    return (first, *lease_hosts(given)) if first else ()


def taken(size: Size, spec: Spec, walltime_s: float | None) -> SizeView:
    """A size for people: a walltime is the time that was asked for where no other was, and none was learned."""
    found = size_view(size)
    if walltime_s is not None and "time" not in spec.given and size.time_s == spec.size.time_s:
        found.time_s = walltime_s
    return found


def _parent(parent: Parent) -> str:
    return f"group '{parent}'" if isinstance(parent, str) else f"job {parent}"


def _after(parent: Parent) -> str:
    return f"@{parent}" if isinstance(parent, str) else str(parent)


def attempt_view(
    row: StoredAttempt, live: Job | None, specs: dict[int, Spec], *, missing: Missing | None = None
) -> AttemptView:
    """One attempt; an open one is in the state its job is in. `missing` is why its output is not all there."""
    state = row.outcome or (live.state.label if live is not None else "lost")
    started_at = row.started_at
    lease = live.lease if live is not None and live.attempt == row.number else None
    if lease is not None:
        started_at = lease.started_at
    wall_s = _wall(started_at, row.ended_at, _suspended(row.given, row.ended_at))
    given = lease.given if lease is not None else row.given
    return AttemptView(
        attempt=row.number,
        state=state,
        reason=ReasonView(row.reason_code, sentence(row.reason_code, row.reason_message or ""))
        if row.reason_code
        else None,
        exit_code=row.exit_code,
        signal=_signal_name(row.signal),
        host=row.host,
        runner=row.runner,
        scheduled_at=_time(row.leased_at),
        started_at=_time(started_at),
        ended_at=_time(row.ended_at),
        wall_s=wall_s,
        cpu_s=row.cpu_s,
        peak_mem_bytes=row.peak_mem,
        peak_disk_bytes=row.peak_disk,
        stdout_bytes=row.out_total,
        stderr_bytes=row.err_total,
        size=_taken_by(row, specs[row.spec]) if row.spec is not None else None,
        resources=(row.given.resources if row.given is not None else "") or None,
        behaviours=[BehavedView(each.behaviour, each.ok, each.message) for each in row.behaviours],
        hosts=list(hosts_of(row.host or "", row.given)),
        out_bytes=row.out_total,
        err_bytes=row.err_total,
        output_missing=None
        if missing is None
        else ReasonView(missing.code, sentence(missing.code, missing.message)),
        amounts=None if row.spec is None else _amounts_of(row, specs[row.spec], given, wall_s),
    )


def _missing(missing: Missing | None) -> ReasonView | None:
    return None if missing is None else ReasonView(missing.code, sentence(missing.code, missing.message))


def _amounts_of(row: StoredAttempt, spec: Spec, given: Given | None, wall_s: float | None) -> AmountsView:
    measured = (row.cpu_s, row.peak_mem, row.peak_disk, wall_s) if row.outcome is not None else ()
    return amounts(spec, Attempted(spec, row.size or spec.size, given, *measured))


def why_reason(waits: Explanation | Waits) -> WhyReason:
    """A reason for which a job waits, as everybody is told it."""
    causes = [CauseView(cause.kind, cause.name) for cause in waits.causes[:MOST_BLOCKERS]]
    message = sentence(waits.code, waits.message)
    return WhyReason(waits.code, message, list(waits.blockers[:MOST_BLOCKERS]), waits.hint, causes)


def _taken_by(row: StoredAttempt, spec: Spec) -> SizeView:
    given = row.given.walltime_s if row.given is not None else None
    return taken(row.size or spec.size, spec, given if given is not None else walltime_of(spec))


def story(job: JobView, attempts: list[AttemptView], events: list[EventRow]) -> list[StoryLine]:
    """Everything that happened to a job, in order."""
    lines = [StoryLine(job.submitted_at, 0, "added", f"by {job.user}")]
    for each in attempts:
        if each.scheduled_at:
            lines.append(StoryLine(each.scheduled_at, each.attempt, "scheduled", f"on {fold(each.hosts)}"))
        if each.started_at:
            lines.append(StoryLine(each.started_at, each.attempt, "started", ""))
        if each.ended_at:
            text = each.reason.message if each.reason else ""
            lines.append(StoryLine(each.ended_at, each.attempt, each.state, text))
    lines += [
        StoryLine(_time(event.at) or job.submitted_at, event.attempt, event.kind, event.text) for event in events
    ]
    return together(sorted(lines, key=lambda line: line.at))


def together(lines: list[StoryLine]) -> list[StoryLine]:
    """Moves of a promise that follow each other as one line, that of the last."""
    found: list[StoryLine] = []
    for line in lines:
        before = found[-1] if found else None
        if before and line.event == before.event == promised_starts.MOVED and line.attempt == before.attempt:
            times, cause = promised_starts.parse_moves(line.text)
            text = promised_starts.moves_text(times + promised_starts.parse_moves(before.text)[0], cause)
            found[-1] = StoryLine(line.at, line.attempt, line.event, text)
        else:
            found.append(line)
    return found


def _suspended(given: Given | None, ended_at: float | None) -> float | None:
    """How long an attempt was suspended; None: it never was."""
    pause = given.pause if given is not None else None
    if pause is None or (pause.since is None and not pause.before_s):
        return None
    now = ended_at if ended_at is not None else clock.now()
    return round(pause.before_s + (max(0.0, now - pause.since) if pause.since is not None else 0.0), 3)


def _asked_priority(spec: Spec) -> int | None:
    """What was asked for, if it is not what it is."""
    asked = spec.wrote.priority if spec.wrote is not None else None
    return asked if asked != spec.priority else None


def _time(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def _wall(started_at: float | None, ended_at: float | None, suspended_s: float | None) -> float | None:
    """How long an attempt took of its walltime, which does not count the time that it stood still."""
    if started_at is None or ended_at is None:
        return None
    return max(0.0, round(ended_at - started_at - (suspended_s or 0.0), 6))


def _signal_name(number: int | None) -> str | None:
    if number is None:
        return None
    try:
        return Signals(number).name.removeprefix("SIG")
    except ValueError:
        return str(number)


def outcome_of(row: StoredAttempt | None) -> Outcome | None:
    """The part of an attempt's outcome that is told to clients that wait for it."""
    if row is None or row.outcome is None:
        return None
    return Outcome(
        exit_code=row.exit_code,
        signal=row.signal,
        segment=row.segment or "",
        offset=row.offset or 0,
        out_len=row.out_len or 0,
        err_len=row.err_len or 0,
        out_total=row.out_total or 0,
        err_total=row.err_total or 0,
        kept=row.kept,
    )
