"""Figures in the text format of Prometheus."""

from __future__ import annotations

from math import inf
from typing import Final

from rota.wire.views import HistogramView, MetricsView

KIND: Final = "text/plain; version=0.0.4; charset=utf-8"
_TOTALS: Final = {
    "commits": "Batches committed to the store.",
    "cpu_seconds": "Processor time of the manager.",
    "attempts_started": "Attempts that began to run.",
    "started": "Deprecated: rota_attempts_started_total.",
}
_GAUGES: Final = {
    "runners": "Runners that are connected.",
    "live_jobs": "Jobs in memory.",
    "connections": "Connections to the manager.",
    "resident_bytes": "Resident memory of the manager.",
    "disk_full": "1 while the disk is full and commits wait.",
    "paused": "1 while nothing is started.",
    "draining": "1 while nothing is started and the manager stops when nothing runs any more.",
    "safe_mode": "1 while nothing is started because of a bug, until the manager is resumed.",
    "start_time_seconds": "When the manager started, in seconds since 1970.",
    "last_commit_time_seconds": "When the last batch was committed, in seconds since 1970; 0: none was.",
    "disk_free_bytes": "Free space where the home of the deployment is.",
    "reservations": "Granted reservations that have not begun.",
    "reservations_in_danger": "Of these, those of whose resources some may not be used.",
}
#: What has labels, or is counted of what has.
_LABELLED: Final = {
    "build_info": "The version of the manager; always 1.",
    "nodes": "Nodes by state; drained are those that are alive and get no new jobs.",
    "capacity_cores": "Cores of all nodes.",
    "usable_cores": "Cores of nodes on which jobs may begin.",
    "used_cores": "Cores that jobs hold.",
    "drained_cores": "Cores of drained nodes.",
    "capacity_memory_bytes": "Memory of all nodes.",
    "usable_memory_bytes": "Memory of nodes on which jobs may begin.",
    "used_memory_bytes": "Memory that jobs hold.",
    "drained_memory_bytes": "Memory of drained nodes.",
    "queue_jobs": "Jobs of a queue that run (or are sent to a node) or wait.",
    "queue_closed": "1 while a queue takes no new jobs.",
    "limit_capacity": "Units of a limit.",
    "limit_used": "Units of a limit that jobs hold.",
    "limit_waiting_jobs": "Waiting jobs that want a limit.",
    "quota_limit": "What a quota allows that applies now.",
    "quota_used": "The most that one of those whom a quota concerns holds of it.",
}
_HISTOGRAMS: Final = {
    "commit": ("commit_duration_seconds", "How long commits took."),
    "decision": ("decision_duration_seconds", "How long turns of the engine took, planning included."),
    "plan": ("plan_duration_seconds", "How long turns of the engine took that had a plan to keep."),
    "wait": ("job_wait_seconds", "How long jobs waited, from ready to running."),
}
_QUANTILES: Final = {
    "commit": "Deprecated: rota_commit_duration_seconds.",
    "decision": "Deprecated: rota_decision_duration_seconds.",
    "plan": "Deprecated: rota_plan_duration_seconds.",
    "wait": "Deprecated: rota_job_wait_seconds.",
}
#: Begins of totals that have a label.
_ENDED: Final = "ended_"
_BUGS: Final = "bugs_"


def text(figures: MetricsView, *, streams: int) -> bytes:
    """One sample a line, each metric with its type and what it is."""
    lines: list[str] = []

    def metric(name: str, kind: str, about: str, samples: dict[str, float]) -> None:
        lines.extend((f"# HELP rota_{name} {about}", f"# TYPE rota_{name} {kind}"))
        lines.extend(f"rota_{name}{labels} {float(value)!r}" for labels, value in samples.items())

    def by(label: str, values: dict[str, float] | dict[str, int]) -> dict[str, float]:
        return {f'{{{label}="{name}"}}': value for name, value in sorted(values.items())}

    def family(name: str, kind: str, about: str, samples: dict[str, float]) -> None:
        """Samples whose names only begin with that of the metric."""
        lines.extend((f"# HELP rota_{name} {about}", f"# TYPE rota_{name} {kind}"))
        lines.extend(f"rota_{name}{rest} {value!r}" for rest, value in samples.items())

    totals = {**figures.totals, "attempts_started": figures.totals["started"]}
    metric("jobs", "gauge", "Jobs by state.", by("state", figures.counts))
    ended, bugs = (
        {name.removeprefix(begin): number for name, number in totals.items() if name.startswith(begin)}
        for begin in (_ENDED, _BUGS)
    )
    metric("jobs_ended_total", "counter", "Jobs that ended since the manager started.", by("state", ended))
    metric("bugs_total", "counter", "Bugs that the manager met, by what it was doing.", by("kind", bugs))
    for name, about in _TOTALS.items():
        metric(f"{name}_total", "counter", about, {"": totals[name]})
    for name, about in _GAUGES.items():
        metric(name, "gauge", about, {"": figures.gauges[name]})
    for name, about in _LABELLED.items():
        samples = {_labels(each.labels): each.value for each in figures.labelled.get(name, ())}
        if samples:
            metric(name, "gauge", about, samples)
    for name, (full, about) in _HISTOGRAMS.items():
        family(full, "histogram", about, _buckets(figures.histograms[name]))
    for name, about in _QUANTILES.items():
        whole = figures.histograms[name]
        lately = {key: float(value) for key, value in by("quantile", figures.quantiles[name]).items()}
        family(f"{name}_seconds", "summary", about, {**lately, "_sum": whole.sum, "_count": sum(whole.counts)})
    metric("gateway_streams", "gauge", "Event streams that are open.", {"": streams})
    return ("\n".join(lines) + "\n").encode()


def _buckets(found: HistogramView) -> dict[str, float]:
    """Each bucket holds all that are below its bound."""
    below, samples = 0, {}
    for bound, number in zip([*found.bounds, inf], found.counts, strict=True):
        below += number
        samples[f'_bucket{{le="{"+Inf" if bound == inf else repr(bound)}"}}'] = float(below)
    return {**samples, "_sum": found.sum, "_count": float(below)}


def _labels(labels: dict[str, str]) -> str:
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}" if labels else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
