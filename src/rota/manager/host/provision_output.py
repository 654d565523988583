"""The files in which the output of provision commands is kept: one for each attempt and machine.

All of it blocks: it runs off the loop.
"""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import subprocess
import time
from pathlib import Path
from typing import IO, Final

#: Bytes kept of what one command prints, and sent to a client.
MOST: Final = 1 << 20
#: Output that is older is removed.
_KEEP_S: Final = 30 * 86400.0


def path_of(directory: Path, job: int, attempt: int, host: str, kind: str) -> Path:
    """The file of this kind (`log`, `pid`, `ticket`) about a machine."""
    return directory / f"{job}-{attempt}-{_file_name(host)}.{kind}"


def _file_name(host: str) -> str:
    return re.sub(r"[^A-Za-z0-9._]", "_", host)


def open_private(path: Path) -> IO[bytes]:
    """An empty file that only its owner may read, also in place of another."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb")


def copy_output(process: subprocess.Popen[bytes], output: IO[bytes]) -> str:
    """Copy what a command prints until it ends, though others may keep its pipe open. Returns the last line."""
    assert process.stdout is not None
    pipe = process.stdout.fileno()
    os.set_blocking(pipe, False)
    kept, tail, open_ = 0, b"", True
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while True:
            ended = process.poll() is not None
            if open_ and selector.select(0 if ended else 0.2):
                data = os.read(pipe, 1 << 16)
                open_ = bool(data)
                if kept < MOST:
                    output.write(data[: MOST - kept])
                    output.flush()
                kept += len(data)
                tail = (tail + data)[-4096:]
                continue
            if ended:
                break
            if not open_:
                process.wait()
    process.stdout.close()
    lines = tail.decode("utf-8", "replace").strip().splitlines()
    return lines[-1].strip() if lines else ""


def kept_outputs(directory: Path, job: int, attempt: int) -> list[tuple[int, str, bytes]]:
    """(attempt, machine, output) of machines that were provisioned for a job, of its latest attempt or this."""
    found: dict[int, list[tuple[int, str, bytes]]] = {}
    for path in sorted(directory.glob(f"{job}-*-*.log")) if directory.is_dir() else ():
        number, host = path.name.removesuffix(".log").split("-", 2)[1:]
        if number.isdigit() and attempt in (0, int(number)):
            with contextlib.suppress(OSError):
                found.setdefault(int(number), []).append((int(number), host, path.read_bytes()[:MOST]))
    return found[max(found)] if found else []


def prune(directory: Path) -> None:
    """Remove old output."""
    oldest = time.time() - _KEEP_S
    for path in directory.glob("*.log"):
        with contextlib.suppress(OSError):
            if path.stat().st_mtime < oldest:
                path.unlink()
