"""Records of the engine about scripts on the manager's host. Data only."""

from __future__ import annotations

from msgspec import Struct


class Epilogue(Struct, frozen=True, array_like=True, gc=False):
    """The epilogue of an ended attempt, still to be run."""

    job: int
    attempt: int
    about: dict[str, str]  #: environment variables of the script


class StoredHooks(Struct, frozen=True, array_like=True, gc=False):
    """What a restart must not lose."""

    tries: dict[int, int]
    epilogues: list[Epilogue]


class ScriptState:
    """Which scripts the site has, and how far they are for each job."""

    __slots__ = ("epilogue", "epilogues", "prologue", "running", "tries")

    def __init__(self) -> None:
        self.prologue = False  #: does the site have one?
        self.epilogue = False
        self.running: set[int] = set()  #: jobs whose prologue runs or is queued
        self.tries: dict[int, int] = {}  #: job → failures of its prologue in a row
        self.epilogues: dict[tuple[int, int], Epilogue] = {}  #: (job, attempt) → epilogue that has not run yet
