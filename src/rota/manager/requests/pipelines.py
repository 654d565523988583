"""Sessions of pipelines for clients: start, watch, show and act; and what jobs print that look at conditions.

It decides nothing: `core.pipelines` does. Watchers are told after the commit of what they are told.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from rota.core.effects import Effect
from rota.core.fields.values import MAX_ENVIRONMENT
from rota.core.jobs.job import Spec
from rota.core.pipelines import graph
from rota.core.pipelines.admission import of_stage, takes
from rota.core.pipelines.checks import check_definition
from rota.core.pipelines.definition import Definition
from rota.core.pipelines.keys import definition_digest
from rota.core.pipelines.session import Session, Sessions
from rota.core.pipelines.session_records import (
    ASKING,
    PAUSED,
    ConditionsAnswered,
    ReadConditions,
    SessionActed,
    SessionAttended,
    SessionNews,
    SessionStarted,
    SliceCommitted,
    TakeNextSlice,
    Work,
)
from rota.core.pipelines.telling import FollowSession, TellSession
from rota.errors import BadInput, Denied, NotFound, StoreFull
from rota.manager.feature import FeatureService, ManagerFeature, Perform, Serve, Services
from rota.manager.loop import clock
from rota.manager.output.outputs import SegmentFiles
from rota.manager.peers.ownership import restricted
from rota.manager.peers.peer import Peer
from rota.manager.requests.pipeline_pictures import PipelinePictures
from rota.manager.views import pipelines as views
from rota.plan.policy.limits import Limit
from rota.plan.size import Size
from rota.wire import codec
from rota.wire import messages as m
from rota.wire.pipeline_views import PipelineItem
from rota.wire.specs import spec_from

#: Name of the jobs that look at conditions, and their memory.
CONDITIONS: Final = "conditions"
_CONDITIONS_MEM: Final = 64 << 20
#: What such a job may print.
_MOST_PRINTED: Final = 1 << 20
#: Events in one message.
_AT_ONCE: Final = 2000
#: Watchers are told what happens no more often: a message for each commit would cost more than what it tells.
_TELL_EVERY_S: Final = 0.05
_LONGEST_PATH: Final = 8192


class Watcher(NamedTuple):
    """A client that watches a session."""

    peer: Peer
    n: int
    answers: bool


class Pipelines(FeatureService):
    """The sessions of one manager."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._world = services.world
        self._turns = services.turns
        self._watchers: dict[int, list[Watcher]] = {}  #: by session
        self._starting: dict[tuple[int, int], Watcher] = {}  #: by connection and request
        self._untold: dict[int, list[SessionNews]] = {}  #: session → what its watchers will be told soon
        self._told_at: dict[int, float] = {}  #: session → when its watchers were told last; by the loop's clock
        self._reading: set[asyncio.Task[None]] = set()
        self._pictures = PipelinePictures(services, self._find)

    def performers(self) -> Mapping[type[Effect], Perform]:
        return {
            TellSession: self._tell,
            ReadConditions: self._read,
            FollowSession: self._follow,
            TakeNextSlice: self._take_next_slice,
        }

    def requests(self) -> Mapping[type[Any], Serve]:
        return {
            m.RunPipeline: self._run,
            m.WatchPipeline: self._watch,
            m.ShowPipeline: self._show,
            m.ListPipelines: self._list,
            m.ActPipeline: self._act,
            **self._pictures.requests(),
        }

    def subjects(self) -> Mapping[str, object]:
        sessions = self._world.find(Sessions)
        if sessions is None:
            return {}
        return {"pipelines": [views.version(session) for session in sessions.all.values()]}

    # ------------------------------------------------------------------ requests

    async def _run(self, peer: Peer, ask: m.RunPipeline) -> None:
        services = self._services
        if not ask.file or len(ask.file) > _LONGEST_PATH or "\0" in ask.file:
            raise BadInput("a pipeline needs the path of its file", hint="give one")
        for look_up in services.admission.to_look_up(peer.user):
            await services.readers.read(look_up)
        live = services.world.live
        if not (
            self._is_going(peer.user, ask.file)
            or await services.readers.read(lambda: services.store.can_accept(live))
        ):
            raise StoreFull(
                "the disk is nearly full; no session was started", hint="free some space, then run it again"
            )
        whole, digest = await services.readers.read(lambda: _definition(ask))
        definition, left_out = await services.readers.read(lambda: _selected(whole, ask.only))
        stages = graph.stage_positions(definition, ask.stages) if ask.stages else None
        if len(ask.specs) != len(definition.stages):
            raise BadInput("the specifications do not fit the stages")
        blobs = [ask.env, *ask.envs]
        if any(not 0 <= new.env < len(blobs) for new in ask.specs) or max(map(len, blobs)) > MAX_ENVIRONMENT:
            raise BadInput("the environments do not fit the stages, or are too large")
        specs: dict[int, Spec] = {}
        works = []
        for number, (stage, new) in enumerate(zip(definition.stages, ask.specs, strict=True)):
            if not takes(stages, number):
                works.append(Work(0))
                continue
            limits = tuple(sorted(stage.takes, key=lambda use: use.name))
            new = replace(new, name=stage.name, retries=stage.retries, limits=(), dep_groups=())
            envs = [b"%b\0ROTA_PROGRESS=" % blobs[new.env]]  # runners fill it in
            if stage.also_failed:
                envs = [b"%b\0ROTA_OUTCOME=%b" % (envs[0], word) for word in (b"ok", b"failed")]
            with of_stage(stage.name):
                made = [spec_from(new, limits, user=peer.user, env=services.library.env(each)) for each in envs]
                works.append(Work(*(self._spec(peer, each, specs) for each in made)))
        env = services.library.env(ask.env)
        first = ask.specs[0 if stages is None else min(stages)]
        looking = replace(
            spec_from(first, (), user=peer.user, env=env), name=CONDITIONS, learn=CONDITIONS,
            size=Size(cpus=0, mem=_CONDITIONS_MEM, time_s=60.0), retries=2, backoff_s=0.0, walltime_s=None,
            request=(), where="", prefer="", types=(), dep_groups=(), no_retry_over_s=None,
        )  # fmt: skip
        conditions = self._spec(peer, looking, specs)
        for grew in services.library.grown():
            self._turns.happened(grew)
        by = peer.asker(ask.n)
        if ask.watch:
            self._starting[peer.id, ask.n] = Watcher(peer, ask.n, ask.answers)
        self._turns.happened(
            SessionStarted(
                by=by, file=ask.file, cwd=ask.specs[0].cwd, digest=digest, definition=definition,
                works=tuple(works), conditions=conditions, specs=specs, stages=stages, on_error=ask.on_error,
                limits=[Limit(name, units, by_jobs=True, owner=peer.user) for name, units in definition.limits],
                restart=ask.restart, watch=ask.watch, rerun=ask.rerun, admin=not restricted(peer),
                left_out=left_out,
            )
        )  # fmt: skip

    def _spec(self, peer: Peer, spec: Spec, specs: dict[int, Spec]) -> int:
        """The number of a specification, as the rules of the site make it."""
        admitted = self._services.admission.admit(spec, admin=not restricted(peer)).spec
        number = self._services.library.spec(admitted)
        specs[number] = admitted
        return number

    async def _watch(self, peer: Peer, ask: m.WatchPipeline) -> None:
        session = self._find(peer, ask.session)
        await self._turns.committed()  # the view may show what is decided but not yet on disk
        self._add(session, Watcher(peer, ask.n, ask.answers))

    async def _show(self, peer: Peer, ask: m.ShowPipeline) -> None:
        session = self._find(peer, ask.session, ask.file)
        self._turns.answer(peer.asker(ask.n), views.view(self._world, session, clock.now()))

    async def _list(self, peer: Peer, ask: m.ListPipelines) -> None:
        sessions = self._world.find(Sessions)
        found = [] if sessions is None else sorted(sessions.all.items())
        listed = [views.brief(each, clock.now()) for _number, each in found if self._may_see(peer, each)]
        self._turns.answer(peer.asker(ask.n), listed)

    async def _act(self, peer: Peer, ask: m.ActPipeline) -> None:
        session = self._find(peer, ask.session, ask.file)
        if restricted(peer) and session.record.user != peer.user:
            raise Denied(f"session {session.number} belongs to {session.record.user}", hint="ask its owner")
        by = peer.asker(ask.n)
        self._turns.happened(
            SessionActed(by=by, session=session.number, verb=ask.verb, elements=tuple(ask.elements))
        )

    def _find(self, peer: Peer, number: int, file: str = "") -> Session:
        """Raises `NotFound`."""
        sessions = self._world.find(Sessions)
        found = None
        if sessions is not None:
            found = sessions.all.get(number) if number else sessions.of_file(peer.user, file)
        if found is None or not self._may_see(peer, found):
            what = f"session {number}" if number else f"session of {file}"
            raise NotFound(f"there is no {what}", hint="start one with 'rota pipeline run FILE'")
        return found

    def _is_going(self, user: str, file: str) -> bool:
        sessions = self._world.find(Sessions)
        found = sessions.of_file(user, file) if sessions is not None else None
        return found is not None and not found.over

    def _may_see(self, peer: Peer, session: Session) -> bool:
        return not restricted(peer) or session.record.user == peer.user

    # ------------------------------------------------------------------ watchers

    def _follow(self, effect: FollowSession) -> None:
        watcher = self._starting.pop((effect.to.connection, effect.to.n), None)
        if watcher is not None and not watcher.peer.closed:
            self._add(effect.session, watcher)

    def _add(self, session: Session, watcher: Watcher) -> None:
        number = session.number
        self._tell_now(number)
        item = PipelineItem(session=number, view=views.view(self._world, session, clock.now()))
        watcher.peer.send(m.Item(watcher.n, codec.body(item)))
        if session.over:
            self._finish(session, [watcher])
            return
        self._watchers.setdefault(number, []).append(watcher)
        self._count_answers(number)

    def _tell(self, effect: TellSession) -> None:
        """Tell watchers what has happened, now or with what happens next."""
        session = effect.session
        number = session.number
        if number not in self._watchers:
            return
        waiting = number in self._untold
        self._untold.setdefault(number, []).extend(effect.news)
        loop = asyncio.get_running_loop()
        soon = self._told_at.get(number, 0.0) + _TELL_EVERY_S
        if effect.over or soon <= loop.time() or session.still:
            self._tell_now(number)
        elif not waiting:
            loop.call_at(soon, self._tell_now, number)
        if effect.over:
            self._finish(session, self._watchers.pop(number))
            self._told_at.pop(number, None)

    def _tell_now(self, number: int) -> None:
        told = self._untold.pop(number, None)
        watchers = self._watchers.get(number)
        if told is None or not watchers:
            return
        self._told_at[number] = asyncio.get_running_loop().time()
        session = self._world.use(Sessions).all.get(number)
        for begin in range(0, len(told), _AT_ONCE):
            events = [views.event(each) for each in told[begin : begin + _AT_ONCE]]
            item = PipelineItem(session=number, events=events)
            if session is not None:
                item.stages = views.sums(session)
            if session is not None and session.record.state in (ASKING, PAUSED):
                item.view = views.view(self._world, session, clock.now())
            body = codec.body(item)
            for watcher in watchers:
                watcher.peer.send(m.Item(watcher.n, body))

    def close(self) -> None:
        for number in list(self._untold):
            self._tell_now(number)

    def _finish(self, session: Session, watchers: list[Watcher]) -> None:
        body = codec.body(views.view(self._world, session, clock.now()))
        for watcher in watchers:
            watcher.peer.send(m.Reply(watcher.n, body))

    def gone(self, peer: Peer, n: int | None = None) -> None:
        for key in [key for key in self._starting if key[0] == peer.id and n in (None, key[1])]:
            del self._starting[key]
        for number, watchers in list(self._watchers.items()):
            left = [each for each in watchers if each.peer is not peer or n not in (None, each.n)]
            if len(left) < len(watchers):
                self._watchers[number] = left
                self._count_answers(number)
            if not left:
                del self._watchers[number]
                self._untold.pop(number, None)
                self._told_at.pop(number, None)

    def _count_answers(self, number: int) -> None:
        clients = sum(each.answers for each in self._watchers.get(number, ()))
        sessions = self._world.find(Sessions)
        session = sessions.all.get(number) if sessions is not None else None
        if session is not None and session.clients != clients:
            self._turns.happened(SessionAttended(session=number, clients=clients))

    def _take_next_slice(self, effect: TakeNextSlice) -> None:
        self._turns.happened(SliceCommitted(session=effect.session))

    # ------------------------------------------------------------------ conditions

    def _read(self, effect: ReadConditions) -> None:
        task = asyncio.get_running_loop().create_task(self._read_conditions(effect))
        self._reading.add(task)
        task.add_done_callback(self._reading.discard)

    async def _read_conditions(self, effect: ReadConditions) -> None:
        outcome = effect.outcome

        def read() -> str | None:
            files = SegmentFiles(self._services.home.output)
            try:
                length = min(outcome.out_len, _MOST_PRINTED)
                return files.all_of(outcome, 1, offset=0, length=length).decode("utf-8", "replace")
            except OSError:
                return None
            finally:
                files.close()

        text = await self._services.readers.read(read)
        self._turns.happened(ConditionsAnswered(session=effect.session, job=effect.job, text=text))


def _definition(ask: m.RunPipeline) -> tuple[Definition, str]:
    """The pipeline that a client sent, checked, and what it is known by. Takes long if there are many elements."""
    try:
        definition = msgspec.msgpack.decode(ask.definition, type=Definition)
    except msgspec.DecodeError as error:
        raise BadInput(f"this is no pipeline: {error}", hint="are both of the same version?") from None
    check_definition(definition)
    chosen = msgspec.json.encode([sorted(ask.only), sorted(ask.stages)]).decode()
    return definition, f"{definition_digest(definition)} {chosen}"


def _selected(whole: Definition, names: list[str]) -> tuple[Definition, tuple[graph.NamedElement, ...]]:
    """What was selected of a pipeline, and the elements that were not. Takes long if there are many."""
    if not names:
        return whole, ()
    selected = graph.only(whole, names)
    return selected, graph.left_out(whole, selected)


def _make(services: Services) -> Pipelines:
    return Pipelines(services)


FEATURE: Final = ManagerFeature(name="pipelines", make=_make)
