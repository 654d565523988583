"""The engine `command`: a site's own programs start, stop and list runners.

Each program gets one JSON object on standard input and answers with one on standard output (`docs/pools.md`). A
program that takes longer than the pool's `timeout_s` is killed, and may have done its work or not.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from typing import IO, Any, Final, TypeVar

import msgspec
from msgspec import Struct

from rota.plan.size import CORE, Size
from rota.pools.base import EngineFailed, EngineRefused, EngineSetup, Group, RunnerAsk, RunnerState, Seen

#: Exit status of a program that certainly did nothing.
REFUSED: Final = 2
#: Characters of a program's last line in an error.
_REPORTED: Final = 400
_MOST_BYTES: Final = 256 << 20
_LOOK_EVERY_S: Final = 0.05
#: When the manager stops, a program may go on for this long, and again after TERM.
_PATIENCE_S: Final = 1.5

_A = TypeVar("_A")


class _Started(Struct):
    """The answer of `start`."""

    ids: dict[str, str] = {}  #: name → id of the engine


class _Listed(Struct):
    """A runner in the answer of `list`."""

    name: str
    id: str
    state: str  #: pending, running or gone
    host: str = ""


class Limits(Struct, frozen=True):
    """What the largest runner may have; None: unknown."""

    cpus: float | None = None
    mem: int | None = None
    disk: int | None = None
    gpus: int | None = None
    seconds: float | None = None


class _Runners(Struct):
    """The answer of `list`."""

    runners: list[_Listed]
    limits: Limits | None = None


class _Stopped(Struct):
    """The answer of `stop`."""


_STATES: Final = {"pending": RunnerState.PENDING, "running": RunnerState.RUNNING, "gone": RunnerState.GONE}


class CommandEngine:
    """Runs the programs of one pool."""

    def __init__(self, setup: EngineSetup) -> None:
        self._setup = setup
        self._limits = Limits()
        self._closing = threading.Event()

    def close(self) -> None:
        self._closing.set()

    def can_fit(self, size: Size, seconds: float) -> bool:
        limits = self._limits
        asked = (size.cpus / CORE, size.mem, size.disk, size.gpus, seconds)
        most = (limits.cpus, limits.mem, limits.disk, limits.gpus, limits.seconds)
        return all(bound is None or amount <= bound for amount, bound in zip(asked, most, strict=True))

    def submit(self, group: Group, asked: Sequence[RunnerAsk]) -> list[str]:
        setup = self._setup
        question = {
            "pool": setup.pool,
            "rota": setup.rota,
            "idle_s": setup.idle_s,
            "options": setup.options,
            "runners": [_described(each) for each in asked],
        }
        answer = self._ask(setup.start_command, question, _Started)
        return [answer.ids.get(each.name, "") for each in asked]

    def withdraw(self, ids: Sequence[str]) -> None:
        self._ask(self._setup.stop_command, {"pool": self._setup.pool, "ids": list(ids)}, _Stopped)

    def survey(self) -> list[Seen]:
        setup = self._setup
        answer = self._ask(setup.list_command, {"pool": setup.pool, "prefix": setup.prefix}, _Runners)
        self._limits = answer.limits or Limits()
        found: list[Seen] = []
        for each in answer.runners:
            state = _STATES.get(each.state)
            if state is None:
                raise EngineFailed(
                    f"{setup.list_command[0]}: '{_printable(each.state[:50])}' is no state of a runner",
                    hint=f"use {', '.join(_STATES)}",
                )
            if setup.owns(each.name):
                found.append(Seen(each.name, each.id, state, each.host))
        return found

    def _ask(self, command: Sequence[str], question: dict[str, Any], kind: type[_A]) -> _A:
        """Run a program to its end. Raises `EngineFailed`."""
        # Files, not pipes: what the program leaves behind could keep a pipe open.
        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            given.write(msgspec.json.encode(question))
            given.seek(0)
            status = self._run(command, given, out, err)
            if status != 0:
                said = _last_line(err)
                text = f"{command[0]} ended with {status}{f': {said}' if said else ''}"
                raise EngineRefused(text) if status == REFUSED else EngineFailed(text)
            out.seek(0)
            printed = out.read().strip()
        try:
            return msgspec.json.decode(printed or b"{}", type=kind)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise EngineFailed(f"{command[0]} did not print what it should: {error}") from None

    def _run(self, command: Sequence[str], given: IO[bytes], out: IO[bytes], err: IO[bytes]) -> int:
        if self._closing.is_set():
            raise EngineRefused(f"{command[0]} is not run: the manager stops")
        try:
            process = subprocess.Popen(command, stdin=given, stdout=out, stderr=err, start_new_session=True)
        except OSError as error:
            raise EngineRefused(f"{command[0]} cannot be run: {error.strerror}") from None
        limit, stop_at = time.monotonic() + self._setup.timeout_s, float("inf")
        wrong = ""
        while not wrong:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_LOOK_EVERY_S)
            if max(os.fstat(file.fileno()).st_size for file in (out, err)) > _MOST_BYTES:
                wrong = f"printed more than {_MOST_BYTES >> 20} MiB"
            elif process.returncode is not None:
                return process.returncode
            elif time.monotonic() >= limit:
                wrong = f"took longer than {self._setup.timeout_s:g} s"
            elif self._closing.is_set():
                stop_at = min(stop_at, time.monotonic() + _PATIENCE_S)
                if time.monotonic() >= stop_at:
                    wrong = "was ended: the manager stops"
                    _signal(process, signal.SIGTERM)
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(_PATIENCE_S)
        _signal(process, signal.SIGKILL)  # also what is left of its children
        process.wait()
        raise EngineFailed(f"{command[0]} {wrong}")


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def _described(asked: RunnerAsk) -> dict[str, Any]:
    size = asked.size
    return {
        "name": asked.name,
        "ticket": str(asked.ticket),
        "cpus": size.cpus / CORE,
        "mem": size.mem,
        "disk": size.disk,
        "gpus": size.gpus,
        "seconds": asked.seconds,
    }


def _last_line(file: IO[bytes]) -> str:
    file.seek(max(0, file.seek(0, os.SEEK_END) - 4 * _REPORTED))
    lines = file.read().decode(errors="replace").split("\n")
    told = next((line for line in reversed(lines) if line.strip()), "")
    return _printable(" ".join(told.split()))[-_REPORTED:]


def _printable(text: str) -> str:
    """No control characters: errors are shown in terminals."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
