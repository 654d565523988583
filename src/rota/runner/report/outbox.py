"""What is to be reported to the manager: numbered reports that are repeated until it has them on disk."""

from __future__ import annotations

from collections import deque

from msgspec import structs

from rota.core.attempts.leases import Finished, LeaseRef, NodeFault, PartOpened, Paused, Phase
from rota.core.jobs.outcome import Outcome
from rota.runner.report.journal import Key
from rota.runner.task import Task
from rota.wire import codec
from rota.wire.reports import Report

#: Outcomes in one report: keeps frames far below what the manager accepts.
MOST_ENDED = 4096
#: The same of what calls of functions left, in bytes.
_MOST_BULK = 8 << 20


class Outbox:
    """What happened since the last report, and the reports that are not acknowledged."""

    def __init__(self, first: int = 0) -> None:
        """`first`: reports are numbered from here on."""
        self._seq = first
        self._sent: deque[tuple[int, bytes, list[Finished]]] = deque()
        self.started: list[Task] = []
        self.ended: list[Finished] = []
        self.returned: list[LeaseRef] = []
        self.closed: list[int] = []
        self.phases: list[Phase] = []
        self.faults: list[NodeFault] = []
        self.paused: list[Paused] = []
        self.opened: list[PartOpened] = []
        self.shut: list[LeaseRef] = []
        self.unfit: str | None = None  #: news about this host: see `Report.unfit`
        self.unacked: dict[Key, Finished] = {}  #: ended, and not known to be on the manager's disk
        self.bulk = 0  #: bytes that calls of functions have left, in what is not reported yet
        self.careful = False  #: a report was refused: ends are reported one by one until all are acknowledged

    def __bool__(self) -> bool:
        """Is there anything to report?"""
        some = self.ended or self.started or self.returned or self.closed or self.phases or self.faults
        return bool(some or self.paused or self.opened or self.shut or self.unfit is not None)

    @property
    def may_cut(self) -> bool:
        """Is there something that may be reported now?"""
        return bool(self) and not (self.careful and self._sent)

    @property
    def clear(self) -> bool:
        """Everything was reported and acknowledged."""
        return not (self._sent or self)

    def end(self, key: Key, finished: Finished) -> None:
        self.ended.append(finished)
        self.unacked[key] = finished

    def give_back(self, key: Key) -> None:
        self.returned.append(LeaseRef(*key))

    def cut(self, most: int = MOST_ENDED) -> bytes:
        """Make a numbered report of what is new; it is kept until acknowledged. There may be more."""
        self._seq += 1
        if self.careful:
            most = 1
        ended, more = self.ended, []
        if self.bulk:
            most = min(most, self._fitting(ended))
        if len(ended) > most:
            ended, more = ended[:most], ended[most:]
        # What began and ended meanwhile is reported only once, as ended.
        started = [task.started() for task in self.started if not task.over]
        closed: list[int] = []
        if not more:  # a seat is given back after the end of its last job, never before
            closed, self.closed = self.closed, []
        frame = codec.frame(
            Report(
                self._seq, started, ended, self.returned, closed, self.phases, self.faults, self.paused,
                self.opened, self.shut, unfit=self.unfit,
            )
        )  # fmt: skip
        self._sent.append((self._seq, frame, ended))
        self.started, self.returned, self.ended = [], [], more
        if self.phases or self.faults:
            self.phases, self.faults = [], []
        if self.paused or self.opened or self.shut:
            self.paused, self.opened, self.shut = [], [], []
        self.unfit = None
        return frame

    def _fitting(self, ended: list[Finished]) -> int:
        """How many of these ends, at least one, go into one report with what they left."""
        size = 0
        for place, finished in enumerate(ended):
            size += (own := bulk_of(finished.outcome))
            if size > _MOST_BULK and place:
                return place
            self.bulk -= own
        self.bulk = 0
        return len(ended)

    def unacknowledged(self) -> list[bytes]:
        """The frames to repeat on a new connection, oldest first."""
        return [frame for _, frame, _ in self._sent]

    def refused(self) -> None:
        """The manager cannot decode one of these reports. Repeat each end in a report of its own; an end that was
        alone is simplified. The next join covers everything else."""
        ended = [finished for _, _, sent in self._sent for finished in sent]
        if self.careful and len(ended) == 1:
            ended = [plainer(ended[0])]
            self.unacked[ended[0].job, ended[0].attempt, ended[0].token] = ended[0]
        self._sent.clear()
        self.ended = ended + self.ended
        self.careful = True

    def acknowledge(self, seq: int) -> int:
        """Forget reports up to `seq`; how many outcomes they held."""
        outcomes = 0
        while self._sent and self._sent[0][0] <= seq:
            _, _, ended = self._sent.popleft()
            outcomes += len(ended)
            for finished in ended:
                self.unacked.pop((finished.job, finished.attempt, finished.token), None)
        if not self.unacked:
            self.careful = False
        return outcomes


def within(ended: list[Finished], most: int) -> list[Finished]:
    """These ends, which must go into one message: results beyond so many bytes are lost, and say so."""
    found: list[Finished] = []
    for finished in ended:
        o = finished.outcome
        if (most := most - bulk_of(o)) < 0 and o.returned is not None:
            lost = "its runner died before the manager had its result"
            o = structs.replace(o, returned=None, reason=o.reason or "lost", message=o.message or lost)
            finished = structs.replace(finished, outcome=o)
        found.append(finished)
    return found


def bulk_of(outcome: Outcome) -> int:
    """Bytes that the call of a function has left."""
    left = outcome.returned
    if left is None:
        return 0
    told = "" if left.error is None else left.error.traceback + left.error.message
    return len(left.value.encode()) + len(told.encode("utf-8", "replace"))


def plainer(finished: Finished) -> Finished:
    """The same end with fewer details; if there are none left to drop, only that it ended."""
    o = finished.outcome
    reason, message = o.reason, o.message
    if o.returned is not None and not reason:
        reason, message = "result", "the manager could not decode its result"
    plain = Outcome(o.exit_code, o.signal, reason[:64], message[:256], permanent=o.permanent)
    if plain == o:
        plain = Outcome(reason="lost", message="the manager could not decode the report of its end")
    return Finished(finished.job, finished.attempt, finished.token, finished.seat, plain)
