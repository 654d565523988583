"""Runs the hooks of the manager's host: off the event loop, each with a timeout.

These are prologues and epilogues of jobs, `fence_cmd` for silent nodes and `heal_cmd` for suspected ones. The
engine gets their results as events, and decides.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shlex
import signal
import subprocess
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import IO, Final

from rota.core.effects import Effect, RunServerScript, StopServerScript
from rota.core.events import Event, HostFenced, HostHealed, ServerScriptEnded
from rota.core.hooks.hook_records import ScriptState
from rota.core.hooks.server_scripts import EPILOGUE, PROLOGUE
from rota.core.machines.fencing import to_fence
from rota.core.machines.suspected_hosts import to_heal
from rota.core.world import World
from rota.errors import BadInput
from rota.manager.feature import FeatureService, ManagerFeature, Perform, Services
from rota.settings import Settings

log = logging.getLogger("rota.manager")

#: Scripts that run at once: for jobs, and for nodes.
AT_ONCE: Final = 8
_NODES_AT_ONCE: Final = 4
#: Characters of a script's output in an error and in the log, from its end.
_REPORTED: Final = 300
_LOGGED: Final = 4096


def words_of(settings: Settings, name: str) -> list[str]:
    """A command of the settings as a list of words. Raises `BadInput`."""
    try:
        return shlex.split(getattr(settings, name) or "")
    except ValueError as error:
        raise BadInput(f"{name}: {error}", hint="check its quotes") from None


class Run:
    """A script that runs for an attempt."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.stopped = False

    def stop(self) -> None:
        """Kill it. Its end is of no interest any more."""
        self.stopped = True
        if self.process is not None:
            _kill(self.process)


