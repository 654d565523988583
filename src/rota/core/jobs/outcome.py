"""How an attempt ended, as its runner reports it. Runners and clients import this without the rest of a job."""

from __future__ import annotations

from msgspec import Struct

from rota.core.output.output_report import OutputReport


class Behaved(Struct, frozen=True, array_like=True, gc=False):
    """The result of one behaviour after an attempt."""

    behaviour: str  #: as written: "run: CMD", "cleanup", "remove"
    ok: bool
    message: str = ""


class CallError(Struct, frozen=True, array_like=True, gc=False):
    """The exception that ended the call of a function, or why its result could not be kept."""

    type: str
    message: str
    traceback: str = ""


class Returned(Struct, frozen=True, array_like=True, gc=False):
    """What the call of a function left."""

    value: str = ""  #: its result as JSON; empty: it has none
    error: CallError | None = None
    typed: bool = False  #: its arguments were converted as the function is annotated
    warm: bool = False  #: it was a fork of a template
    note: str = ""


class Outcome(Struct, frozen=True, array_like=True, gc=False):
    """How an attempt ended, as its runner saw it. Sizes in bytes, times in seconds."""

    exit_code: int | None = None
    signal: int | None = None
    reason: str = ""  #: reason code, if the runner knows more than the exit status: walltime, not_found…
    message: str = ""
    started_at: float | None = None
    ended_at: float = 0.0
    cpu_s: float = 0.0
    peak_mem: int = 0
    peak_disk: int = 0
    segment: str = ""  #: file with the output: stdout, then stderr, from `offset`
    offset: int = 0
    out_len: int = 0
    err_len: int = 0
    out_total: int = 0  #: bytes written by the job; more than `out_len` if the middle was left out
    err_total: int = 0
    permanent: bool = False  #: a retry cannot help: not executable, not found, bad cwd
    behaviours: tuple[Behaved, ...] = ()
    kept: OutputReport | None = None  #: about the output; None: there was none, or the runner is older
    most_mem: int = 0  #: upper bound of the peak if `peak_mem` is unknown (0); 0: no bound either
    by_wall_clock: bool = False  #: its end was not observed, so `ended_at` is by the wall clock
    returned: Returned | None = None  #: of the call of a function
