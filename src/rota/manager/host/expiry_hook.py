"""Runs the site's expiry hook, which may give a job more time before it reaches its walltime.

The engine decides when it is asked (`core.hooks.expiry`) and what follows from its answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import IO, Final

from rota.core.effects import Effect
from rota.core.events import Event
from rota.core.hooks.expiry import AskExpiryHook, ExpiryHookAnswered, ask_before_expiry
from rota.errors import BadInput
from rota.manager.feature import FeatureService, ManagerFeature, Perform, Services
from rota.manager.host.server_hooks import AT_ONCE, Run, run_script
from rota.units import parse_duration

log = logging.getLogger("rota.manager")

#: Bytes read from the end of a script's output.
_READ: Final = 4096

Key = tuple[int, int]  #: job, attempt


class ExpiryHookRunner(FeatureService):
    """The expiry hook of one manager."""

    def __init__(self, path: str, timeout_s: float, *, happened: Callable[[Event], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._path = path
        self._timeout_s = timeout_s
        self._happened = happened
        self._waiting: deque[AskExpiryHook] = deque()
        self._running: dict[Key, Run] = {}

    def performers(self) -> Mapping[type[Effect], Perform]:
        return {AskExpiryHook: self._queue}

    def close(self) -> None:
        """The manager stops: kill the scripts. The next manager asks again."""
        self._waiting.clear()
        for run in self._running.values():
            run.stop()

    def _queue(self, effect: AskExpiryHook) -> None:
        self._waiting.append(effect)
        self._go_on()

    def _go_on(self) -> None:
        while self._waiting and len(self._running) < AT_ONCE:
            effect = self._waiting.popleft()
            run = self._running[effect.job, effect.attempt] = Run()
            threading.Thread(target=self._run, args=(effect, run), name="hook", daemon=True).start()

    def _run(self, effect: AskExpiryHook, run: Run) -> None:
        about = {
            **effect.about,
            "ROTA_HOOK": "expiry_hook",
            "ROTA_JOB_ID": str(effect.job),
            "ROTA_ATTEMPT": str(effect.attempt),
        }
        label = f"expiry hook for job {effect.job}"
        more_s = 0.0
        with tempfile.TemporaryFile() as answer:
            wrong = run_script([self._path], about, self._timeout_s, label=label, run=run, answer=answer)
            if not wrong:
                try:
                    more_s = _time_in(answer)
                except BadInput as error:
                    wrong = f"{os.path.basename(self._path)} printed no time: {error}"
        with contextlib.suppress(RuntimeError):  # the loop is gone
            self._loop.call_soon_threadsafe(self._over, effect, more_s, wrong)

    def _over(self, effect: AskExpiryHook, more_s: float, wrong: str) -> None:
        run = self._running.pop((effect.job, effect.attempt), None)
        if wrong:
            log.warning("expiry hook for job %d: %s", effect.job, wrong)
        if run is None or not run.stopped:
            self._happened(
                ExpiryHookAnswered(
                    job=effect.job, attempt=effect.attempt, token=effect.token, more_s=more_s, wrong=wrong
                )
            )
        self._go_on()


def _time_in(answer: IO[bytes]) -> float:
    """The time in the last line of the output; 0: there is none. Raises `BadInput`."""
    answer.seek(max(0, answer.seek(0, os.SEEK_END) - _READ))
    lines = answer.read(_READ).decode("utf-8", "replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return parse_duration(last.removeprefix("+")) if last and last != "0" else 0.0


def _make(services: Services) -> ExpiryHookRunner | None:
    settings = services.settings
    if settings.expiry_hook is None:
        return None
    ask_before_expiry(services.world, settings.expiry_notice)
    return ExpiryHookRunner(settings.expiry_hook, settings.hook_timeout, happened=services.turns.happened)


FEATURE: Final = ManagerFeature(name="expiry hook", make=_make)
