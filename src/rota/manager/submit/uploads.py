"""Submissions on their way in: each chunk is checked, completed by what the store knows, and told the engine."""

from __future__ import annotations

import asyncio
from collections import deque
from functools import partial
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from rota.core import events
from rota.core.answers import expand_answer
from rota.core.events import Asker
from rota.core.jobs.job import Job
from rota.core.states import RETRYABLE
from rota.errors import BadInput, Denied, RotaError, StoreFull
from rota.manager.peers.ownership import restricted
from rota.manager.submit.admission import Admission
from rota.manager.submit.intake import Intake
from rota.manager.submit.lookups import (
    Arrays,
    Before,
    Commanded,
    Last,
    command_keys,
    complete_dependents,
    find_commanded,
    find_elements,
    find_followers,
    look_at_last,
    look_before,
    look_up,
)
from rota.wire import messages as m

if TYPE_CHECKING:
    from rota.manager.loop.service import Manager
    from rota.manager.peers.peer import Peer

#: Chunks up to this many commands are looked up on the spot; larger ones in a worker thread.
_SMALL = 256
#: What one connection may have open at once.
_UPLOADS_MAX = 16


class Uploads:
    """All submissions of which chunks are still to come."""

    def __init__(self, manager: Manager, admission: Admission) -> None:
        self._manager = manager
        self._admission = admission
        self._intakes: dict[str, Intake] = {}
        self._sealed: deque[str] = deque(maxlen=256)  #: the newest submissions, committed or about to be
        #: users and their inputs that were added last, likewise
        self._added: deque[tuple[str, str]] = deque(maxlen=256)
        self._turns: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()

    def gone(self, peer: Peer) -> None:
        """A client went away in the middle of an upload."""
        for submission in list(peer.uploads):
            self.drop(peer, submission)

    async def add(self, peer: Peer, add: m.Add) -> None:
        """Take one chunk; the engine answers. Raises `RotaError` to refuse the whole submission."""
        manager = self._manager
        by = Asker(peer.id, add.n, peer.user)
        for ask in self._admission.to_look_up(peer.user) if add.specs else ():
            await manager.read(ask)
        if not 0 < len(add.submission) <= 64:
            raise BadInput("a submission needs an id of at most 64 characters")
        if add.first == 0:
            if add.submission in self._sealed:
                await manager.committed()  # a repeat of what is being committed: its answer will be there
            if (answered := manager.store.submission(add.submission)) is not None and answered.answer:
                if answered.user != peer.user:
                    raise Denied("this submission belongs to somebody else")
                if not add.more:
                    manager.answer(by, expand_answer(answered.answer))
                else:
                    manager.answer(by, None)  # the rest may come; the last chunk gets the first answer
                return
            if (begun := self._intakes.get(add.submission)) is not None and begun.user != peer.user:
                raise Denied("this submission belongs to somebody else")
            if not add.check and not manager.store.can_accept(manager.world.live):
                raise StoreFull(
                    "the disk is nearly full; no job was added", hint="free some space, then add again"
                )
            if len(peer.uploads) >= _UPLOADS_MAX:
                raise BadInput(f"more than {_UPLOADS_MAX} submissions are open", hint="finish one first")
            limits_now = manager.world.placement.limits
            begun = Intake(
                add.submission,
                peer.user,
                manager.library,
                limits_now,
                self._admission,
                admin=not restricted(peer),
            )
            self._intakes[add.submission] = peer.uploads[add.submission] = begun
        intake = peer.uploads.get(add.submission)
        if intake is None or self._intakes.get(add.submission) is not intake:
            answered = manager.store.submission(add.submission)
            if answered is not None and answered.answer and answered.user == peer.user:
                manager.answer(by, None if add.more else expand_answer(answered.answer))
                return
            raise BadInput("this chunk belongs to no submission", hint="send the input again")
        if add.attach and not (add.more or add.check) and len(peer.attaching) < _UPLOADS_MAX:
            peer.attaching.add(add.submission)
        try:
            if add.input and not add.more:
                # One after the other: each must know what the one before has added.
                turn = self._turns.setdefault((by.user, add.input), asyncio.Lock())
                async with turn:
                    await self._chunk(by, add, intake)
            else:
                await self._chunk(by, add, intake)
        except RotaError:
            self.drop(peer, add.submission)
            raise
        if not add.more:
            self._sealed.append(add.submission)
            self._intakes.pop(add.submission, None)
            peer.uploads.pop(add.submission, None)

    async def _chunk(self, by: Asker, add: m.Add, intake: Intake) -> None:
        manager = self._manager
        intake.check(add)
        grew = events.LibraryGrew(specs=[], envs=[])
        keys = intake.keys(add, grew)
        if grew.specs or grew.envs:
            manager.happened(grew)
        world = manager.world
        unknown = [] if add.fresh or add.rerun else [key for key in keys if key not in world.keys]
        known: dict[str, tuple[int, int]] = {}
        loaded: dict[int, Job] = {}
        with manager.loading():
            find = partial(look_up, manager.store, manager.library, by.user, unknown)
            if 0 < len(unknown) <= _SMALL:
                known, loaded = find()
            elif unknown:
                known, loaded = await manager.read(find)
            arrays: Arrays = {}
            if any(each.elements is not None for each in add.after):
                await manager.committed()  # an array that was just added is to be found
                arrays = await manager.read(lambda: find_elements(manager.store, add))
            dependents: dict[int, Job] = {}
            if intake.dep_groups and not add.more:
                dependents = await manager.read(
                    lambda: complete_dependents(manager.store, manager.library, intake.dep_groups)
                )
            commanded = await self._commanded(add, by)
            parents = {each.parent for each in add.after if not each.local and each.cwd is None}
            parents = parents.union(*arrays.values(), commanded.values())
            gone = {id for id in parents if isinstance(id, int) and manager.world.is_replaced(id)}
            before, followers = await self._before(add, intake, keys=keys, known=known, gone=gone)
            last = await self._last(add, by)
            if self._intakes.get(add.submission) is not intake:  # or its client has gone, and hears nothing of it
                raise BadInput(
                    "this submission was begun again meanwhile", hint="wait for that, then send it again"
                )
            manager.happened(
                intake.event(
                    add, by, keys=keys, known=known, loaded=loaded, dependents=dependents, arrays=arrays,
                    before=before, followers=followers, last=last, commanded=commanded,
                )
            )  # fmt: skip

    async def _commanded(self, add: m.Add, by: Asker) -> Commanded:
        """The jobs that entries name by their commands."""
        if not any(each.cwd is not None for each in add.after):
            return {}
        manager = self._manager
        keys = command_keys(add, by.user)
        ids = {key: id for key in keys.values() if (id := manager.world.keys.get(key)) is not None}
        if missing := [key for key in keys.values() if key not in ids]:
            await manager.committed()  # one that has just ended is to be found
            known = await manager.read(lambda: manager.store.known_keys(by.user, missing))
            ids |= {key: job for key, (job, _state) in known.items()}
        return find_commanded(add, keys, ids)

    async def _last(self, add: m.Add, by: Asker) -> Last:
        """What this input was when it was added last."""
        if add.more or not add.input:
            return Last([], [], {})
        manager, world = self._manager, self._manager.world
        if (by.user, add.input) in self._added:
            await manager.committed()
        if not add.check:
            self._added.append((by.user, add.input))
        return await manager.read(
            lambda: look_at_last(
                manager.store,
                manager.library,
                user=by.user,
                name=add.input,
                failed=lambda id: world.outcome(id) in RETRYABLE,
            )
        )

    async def _before(
        self, add: m.Add, intake: Intake, *, keys: list[str], known: dict[str, tuple[int, int]], gone: set[int]
    ) -> tuple[Before, dict[int, Job]]:
        """What is to be known of jobs that were there before; for most submissions nothing."""
        manager, world = self._manager, self._manager.world
        intake.reruns |= add.rerun or bool(add.rerun_entries)
        before, followers = Before({}, {}, {}), dict[int, Job]()
        if gone:
            await manager.committed()  # who took their place is to be found
        if gone or add.rerun or add.rerun_entries or (add.after and known):
            before = await manager.read(
                lambda: look_before(manager.store, manager.library, add, keys=keys, known=known, gone=sorted(gone))
            )
        if intake.reruns and not add.more:
            upload = world.uploads.get(add.submission)
            olds = {old.id for each in before.namesakes.values() for old in each} | set(before.formers)
            if upload is not None:
                olds |= {old.id for each in upload.replacing.values() for old in each}
                olds |= {known.job for known in upload.known_entries.values()}
            followers = await manager.read(lambda: find_followers(manager.store, manager.library, olds))
        return before, followers

    def drop(self, peer: Peer, submission: str) -> None:
        """Forget a submission of which not all chunks came."""
        intake = peer.uploads.pop(submission, None)
        if submission in peer.attaching:
            peer.attaching.discard(submission)
            self._manager.tails.expected()
        # The same submission may have been begun again on another connection.
        if intake is not None and self._intakes.get(submission) is intake:
            del self._intakes[submission]
            self._manager.happened(events.UploadDropped(submission=submission))
