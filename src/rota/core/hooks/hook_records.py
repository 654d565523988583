"""What the engine remembers of scripts that run on the manager's host before and after jobs. Data only."""

from __future__ import annotations

from msgspec import Struct


class Epilogue(Struct, frozen=True, array_like=True, gc=False):
    """An attempt is over, and the site's epilogue for it is not yet."""

    job: int
    attempt: int
    about: dict[str, str]  #: its variables


class StoredHooks(Struct, frozen=True, array_like=True, gc=False):
    """What must survive a restart."""

    tries: dict[int, int]
    epilogues: list[Epilogue]


class ServerHooks:
    """Which of them there are, and where jobs are with them."""

    __slots__ = ("epilogue", "epilogues", "prologue", "running", "tries")

    def __init__(self) -> None:
        self.prologue = False  #: does one run before every job?
        self.epilogue = False
        self.running: set[int] = set()  #: jobs whose prologue runs, or waits for its turn
        self.tries: dict[int, int] = {}  #: job → how often its prologue has failed since it last went well
        self.epilogues: dict[tuple[int, int], Epilogue] = {}  #: by job and attempt: those that have not run yet
