"""A machine that runs pipelines: jobs and conditions end as a test says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from rota.core import effects as e
from rota.core import events
from rota.core.jobs.outcome import Outcome
from rota.core.pipelines import graph
from rota.core.pipelines.definition import Definition, Element, Stage
from rota.core.pipelines.flow import DIGEST
from rota.core.pipelines.keys import definition_digest
from rota.core.pipelines.session import Session, Sessions, StageJob
from rota.core.pipelines.session_records import (
    ConditionsAnswered,
    ReadConditions,
    SessionActed,
    SessionNews,
    SessionStarted,
    SliceCommitted,
    TakeNextSlice,
    Work,
)
from rota.core.pipelines.stage_jobs import SKIP
from rota.core.pipelines.telling import TellSession
from rota.core.rows import SpecRow
from rota.errors import RotaError
from rota.manager.views import pipelines as views
from rota.plan.need import LimitUse
from rota.plan.policy.limits import Limit
from rota.plan.size import Size
from rota.wire.pipeline_views import PipelineView
from tests.core.machine import Machine, spec

#: (element, stage) → exit status of its condition; for a stage of the whole session the element is empty.
Condition = Callable[[str, str], int]


def stage(name: str, **fields: Any) -> Stage:
    fields.setdefault("run", f"{name} {{name}}" if not fields.get("per_session") else name)
    takes = fields.pop("takes", {})
    uses = tuple(
        LimitUse(limit, 1, True) if n == "exclusive" else LimitUse(limit, n) for limit, n in takes.items()
    )
    return Stage(name=name, takes=uses, **fields)


def pipeline(
    stages: Iterable[Stage], elements: Mapping[str, Iterable[str]], limits: Mapping[str, int] | None = None
) -> Definition:
    """A definition; elements with the names of what they depend on, in order."""
    places = {name: place for place, name in enumerate(elements)}
    return Definition(
        stages=tuple(stages),
        elements=tuple(
            Element(name, tuple(places[each] for each in depends)) for name, depends in elements.items()
        ),
        limits=tuple((limits or {}).items()),
    )


class PipelineMachine(Machine):
    """Also reads what jobs that look at conditions print, and keeps what watchers are told."""

    def __init__(self, *, condition: Condition = lambda _e, _s: 1, **fields: Any) -> None:
        self.condition = condition
        self.digests: dict[str, str] = {}  #: element → of the file that is part of what it is
        self.told: list[SessionNews] = []
        self.ended: list[PipelineView] = []  #: what watchers are told at the end of each session
        self.looked: list[tuple[str, str]] = []  #: conditions that were looked at
        self.order: list[tuple[str, str]] = []  #: (element, stage) as their jobs began
        super().__init__(**fields)

    def _perform(self, effect: e.Effect) -> None:
        match effect:
            case TellSession(session, news, over):
                self.told += news
                if over:
                    self.ended.append(views.view(self.world, session, self.wall))
                self.order += [(each.element or "", each.stage or "") for each in news if each.event == "started"]
            case TakeNextSlice(session):
                self.happened(SliceCommitted(session=session))
            case ReadConditions(session, job):
                found = self.world.use(Sessions).all[session]
                asks = found.looking.get(job)
                if asks is not None:
                    text = self._answers(found, job)
                    self.happened(ConditionsAnswered(session=session, job=job, text=text))
            case _:
                super()._perform(effect)

    def _answers(self, session: Session, job: int) -> str:
        lines = []
        for number, ask in enumerate(session.looking[job]):
            element = session.element_name(ask.element) or ""
            for at, about in enumerate(ask.about):
                if about == DIGEST:
                    lines.append(f"{number} {2 * at} {self.digests.get(element, '')}")
                    continue
                of = session.definition.stages[about]
                skip = False
                for offset, text in enumerate((of.skip_if, of.run_if)):
                    if text and not skip:
                        status = self.condition(element, of.name)
                        self.looked.append((element, of.name))
                        lines.append(f"{number} {2 * at + offset} {'late' if status < 0 else status}")
                        skip = (status == 0) is not bool(offset)
                if not skip:
                    break
        return "\n".join(lines)

    # -- sessions

    def start(
        self, definition: Definition, *, file: str = "/p.yaml", on_error: str = "continue", restart: bool = False,
        stages: tuple[int, ...] | None = None, rerun: bool = False, only: Iterable[str] = (), **fields: Any,
    ) -> int:  # fmt: skip
        """Start a session; its number, or the refusal raised."""
        asked = self.ask_to_start(
            definition, file=file, on_error=on_error, restart=restart, stages=stages, rerun=rerun, only=only,
            **fields,
        )  # fmt: skip
        return int(self.answer(asked).session)

    def ask_to_start(
        self, definition: Definition, *, file: str = "/p.yaml", on_error: str = "continue", restart: bool = False,
        stages: tuple[int, ...] | None = None, rerun: bool = False, only: Iterable[str] = (),
        of_stage: Mapping[str, Mapping[str, Any]] | None = None, **fields: Any,
    ) -> int:  # fmt: skip
        """The same, without waiting for anything; the number of the request. `of_stage`: more fields of jobs."""
        by = self.asker()
        whole, definition = definition, graph.only(definition, only) if only else definition
        specs, works, rows = {}, [], []
        for place, each in enumerate(definition.stages):
            if stages is not None and place not in stages:
                works.append(Work(0))
                continue
            numbers = []
            for env in (1, 2):
                made = spec(
                    name=each.name, limits=each.takes, retries=each.retries, backoff_s=0.0, env=env,
                    **{**fields, **(of_stage or {}).get(each.name, {})},
                )  # fmt: skip
                numbers.append(self._number(made, rows))
                specs[numbers[-1]] = made
            works.append(Work(numbers[0], numbers[1] if each.also_failed else 0))
        look = spec(name="conditions", size=Size(cpus=0), retries=2, backoff_s=0.0, group="conditions")
        conditions = self._number(look, rows)
        specs[conditions] = look
        self.happened(
            events.LibraryGrew(specs=rows, envs=[]),
            SessionStarted(
                by=by, file=file, cwd="/", digest=definition_digest(whole) + str([*only]), definition=definition,
                works=tuple(works), conditions=conditions, specs=specs, on_error=on_error, restart=restart,
                limits=[Limit(name, n, by_jobs=True, owner="ann") for name, n in definition.limits], stages=stages,
                rerun=rerun, left_out=graph.left_out(whole, definition),
            ),
        )  # fmt: skip
        return by.n

    def _number(self, made: Any, rows: list[SpecRow]) -> int:
        if made not in self._spec_ids:
            self._spec_ids[made] = len(self._spec_ids) + 1
            rows.append(SpecRow(self._spec_ids[made], msgspec.json.encode(made).decode()))
        return self._spec_ids[made]

    def sessions(self) -> dict[int, Session]:
        return self.world.use(Sessions).all

    def session(self, number: int = 0) -> Session:
        sessions = self.sessions()
        return sessions[number or max(sessions)]

    def tell(self, verb: str, *elements: str, session: int = 0) -> int:
        """Act on a session; what was answered, or the refusal raised."""
        by = self.asker()
        self.happened(SessionActed(by=by, session=session or self.session().number, verb=verb, elements=elements))
        self.pump()
        body = self.replies[by.n]
        if isinstance(body, RotaError):
            raise body
        return int(body)

    def ask_for_nothing(self) -> int:
        """A request of somebody else; its number."""
        return self.act("hold")

    def work(self) -> dict[tuple[str, str], int]:
        """(element, stage) → job, of those that execute. Conditions are looked at before."""
        while looking := [job for job in self.running() if self._is_looking(job)]:
            for job in looking:
                if job in self.running():  # else the session was terminated by what another one said
                    self.end(job)
        found = {}
        for id in self.running():
            job = self.world.jobs[id]
            if isinstance(job, StageJob):
                session = self.session(job.session)
                element, number = session.place_of(job.cell)
                found[session.element_name(element) or "", session.stage_name(number)] = id
        return found

    def _is_looking(self, id: int) -> bool:
        job = self.world.jobs[id]
        return isinstance(job, StageJob) and job.cell < 0

    def finish(self, element: str, stage: str, exit_code: int = 0) -> None:
        """The job of an element at a stage, which runs, ends so."""
        self.wall += 1.0  # jobs that take no time are sent ahead of their turn
        self.mono += 1.0
        job = self.work()[element, stage]
        model, seat = self.running()[job]
        started_at = model.busy[seat].started_at
        if exit_code == SKIP:
            self.witness.succeeded.add((job, self.world.jobs[job].attempt))
        self.end(job, Outcome(exit_code=exit_code, started_at=started_at, ended_at=self.wall))

    def run(self, result: Callable[[str, str], int] = lambda _e, _s: 0) -> None:
        """Let everything run, one job after the other, and end with these exit codes."""
        for _round in range(100_000):
            work = self.work()
            if not work:
                if self.session().over or self.session().still:
                    return
                self.advance(1.0)
                self.pump()
                if not self.work() and not self.session().over and self.engine.next_due() is None:
                    raise AssertionError("it stands still")
                continue
            self.finish(*min(work), exit_code=result(*min(work)))
        raise AssertionError("it never ends")

    def sums(self, stage: str) -> dict[str, int]:
        """Those of a stage, without zeros."""
        session = self.session()
        number = next(n for n, each in enumerate(session.definition.stages) if each.name == stage)
        return {word: n for word, n in session.progress.sums(number).items() if n}

    def outcomes(self) -> dict[str, str]:
        session = self.session()
        return {each.name: session.flow.outcome(n) for n, each in enumerate(session.definition.elements)}


def machine(*, cores: int = 4, **fields: Any) -> PipelineMachine:
    m = PipelineMachine(cpus=100 * cores, **fields)
    m.with_runner()
    return m
