"""Why a job waits, and why a start that it was promised moved."""

from __future__ import annotations

from typing import NamedTuple


class Cause(NamedTuple):
    """One thing that keeps a job from beginning earlier: taken away, it would.

    Kinds: `job` (it holds or gets something first), `walltime` (none was given), of a host `available_until`,
    `hours`, `away` and `asleep`, `quota`, `limit`, `dependency`, and of the job itself `postpone`, `deadline` and
    `expire`.
    """

    kind: str
    name: str = ""  #: of the job, host, quota or limit; of `walltime`, the longest that would help, in seconds


class Waits(NamedTuple):
    """Why a job waits: code, sentence, and the limit concerned, if one is."""

    code: str
    message: str
    limit: str = ""
    ahead: int | None = None  #: a job that waits as well and goes first
    hint: str = ""  #: a command that would change it
    blockers: tuple[int, ...] = ()  #: jobs that hold what it waits for
    causes: tuple[Cause, ...] = ()  #: what would have to be removed; empty: nothing helps, or no trial was made
    members: tuple[int, ...] = ()  #: those of a gang that have no machine


class Moved(NamedTuple):
    """A promise was moved, and why."""

    job: int
    before: float | None
    now: float | None
    cause: str
