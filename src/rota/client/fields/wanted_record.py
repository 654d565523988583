"""The fields of one job after its defaults, parsed.

Made by `make generated` from `rota.core.fields`; change the declarations, not this module.
"""

from __future__ import annotations

from msgspec import Struct

from rota.core.fields.after import Dependency
from rota.core.fields.array import Array
from rota.core.fields.limits import WantedLimit


class WantedRecord(Struct, frozen=True, kw_only=True):
    """Everything about one job except its command. The defaults are those of `rota add`."""

    name: str = ""
    group: str = "default"
    cwd: str
    scratch: bool = False
    env: tuple[tuple[str, str], ...] = ()  #: added to the captured environment, sorted
    cpus: int = 100  #: hundredths of a core
    mem: int
    disk: int = 0
    time: float = 3600.0
    gpus: int = 0
    request: tuple[str, ...] = ()  #: alternatives, as written; none: `size` on one host
    where: str = ""  #: property expression for every group of the request
    walltime: float | None = None
    type: tuple[str, ...] = ()  #: for example "besteffort", "inner=12"; times in them are Unix seconds
    priority: int = 0
    project: str = ""
    queue: str = ""  #: empty in messages: the rules of the site choose
    at: float | None = None  #: start of an advance reservation
    array: Array | None = None
    array_file: str | None = None
    after: tuple[Dependency, ...] = ()
    dep_groups: tuple[str, ...] = ()  #: groups that the job is a member of
    live: bool = True  #: also wait for members that join a group later
    allow_empty_group: bool = False
    limits: tuple[WantedLimit, ...] = ()
    learn: str = ""  #: learning group; empty: the program's name
    override: str = ""  #: empty: higher for `given` fields, no for the others
    input_bytes: int | None = None
    input_file: str | None = None
    retries: int = 3
    backoff: float = 30.0
    no_retry_over: float | None = None
    retry_on: tuple[str, ...] | None = None  #: reason codes; None: all where a retry can help, except walltime
    pipefail: bool = False
    on_success: tuple[str, ...] = ()  #: behaviours: "run: CMD", "cleanup", "remove"
    on_failure: tuple[str, ...] = ()
    on_exit: tuple[str, ...] = ()
    stdout: str = ""  #: file name pattern; empty: Rota keeps the output
    stderr: str = ""
    job_key: str | None = None  #: SHA-256 of a secret; the secret lets its holder enter the job
    checkpoint: float | None = None  #: it gets `signal` this long before its walltime ends
    signal: str = ""  #: asks for a checkpoint; empty: USR2
    rerun: bool = False
    once: bool = False
    allow_unsatisfiable: bool = False
    given: tuple[str, ...] = ()  #: fields of `LEARNED` that the user gave
    interactive: bool = False
    pool: str = ""  #: where it must run; empty: in the first pool with room
    gang: str = ""  #: jobs of one submission with the same gang begin together, or none does
    gang_same: str = ""  #: property that must have one value on all hosts of the gang
    gang_share: bool = False  #: members may be on the same host
    on_member_failure: str = ""  #: what becomes of the other members; empty: kill
    prefer: str = ""  #: property expression: such resources first
    force_host: str = ""  #: the one host, whatever its condition and the request say
    provision: str = ""  #: what its machines must be made into before it begins; empty: nothing
    reserve: str = ""  #: when it keeps its machines after the run; empty: never
    reserve_for: float | None = None
