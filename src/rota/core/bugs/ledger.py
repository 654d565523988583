"""The ledger of bugs: which ones were met, and what is left out because of them. It is stored with every entry.

`rota manager resume` and another version let everything be tried again: earlier bugs count no more. Only safe mode
outlasts a change of the version.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Struct

from rota.core.bugs.identity import Report, entry_of, fingerprint, tells_of_starts
from rota.core.bugs.kinds import HOST_EVENTS, kind_at, kind_of
from rota.core.bugs.undecided import Undecided
from rota.core.events import EntrySetAside, Event, RunnerJoined, RunnerReported
from rota.errors import Bug

#: Key of `Changes.meta`.
BUGS: Final = "bugs"

#: Bugs that are remembered one by one, and characters of each traceback, from its end.
_MOST: Final = 50
_TRACE: Final = 8000
#: An event that meets a bug so often is quarantined.
_TWICE: Final = 2
#: A bug outside of any request or report, so soon after the manager was ready, twice: safe mode.
_SOON_S: Final = 60.0
#: So many bugs at the same place within this time: nothing of that kind is decided any more.
_OFTEN: Final = 3
_WINDOW_S: Final = 600.0

#: Events that nobody asked for and that come again by themselves: like what happens outside of any handler.
_OUTSIDE: Final = HOST_EVENTS | {"TimerFired", "ClockMoved", "LibraryGrew"}


class BugRecord(Struct, frozen=True, omit_defaults=True):
    """A bug that was met."""

    at: float
    place: str
    error: str
    trace: str = ""
    event: str = ""  #: fingerprint of the event; empty: it happened outside of any handler
    version: str = ""
    ready_s: float = 0.0  #: how long the manager had been ready
    effect: bool = False  #: met when something was carried out; the manager went on
    times: int = 1
    story: tuple[str, ...] = ()  #: of the job concerned, the newest lines


class Ledger(Struct, frozen=True, omit_defaults=True):
    """What is known of bugs, and what follows from it."""

    records: tuple[BugRecord, ...] = ()  #: the newest, oldest first
    total: int = 0
    version: str = ""  #: to which the rest applies
    since: float = 0.0  #: records from before this time count no more
    safe_mode: str = ""  #: why nothing starts until the manager is resumed
    events: frozenset[str] = frozenset()  #: fingerprints of events that are not decided any more
    places: frozenset[str] = frozenset()  #: kinds of events, and parts of a turn, that are left out
    runners: frozenset[str] = frozenset()  #: runners whose reports are decided entry by entry
    entries: frozenset[str] = frozenset()  #: entries of reports that are set aside
    frozen: frozenset[int] = frozenset()  #: jobs that are left out of all decisions
    #: (job, attempt) of leases of jobs that are or were frozen: their runners have forgotten them, though they may
    #: have been executed
    doubtful: frozenset[tuple[int, int]] = frozenset()
    by_kind: dict[str, int] = {}  #: like `total`, by `core.bugs.kinds`

    @property
    def screens(self) -> bool:
        """Must events be looked at before they are decided?"""
        return bool(self.events or self.places or self.runners or self.entries)

    def text(self) -> str:
        return msgspec.json.encode(self, order="deterministic").decode()


def ledger_from(text: str, *, version: str) -> Ledger:
    """The stored ledger, as it applies to this version."""
    found = msgspec.json.decode(text, type=Ledger) if text else Ledger()
    return found if found.version == version else resumed(found, version=version, keep_safe_mode=True)


def resumed(ledger: Ledger, *, version: str, at: float = 0.0, keep_safe_mode: bool = False) -> Ledger:
    """Nothing is left out any more; what was met is still known."""
    return Ledger(
        records=ledger.records,
        total=ledger.total,
        version=version,
        since=at or ledger.since,
        safe_mode=ledger.safe_mode if keep_safe_mode else "",
        doubtful=ledger.doubtful,
        by_kind=ledger.by_kind,
    )


def with_effect_bug(ledger: Ledger, record: BugRecord) -> Ledger:
    """A bug in carrying something out. One that was met before is counted only."""
    ledger = _counted(ledger, kind_at(record.place))
    for last in ledger.records:
        if last.effect and (last.place, last.error) == (record.place, record.error):
            record = msgspec.structs.replace(record, times=last.times + 1)
            others = tuple(each for each in ledger.records if each is not last)
            return msgspec.structs.replace(ledger, records=(*others, record))
    return _noted(ledger, record)


def with_bug(
    ledger: Ledger,
    bug: Undecided,
    *,
    at: float,
    ready_s: float,
    version: str,
    trace: str = "",
    story: tuple[str, ...] = (),
) -> Ledger:
    """The ledger after a bug that kept the engine from deciding, with what follows from it."""
    event, cause = bug.event, bug.__cause__
    mark = "" if event is None else fingerprint(event)
    error = f"{type(cause).__name__}: {cause}"
    record = BugRecord(at, bug.place, error, trace[-_TRACE:], mark, version, ready_s, story=story)
    ledger = _noted(_counted(ledger, kind_of(event, bug.place)), record)
    if isinstance(event, EntrySetAside):
        return msgspec.structs.replace(
            ledger,
            frozen=ledger.frozen | {event.job},
            doubtful=ledger.doubtful | {(event.job, event.lease.attempt)},
        )
    if isinstance(event, Report) and (entry := _to_look_at(ledger, event)) is not None:
        if entry:
            return msgspec.structs.replace(ledger, entries=ledger.entries | {entry})
        return msgspec.structs.replace(ledger, runners=ledger.runners | {event.runner})
    counting = [
        each for each in ledger.records
        if not each.effect and each.version == version and each.at >= ledger.since
    ]  # fmt: skip
    lately = [each for each in counting if at - each.at <= _WINDOW_S]
    often = sum(each.place == bug.place for each in lately) >= _OFTEN
    if event is not None and type(event).__name__ not in _OUTSIDE:
        if sum(each.event == mark for each in counting) >= _TWICE:
            return msgspec.structs.replace(ledger, events=ledger.events | {mark})
        return msgspec.structs.replace(ledger, places=ledger.places | {bug.place}) if often else ledger
    soon = sum(is_outside(each) and each.ready_s <= _SOON_S for each in lately)
    if not ledger.safe_mode:
        why = f"{bug.place}: {error}" if soon >= _TWICE or often else ""
        return msgspec.structs.replace(ledger, safe_mode=why)
    if not often:
        return ledger
    if " " in mark:
        return msgspec.structs.replace(ledger, events=ledger.events | {mark})  # of one runner or host alone
    return msgspec.structs.replace(ledger, places=ledger.places | {bug.place})


def is_outside(record: BugRecord) -> bool:
    """Was it met outside of any request and report?"""
    return not record.effect and (not record.event or record.event.partition(" ")[0] in _OUTSIDE)


def _to_look_at(ledger: Ledger, event: Report) -> str | None:
    """The entry to set aside after a bug in a report; empty: it is to be decided entry by entry from now on; None:
    it is neither, for what is left of it has no entries."""
    if event.runner not in ledger.runners:
        return None if isinstance(event, RunnerJoined) and not tells_of_starts(event) else ""
    return (entry_of(event) or None) if isinstance(event, RunnerReported) else None


def _noted(ledger: Ledger, record: BugRecord) -> Ledger:
    records = (*ledger.records, record)[-_MOST:]
    return msgspec.structs.replace(ledger, records=records, version=record.version)


def _counted(ledger: Ledger, kind: str) -> Ledger:
    by_kind = ledger.by_kind | {kind: ledger.by_kind.get(kind, 0) + 1}
    return msgspec.structs.replace(ledger, total=ledger.total + 1, by_kind=by_kind)


def is_quarantined(ledger: Ledger, event: Event) -> bool:
    """Is this event not decided any more?"""
    return type(event).__name__ in ledger.places or fingerprint(event) in ledger.events


def internal_error(event: Event) -> Bug:
    """The answer to a request that is not decided because of a bug."""
    return Bug(
        f"a bug in the manager keeps it from doing this ({type(event).__name__}); nothing was done",
        hint="see 'rota doctor'; 'rota manager resume' lets it try again",
        code="internal",
    )
