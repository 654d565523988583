"""Figures in the text format of Prometheus."""

from __future__ import annotations

from typing import Final

from rota.wire.views import MetricsView

KIND: Final = "text/plain; version=0.0.4; charset=utf-8"
_TOTALS: Final = {
    "commits": "Batches committed to the store.",
    "cpu_seconds": "Processor time of the manager.",
    "started": "Attempts that began to run.",
}
_GAUGES: Final = {
    "runners": "Runners that are connected.",
    "live_jobs": "Jobs in memory.",
    "connections": "Connections to the manager.",
    "resident_bytes": "Resident memory of the manager.",
    "disk_full": "1 while the disk is full and commits wait.",
    "paused": "1 while nothing is started.",
    "start_time_seconds": "When the manager started, in seconds since 1970.",
}
_QUANTILES: Final = {
    "commit": "How long commits took lately.",
    "decision": "How long turns of the engine, planning included, took lately.",
    "plan": "How long turns of the engine took lately that had a plan to keep.",
    "wait": "How long jobs waited lately, from ready to running.",
}
_ENDED: Final = "ended_"


def text(figures: MetricsView, *, streams: int) -> bytes:
    """One sample a line, each metric with its type and what it is."""
    lines: list[str] = []

    def metric(name: str, kind: str, about: str, samples: dict[str, float]) -> None:
        lines.extend((f"# HELP rota_{name} {about}", f"# TYPE rota_{name} {kind}"))
        lines.extend(f"rota_{name}{labels} {float(value)!r}" for labels, value in samples.items())

    def by(label: str, values: dict[str, float] | dict[str, int]) -> dict[str, float]:
        return {f'{{{label}="{name}"}}': value for name, value in sorted(values.items())}

    totals = figures.totals
    metric("jobs", "gauge", "Jobs by state.", by("state", figures.counts))
    ended = {name.removeprefix(_ENDED): number for name, number in totals.items() if name.startswith(_ENDED)}
    metric("jobs_ended_total", "counter", "Jobs that ended since the manager started.", by("state", ended))
    for name, about in _TOTALS.items():
        metric(f"{name}_total", "counter", about, {"": totals[name]})
    for name, about in _GAUGES.items():
        metric(name, "gauge", about, {"": figures.gauges[name]})
    for name, about in _QUANTILES.items():
        metric(f"{name}_seconds", "gauge", about, by("quantile", figures.quantiles[name]))
    metric("gateway_streams", "gauge", "Event streams that are open.", {"": streams})
    return ("\n".join(lines) + "\n").encode()
