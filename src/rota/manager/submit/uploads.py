"""Submissions that are being received: each chunk is checked, completed by what the store knows, and decided."""

from __future__ import annotations

import asyncio
from collections import deque
from functools import partial
from typing import NamedTuple
from weakref import WeakValueDictionary

from rota.core import events
from rota.core.admission.admission import Admission
from rota.core.answers import expand_answer
from rota.core.events import Asker
from rota.core.jobs.job import Job
from rota.core.pipelines.session import is_submission
from rota.core.rows import KnownJob, SubmissionRow
from rota.core.states import RETRYABLE
from rota.core.submit.spec_library import Library
from rota.core.world import World
from rota.errors import BadInput, Denied, RotaError, StoreFull
from rota.manager.loop.readers import Readers
from rota.manager.loop.turns import TurnLoop
from rota.manager.peers.ownership import restricted
from rota.manager.peers.peer import Peer
from rota.manager.submit.intake import Intake
from rota.manager.submit.lookups import (
    ArrayElements,
    EarlierJobs,
    JobsByCommand,
    LastInput,
    command_keys,
    complete_dependents,
    find_commanded,
    find_elements,
    find_followers,
    line_of,
    look_at_last,
    look_before,
    look_up,
)
from rota.manager.watch.tails import OutputTails
from rota.store.base import Store
from rota.wire import messages as m

#: What one connection may have open at once.
_UPLOADS_MAX = 16


class ChunkFacts(NamedTuple):
    """What the store knows of a chunk."""

    room: bool = True  #: for more jobs
    submission: SubmissionRow | None = None  #: of a first chunk, if it is a repeat
    known: dict[str, KnownJob] = {}  # noqa: RUF012 - never changed
    loaded: dict[int, Job] = {}  # noqa: RUF012


