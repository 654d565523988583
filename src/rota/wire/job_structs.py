"""Fields of jobs in messages: what clients send and change, and what runners are told.

Made by `make generated` from `rota.core.fields`; change the declarations, not this module.
"""

from __future__ import annotations

from msgspec import UNSET, Struct, UnsetType

from rota.core.jobs.command import Command
from rota.plan.size import Size
from rota.wire.greeting import Message
from rota.wire.new_after import NewAfter
from rota.wire.new_use import NewUse


class NewSpec(Message, frozen=True):
    """A specification as a client sends it. The manager fills in user and environment."""

    cwd: str
    group: str
    name: str
    project: str
    queue: str  #: empty in messages: the rules of the site choose
    priority: int
    size: Size
    walltime_s: float | None
    retries: int
    backoff_s: float
    no_retry_over_s: float | None
    scratch: bool
    pipefail: bool
    env: int  #: index into the submission's environments
    limits: tuple[NewUse, ...] = ()
    dep_groups: tuple[str, ...] = ()  #: groups that the job is a member of
    live: bool = True  #: also wait for members that join a group later
    allow_empty_group: bool = False
    learn: str = ""  #: learning group; empty: the program's name
    override: str = ""  #: empty: higher for `given` fields, no for the others
    given: tuple[str, ...] = ()
    on_success: tuple[str, ...] = ()  #: behaviours: "run: CMD", "cleanup", "remove"
    on_failure: tuple[str, ...] = ()
    on_exit: tuple[str, ...] = ()
    stdout: str = ""  #: file name pattern; empty: Rota keeps the output
    stderr: str = ""
    request: tuple[str, ...] = ()  #: alternatives, as written; none: `size` on one host
    where: str = ""  #: property expression for every group of the request
    types: tuple[str, ...] = ()  #: for example "besteffort", "inner=12"; times in them are Unix seconds
    at: float | None = None  #: start of an advance reservation
    interactive: bool = False
    job_key: str = ""  #: SHA-256 of a secret; the secret lets its holder enter the job
    checkpoint_s: float | None = None  #: it gets `signal` this long before its walltime ends
    signal: str = ""  #: asks for a checkpoint; empty: USR2
    retry_on: tuple[str, ...] | None = None  #: reason codes; None: all where a retry can help, except walltime
    pool: str = ""  #: where it must run; empty: in the first pool with room
    gang: str = ""  #: jobs of one submission with the same gang begin together, or none does
    gang_same: str = ""  #: property that must have one value on all hosts of the gang
    gang_share: bool = False  #: members may be on the same host
    on_member_failure: str = ""  #: what becomes of the other members; empty: kill
    prefer: str = ""  #: property expression: such resources first
    force_host: str = ""  #: the one host, whatever its condition and the request say
    provision: str = ""  #: what its machines must be made into before it begins; empty: nothing
    reserve: str = ""  #: when it keeps its machines after the run; empty: never
    reserve_for_s: float | None = None


class SpecChange(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """Changes to a specification: only changed fields are sent, by name. A field unknown to the other side is
    refused rather than lost."""

    name: str | UnsetType = UNSET
    group: str | UnsetType = UNSET
    project: str | UnsetType = UNSET
    priority: int | UnsetType = UNSET
    cpus: int | UnsetType = UNSET  #: hundredths of a core
    mem: int | UnsetType = UNSET
    disk: int | UnsetType = UNSET
    time_s: float | UnsetType = UNSET
    gpus: int | UnsetType = UNSET
    walltime_s: float | UnsetType | None = UNSET
    retries: int | UnsetType = UNSET
    backoff_s: float | UnsetType = UNSET
    no_retry_over_s: float | UnsetType | None = UNSET
    pipefail: bool | UnsetType = UNSET
    limits: tuple[NewUse, ...] | UnsetType = UNSET
    learn: str | UnsetType = UNSET  #: learning group; empty: the program's name
    override: str | UnsetType = UNSET  #: empty: higher for `given` fields, no for the others
    input_bytes: int | UnsetType | None = UNSET
    on_success: tuple[str, ...] | UnsetType = UNSET  #: behaviours: "run: CMD", "cleanup", "remove"
    on_failure: tuple[str, ...] | UnsetType = UNSET
    on_exit: tuple[str, ...] | UnsetType = UNSET
    stdout: str | UnsetType = UNSET  #: file name pattern; empty: Rota keeps the output
    stderr: str | UnsetType = UNSET
    queue: str | UnsetType = UNSET  #: empty in messages: the rules of the site choose
    request: tuple[str, ...] | UnsetType = UNSET  #: alternatives, as written; none: `size` on one host
    where: str | UnsetType = UNSET  #: property expression for every group of the request
    #: for example "besteffort", "inner=12"; times in them are Unix seconds
    types: tuple[str, ...] | UnsetType = UNSET
    checkpoint_s: float | UnsetType | None = UNSET  #: it gets `signal` this long before its walltime ends
    signal: str | UnsetType = UNSET  #: asks for a checkpoint; empty: USR2
    #: reason codes; None: all where a retry can help, except walltime
    retry_on: tuple[str, ...] | UnsetType | None = UNSET
    cwd: str | UnsetType = UNSET
    env: bytes | UnsetType = UNSET  #: added to the captured environment, sorted
    after: tuple[NewAfter, ...] | UnsetType = UNSET
    cmd: Command | UnsetType = UNSET
    pool: str | UnsetType = UNSET  #: where it must run; empty: in the first pool with room
    prefer: str | UnsetType = UNSET  #: property expression: such resources first
    force_host: str | UnsetType = UNSET  #: the one host, whatever its condition and the request say
    provision: str | UnsetType = UNSET  #: what its machines must be made into before it begins; empty: nothing
    reserve: str | UnsetType = UNSET  #: when it keeps its machines after the run; empty: never
    reserve_for_s: float | UnsetType | None = UNSET


class RunSpec(Message, frozen=True):
    """What a runner needs to know to run jobs of one specification."""

    id: int
    env: int
    cwd: str
    user: str
    name: str
    group: str
    size: Size
    walltime_s: float | None
    scratch: bool
    pipefail: bool
    on_success: tuple[str, ...] = ()  #: behaviours: "run: CMD", "cleanup", "remove"
    on_failure: tuple[str, ...] = ()
    on_exit: tuple[str, ...] = ()
    stdout: str = ""  #: file name pattern; empty: Rota keeps the output
    stderr: str = ""
    interactive: bool = False
    checkpoint_s: float | None = None  #: it gets `signal` this long before its walltime ends
    signal: str = ""  #: asks for a checkpoint; empty: USR2
    done_at_walltime: bool = False  #: reaching its walltime is its normal end
    gang: str = ""  #: jobs of one submission with the same gang begin together, or none does
