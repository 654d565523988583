"""`rota usage`: how hosts spent their time, and what each of them did when."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from itertools import groupby
from typing import Final, NamedTuple

from rota.core.accounts.accounting import micros
from rota.core.machines.machine_states import (
    BUSY,
    DRAINING,
    UNKNOWN,
    UNSEEN,
    Condition,
    MachineState,
    NodeState,
    Usage,
    word,
)
from rota.core.machines.usage_sums import spans as machine_spans
from rota.core.rows import MachineRow
from rota.errors import BadInput
from rota.manager.loop import clock
from rota.plan.language.hostlist import natural
from rota.store.base import Store
from rota.wire import messages as m
from rota.wire.sums import HostUsage, NodeHistory, UsageView

DAY_S: Final = 86_400.0
#: Length of a host's history, in seconds and in changes.
_HISTORY_S: Final = 7 * DAY_S
_MOST: Final = 1000
#: States in which nothing could run. A sleeping host does not count: it would have been woken.
_DOWN: Final = (
    NodeState.AWAY,
    NodeState.DRAINED,
    NodeState.SUSPECTED,
    NodeState.CLOSED,
    Condition.MANUAL,
    Condition.BROKEN,
    Condition.REMOVED,
)


class HostSpan(NamedTuple):
    """What a host did from one moment to another, in microseconds, in one word."""

    host: str
    at: int
    until: int
    state: str


def spans(
    rows: Iterable[MachineRow], *, since: int, until: int, said: Callable[[MachineState], str] = word
) -> Iterator[HostSpan]:
    """The history of hosts within two moments, by host and time; spans with the same word are joined."""
    known = (span for span in machine_spans(rows, since=since, until=until) if span.what != UNKNOWN)
    for (host, state), its in groupby(known, key=lambda span: (span.host, said(span.what))):
        found = list(its)
        yield HostSpan(host, found[0].at, found[-1].until, state)


def usage(store: Store, ask: m.GetUsage) -> UsageView:
    """Seconds of each host in each state, of the last day by default. Raises `BadInput`."""
    now = clock.now()
    last = now if ask.until is None else min(ask.until, now)
    first = last - DAY_S if ask.since is None else ask.since
    since, until = micros(first), micros(last)
    if not first < last or until <= since:  # NaN, too
        raise BadInput("'to' is not after 'from', or nothing has happened yet", hint="give an earlier beginning")
    sums: dict[str, dict[str, int]] = {}
    for span in spans(store.machine_rows(host="", since=since, until=until), since=since, until=until):
        its = sums.setdefault(span.host, {})
        its[span.state] = its.get(span.state, 0) + span.until - span.at
    hosts = [_usage(host, its) for host, its in sorted(sums.items(), key=lambda each: natural(each[0]))]
    return UsageView(since=_time(since), until=_time(until), hosts=hosts, utilisation=_utilisation(*hosts))


def _usage(host: str, its: dict[str, int]) -> HostUsage:
    found = HostUsage(
        host=host,
        busy_s=(its.get(BUSY, 0) + its.get(DRAINING, 0)) / 1e6,
        idle_s=its.get(Usage.IDLE, 0) / 1e6,
        down_s=sum(its.get(state, 0) for state in _DOWN) / 1e6,
        asleep_s=its.get(NodeState.ASLEEP, 0) / 1e6,
        unseen_s=its.get(UNSEEN, 0) / 1e6,
    )
    found.utilisation = _utilisation(found)
    return found


def _utilisation(*hosts: HostUsage) -> float | None:
    """Busy time as a fraction of usable time. Sleep is usable: the host would have been woken."""
    busy = sum(each.busy_s for each in hosts)
    could = busy + sum(each.idle_s + each.asleep_s for each in hosts)
    return busy / could if could else None


def history(store: Store, host: str) -> list[NodeHistory]:
    """What a host did in the last week, newest first."""
    now = clock.now()
    since, until = micros(now - _HISTORY_S), micros(now)
    rows = store.machine_rows(host=host, since=since, until=until)
    found = [span for span in machine_spans(rows, since=since, until=until) if span.what != UNKNOWN]
    return [
        NodeHistory(
            at=_time(span.at),
            until=None if span is found[-1] else _time(span.until),
            state=word(span.what),
            condition=span.what.condition,
            usage=span.what.usage,
            node_state=span.what.state,
        )
        for span in reversed(found[-_MOST:])
    ]


def _time(at: int) -> datetime:
    return datetime.fromtimestamp(at / 1e6, UTC)