class ServerHookRunner(FeatureService):
    """The scripts of one manager."""

    def __init__(self, world: World, settings: Settings, *, happened: Callable[[Event], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._world = world
        self._settings = settings
        self._happened = happened
        self._waiting: deque[RunServerScript] = deque()
        self._running: dict[tuple[str, int, int], Run] = {}
        self._fence = words_of(settings, "fence_cmd")
        self._heal = words_of(settings, "heal_cmd")
        self._tried: dict[tuple[str, str], float] = {}  #: (command, node) → when it last began
        self._busy: set[tuple[str, str]] = set()

    def performers(self) -> Mapping[type[Effect], Perform]:
        return {RunServerScript: self.run, StopServerScript: lambda effect: self.stop(effect.job, effect.attempt)}

    def start(self) -> None:
        """Run the epilogues that an earlier manager did not finish."""
        scripts = self._world.find(ScriptState)
        for each in scripts.epilogues.values() if scripts is not None else ():
            self.run(RunServerScript(EPILOGUE, each.job, each.attempt, 0, each.about))

    # ------------------------------------------------------------------ for jobs

    def run(self, effect: RunServerScript) -> None:
        """Queue a prologue or an epilogue. Never blocks."""
        self._waiting.append(effect)
        self._go_on()

    def stop(self, job: int, attempt: int) -> None:
        """Cancel the prologue of an attempt."""
        self._waiting = deque(
            each for each in self._waiting if (each.hook, each.job, each.attempt) != (PROLOGUE, job, attempt)
        )
        run = self._running.get((PROLOGUE, job, attempt))
        if run is not None:
            run.stop()

    def close(self) -> None:
        """The manager stops: kill the scripts of jobs. The next manager runs them again."""
        self._waiting.clear()
        for run in self._running.values():
            run.stop()

    def _go_on(self) -> None:
        while self._waiting and len(self._running) < AT_ONCE:
            effect = self._waiting.popleft()
            run = self._running[effect.hook, effect.job, effect.attempt] = Run()
            threading.Thread(target=self._run, args=(effect, run), name="hook", daemon=True).start()

    def _run(self, effect: RunServerScript, run: Run) -> None:
        settings = self._settings
        path = settings.server_prologue if effect.hook == PROLOGUE else settings.server_epilogue
        wrong = ""
        if path:  # it may no longer be configured for an old epilogue
            about = {
                **effect.about,
                "ROTA_HOOK": f"server_{effect.hook}",
                "ROTA_JOB_ID": str(effect.job),
                "ROTA_ATTEMPT": str(effect.attempt),
            }
            label = f"server {effect.hook} of job {effect.job}"
            wrong = run_script([path], about, settings.hook_timeout, run=run, label=label)
        with contextlib.suppress(RuntimeError):  # the loop is gone
            self._loop.call_soon_threadsafe(self._over, effect, wrong)

    def _over(self, effect: RunServerScript, wrong: str) -> None:
        run = self._running.pop((effect.hook, effect.job, effect.attempt), None)
        if wrong:
            log.warning("server %s of job %d: %s", effect.hook, effect.job, wrong)
        if run is None or not run.stopped:
            self._happened(
                ServerScriptEnded(
                    hook=effect.hook, job=effect.job, attempt=effect.attempt, token=effect.token, wrong=wrong
                )
            )
        self._go_on()

    # ------------------------------------------------------------------ for nodes

    def tick(self, now: float) -> None:
        """Look for nodes to fence and to heal."""
        if self._fence:
            self._try("fence_cmd", self._fence, to_fence(self._world), now, self._fenced)
        if self._heal:
            self._try("heal_cmd", self._heal, to_heal(self._world), now, self._healed)

    def _try(self, name: str, words: list[str], hosts: list[str], now: float, well: Callable[[str], None]) -> None:
        for host in hosts:
            key = (name, host)
            due = self._tried.get(key, float("-inf")) + self._settings.heal_every
            if key in self._busy or now < due or len(self._busy) >= _NODES_AT_ONCE:
                continue
            self._tried[key] = now
            self._busy.add(key)
            threading.Thread(target=self._call, args=(key, words, well), name="hook", daemon=True).start()

    def _call(self, key: tuple[str, str], words: list[str], well: Callable[[str], None]) -> None:
        name, host = key
        about = {"ROTA_HOOK": name, "ROTA_NODE": host}
        wrong = run_script([*words, host], about, self._settings.hook_timeout, label=f"{name} {host}")
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._called, key, wrong, well)

    def _called(self, key: tuple[str, str], wrong: str, well: Callable[[str], None]) -> None:
        self._busy.discard(key)
        if wrong:
            log.warning("%s %s: %s", *key, wrong)
        else:
            log.info("%s %s succeeded", *key)
            well(key[1])

    def _fenced(self, host: str) -> None:
        self._happened(HostFenced(host=host, why="fence_cmd succeeded"))

    def _healed(self, host: str) -> None:
        self._happened(HostHealed(host=host, why="heal_cmd succeeded"))


def run_script(
    words: list[str],
    about: dict[str, str],
    limit_s: float,
    *,
    label: str,
    run: Run | None = None,
    answer: IO[bytes] | None = None,
) -> str:
    """Run a script to its end, in this thread. Returns why it failed; empty: it succeeded.

    `answer`: a file for its standard output, which then is not logged.
    """
    env = {**os.environ, **{name: value.replace("\0", "") for name, value in about.items()}}
    # A file, not a pipe: a process that it leaves behind could keep a pipe open.
    with tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=answer or output,
                stderr=output,
                start_new_session=True,
                cwd="/",
                env=env,
            )
        except (OSError, ValueError) as error:
            return f"{words[0]} cannot be run: {error.strerror if isinstance(error, OSError) else error}"
        if run is not None:
            run.process = process
            if run.stopped:
                _kill(process)
        late = ""
        begun = time.monotonic()
        try:
            status = process.wait(timeout=limit_s)
        except subprocess.TimeoutExpired:
            late = f"over its {limit_s:g} s"
            _kill(process)
            status = process.wait()
        output.seek(max(0, output.seek(0, os.SEEK_END) - _LOGGED))
        text = output.read(_LOGGED).decode("utf-8", "replace").strip()
    for line in text.splitlines():
        log.info("%s: %s", label, line)
    if not status and not late:
        log.debug("%s took %.2f s", label, time.monotonic() - begun)
        return ""
    ended = late or (f"signal {-status}" if status < 0 else f"exit {status}")
    last = text.splitlines()[-1].strip()[:_REPORTED] if text else ""
    return f"{os.path.basename(words[0])} failed: {ended}" + (f": {last}" if last else "")


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill the process group, unless the process was reaped: its id may belong to another process then."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def _make(services: Services) -> ServerHookRunner | None:
    """In use if the site has such hooks, or if epilogues are left from earlier. Raises `BadInput`."""
    world, settings = services.world, services.settings
    world.placement.ahead = settings.server_prologue is None
    if settings.server_prologue is not None or settings.server_epilogue is not None:
        scripts = world.use(ScriptState)
        scripts.prologue = settings.server_prologue is not None
        scripts.epilogue = settings.server_epilogue is not None
    for_nodes = words_of(settings, "fence_cmd") or words_of(settings, "heal_cmd")
    if not for_nodes and world.find(ScriptState) is None:
        return None
    return ServerHookRunner(world, settings, happened=services.turns.happened)


FEATURE: Final = ManagerFeature(name="server scripts", make=_make)
