"""What the planner gave to an attempt: the cores it runs on, and the list of all its hosts.

Where control groups cannot fence a job to its cores its affinity does, though a program may change that.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from rota.errors import BadInput
from rota.plan.bits import parse_spans, spans_of
from rota.runner.log import say
from rota.wire.orders import Allocation

_MOST_CORES = 1 << 16
_told: set[str] = set()  #: lists of cores that this machine does not have, for the log


def nodefile_path(scratch_root: str, job: int, attempt: int) -> str:
    """Beside the attempt's private directory, not in it: what a job finds there is its own."""
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
        say(f"{path} is left: {error}")


@contextlib.contextmanager
def on_its_cores(allocation: Allocation | None) -> Iterator[None]:
    """Within this, what is started runs on the cores of an allocation, from its first moment: a child
    inherits them, and this process takes back its own at once."""
    own = os.sched_getaffinity(0)
    cores = _cores(allocation, own)
    if not cores:
        yield
        return
    try:
        os.sched_setaffinity(0, cores)
    except (OSError, ValueError, OverflowError) as error:
        # Better on any core than not at all.
        _tell(allocation, error)
        yield
        return
    try:
        yield
    finally:
        os.sched_setaffinity(0, own)


def cpu_list(allocation: Allocation) -> str:
    """The cores of an allocation by the kernel's numbers, for the job to know them."""
    cores = _cores(allocation, os.sched_getaffinity(0))
    return spans_of(cores) if cores else allocation.cpu_list


def _cores(allocation: Allocation | None, own: set[int]) -> list[int]:
    """The kernel's numbers of the cores of an allocation, which counts from 0 those that this process may use."""
    if allocation is None or not allocation.cpu_list:
        return []
    usable = sorted(own)
    try:
        return [usable[place] for place in parse_spans(allocation.cpu_list, most=_MOST_CORES)]
    except BadInput as error:
        _tell(allocation, error)
    except IndexError:
        _tell(allocation, BadInput(f"there are {len(usable)} here"))
    return []


def _tell(allocation: Allocation | None, error: Exception) -> None:
    cores = "" if allocation is None else allocation.cpu_list
    if cores not in _told:
        _told.add(cores)
        say(f"jobs are not kept to cores {cores}: {error}")
