"""`rota node usage`: how machines spent their time, from their history, by host, group or property.

Runs off the loop. Machines belong to the groups, and have the properties, that they have now. A key with several
machines has the sum of their times.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from rota.core.accounts.accounting import micros
from rota.core.machines.machine_states import GONE, Condition, MachineState, Usage
from rota.core.machines.usage_sums import Sums, spans
from rota.core.machines.usage_windows import window_sums
from rota.errors import BadInput, NotFound
from rota.manager.accounts import windows
from rota.manager.loop import clock
from rota.plan.language.hostlist import natural
from rota.plan.site.records import PLACE, kinds_of, show_value
from rota.store.base import Store
from rota.time_zones import zone_of
from rota.wire import messages as m
from rota.wire.sums import NodeView
from rota.wire.usage_views import MachineUsageRow, MachineUsageView

DAY_S: Final = 86_400.0
#: Keys times windows of one answer.
_MOST: Final = 50_000
_EARLIEST: Final = 0.0
_ORDER: Final = {word: at for at, word in enumerate([*Condition, *Usage])}

HOST: Final = "host"
GROUP: Final = "group"


def machine_usage(
    store: Store, ask: m.GetMachineUsage, nodes: Iterable[NodeView], records: Mapping[str, Mapping[str, Any]]
) -> MachineUsageView:
    """Seconds of each key in each state, in each window. Raises `BadInput` and `NotFound`."""
    edges = _edges(ask, clock.now())
    known = {node.host: node for node in nodes}
    keys = _Keys(ask.by, known, records)
    past = set(store.machine_hosts())
    for host in ask.hosts:
        if host not in known and host not in past:
            raise NotFound(f"there is no host '{host[:255]}'", hint="list them with 'rota node list'")
    found: dict[str, list[Sums]] = {}
    machines: dict[str, int] = {}
    hosts = dict.fromkeys(ask.hosts) or known.keys() | past
    for host in sorted(hosts, key=natural):
        rows = store.machine_rows(host=host, since=edges[0], until=edges[-1])
        its = window_sums(spans(rows, since=edges[0], until=edges[-1], hosts=(host,)), edges)
        if not ask.hosts and host not in known and all(each.keys() <= {GONE} for each in its):
            continue  # it was removed before
        for key in keys.of(host):
            machines[key] = machines.get(key, 0) + 1
            if key not in found:
                _refuse_many((len(found) + 1) * len(its))
                found[key] = [{} for _ in its]
            for into, each in zip(found[key], its, strict=True):
                for what, spent in each.items():
                    into[what] = into.get(what, 0) + spent
    order = sorted(found, key=natural)
    return MachineUsageView(
        since=_time(edges[0]),
        until=_time(edges[-1]),
        by=ask.by,
        machines={key: machines[key] for key in order},
        edges=[_time(at) for at in edges],
        rows=[
            MachineUsageRow(
                host=key, condition=what.condition, usage=what.usage, state=what.state, seconds=spent / 1e6, at=at
            )
            for window, at in enumerate(map(_time, edges[:-1]))
            for key in order
            for what, spent in _ordered(found[key][window])
        ],
    )


class _Keys:
    """The keys under which the time of a machine is counted. Raises `BadInput` for an unknown property."""

    def __init__(self, by: str, nodes: Mapping[str, NodeView], records: Mapping[str, Mapping[str, Any]]) -> None:
        self._by = by
        self._nodes = nodes
        if by in ("", HOST, GROUP):
            return
        if by in PLACE:
            raise BadInput(f"'{by}' is a property of cores, not of machines", hint="use host, group or a property")
        if by not in kinds_of(records) and not any(by in node.properties for node in nodes.values()):
            raise BadInput(
                f"there is no property '{by[:64]}'",
                hint="use host, group or a property; list them with 'rota property list'",
            )

    def of(self, host: str) -> Sequence[str]:
        """Empty text: no group, no such property, or one that differs between the cores of the machine."""
        if self._by == "":
            return ("",)
        if self._by == HOST:
            return (host,)
        node = self._nodes.get(host)
        if node is None:
            return ("",)
        if self._by == GROUP:
            return node.groups or ("",)
        value = node.properties.get(self._by)
        return ("" if value is None else show_value(value),)


def _edges(ask: m.GetMachineUsage, now: float) -> list[int]:
    """The ends of all windows, in microseconds. Nothing is known of the time to come. Raises `BadInput`."""
    last = now if ask.until is None else min(ask.until, now)
    first = last - DAY_S if ask.since is None else ask.since
    if first >= now:
        raise BadInput("'from' lies in the future", hint="nothing is known of it yet; give an earlier time")
    if not first < last or not first >= _EARLIEST:  # NaN, too
        raise BadInput("'to' is not after 'from'", hint="give a later end, or an earlier beginning")
    since, until = micros(first), micros(last)
    if until <= since:
        raise BadInput("'to' is not after 'from'", hint="give a later end, or an earlier beginning")
    zone = zone_of(ask.zone)
    if not ask.window:
        return [since, until]
    hours = windows.edges(ask.window, since=first, until=last, now=now, zone=zone)
    inner = (hour * windows.HOUR_S * 1_000_000 for hour in hours)
    return [since, *(at for at in inner if since < at < until), until]


def _refuse_many(number: int) -> None:
    if number > _MOST:
        raise BadInput(
            f"these are more than {_MOST:,} sums", hint="ask for a shorter time, fewer machines or longer windows"
        )


def _ordered(sums: Sums) -> Iterator[tuple[MachineState, int]]:
    def order(each: tuple[MachineState, int]) -> tuple[int, int, str]:
        (condition, usage, state), _spent = each
        return _ORDER.get(condition, len(_ORDER)), _ORDER.get(usage, len(_ORDER)), state

    yield from sorted(sums.items(), key=order)


def _time(at: int) -> datetime:
    return datetime.fromtimestamp(at / 1e6, UTC)
