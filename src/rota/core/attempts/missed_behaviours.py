"""Behaviours of an attempt whose runner died: they are never run later, and the attempt says so.

It is unknown how far the command came, and the files that its behaviours need may be missing.
"""

from __future__ import annotations

from typing import Final

import msgspec

from rota.core.jobs.job import Spec
from rota.core.jobs.outcome import Behaved, Outcome

_RUN: Final = "run:"
_WHY: Final = "not run: its runner died, and how the command ended is unknown"


def with_missed(outcome: Outcome, spec: Spec) -> Outcome:
    """The outcome of a lost attempt, with the commands that should have been run after it."""
    if outcome.behaviours or not (spec.on_failure or spec.on_exit):
        return outcome
    missed = [Behaved(each, False, _WHY) for each in spec.on_failure + spec.on_exit if each.startswith(_RUN)]
    return msgspec.structs.replace(outcome, behaviours=tuple(missed))
