"""Runs one batch of keys: what a worker calls. The manager chose the keys; a worker asks for none.

It ends between keys once its deadline has passed, whatever the code of a key did to signals, and frees those
that it has not begun.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from . import faults
from .keys import key_of
from .ledger import ERROR, Ledger
from .tables import ledger_of

#: A lease outlives its batch by this.
GRACE_S = 60.0
OUTCOMES = ("done", "skipped", "error", "released")


class BatchFailed(Exception):
    """The batch ended before its last key. What it had begun is settled, and what it had not is free."""


def run(batch: dict[str, Any]) -> dict[str, int]:
    """Compute the keys of a batch, one by one; how many had which outcome. Raises `BatchFailed`."""
    began = time.monotonic()
    ledger = ledger_of(batch["table"])
    try:
        return run_with(ledger, batch, began=began, clock=time.monotonic)
    finally:
        ledger.close()


def run_with(ledger: Ledger, batch: dict[str, Any], *, began: float, clock: Callable[[], float]) -> dict[str, int]:
    """The same, over a ledger that is open."""
    token, job_timeout = batch["token"], float(batch["job_timeout"])
    counts = dict.fromkeys(OUTCOMES, 0)
    # A batch that waited too long has lost its keys; they may be another's by now.
    if ledger.extend(token, job_timeout + GRACE_S) == 0:
        counts["skipped"] = len(batch["keys"])
        return counts
    current: dict[str, Any] | None = None
    try:
        with _told_to_end():
            for given in batch["keys"]:
                _keep_deadline(clock() - began, job_timeout)
                current = key_of(given)
                counts[_outcome(ledger, current, token)] += 1
                current = None
    except (KeyboardInterrupt, SystemExit, Exception) as error:
        why = f"the batch was ended: {type(error).__name__}: {error}"
        if current is not None:
            ledger.settle(current, token, error)
        ledger.release(token, ERROR, why)
        if isinstance(error, BatchFailed):
            raise
        raise BatchFailed(why) from error
    return counts


def _keep_deadline(passed_s: float, job_timeout: float) -> None:
    if passed_s >= job_timeout:
        raise BatchFailed(f"the time limit of {job_timeout:g} s has passed")


def _outcome(ledger: Ledger, key: dict[str, Any], token: str) -> str:
    try:
        outcome = ledger.run(key, token)
    except Exception as error:
        if faults.kind_of(error) == faults.TIMEOUT:
            raise
        # Around its code: a commit that was cut off, a connection that was lost.
        return ledger.settle(key, token, error)
    if outcome not in OUTCOMES:
        raise BatchFailed("the populate step ended without an outcome")
    return outcome


@contextmanager
def _told_to_end() -> Iterator[None]:
    """SIGTERM ends the batch as an exit does, so that the key that runs is settled."""

    def end(number: int, frame: Any) -> None:
        raise faults.Killed(f"signal {number}")

    if threading.current_thread() is not threading.main_thread():
        yield  # signals are for others here
        return
    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
