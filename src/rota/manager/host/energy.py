"""Runs the commands that put nodes to sleep and wake them: off the event loop, one node each, with a timeout.

`core.machines.energy` gets the result of a command as an event, and decides about the node.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import subprocess
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import Final

from rota.core.effects import Effect, SleepNodes, WakeNodes
from rota.core.events import Event, PowerCommandEnded
from rota.core.machines.energy_rules import command_words, rules_from
from rota.core.machines.node_energy import NodeEnergy
from rota.manager.feature import FeatureService, ManagerFeature, Perform, Services
from rota.settings import Settings

log = logging.getLogger("rota.manager")

#: Commands that run at once.
AT_ONCE: Final = 16
#: Characters of a command's output in an error, from its end.
_REPORTED: Final = 400


class Energy(FeatureService):
    """Runs power commands: one at a time for each node, a few nodes at once."""

    def __init__(self, settings: Settings, *, happened: Callable[[Event], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._happened = happened
        self._sleep = command_words(settings.sleep_cmd, "sleep_cmd")
        self._wake = command_words(settings.wake_cmd, "wake_cmd")
        self._limit_s = settings.wake_timeout
        self._waiting: deque[tuple[str, bool]] = deque()
        self._busy: set[str] = set()  #: nodes for which one runs

    def performers(self) -> Mapping[type[Effect], Perform]:
        return {
            SleepNodes: lambda effect: self.run(effect.hosts, wake=False),
            WakeNodes: lambda effect: self.run(effect.hosts, wake=True),
        }

    def run(self, hosts: list[str], *, wake: bool) -> None:
        """Queue the command for each of these nodes. Never blocks."""
        self._waiting.extend((host, wake) for host in hosts)
        self._go_on()

    def _go_on(self) -> None:
        for each in list(self._waiting):
            if len(self._busy) >= AT_ONCE:
                return
            host, wake = each
            if host in self._busy:
                continue
            self._waiting.remove(each)
            self._busy.add(host)
            # Not awaited when the manager stops: the command runs on.
            threading.Thread(target=self._run, args=(host, wake), name="energy", daemon=True).start()

    def _run(self, host: str, wake: bool) -> None:
        command = self._wake if wake else self._sleep
        if host.startswith("-"):
            command = []  # the command would take it for an option
        error = run_command([*command, host], self._limit_s) if command else "no command can be run for it"
        with contextlib.suppress(RuntimeError):  # the loop is gone
            self._loop.call_soon_threadsafe(self._over, host, wake, error)

    def _over(self, host: str, wake: bool, error: str) -> None:
        self._busy.discard(host)
        if error:
            log.warning("%s of node %s: %s", "wake_cmd" if wake else "sleep_cmd", host, error)
        self._happened(PowerCommandEnded(host=host, wake=wake, error=error))
        self._go_on()


def run_command(command: list[str], limit_s: float) -> str:
    """Run a command to its end. Returns why it failed; empty: it succeeded."""
    # A file, not a pipe: a process that the command leaves behind could keep a pipe open.
    with tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )
        except OSError as error:
            return f"{command[0]}: {error.strerror}"
        try:
            status = process.wait(timeout=limit_s)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return f"{command[0]} took longer than {limit_s:g} s"
        if status == 0:
            return ""
        output.seek(max(0, output.seek(0, os.SEEK_END) - _REPORTED))
        printed = " ".join(output.read(_REPORTED).decode(errors="replace").split())
    return f"{command[0]} ended with {status}{f': {printed}' if printed else ''}"


def _make(services: Services) -> Energy | None:
    """In use if nodes may sleep, or if one sleeps from earlier. Raises `BadInput`."""
    world, rules = services.world, rules_from(services.settings)
    if not rules.sleeps and not rules.wakes and world.find(NodeEnergy) is None:
        return None
    world.use(NodeEnergy).rules = rules
    return Energy(services.settings, happened=services.turns.happened)


FEATURE: Final = ManagerFeature(name="energy", make=_make)
