"""What makes two events the same, and how a report is taken apart: pure functions."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import Any, Final

import msgspec

from rota.core.attempts.leases import LeaseRef, PartOpened, Paused, Started
from rota.core.events import ChunkArrived, EntrySetAside, Event, RunnerJoined, RunnerReported, RunnerSettled

#: Events that consist of entries about leases.
Report = RunnerReported | RunnerSettled | RunnerJoined

#: Fields that say who asked, or what was found in the store for it: they differ when the same is asked again.
_CHANGING: Final = frozenset({"by", "loaded", "specs", "notices", "seq", "by_runner"})
#: Lists of entries of a report, in the order in which they are decided.
_ENTRIES: Final = ("started", "phases", "faults", "paused", "ended", "returned", "closed", "opened", "shut")


def fingerprint(event: Event) -> str:
    """Equal for the same event when it comes again."""
    kind = type(event).__name__
    if isinstance(event, ChunkArrived):
        return f"{kind} {event.submission} {event.first}"
    if isinstance(event, RunnerJoined):
        return f"{kind} {event.runner}"
    fields = {name: getattr(event, name) for name in event.__struct_fields__ if name not in _CHANGING}
    if not fields:
        return kind
    user = getattr(getattr(event, "by", None), "user", "")
    text = msgspec.json.encode([user, fields], enc_hook=repr, order="deterministic")
    return f"{kind} {sha256(text).hexdigest()[:16]}"


def entry_of(report: RunnerReported) -> str:
    """The name of the only entry of a report; empty if it has none."""
    for name in _ENTRIES:
        for entry in getattr(report, name):
            return _name(name, entry)
    return ""


def _name(field: str, entry: Any) -> str:
    if isinstance(entry, int):
        return f"{field} {entry}"
    if isinstance(entry, PartOpened):
        return f"{field} {entry.job}"  # after a restart its hosts are asked again, for another attempt
    name = f"{field} {entry.job}.{entry.attempt}.{getattr(entry, 'token', 0)}"
    if isinstance(entry, Paused):
        return f"{name} {'frozen' if entry.frozen else 'thawed'}"
    return name


def taken_apart(report: Report, bad: frozenset[str]) -> Iterator[Event]:
    """The same as events of one entry each, and what is left at the end; entries that are `bad` are set aside.

    A runner that joins tells again what has started: that comes after the join itself.
    """
    if isinstance(report, RunnerJoined):
        yield msgspec.structs.replace(
            report, held=[msgspec.structs.replace(each, started_at=None) for each in report.held]
        )
        report = RunnerReported(
            runner=report.runner, seq=0, started=_starts(report), ended=[], returned=[], closed=[]
        )
    for field in _ENTRIES:
        for entry in getattr(report, field, ()):
            if _name(field, entry) in bad:
                yield _set_aside(report.runner, field, entry)
            else:
                lists: dict[str, Any] = {name: [entry] if name == field else [] for name in _ENTRIES}
                yield RunnerReported(runner=report.runner, seq=0, **lists)
    yield msgspec.structs.replace(report, **{name: [] for name in _ENTRIES if hasattr(report, name)})


def tells_of_starts(event: RunnerJoined) -> bool:
    """Are there starts among what the runner says about its leases?"""
    return bool(_starts(event))


def _starts(event: RunnerJoined) -> list[Started]:
    return [
        Started(each.job, each.attempt, each.token, each.seat, each.started_at, each.pid)
        for each in event.held
        if each.started_at is not None and each.seat and not each.over
    ]


def _set_aside(runner: str, field: str, entry: Any) -> EntrySetAside:
    lease = LeaseRef(0, 0, 0)
    if not isinstance(entry, int):
        lease = LeaseRef(entry.job, entry.attempt, getattr(entry, "token", 0))
    said = msgspec.json.encode(entry, enc_hook=repr).decode()
    return EntrySetAside(
        runner=runner,
        field=field,
        lease=lease,
        said=said,
        outcome=getattr(entry, "outcome", None),
        started=entry if isinstance(entry, Started) else None,
        paused=entry if isinstance(entry, Paused) else None,
    )
