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


def remove_nodefile(path: str) -> list[str]:
    """Remove it, if there is one; what went wrong, for the log."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        return [f"{path} could not be removed: {error}"]
    return []
