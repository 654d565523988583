"""Client → manager: requests. Each has a number `n` that its answers repeat."""

from __future__ import annotations

from rota.core.jobs.command import Command
from rota.wire.channels import InChannel, OpenChannel
from rota.wire.greeting import Hello, Message
from rota.wire.job_structs import NewSpec, SpecChange
from rota.wire.machines import ReserveMachine, ReturnMachine, SetMachine
from rota.wire.new_after import NewAfter
from rota.wire.pipelines import (
    ActPipeline,
    GetElementGraph,
    GetPipelinePicture,
    ListElements,
    ListPipelines,
    RunPipeline,
    ShowPipeline,
    WatchPipeline,
)
from rota.wire.results import GetResults


class NewElement(Message, frozen=True):
    """An entry that is an element of an array."""

    entry: int
    array: int  #: arrays of a submission are numbered from 0
    index: int


class Add(Message, frozen=True, tag="add"):
    """One chunk of a submission. Chunks come in order; nothing is visible before the last."""

    n: int
    submission: str  #: made by the client; a repeated submission gets the first answer
    first: int  #: index of the first command of this chunk
    cmds: list[Command]
    specs: list[NewSpec] = []  #: appended to those of earlier chunks
    envs: list[bytes] = []  #: appended likewise; NUL-separated K=V
    spec_of: list[int] | None = None  #: for each command; None: all use specification 0
    lines: list[int] | None = None  #: input line of each command, for errors; None: index + 1
    after: list[NewAfter] = []
    more: bool = False
    fresh: bool = False  #: add new jobs even if identical ones exist
    check: bool = False  #: report what would happen, add nothing
    allow_unsatisfiable: bool = False
    fresh_entries: list[int] = []  #: indexes of entries that are `fresh`, if not all are
    allowed_entries: list[int] = []  #: the same for `allow_unsatisfiable`
    elements: list[NewElement] = []
    inputs: list[tuple[int, int]] = []  #: (entry, bytes of its input)
    rerun: bool = False  #: replace ended jobs by new ones; leave others alone
    rerun_entries: list[int] = []  #: indexes of entries that are `rerun`, if not all are
    input: str = ""  #: with the last chunk: path or name of the input; empty: an input that cannot be edited later
    attach: bool = False  #: a `Watch` with `attach` follows on this connection


class Drop(Message, frozen=True, tag="drop"):
    """Discard a submission whose chunks were not all sent."""

    n: int
    submission: str


class ListJobs(Message, frozen=True, tag="jobs"):
    n: int
    selectors: list[str]
    limit: int = 1000
    cursor: int = 0


class ListPage(Message, frozen=True, tag="page"):
    """A page of a list in any order: from `offset` on, or after the page that returned `cursor`."""

    n: int
    selectors: list[str]
    search: str = ""
    sort: str = "-id"
    limit: int = 100
    offset: int = 0
    cursor: str = ""


class GetGraph(Message, frozen=True, tag="graph"):
    """What a job waits for, and what waits for it."""

    n: int
    job: int


class Feed(Message, frozen=True, tag="feed"):
    """Stream `FeedView`: all changes, collected over short intervals, until the client closes the stream."""

    n: int


class Status(Message, frozen=True, tag="status"):
    n: int
    selectors: list[str]


class Show(Message, frozen=True, tag="show"):
    n: int
    job: int


class Act(Message, frozen=True, tag="act"):
    """kill, retry, remove, hold, release, confirm-dead, suspend, resume, signal, checkpoint."""

    n: int
    verb: str
    selectors: list[str]
    cascade: bool = False  #: remove: with everything that depends on them
    keep: bool = False  #: suspend: keep all resources
    signal: str = ""  #: signal: its name
    waiting: bool = False  #: remove: also waiting jobs
    lenient: bool = False  #: remove: the named jobs are only part of a selection
    check: bool = False  #: only report which jobs would change


class ChangeWalltime(Message, frozen=True, tag="change-walltime"):
    """Set the walltime of a running job, or change it by so much."""

    n: int
    job: int
    seconds: float
    relative: bool = False
    force: bool = False  #: even if that breaks promises to other jobs


class Modify(Message, frozen=True, tag="modify"):
    """Change jobs that are not running."""

    n: int
    selectors: list[str]
    spec: SpecChange


class Why(Message, frozen=True, tag="why"):
    """Why is a job not running?"""

    n: int
    job: int


class PlanFor(Message, frozen=True, tag="plan"):
    """When and where would such a job run? Nothing is submitted."""

    n: int
    spec: NewSpec
    user: str = ""  #: owner of the job; empty: the user who asks


class Gantt(Message, frozen=True, tag="gantt"):
    """Running and planned jobs between two moments (Unix seconds; None: no bound)."""

    n: int
    since: float | None = None
    until: float | None = None
    limit: int = 10_000  #: at most this many jobs, the earliest first


class ListLimits(Message, frozen=True, tag="limits"):
    n: int


class SetLimit(Message, frozen=True, tag="limit"):
    """NAME:N, NAME:unlimited, NAME@HH:MM-HH:MM, NAME@always, NAME:N@HH:MM-HH:MM; for one host if one is named."""

    n: int
    text: str
    host: str = ""


class GetSite(Message, frozen=True, tag="site"):
    """Records of the site of these kinds; none: all."""

    n: int
    kinds: list[str] = []


