"""Submissions that are being received: each chunk is checked, completed by what the store knows, and decided."""

from __future__ import annotations

import asyncio
from collections import deque
from functools import partial
from weakref import WeakValueDictionary

from rota.core import events
from rota.core.admission.admission import Admission
from rota.core.answers import expand_answer
from rota.core.events import Asker
from rota.core.jobs.job import Job
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
        turns, store, read = self._turns, self._store, self._readers.read
        own = self._of_peer.setdefault(peer.id, {})
        by = peer.asker(add.n)
        for ask in self._admission.to_look_up(peer.user) if add.specs else ():
            await self._readers.read(ask)
        if not 0 < len(add.submission) <= 64:
            raise BadInput("a submission needs an id of at most 64 characters")
        if add.first == 0:
            room, answered = await self._answered(add)  # and no other wait before the intake begins
            if answered is not None and answered.answer:
                if answered.user != peer.user:
                    raise Denied("this submission belongs to another user")
                if not add.more:
                    turns.acknowledge(by, expand_answer(answered.answer))
                else:
                    turns.acknowledge(by, None)  # the rest may come; the last chunk gets the first answer
                return
            if (begun := self._intakes.get(add.submission)) is not None and begun.user != peer.user:
                raise Denied("this submission belongs to another user")
            if not (room or add.check):
                raise StoreFull(
                    "the disk is nearly full; no job was added", hint="free some space, then add again"
                )
            if len(own) >= _UPLOADS_MAX:
                raise BadInput(f"more than {_UPLOADS_MAX} submissions are open", hint="finish one first")
            begun = Intake(
                add.submission,
                peer.user,
                self._library,
                self._world.placement.limits,
                self._admission,
                admin=not restricted(peer),
            )
            self._intakes[add.submission] = own[add.submission] = begun
        intake = own.get(add.submission)
        if intake is None or self._intakes.get(add.submission) is not intake:
            answered = await read(partial(store.submission, add.submission))
            if answered is not None and answered.answer and answered.user == peer.user:
                turns.acknowledge(by, None if add.more else expand_answer(answered.answer))
                return
            raise BadInput("this chunk belongs to no submission", hint="send the input again")
        if add.attach and not (add.more or add.check) and len(peer.attaching) < _UPLOADS_MAX:
            peer.attaching.add(add.submission)
        try:
            if add.input and not add.more:
                # Inputs of the same name one after the other: each must see what the one before has added.
                lock = self._locks.setdefault((by.user, add.input), asyncio.Lock())
                async with lock:
                    await self._chunk(by, add, intake)
            else:
                await self._chunk(by, add, intake)
        except RotaError:
            self.drop(peer, add.submission)
            raise
        if not add.more:
            self._sealed.append(add.submission)
            self._intakes.pop(add.submission, None)
            own.pop(add.submission, None)

    async def _answered(self, add: m.Add) -> tuple[bool, SubmissionRow | None]:
        """Whether there is room for more jobs, and what is stored of a submission: if it is being committed, or is
        sealed meanwhile, with its answer. One question: each costs two switches of threads."""
        store, submission, live = self._store, add.submission, self._world.live

        def ask() -> tuple[bool, SubmissionRow | None]:
            return store.can_accept(live), store.submission(submission)

        while True:
            sealed = submission in self._sealed
            if sealed:
                await self._turns.committed()
            found = await self._readers.read(ask)
            if sealed or submission not in self._sealed:
                return found

    async def _chunk(self, by: Asker, add: m.Add, intake: Intake) -> None:
        world, store, library, read = self._world, self._store, self._library, self._readers.read
        intake.check(add)
        keys = intake.keys(add)
        for grew in library.grown():
            self._turns.happened(grew)
        unknown = [] if add.fresh or add.rerun else [key for key in keys if key not in world.keys]
        known: dict[str, KnownJob] = {}
        loaded: dict[int, Job] = {}
        with self._turns.loading():
            find = partial(look_up, store, library, by.user, unknown)
            if unknown:
                known, loaded = await read(find)
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
            self._turns.happened(
                intake.event(
                    add, by, keys=keys, known=known, loaded=loaded, dependents=dependents, arrays=arrays,
                    before=before, followers=followers, last=last, commanded=commanded,
                )
            )  # fmt: skip

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
        if gone or add.rerun or add.rerun_entries or (add.after and known):
            before = await self._readers.read(
                lambda: look_before(store, library, add, keys=keys, known=known, gone=sorted(gone))
            )
        if intake.reruns and not add.more:
            upload = world.uploads.get(add.submission)
            olds = {old.id for each in before.namesakes.values() for old in each} | set(before.formers)
            if upload is not None:
                olds |= {old.id for each in upload.replacing.values() for old in each}
                olds |= {known.job for known in upload.known_entries.values()}
            followers = await self._readers.read(lambda: find_followers(store, library, olds))
        return before, followers

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
