"""A session of a pipeline in memory: its record, its flow, and the jobs that it has under way."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from statistics import median
from typing import Final

from rota.core.attempts.leases import JobProgress
from rota.core.jobs.job import Job, Spec, name_of
from rota.core.pipelines.definition import KEY, NAME, Definition
from rota.core.pipelines.flow import Ask, Flow
from rota.core.pipelines.graph import depths
from rota.core.pipelines.keys import element_key, stages_digest
from rota.core.pipelines.left_out import LeftOut
from rota.core.pipelines.progress import Progress
from rota.core.pipelines.ready_cells import ReadyCells
from rota.core.pipelines.route import Route
from rota.core.pipelines.session_records import ENDED, SessionNews, SessionRecord
from rota.core.pipelines.templates import Template, stage_templates
from rota.core.world import World
from rota.plan.need import LimitUse, Need
from rota.plan.placement.queue import RankKey

#: The depth of a rank key is in these parts of a second, or of an element.
_PARTS: Final = 1000
_SUBMISSION: Final = "pipeline-"


class StageJob(Job):
    """The job of an element at a stage, or of a stage that is for the session as a whole."""

    session: int = 0
    cell: int = -1  #: -1: it looks at conditions
    rank: RankKey = RankKey(0)
    kept: tuple[LimitUse, ...] = ()  #: units that it keeps between two attempts
    keeps: bool = False  #: its attempt is over and another follows
    exit_code: int | None = None  #: of its latest attempt
    told: int = 0  #: the attempt whose start the watchers were told
    doubted: bool = False  #: its attempt was lost: a condition may say that its work is done
    progress: JobProgress | None = None  #: how far it said last that it has come
    pipeline_element: str | None = None  #: None: it is for the session as a whole

    @property
    def name(self) -> str:
        return name_of(self.spec, self.pipeline_element)

    @property
    def rank_key(self) -> RankKey:
        return self.rank

    @property
    def need(self) -> Need:
        need = self.spec.need(self.size, self.spec_id)
        if not self.kept:
            return need
        limits = tuple(use for use in need.limits if use not in self.kept)
        return Need(need.size, limits, need.terms, need.pool, need.walltime_s)


class Session:
    """One run of a pipeline, over or not."""

    def __init__(self, record: SessionRecord, definition: Definition, progress: Progress | None = None) -> None:
        elements, stages = definition.elements, definition.stages
        self.record = record
        self.definition = definition
        self.route = Route(stages, record.stages)
        self.progress = progress if progress is not None else Progress(len(elements), len(stages))
        self.durations = array("f", bytes(4 * len(elements)))  #: seconds that the jobs of each element have run
        self.measured_s = array("f", bytes(4 * len(elements)))  #: what each took in earlier sessions; 0: not known
        self.flow = Flow(definition, self.route, self.progress, self)
        self.flow.quitting, self.flow.terminating = record.quitting, record.terminating
        self.left: LeftOut | None = None  #: elements of the file that were not selected
        self.whole = len(elements)  #: stands for an element where a stage is for the session as a whole
        self.templates: list[dict[str, Template]] = [stage_templates(stage) for stage in stages]
        self._stages_digest = stages_digest(definition)
        self._defaults = dict(definition.defaults)
        self._depths: list[int] | None = None
        #: The element and key whose placeholders were asked for last, which is often done several times in a row.
        self._valued: tuple[int, str | None] = (-1, None)
        self._values: dict[str, str] = {}
        #: (element, stage, key) → the identity of work that was begun, until it is done
        self._identities: dict[tuple[int, int, str], str] = {}
        self.news: list[SessionNews] = []
        self.changed = False  #: its record must be written
        self.unmade = ReadyCells()  #: cells that are ready, without a job as yet
        self.slicing = False  #: it is told when the present slice of what it has to do is on disk
        self.asks: deque[Ask] = deque()  #: conditions that no job looks at yet
        self.looking: dict[int, list[Ask]] = {}  #: job → conditions that it looks at
        self.live: dict[int, int] = {}  #: job → its cell, for jobs that have not ended
        self.doubts: dict[int, int] = {}  #: cell → job that is ready, and waits for what its condition says
        self.withheld: set[int] = set()  #: jobs that are ready, and not offered while nothing may start
        self.orphans: list[int] = []  #: jobs of which nothing is wanted any more
        self.clients = 0  #: that can answer its questions
        self.due: set[int] = set()  #: stages for the session as a whole that should be looked at
        self.looked_at: dict[int, float] = {}  #: when each of them was
        #: job → its cell, as it was stored; for a restart
        self.under_way: dict[int, int] = {}
        self.ended: list[tuple[int, StageJob, float]] = []  #: cells whose jobs have ended, and when

    @property
    def number(self) -> int:
        return self.record.number

    @property
    def submission(self) -> str:
        return submission_of(self.record.number)

    @property
    def over(self) -> bool:
        return self.record.state == ENDED

    @property
    def still(self) -> bool:
        """Does it start nothing for now?"""
        return self.record.paused_at is not None

    def elapsed_s(self, now: float) -> float:
        """How long it has run, without pauses."""
        record = self.record
        end = record.ended_at if record.ended_at is not None else record.paused_at
        return max(0.0, (now if end is None else end) - record.started_at - record.paused_s)

    # -- names

    def element_name(self, element: int) -> str | None:
        return self.definition.elements[element].name if element < self.whole else None

    def stage_name(self, stage: int) -> str:
        return self.definition.stages[stage].name

    def place_of(self, cell: int) -> tuple[int, int]:
        """The element and the stage of a cell."""
        return divmod(cell, self.progress.width)

    # -- what an element is at a stage

    def values(self, element: int) -> Mapping[str, str]:
        """The placeholders of an element, as far as they are known."""
        if element == self.whole:
            return self._defaults
        key = self.flow.marks.key(element)
        if (element, key) != self._valued:
            its = self.definition.elements[element]
            self._values = {**self._defaults, **dict(its.own), NAME: its.name}
            if key is not None:
                self._values[KEY] = key
            self._valued = (element, key)
        return self._values

    def command(self, element: int, stage: int, field: str = "run") -> str:
        return self.templates[stage][field].expand(self.values(element))

    def begin(self, element: int, stage: int) -> tuple[str, str]:
        """The command of an element at a stage, and the identity key of that work."""
        values = self.values(element)
        command = self.templates[stage]["run"].expand(values)
        key = values.get(KEY, "")
        identity = self._identities[element, stage, key] = self._identity(element, stage, key, command)
        return command, identity

    def _identity(self, element: int, stage: int, key: str, command: str) -> str:
        record = self.record
        digest = blake2b(digest_size=16)
        name = self.element_name(element) or ""
        for part in (record.user, record.file, name, self.stage_name(stage), command, key):
            said = part.encode("utf-8", "surrogateescape")
            digest.update(b"%d\0" % len(said) + said)
        return digest.hexdigest()

    def key(self, element: int, digest: str, parents: list[str]) -> str:
        return element_key(self.definition, element, stages=self._stages_digest, file=digest, parents=parents)

    def mark(self, element: int, stage: int, key: str) -> int:
        identity = self._identities.pop((element, stage, key), None)
        if identity is None:
            identity = self._identity(element, stage, key, self.command(element, stage))
        return int(identity[:16], 16) or 1

    # -- order

    def rank_key(self, element: int, stage: int, priority: int) -> RankKey:
        """Last stage first, then deepest first."""
        if self._depths is None:
            known = [seconds for seconds in self.measured_s if seconds]
            lengths = None
            if known:
                usual = median(known)
                lengths = [seconds or usual for seconds in self.measured_s]
            self._depths = [int(depth * _PARTS) for depth in depths(self.definition.elements, lengths)]
        depth = self._depths[element] if element < self.whole else 0
        return RankKey(-priority, self.number, self.progress.width - 1 - stage, -depth)


class Sessions:
    """State of the feature `pipelines`."""

    def __init__(self) -> None:
        self.all: dict[int, Session] = {}
        self.dirty: dict[int, None] = {}  #: sessions in which something has happened
        self.specs: dict[int, Spec] = {}  #: of jobs that sessions make

    def of_file(self, user: str, file: str) -> Session | None:
        """The latest session of a file."""
        found = [each for each in self.all.values() if (each.record.user, each.record.file) == (user, file)]
        return max(found, key=lambda each: each.number, default=None)

    def going(self) -> Iterator[Session]:
        return (session for session in self.all.values() if not session.over)


def submission_of(number: int) -> str:
    """The name under which the jobs of a session were added."""
    return f"{_SUBMISSION}{number}"


def is_submission(name: str) -> bool:
    """Were the jobs of a session added under this name?"""
    return name.startswith(_SUBMISSION)


def session_of(world: World, job: Job) -> Session | None:
    """The session of a job."""
    if not isinstance(job, StageJob):
        return None
    return world.use(Sessions).all.get(job.session)


def mark_dirty(world: World, session: Session) -> None:
    """Have this session looked at before the next placing."""
    world.use(Sessions).dirty[session.number] = None
