"""Binds processes to cores: where control groups cannot fence a job to its cores, its affinity does. A program may
change its affinity.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection


def bind_child(pid: int, cores: Collection[int]) -> None:
    """Bind a process that was just started to these cores. Costs a tenth of `on_cores`; what the child forks
    within its first microseconds is bound later."""
    try:
        os.sched_setaffinity(pid, cores)
    except OSError:
        pass  # it has ended, or a core is offline: better on any core than not at all


def on_cores(cores: Collection[int], start: Callable[[], int]) -> tuple[int, str]:
    """Bind this process to these cores while it starts a child, which inherits them. Returns its pid, and
    why it was not bound."""
    own = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, cores)
    except OSError as error:
        return start(), str(error)  # better on any core than not at all
    try:
        return start(), ""
    finally:
        os.sched_setaffinity(0, own)
