"""The file that lists all hosts of an attempt."""

from __future__ import annotations

import os
from collections.abc import Iterable


def nodefile_path(scratch_root: str, job: int, attempt: int) -> str:
    """Beside the attempt's private directory, not in it: a job finds that empty."""
    return f"{scratch_root}/{job}.{attempt}.nodes"


def write_nodefile(path: str, nodes: Iterable[tuple[str, int]]) -> None:
    """One line for each core: the name of its host. Raises `OSError`."""
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(f"{host}\n" * cores for host, cores in nodes)
