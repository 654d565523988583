"""Types of jobs that hold resources for something else."""

from __future__ import annotations

from typing import Final

#: Of these the walltime says for how long resources are held: reaching it is their normal end.
HOLDERS: Final = frozenset(("noop", "cosystem", "deploy", "container"))
