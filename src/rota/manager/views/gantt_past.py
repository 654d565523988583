"""The past of the Gantt chart: attempts that have ended, and what hosts did. Runs off the loop.

Where there are more attempts than can be drawn, they are merged: for each host and slice of time, how many cores
were in use. An answer that took long is kept for a while in proportion, so that pages that ask again and again
cannot keep the machine busy with the past.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from math import ceil, inf, nextafter
from threading import Lock
from typing import Any, Final, NamedTuple

import msgspec

from rota.core.accounts.accounting import HOUR_S, micros
from rota.core.accounts.amounts import cores_of
from rota.core.jobs.job import Spec, name_of
from rota.core.jobs.report_groups import first_of
from rota.core.machines.machine_states import BUSY, Condition, MachineState, NodeState, Usage, word
from rota.manager.accounts.usage import HostSpan, spans
from rota.manager.views.gantt_rows import ChartBar, lines_needed, placed
from rota.plan.site.bitset import parse_spans, spans_of
from rota.plan.size import CORE
from rota.store.base import Store
from rota.store.past import PastAttempt, PastSum
from rota.wire.gantt import GanttAttempt, GanttMerged, GanttPast, GanttState

_FEWEST_SLICES: Final = 48
_MOST_SLICES: Final = 1000
_MOST_STATES: Final = 20_000
#: A slow answer is cached for so many times as long as it took.
_GOOD_FOR: Final = 20.0
_LONGEST_S: Final = 60.0
_LONG_S: Final = 0.05
_KEPT: Final = 8
#: Questions are the same whose ends are no further apart than this, and than such a part of a slice.
_NEAR_S: Final = 60.0
_PARTS: Final = 8
#: What calendars can express, and what is not worth a question.
_LATEST: Final = 253_402_300_799.0
_SHORTEST_S: Final = 0.001

#: Before anything is known of a host.
UNKNOWN: Final = "unknown"

_nodes = msgspec.json.Decoder(list[tuple[str, int]])


class PastWindow(NamedTuple):
    """The requested time, up to now, and the number of bars in it."""

    since: float
    until: float
    limit: int  #: bars


class PastRows(NamedTuple):
    """The lines of the present hosts and of their resources."""

    cores: Mapping[str, int]
    of: Mapping[int, tuple[str, int]]  #: id of a resource → host, line


class Past:
    """Answers about the past, from the store."""

    def __init__(self, store: Store, specs: Mapping[int, Spec]) -> None:
        self._store = store
        self._specs = specs
        self._lock = Lock()
        self._known: dict[Any, tuple[float, Any]] = {}  #: question → (valid until, answer)

    def view(
        self, window: PastWindow, lines: PastRows, running: Sequence[ChartBar]
    ) -> tuple[GanttPast, list[dict[str, list[int]]]]:
        """The past, and the lines for `running` bars that have none of their own."""
        since, until = max(window.since, 0.0), min(window.until, _LATEST)
        rows: list[PastAttempt] = []
        sums: list[PastSum] = []
        slices, begin, end = 0, since, until
        if until - since > _SHORTEST_S:
            found, hosts = self._store.past_hosts(since=since, until=until, limit=window.limit + 1)
            if found > window.limit:
                slices = _slices(window.limit, len(hosts | lines.cores.keys()))
                sums, begin, end = self._sums(since, until, slices)
            elif found:
                rows = self._store.past(since=since, until=until, limit=window.limit)
        rows.sort(key=lambda row: (row.started_at, row.job, row.number))
        bars = [_bar(row, self._specs, lines) for row in rows]
        gone = {host: n for host, n in lines_needed(bars).items() if host not in lines.cores}
        places = placed([*bars, *running], {**lines.cores, **gone})
        merged = _merged(sums, self._specs, since=begin, until=end, slices=slices) if slices else []
        for each in merged:
            if each.host not in lines.cores:
                gone[each.host] = max(gone.get(each.host, 0), ceil(each.cores))
        return GanttPast(
            until=_time(until),
            attempts=[
                _attempt(row, self._specs[row.spec], place, exact=bool(bar.known))
                for row, bar, place in zip(rows, bars, places, strict=False)
            ],
            merged=merged,
            slice_s=(end - begin) / slices if slices else None,
            states=self._states(since, until, lines.cores),
            lines=gone,
            total=sum(row.attempts for row in sums) if slices else len(rows),
            removed=self._removed(since, until, (begin, end, sum(row.ended for row in sums))),
        ), places[len(rows) :]

    def _sums(self, since: float, until: float, slices: int) -> tuple[list[PastSum], float, float]:
        """What ran in each slice, and the time that this covers. Pages that look back from now ask for a slightly
        later time with each request; a difference too small to see is not counted anew."""
        step = min(_NEAR_S, (until - since) / slices / _PARTS)
        question = ("sums", round(since / step), round(until / step), slices)
        found: tuple[list[PastSum], float, float] = self._kept(
            question, lambda: (self._store.past_sums(since=since, until=until, slices=slices), since, until)
        )
        return found

    def _kept(self, question: Any, answer: Any) -> Any:
        """The answer, perhaps a cached one. A slow question is asked only once at a time."""
        with self._lock:
            now = time.monotonic()
            good_until, known = self._known.get(question, (0.0, None))
            if now < good_until:
                return known
            found = answer()
            took_s = time.monotonic() - now
            if took_s > _LONG_S:
                while len(self._known) >= _KEPT:
                    del self._known[next(iter(self._known))]
                self._known[question] = (now + took_s + min(_GOOD_FOR * took_s, _LONGEST_S), found)
            return found

    def _states(self, since: float, until: float, hosts: Iterable[str]) -> list[GanttState]:
        first, last = micros(since), micros(until)
        if last <= first:
            return []
        rows = self._store.machine_rows(host="", since=first, until=last)
        begun: dict[str, int] = {}
        for row in rows:
            begun.setdefault(row.host, row.at)
        found = [
            HostSpan(host, first, min(at, last), UNKNOWN)
            for host, at in ((host, begun.get(host, last)) for host in hosts)
            if at > first
        ]
        told = spans(rows, since=first, until=last, said=_band)
        found += (span for span in told if span.state not in (BUSY, Usage.IDLE))
        if len(found) > _MOST_STATES:
            found = _joined(found, gap=(last - first) // _MOST_SLICES)
        return [
            GanttState(host=host, start=_time(at / 1e6), end=_time(over / 1e6), state=state)
            for host, at, over, state in found[:_MOST_STATES]
        ]

    def _removed(self, since: float, until: float, found: tuple[float, float, int]) -> int:
        """The number of attempts that were removed and are left in the accounts only. `found`: two moments, and
        how many attempts that ended between them still exist."""
        first, end = int(since) // HOUR_S, int(until) // HOUR_S + 1
        begin, over = float(first * HOUR_S), float(end * HOUR_S)
        after, before, ended = found
        if until <= since:
            return 0

        def count() -> int:
            accounted: int = sum(row.sums.attempts for row in self._store.accounts(first=first, end=end).rows)
            if not accounted:
                return 0
            if ended and begin <= after and before <= over:
                # Accounts are by hour. Mostly nothing was removed: then it suffices to count at the two ends.
                ends = ((begin, nextafter(after, inf)), (before, over))
                rest = sum(self._store.ended_between(since=one, until=two) for one, two in ends)
                if accounted <= ended + rest:
                    return 0
            return accounted - self._store.ended_between(since=begin, until=over)

        return max(0, int(self._kept(("removed", first, end), count)))


def _band(what: MachineState) -> str:
    """What is drawn behind the jobs of a machine. A condition counts for more than what runs on."""
    said = word(what)
    manual = what.condition == Condition.MANUAL and what.state != NodeState.UNKNOWN
    return what.condition if manual else said


def _slices(limit: int, hosts: int) -> int:
    return max(_FEWEST_SLICES, min(_MOST_SLICES, limit // max(1, hosts)))


def _bar(row: PastAttempt, specs: Mapping[int, Spec], lines: PastRows) -> ChartBar:
    given = row.given
    known: dict[str, list[int]] = {}
    if given is not None and given.nodes:
        if len(given.cpu_lists) == len(given.nodes):
            known = {
                host: parse_spans(text) for (host, _n), text in zip(given.nodes, given.cpu_lists, strict=True)
            }
        elif given.cpu_list and len(given.nodes) == 1:
            known = {given.nodes[0][0]: parse_spans(given.cpu_list)}
        else:
            for host, line in (lines.of[id] for id in parse_spans(given.resources) if id in lines.of):
                known.setdefault(host, []).append(line)
    cpus = cores_of(row.size or specs[row.spec].size, given)
    return ChartBar(row.host, row.started_at, row.ended_at, -(-cpus // CORE), known)


def _attempt(row: PastAttempt, spec: Spec, place: Mapping[str, Sequence[int]], *, exact: bool) -> GanttAttempt:
    given = row.given
    paused_s = given.pause.before_s if given is not None and given.pause is not None else 0.0
    return GanttAttempt(
        id=row.job,
        attempt=row.number,
        name=name_of(spec, row.pipeline_element),
        user=spec.user,
        project=spec.project,
        queue=spec.queue,
        group=first_of(row.group),
        state=row.outcome,
        type=list(spec.types),
        start=_time(row.started_at),
        end=_time(row.ended_at),
        host=row.host,
        cores=cores_of(row.size or spec.size, given) / CORE,
        resources=(given.resources or None) if given is not None else None,
        lines=[(host, spans_of(its)) for host, its in place.items()],
        exact=exact,
        suspended_s=min(paused_s, max(0.0, row.ended_at - row.started_at)),
        gang=spec.gang,
    )


def _merged(
    sums: Iterable[PastSum], specs: Mapping[int, Spec], *, since: float, until: float, slices: int
) -> list[GanttMerged]:
    """Core-seconds of each host in each slice. An attempt over many slices is a step up and a step down."""
    length = (until - since) / slices
    used: defaultdict[str, list[float]] = defaultdict(lambda: [0.0] * slices)
    steps: defaultdict[str, list[float]] = defaultdict(lambda: [0.0] * (slices + 1))
    counts: defaultdict[tuple[str, int], list[int]] = defaultdict(lambda: [0, 0])
    for row in sums:
        each = specs[row.spec].size.cpus / CORE if row.spec else 1 / CORE
        nodes = _nodes.decode(row.place) if row.place.startswith("[") else [(row.place, 0)]
        count = counts[nodes[0][0], row.last]
        count[0] += row.attempts
        count[1] += row.failed
        for host, whole in nodes:
            cores = float(whole) if whole else each
            its = used[host]
            if row.first == row.last:
                its[row.first] += cores * (row.end_s - row.begin_s)
                continue
            its[row.first] += cores * (row.cpus * (row.first + 1) * length - row.begin_s)
            its[row.last] += cores * (row.end_s - row.cpus * row.last * length)
            steps[host][row.first + 1] += cores * row.cpus
            steps[host][row.last] -= cores * row.cpus
    edges = [_time(since + number * length) for number in range(slices + 1)]
    found = []
    for host in sorted(used):
        at_once, its, ups = 0.0, used[host], steps.get(host)
        for number in range(slices):
            if ups is not None:
                at_once += ups[number]
            cores = its[number] / length + at_once
            attempts, failed = counts.get((host, number), (0, 0))
            if attempts or cores > 1e-6:
                found.append(
                    GanttMerged(
                        host=host,
                        start=edges[number],
                        end=edges[number + 1],
                        cores=max(0.0, cores),
                        attempts=attempts,
                        failed=failed,
                    )
                )
    return found


def _joined(found: Iterable[HostSpan], *, gap: int) -> list[HostSpan]:
    """Joins spans of the same state with only a short gap between them, and drops very short ones."""
    joined: list[HostSpan] = []
    for span in found:
        last = joined[-1] if joined else None
        if last and (last.host, last.state) == (span.host, span.state) and span.at - last.until < gap:
            joined[-1] = last._replace(until=span.until)
        else:
            joined.append(span)
    return [span for span in joined if span.until - span.at >= gap]


def _time(moment: float) -> datetime:
    return datetime.fromtimestamp(min(moment, _LATEST), UTC)