class Uploads:
    """All submissions with chunks still to come."""

    def __init__(
        self,
        world: World,
        store: Store,
        library: Library,
        admission: Admission,
        *,
        turns: TurnLoop,
        readers: Readers,
        tails: OutputTails,
    ) -> None:
        self._world = world
        self._store = store
        self._library = library
        self._admission = admission
        self._turns = turns
        self._readers = readers
        self._tails = tails
        self._intakes: dict[str, Intake] = {}
        self._of_peer: dict[int, dict[str, Intake]] = {}  #: connection → submissions that it has begun
        self._sealed: deque[str] = deque(maxlen=256)  #: the newest submissions, committed or about to be
        #: users and their inputs that were added last, likewise
        self._added: deque[tuple[str, str]] = deque(maxlen=256)
        self._locks: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()

    def gone(self, peer: Peer) -> None:
        """A client was disconnected: drop its unfinished submissions."""
        for submission in list(self._of_peer.get(peer.id, ())):
            self.drop(peer, submission)
        self._of_peer.pop(peer.id, None)

    async def add(self, peer: Peer, add: m.Add) -> None:
        """Take one chunk; the engine answers. Raises `RotaError` to refuse the whole submission."""
        own = self._of_peer.setdefault(peer.id, {})
        for ask in self._admission.to_look_up(peer.user) if add.specs else ():
            await self._readers.read(ask)
        if not 0 < len(add.submission) <= 64:
            raise BadInput("a submission needs an id of at most 64 characters")
        if is_submission(add.submission):
            raise BadInput("this id is of a session of a pipeline", hint="choose another one")
        if add.first == 0:
            waited = 0
            while (sealed := self._sealed.count(add.submission)) > waited:
                await self._turns.committed()  # a repeat of one that is being committed: wait for its answer
                waited = sealed
            # From here on no other connection can seal the same submission: its intake is not the valid one.
            self._intakes[add.submission] = own[add.submission] = self._begun(peer, add, open=len(own))
        intake = own.get(add.submission)
        if intake is None or self._intakes.get(add.submission) is not intake:
            if await self._is_repeat(peer, add):
                return
            raise BadInput("this chunk belongs to no submission", hint="send the input again")
        try:
            if add.input and not add.more:
                # Inputs of the same name one after the other: each must see what the one before has added.
                lock = self._locks.setdefault((peer.user, add.input), asyncio.Lock())
                async with lock:
                    taken = await self._chunk(peer, add, intake)
            else:
                taken = await self._chunk(peer, add, intake)
        except RotaError:
            self.drop(peer, add.submission)
            raise
        if taken and add.more:
            return
        if taken:
            self._sealed.append(add.submission)
        own.pop(add.submission, None)
        if self._intakes.get(add.submission) is intake:  # it may have been begun again on another connection
            del self._intakes[add.submission]

    def _begun(self, peer: Peer, add: m.Add, *, open: int) -> Intake:
        """The intake of a submission whose first chunk has come; `open`: submissions that the peer has begun."""
        begun = self._intakes.get(add.submission)
        if begun is not None and begun.user != peer.user:
            raise Denied("this submission belongs to another user")
        if open >= _UPLOADS_MAX:
            raise BadInput(f"more than {_UPLOADS_MAX} submissions are open", hint="finish one first")
        return Intake(
            add.submission,
            peer.user,
            self._library,
            self._world.placement.limits,
            self._admission,
            admin=not restricted(peer),
        )

    async def _is_repeat(self, peer: Peer, add: m.Add) -> bool:
        """Is the submission of a chunk stored? Then it gets the first answer."""
        stored = await self._readers.read(partial(self._store.submission, add.submission))
        return self._repeated(peer, add, stored)

    def _repeated(self, peer: Peer, add: m.Add, stored: SubmissionRow | None) -> bool:
        if stored is None or not stored.answer:
            return False
        if stored.user != peer.user:
            raise Denied("this submission belongs to another user")
        # The last chunk gets the first answer; the rest may come.
        self._turns.acknowledge(peer.asker(add.n), None if add.more else expand_answer(stored.answer))
        return True

    async def _look_up(self, by: Asker, add: m.Add, keys: list[str]) -> ChunkFacts:
        """What the store knows of a chunk, in one question: each costs two switches of threads."""
        store, library, live = self._store, self._library, self._world.live
        unknown = [] if add.fresh or add.rerun else [key for key in keys if key not in self._world.keys]
        begins = add.first == 0
        if not (begins or unknown):
            return ChunkFacts()

        def ask() -> ChunkFacts:
            room = not begins or add.check or store.can_accept(live)
            stored = store.submission(add.submission) if begins else None
            known, loaded = look_up(store, library, by.user, unknown) if unknown else ({}, {})
            return ChunkFacts(room, stored, known, loaded)

        return await self._readers.read(ask)

    async def _chunk(self, peer: Peer, add: m.Add, intake: Intake) -> bool:
        """Have the engine decide about a chunk; False: its submission was answered before, and is again."""
        world, store, library, read = self._world, self._store, self._library, self._readers.read
        by = peer.asker(add.n)
        try:
            intake.check(add)
            keys = intake.keys(add)
        except RotaError:
            # A repeat gets the first answer, even if it would be refused by now.
            if add.first == 0 and await self._is_repeat(peer, add):
                return False
            raise
        with self._turns.loading():
            stored = await self._look_up(by, add, keys)
            if self._repeated(peer, add, stored.submission):
                return False
            if not stored.room:
                raise StoreFull(
                    "the disk is nearly full; no job was added", hint="free some space, then add again"
                )
            for grew in library.grown():
                self._turns.happened(grew)
            known = stored.known
            arrays: ArrayElements = {}
            line = partial(_line, add)
            if any(each.elements is not None for each in add.after):
                await self._turns.committed()  # so that an array that was just added is found
                arrays = await read(lambda: find_elements(store, add.after, line))
            dependents: dict[int, Job] = {}
            if intake.dep_groups and not add.more:
                dependents = await read(lambda: complete_dependents(store, library, intake.dep_groups))
            commanded = await self._commanded(add, by)
            parents = {each.parent for each in add.after if not each.local and each.cwd is None}
            parents = parents.union(*arrays.values(), commanded.values())
            gone = {id for id in parents if isinstance(id, int) and world.is_replaced(id)}
            before, followers = await self._before(add, intake, keys=keys, known=known, gone=gone)
            last = await self._last(add, by)
            if self._intakes.get(add.submission) is not intake:  # or its client was disconnected
                raise BadInput(
                    "this submission was begun again meanwhile", hint="wait for that, then send it again"
                )
            if add.attach and not (add.more or add.check) and len(peer.attaching) < _UPLOADS_MAX:
                peer.attaching.add(add.submission)
            self._turns.happened(
                intake.event(
                    add, by, keys=keys, known=known, loaded=stored.loaded, dependents=dependents, arrays=arrays,
                    before=before, followers=followers, last=last, commanded=commanded,
                )
            )  # fmt: skip
        return True

    async def _commanded(self, add: m.Add, by: Asker) -> JobsByCommand:
        """The jobs that entries name by their commands."""
        if not any(each.cwd is not None for each in add.after):
            return {}
        keys = command_keys(add.after, by.user)
        ids = {key: id for key in keys.values() if (id := self._world.keys.get(key)) is not None}
        if missing := [key for key in keys.values() if key not in ids]:
            await self._turns.committed()  # so that a job that has just ended is found
            known = await self._readers.read(lambda: self._store.known_keys(by.user, missing))
            ids |= {key: job for key, (job, _state) in known.items()}
        return find_commanded(add.after, keys, ids, partial(_line, add))

    async def _last(self, add: m.Add, by: Asker) -> LastInput:
        """The jobs of this input when it was added last."""
        if add.more or not add.input:
            return LastInput([], [], {})
        if (by.user, add.input) in self._added:
            await self._turns.committed()
        if not add.check:
            self._added.append((by.user, add.input))
        return await self._readers.read(
            lambda: look_at_last(
                self._store,
                self._library,
                user=by.user,
                name=add.input,
                failed=lambda id: self._world.outcome(id) in RETRYABLE,
            )
        )

    async def _before(
        self, add: m.Add, intake: Intake, *, keys: list[str], known: dict[str, KnownJob], gone: set[int]
    ) -> tuple[EarlierJobs, dict[int, Job]]:
        """Earlier jobs that a chunk may replace, and ended jobs that follow them; none for most submissions."""
        world, store, library = self._world, self._store, self._library
        intake.reruns |= add.rerun or bool(add.rerun_entries)
        before, followers = EarlierJobs({}, {}, {}), dict[int, Job]()
        if gone:
            await self._turns.committed()  # so that the jobs that replaced them are found
        looks = bool(gone or add.rerun or add.rerun_entries or (add.after and known))
        replaces = intake.reruns and not add.more
        if not (looks or replaces):
            return before, followers
        earlier: set[int] = set()  # jobs that earlier chunks replace
        if replaces and (upload := world.uploads.get(add.submission)) is not None:
            earlier |= {old.id for each in upload.replacing.values() for old in each}
            earlier |= {known.job for known in upload.known_entries.values()}

        def ask() -> tuple[EarlierJobs, dict[int, Job]]:
            found = before
            if looks:
                found = look_before(store, library, add, keys=keys, known=known, gone=sorted(gone))
            if not replaces:
                return found, {}
            olds = {old.id for each in found.namesakes.values() for old in each} | set(found.formers)
            return found, find_followers(store, library, earlier | olds)

        return await self._readers.read(ask)

    def drop(self, peer: Peer, submission: str) -> None:
        """Forget an unfinished submission."""
        intake = self._of_peer.get(peer.id, {}).pop(submission, None)
        if submission in peer.attaching:
            peer.attaching.discard(submission)
            self._tails.expected()
        # The same submission may have been begun again on another connection.
        if intake is not None and self._intakes.get(submission) is intake:
            del self._intakes[submission]
            self._turns.happened(events.UploadDropped(submission=submission))


def _line(add: m.Add, each: m.NewAfter) -> int:
    """The line on which a dependency of a chunk was written."""
    return line_of(add, each.entry - add.first)
