"""The moves of one session: which element goes to which stage next, and what that takes. Pure.

Every element moves on until it waits: for a dependency, for a condition, for its job. What happened comes in
through the methods; what has to be done is left in lists, which the caller empties. Nothing is looked at twice: an
element that waits is woken by the one event that it waits for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Final, Literal, NamedTuple

from rota.core.pipelines.definition import Definition
from rota.core.pipelines.marks import Identities, Marks
from rota.core.pipelines.progress import FAILURES, PASSED, SETTLED, Progress, Status
from rota.core.pipelines.route import Route

#: Instead of the number of a stage with a condition: the file that is part of what the element is.
DIGEST: Final = -1

#: What a failure means for the session.
CONTINUE, QUIT, TERMINATE, ASK = "continue", "quit", "terminate", "ask"
ON_ERROR: Final = (CONTINUE, QUIT, TERMINATE, ASK)

_OUTCOME_ORDER: Final = (
    ("failed", FAILURES),
    ("terminated", frozenset((Status.TERMINATED,))),
    ("blocked", frozenset((Status.BLOCKED,))),
    ("ok", frozenset((Status.OK,))),
    ("skipped", frozenset((Status.SKIPPED,))),
)


class Move(NamedTuple):
    """An element has left a stage."""

    element: int
    stage: int
    status: Status
    worked: bool  #: its job has ended


class Ask(NamedTuple):
    """Conditions to look at, in this order, up to the first that does not let the element skip its stage."""

    element: int
    stage: int  #: where it waits for the answer
    about: tuple[int, ...]  #: numbers of stages, or `DIGEST`
    must: int = 1  #: so many of them are needed now; the others are likely to be needed next


class Flow:
    """One session's elements on their way through the stages."""

    def __init__(self, definition: Definition, route: Route, progress: Progress, identities: Identities) -> None:
        elements = definition.elements
        self.route = route
        self.progress = progress
        self._depends = [element.depends for element in elements]
        dependents: list[list[int]] = [[] for _ in elements]
        for number, depends in enumerate(self._depends):
            for parent in depends:
                dependents[parent].append(number)
        self._dependents = dependents
        self.marks = Marks(route, progress, identities, depends=self._depends, dependents=dependents)
        self._end = len(route.stages)
        self.at = [0] * len(elements)  #: the stage at which each element is; the number of stages: it has left
        self.left = len(elements)  #: elements that have not left
        self._unmet = [0] * len(elements)  #: of one that is pending: dependencies that have not got here
        self._skips: dict[int, bool] = {}  #: cell → what its condition said
        self._moving: deque[int] = deque()
        self.quitting = False
        self.terminating = False
        # What is to be done:
        self.ready: list[int] = []  #: cells that need a job
        self.dropped: list[int] = []  #: cells whose jobs are not wanted any more; they have not begun
        self.asks: list[Ask] = []
        self.moves: list[Move] = []

    # -- what happens

    def begin(self) -> None:
        """All elements come to the first stage, dependencies first."""
        self._moving.extend(range(len(self.at)))

    def go_on(self) -> None:
        """Go on after a restart: what waits looks again what for."""
        statuses, width = self.progress.statuses, self.progress.width
        counted = [stage for stage in range(width) if self.route.counted[stage]]
        self.left = 0
        for element in range(len(self.at)):
            base = element * width
            at = next((stage for stage in counted if statuses[base + stage] < SETTLED), self._end)
            self.at[element] = at
            if at < self._end:
                self.left += 1
                status = statuses[base + at]
                if status < Status.READY or (status == Status.READY and self._stops(at)):
                    self._moving.append(element)
        if self.left:
            self.marks.recall()

    def advance(self, most: int) -> int:
        """Let everything move that can, but no more elements than this. Returns how many did."""
        moving = self._moving
        moved = 0
        while moving and moved < most:
            self._move(moving.popleft())
            moved += 1
        return moved

    @property
    def moving(self) -> bool:
        """Is there anything left that can move now?"""
        return bool(self._moving)

    def answered(self, element: int, skips: Mapping[int, bool], digest: str | None, *, failed: bool) -> None:
        """Conditions were looked at. `failed`: one of them ended by a signal, or took too long."""
        stage = self.at[element]
        if stage == self._end or self.progress.status(element, stage) is not Status.CHECKING:
            return  # it does not wait for this any more
        if failed:
            self._forget(element)  # conditions of later stages may ask for the outcome, which is another one now
            self._leave(element, stage, Status.FAILED_PERMANENTLY)
            self._go(element, stage + 1)
            return
        base = element * self.progress.width
        for about, skip in skips.items():
            self._skips[base + about] = skip
        if digest is not None and self.marks.digests:
            self.marks.digests[element] = digest
        self._moving.append(element)

    def ended(self, element: int, stage: int, status: Status) -> None:
        """The job of this cell has ended for good."""
        if self.progress.status(element, stage) not in (Status.READY, Status.RUNNING):
            return
        self._forget(element)
        if status is Status.OK:
            self.marks.set(element, stage)
        self._leave(element, stage, status, worked=True)
        self._go(element, stage + 1)

    def quit(self) -> None:
        """Begin nothing more up to the imperative stage; what is behind it drains."""
        self.quitting = True
        self._moving.extend(e for e, at in enumerate(self.at) if at <= self.route.quit_until and at < self._end)

    def terminate(self) -> None:
        """Begin nothing more. The caller ends what runs."""
        self.terminating = True
        self._moving.extend(element for element, at in enumerate(self.at) if at < self._end)

    def retry(self, elements: Iterable[int] | None) -> list[int]:
        """Take these elements (None: all) back to where they failed or were terminated, and with them all that
        they block. Returns those that had failed or were terminated. One with work under way is left alone."""
        self.quitting = self.terminating = False
        self.marks.recall()
        wanted = range(len(self.at)) if elements is None else elements
        again = [e for e in wanted if self.at[e] == self._end and self._first_bad(e, own=True) is not None]
        pending = list(again)
        taken: set[int] = set()
        while pending:
            element = pending.pop()
            if element in taken or self.at[element] < self._end:
                continue
            bad = self._first_bad(element)
            if bad is None:
                continue
            taken.add(element)
            pending += [each for each in self._dependents[element] if self._blocked(each)]
            self._take_back(element, bad)
        self._moving.extend(sorted(taken))
        return sorted(again)

    def _take_back(self, element: int, stage: int) -> None:
        for later in range(stage, self._end):
            if self.route.counted[later]:
                self.progress.set(element, later, Status.AHEAD)
        self.at[element] = stage
        self.left += 1
        self._forget(element)
        if self.marks.digests and self.route.redefining is not None and stage <= self.route.redefining:
            self.marks.forget(element)

    # -- questions

    def outcome(self, element: int) -> str:
        """What became of an element: the first of failed, terminated, blocked, ok, skipped that it had.

        One that has not left the last stage is running or waiting, unless something has gone wrong with it."""
        base = element * self.progress.width
        return self._outcome_of(self.progress.statuses[base : base + self.progress.width])

    def outcomes(self) -> list[str]:
        """The same of all elements. Most are alike, and each kind is judged once."""
        statuses, width = bytes(self.progress.statuses), self.progress.width
        known: dict[bytes, str] = {}
        found = []
        for base in range(0, len(self.at) * width, width):
            row = statuses[base : base + width]
            word = known.get(row)
            if word is None:
                word = known[row] = self._outcome_of(row)
            found.append(word)
        return found

    def _outcome_of(self, row: bytes | bytearray) -> str:
        goes_on = self.route.last is not None and row[self.route.last] < SETTLED
        now = "running" if Status.RUNNING in row else "waiting"
        word = next((word for word, statuses in _OUTCOME_ORDER if not statuses.isdisjoint(row)), None)
        word = word or (now if goes_on else "skipped")  # only stages for the session were selected
        return now if goes_on and word in ("ok", "skipped") else word

    def failed(self, element: int, stage: int) -> bool:
        """Did the element fail before it came to this stage?"""
        base = element * self.progress.width
        return any(status in FAILURES for status in self.progress.statuses[base : base + stage])

    def lacks_key(self, element: int, stage: int) -> bool:
        """Does this stage use a key that nobody will know, because the stage that makes it has failed?"""
        return self.route.uses_key[stage] and self.marks.needs_key(stage) and self.marks.keys[element] is None

    def culprit(self, element: int) -> tuple[int, int] | None:
        """The failure because of which an element is blocked: an element and a stage."""
        seen = set()
        while element not in seen:
            seen.add(element)
            bad = self._first_bad(element)
            if bad is None:
                return None
            if self.progress.status(element, bad) is not Status.BLOCKED:
                return element, bad
            found = next((parent for parent in self._depends[element] if self._is_bad(parent, bad)), None)
            if found is None:  # then it was the key of one
                found = next((each for each in self._depends[element] if self._first_bad(each) is not None), None)
            if found is None:
                return None
            element = found
        return None

    # -- moves

    def _move(self, element: int) -> None:
        stage = self.at[element]
        if stage == self._end:
            return
        status = self.progress.status(element, stage)
        if status is Status.RUNNING:
            return
        if status is Status.READY:
            if not self._stops(stage):
                return
            self.dropped.append(self.progress.cell(element, stage))
        elif status is Status.PENDING:
            self._forget(element)  # what it waited for may have changed what its conditions say
        self._go(element, stage)

    def _go(self, element: int, stage: int) -> None:
        """The element comes to this stage, and goes on as far as it can."""
        counted, end = self.route.counted, self._end
        while stage < end:
            if counted[stage]:
                status = self._enter(element, stage)
                if status < SETTLED:
                    self.at[element] = stage
                    self.progress.set(element, stage, status)
                    if status is Status.READY:
                        self.marks.begin_anew(element, stage)
                        self.ready.append(self.progress.cell(element, stage))
                    return
                self._leave(element, stage, status)
            stage += 1
        self.at[element] = end
        self.left -= 1
        self._forget(element)

    def _enter(self, element: int, stage: int) -> Status:
        """What an element finds at this stage."""
        route = self.route
        before = self._first_bad(element, until=stage)
        if before is not None:
            trouble = self.progress.status(element, before)
            again = route.stages[stage].also_failed and trouble in FAILURES
            if self._stops(stage) and (again or trouble is Status.TERMINATED):
                return Status.TERMINATED
            if not again or self.lacks_key(element, stage):
                ended = self.quitting or self.terminating
                return Status.TERMINATED if trouble is Status.TERMINATED and ended else Status.BLOCKED
            return self._conditions(element, stage)
        jumped = bool(route.jumps) and self._jumped(element, stage)
        if self.terminating or (self._stops(stage) and not jumped):
            return Status.SKIPPED if jumped else Status.TERMINATED
        if self.marks.needs_key(stage) and self.marks.keys[element] is None:
            found = self._learn_key(element, stage)  # others need it, even if this element jumps over the stage
            if found is not None:
                return found
        if jumped:
            return Status.SKIPPED
        if route.needs[stage]:
            waits = [parent for parent in self._depends[element] if not self._passed(parent, stage)]
            if any(self._is_bad(parent, stage) for parent in waits):
                return Status.BLOCKED
            if waits:
                self._unmet[element] = len(waits)
                return Status.PENDING
        needed = self._needed(element, stage)
        if needed is not True:
            return needed
        if self.marks.done_before(element, stage):
            return Status.SKIPPED
        return self._conditions(element, stage)

    def _conditions(self, element: int, stage: int) -> Status:
        if not self.route.conditional[stage]:
            return Status.READY
        skip = self._skips.get(self.progress.cell(element, stage))
        if skip is None:
            self.asks.append(Ask(element, stage, (stage, *self.route.following[stage])))
            return Status.CHECKING
        return Status.SKIPPED if skip else Status.READY

    def _needed(self, element: int, stage: int) -> Literal[True] | Status:
        """True if a later stage will need this one, or none could; else what the element finds here."""
        later = self.route.needed_for[stage]
        if not later:
            return True
        unknown = []
        for each in later:
            if self._jumped(element, each) or self.marks.done_before(element, each):
                continue
            skip = self._skips.get(self.progress.cell(element, each)) if self.route.conditional[each] else False
            if skip is False:
                return True
            if skip is None:
                unknown.append(each)
        if unknown:
            about = (*unknown, *self.route.following[unknown[-1]])
            self.asks.append(Ask(element, stage, about, len(unknown)))
            return Status.CHECKING
        return Status.SKIPPED

    def _stops(self, stage: int) -> bool:
        return self.terminating or (self.quitting and stage <= self.route.quit_until)

    def _jumped(self, element: int, stage: int) -> bool:
        base = element * self.progress.width
        return any(self.progress.statuses[base + origin] == Status.OK for origin in self.route.jumped(stage))

    # -- keys

    def _learn_key(self, element: int, stage: int) -> Status | None:
        """Compute the key of an element whose file is known; else say what it waits for."""
        digest = self.marks.digests[element]
        if digest is None:
            self.asks.append(Ask(element, stage, (DIGEST,)))
            return Status.CHECKING
        unknown = [parent for parent in self._depends[element] if self.marks.keys[parent] is None]
        if any(self._first_bad(parent) is not None for parent in unknown):
            return Status.BLOCKED
        if unknown:
            self._unmet[element] = len(unknown)
            return Status.PENDING
        self.marks.compute(element, digest)
        for each in self._dependents[element]:
            if self._awaits_key(each):
                self._one_less(each)
        return None

    def _awaits_key(self, element: int) -> bool:
        """Does it wait for the keys of its dependencies?"""
        stage = self.route.key_from
        return stage is not None and self.marks.keys[element] is None and self._is_pending(element, stage)

    # -- leaving a stage

    def _leave(self, element: int, stage: int, status: Status, *, worked: bool = False) -> None:
        self.progress.set(element, stage, status)
        self.moves.append(Move(element, stage, status, worked))
        passed = status in PASSED
        keyless = not passed and self.route.key_from is not None and self.marks.keys[element] is None
        if not self.route.needs[stage] and not keyless:
            return
        for each in self._dependents[element]:
            if self._awaits_key(each):
                if keyless:
                    self._moving.append(each)
            elif self._is_pending(each, stage):
                if passed:
                    self._one_less(each)
                else:
                    self._moving.append(each)

    def _one_less(self, element: int) -> None:
        self._unmet[element] -= 1
        if not self._unmet[element]:
            self._moving.append(element)

    def _is_pending(self, element: int, stage: int) -> bool:
        return self.at[element] == stage and self.progress.status(element, stage) is Status.PENDING

    def _passed(self, element: int, stage: int) -> bool:
        return self.progress.status(element, stage) in PASSED

    def _is_bad(self, element: int, stage: int) -> bool:
        return self.progress.status(element, stage) > Status.SKIPPED

    def _blocked(self, element: int) -> bool:
        bad = self._first_bad(element)
        return bad is not None and self.progress.status(element, bad) is Status.BLOCKED

    def _first_bad(self, element: int, *, until: int | None = None, own: bool = False) -> int | None:
        """The first stage at which the element failed, was terminated or, unless it is to be its `own` fault,
        blocked."""
        base = element * self.progress.width
        row = self.progress.statuses[base : base + (self._end if until is None else until)]
        if not row or max(row) <= Status.SKIPPED:
            return None
        for stage, status in enumerate(row):
            if status > Status.SKIPPED:
                return None if own and status == Status.BLOCKED else stage
        return None

    def _forget(self, element: int) -> None:
        """Forget what conditions said: they may say something else now."""
        if self._skips:
            base = element * self.progress.width
            for stage in range(self._end):
                self._skips.pop(base + stage, None)
