"""The fields of a specification.

Made by `make generated` from `rota.core.fields`; change the declarations, not this module.
"""

from __future__ import annotations

from msgspec import Struct

from rota.core.jobs.as_written import AsWritten
from rota.plan.need import LimitUse
from rota.plan.size import Size


class SpecRecord(Struct, frozen=True, kw_only=True, gc=False):
    """What the jobs of a submission have in common, as it is stored."""

    user: str
    cwd: str
    env: int  #: id of the stored environment
    group: str = "default"
    name: str = ""
    project: str = ""
    queue: str = "default"  #: empty in messages: the rules of the site choose
    priority: int = 0
    size: Size = Size()
    walltime_s: float | None = None
    retries: int = 0
    backoff_s: float = 30.0
    no_retry_over_s: float | None = None
    scratch: bool = False
    pipefail: bool = False
    limits: tuple[LimitUse, ...] = ()
    dep_groups: tuple[str, ...] = ()  #: groups that the job is a member of
    live: bool = True  #: also wait for members that join a group later
    allow_empty_group: bool = False
    learn: str = ""  #: learning group; empty: the program's name
    override: str = ""  #: empty: higher for `given` fields, no for the others
    given: tuple[str, ...] = ()  #: which of mem, disk and time the user gave
    on_success: tuple[str, ...] = ()  #: behaviours: "run: CMD", "cleanup", "remove"
    on_failure: tuple[str, ...] = ()
    on_exit: tuple[str, ...] = ()
    stdout: str = ""  #: file name pattern; empty: Rota keeps the output
    stderr: str = ""
    request: tuple[str, ...] = ()  #: alternatives, as written; none: `size` on one host
    where: str = ""  #: property expression for every group of the request
    types: tuple[str, ...] = ()  #: for example "besteffort", "inner=12"; times in them are Unix seconds
    at: float | None = None  #: start of an advance reservation
    checkpoint_s: float | None = None  #: it gets `signal` this long before its walltime ends
    signal: str = ""  #: asks for a checkpoint; empty: USR2
    interactive: bool = False  #: its command has a terminal with a client attached
    job_key: str = ""  #: SHA-256 of a secret; the secret lets its holder enter the job
    retry_on: tuple[str, ...] | None = None  #: reason codes; None: all where a retry can help, except walltime
    wrote: AsWritten | None = None  #: what was asked for, if the site's rules changed it
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
