"""A submission while its chunks arrive. Data only."""

from __future__ import annotations

from typing import NamedTuple

from rota.core.events import FormerJob
from rota.core.jobs.command import Command
from rota.core.jobs.job import Job, Parent, Spec


class Upload:
    """A submission whose chunks have not all arrived."""

    __slots__ = ("added", "after", "arrays", "check", "complete", "entries", "existing", "fresh", "gangs", "jobs",
                 "keys", "known_entries", "lines", "replacing", "retried", "warnings")  # fmt: skip

    def __init__(self, *, check: bool) -> None:
        self.check = check  #: dry run: nothing is written and no id is used
        self.entries: list[int] = []  #: entry index → job
        self.lines: list[int] = []
        self.added: list[int] = []
        self.existing: list[int] = []
        self.fresh: set[int] = set()  #: jobs that are new even though equal ones exist
        self.retried: dict[int, Job | None] = {}  #: None: the job is in memory
        self.jobs: dict[int, Job] = {}
        self.gangs = False  #: are some of its jobs members of gangs?
        self.keys: dict[str, int] = {}
        #: (entry, parent, condition, is the parent an entry of this input?)
        self.after: list[tuple[int, Parent, int, bool]] = []
        self.arrays: dict[int, int] = {}  #: number of an array within the submission → its id
        self.complete: list[int] = []
        self.warnings: list[str] = []
        self.replacing: dict[int, list[FormerJob]] = {}  #: new job → jobs that it replaces
        #: entry → existing job with dependencies, as it is asked for now
        self.known_entries: dict[int, KnownEntry] = {}


class KnownEntry(NamedTuple):
    """An entry whose job exists already, as the submission asks for it now."""

    job: int
    key: str
    cmd: Command
    spec: Spec
    spec_id: int
    input_bytes: int | None
    array: tuple[int, int] | None  #: number of its array within the submission, and index in the array
    former: FormerJob | None  #: the job, if it is complete and no longer in memory