class ListQuotas(Message, frozen=True, tag="quotas"):
    """The records of quotas, and the use of each by its holders."""

    n: int


class GetPools(Message, frozen=True, tag="pools"):
    """The pools, or one of them if named."""

    n: int
    name: str = ""


class GetGang(Message, frozen=True, tag="gang"):
    """The newest gang of a name."""

    n: int
    name: str


class GetShares(Message, frozen=True, tag="shares"):
    """The standings of users and projects in fair-share queues, or in one of them if named."""

    n: int
    queue: str = ""


class SetSite(Message, frozen=True, tag="set-site"):
    """Change records of the site, all or none: (kind, name, value as JSON; null removes it).

    `base` is the version that the changes are based on: if it is outdated they are refused with the code
    `changed`. -1: any version.
    """

    n: int
    changes: list[tuple[str, str, str | None]]
    about: str = ""
    base: int = -1


class Learned(Message, frozen=True, tag="learned"):
    """What is known about a learning group, or about all if no name is given."""

    n: int
    name: str = ""
    forget: bool = False
    #: the client tells requested from given amounts; earlier versions expect one number, never null
    apart: bool = False


class GetAccounts(Message, frozen=True, tag="accounts"):
    """Use between two moments (Unix seconds; None: recently, until now), in windows of so many seconds."""

    n: int
    since: float | None = None
    until: float | None = None
    by: tuple[str, ...] = ("user", "project", "queue")
    window_s: int = 86_400
    window: str = ""  #: instead of a length: hour, day, week, month, all or a time such as 36h
    zone: str = ""  #: time zone in which days begin; empty: UTC
    apart: bool = False  #: as in `Learned`


class GetUsage(Message, frozen=True, tag="usage"):
    """How hosts spent their time between two moments (None: the last day)."""

    n: int
    since: float | None = None
    until: float | None = None


class GetMachineUsage(Message, frozen=True, tag="machine-usage"):
    """How machines spent their time between two moments (None: the last day, until now), by condition, usage and
    state."""

    n: int
    since: float | None = None
    until: float | None = None
    hosts: list[str] = []  #: only these machines; empty: all
    by: str = "host"  #: host, group or a property; empty: all machines together
    window: str = ""  #: hour, day, week, month, or a time such as 36h; empty: the whole time in one window
    zone: str = ""  #: time zone in which days begin; empty: UTC


class GetHistory(Message, frozen=True, tag="history"):
    """How many jobs started and ended in each of the last minutes."""

    n: int
    minutes: int = 60


class ListNodes(Message, frozen=True, tag="nodes"):
    n: int


class GetNode(Message, frozen=True, tag="node"):
    """One host and its recent history."""

    n: int
    host: str


class Watch(Message, frozen=True, tag="watch"):
    """Stream `Progress` until every selected job is settled; then a `Reply` with `Settled`."""

    n: int
    selectors: list[str]
    outputs: bool = False  #: with the output of each job once it has ended
    follow: bool = False  #: with the output of jobs while they run
    window: int = 0  #: bytes of unacknowledged live output allowed, see `Taken`; 0: any
    attach: bool = False  #: every byte of the jobs added by this submission; needs a window


class Taken(Message, frozen=True, tag="taken"):
    """The reader of stream `n` has processed live output up to these offsets."""

    n: int
    job: int
    attempt: int
    out: int
    err: int


class ReadOutput(Message, frozen=True, tag="output"):
    n: int
    job: int
    attempt: int = 0  #: 0: the newest
    stream: int = 1  #: 1 stdout, 2 stderr
    offset: int = 0
    limit: int = 1 << 20


class Control(Message, frozen=True, tag="control"):
    """status, stop (with kill), pause, drain, resume, backup (with path, force; `Item`s report progress),
    token-add, token-list, token-remove, token-check, doctor."""

    n: int
    verb: str
    args: dict[str, str] = {}


class NodeReady(Message, frozen=True, tag="node-ready"):
    """A machine that is being provisioned is ready: this one, whose ticket the sender has, or (for
    administrators) the one of this name."""

    n: int
    host: str = ""


class ReadProvision(Message, frozen=True, tag="provision-output"):
    """What was printed while the machines of a job were provisioned."""

    n: int
    job: int
    attempt: int = 0  #: 0: the latest with such output


class GetLayers(Message, frozen=True, tag="layers"):
    """The dependencies between jobs, by layers. Answered by a `LayersView`."""

    n: int
    selectors: list[str]


class Stop(Message, frozen=True, tag="stop"):
    """Close the stream that request `stream` opened."""

    n: int
    stream: int


FromClient = (
    Hello | Add | Drop | ListJobs | Status | Show | Act | Modify | Why | PlanFor | Gantt | ListLimits | SetLimit
    | ChangeWalltime
    | GetSite | SetSite | Learned | Watch | Taken
    | ReadOutput | Control | Stop | ListPage | GetGraph | Feed
    | GetAccounts | GetUsage | GetHistory | ListNodes | GetNode | ListQuotas | GetShares | GetPools
    | NodeReady | ReadProvision | GetGang
    | GetMachineUsage
    | SetMachine | ReserveMachine | ReturnMachine
    | RunPipeline | WatchPipeline | ShowPipeline | ListPipelines | ActPipeline
    | GetPipelinePicture | ListElements | GetElementGraph | GetLayers
    | GetResults
    | OpenChannel | InChannel
)  # fmt: skip
