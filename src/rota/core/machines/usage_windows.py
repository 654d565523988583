"""Time that a machine spent in each state, window by window. Exact: the sums of a window add up to its length."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rota.core.machines.usage_sums import MachineSpan, Sums


def window_sums(spans: Iterable[MachineSpan], edges: Sequence[int]) -> list[Sums]:
    """Sums of each window between two of the `edges` (ascending microseconds).

    `spans` are those of one machine, in order of time, within the first and last edge.
    """
    found: list[Sums] = [{} for _ in edges[1:]]
    window = 0
    for _host, at, until, what in spans:
        while at < until:
            while edges[window + 1] <= at:
                window += 1
            over = min(until, edges[window + 1])
            its = found[window]
            its[what] = its.get(what, 0) + over - at
            at = over
    return found
