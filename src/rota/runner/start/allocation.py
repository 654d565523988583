"""An attempt's allocation on this host: the cores it is bound to, and the file that lists all its hosts.

Where control groups cannot fence a job to its cores its affinity does, though a program may change that.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterator

from rota.runner.log import say
from rota.runner.start.cores import Share
from rota.wire.orders import Allocation


def nodefile_path(scratch_root: str, job: int, attempt: int) -> str:
    """Beside the attempt's private directory, not in it: a job finds that empty."""
    return f"{scratch_root}/{job}.{attempt}.nodes"


def write_nodefile(path: str, allocation: Allocation) -> None:
    """One line for each core: the name of its host. Raises `OSError`."""
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(f"{host}\n" * cores for host, cores in allocation.nodes)


def remove_nodefile(path: str) -> None:
    """Remove it, if there is one."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        say(f"{path} could not be removed: {error}")


def bind_child(pid: int, cores: Collection[int]) -> None:
    """Bind a process that was just started to these cores. Costs a tenth of `on_its_cores`; what the child forks
    within its first microseconds is bound later."""
    try:
        os.sched_setaffinity(pid, cores)
    except OSError:
        pass  # it has ended, or a core has gone: better on any core than not at all


@contextlib.contextmanager
def on_its_cores(share: Share | None) -> Iterator[None]:
    """Context manager: binds this process to the cores of a task, so that a child inherits them."""
    if share is None or not share.binds:
        yield
        return
    own = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, share.cores)
    except OSError as error:
        # Better on any core than not at all.
        say(f"a job cannot be bound to its cores: {error}")
        yield
        return
    try:
        yield
    finally:
        os.sched_setaffinity(0, own)
