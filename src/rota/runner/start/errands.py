"""Commands of the site that an agent runs for another host: their environment, and the file with their ticket."""

from __future__ import annotations

import os

from rota.launcher.trees import remove_file
from rota.runner.report.journal import Key
from rota.runner.start.own_variables import OF_ONE_JOB


def ticket_path(scratch_root: str, key: Key) -> str:
    """Where the ticket of a lease is. An attempt may have several such leases, each for another host."""
    job, attempt, token = key
    return f"{scratch_root}/{job}.{attempt}.{token:x}.ticket"


def write_ticket(path: str, content: bytes) -> None:
    """Write it with mode 0600, into a new file of our own. Raises `OSError`."""
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    remove_file(path)  # the same lease was begun before
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
        file.write(content)


def own_variables() -> bytes:
    """The variables of this agent, in the form of those that jobs are sent with."""
    return b"\0".join(b"%s=%s" % pair for pair in os.environb.items() if pair[0] not in OF_ONE_JOB)
