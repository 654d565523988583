"""What a submission takes from the process that makes it: working directory, environment, default memory."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from rota.errors import BadInput
from rota.host import usable_memory

GIB: Final = 1 << 30
MIB: Final = 1 << 20

#: Set by Rota for every job. If we run inside a job, its values are not passed on.
# fmt: off
JOB_VARIABLES: Final = frozenset({
    b"ROTA_JOB_ID", b"ROTA_JOB_NAME", b"ROTA_GROUP", b"ROTA_ATTEMPT", b"ROTA_ARRAY_INDEX", b"ROTA_NODE",
    b"ROTA_NODES", b"ROTA_NODEFILE", b"ROTA_CPUS", b"ROTA_CPU_LIST", b"ROTA_MEM_MB", b"ROTA_WALLTIME_S",
    b"ROTA_SUBMIT_DIR", b"ROTA_TMPDIR", b"ROTA_OUTCOME", b"ROTA_LEASE", b"ROTA_SCRATCH", b"ROTA_SUBMIT_TMPDIR",
    b"ROTA_PROGRESS",
})
# fmt: on
#: Set by the calling shell; they would make equal submissions differ.
_OURS: Final = frozenset({b"_", b"SHLVL", b"OLDPWD"})


def working_directory() -> str:
    """The absolute working directory, as in `$PWD` if that leads here through links.

    Inside the scratch directory of a job, which is removed with it, this is where that job was added.
    """
    try:
        physical = os.getcwd()
    except OSError as error:
        raise BadInput(f"the working directory cannot be used: {error.strerror}", hint="go to another") from None
    if _is_below(physical, os.environ.get("ROTA_SCRATCH", "")):
        return os.environ.get("ROTA_SUBMIT_DIR") or physical
    logical = os.environ.get("PWD", "")
    if os.path.isabs(logical) and logical != physical:
        try:
            if os.path.samefile(logical, physical):
                physical = logical
        except OSError:
            pass
    try:
        physical.encode()
    except UnicodeEncodeError:
        raise BadInput(
            "the name of the working directory is not valid UTF-8", hint="give another with --cwd"
        ) from None
    return physical


def captured_environment(added: Mapping[str, str] | None = None) -> bytes:
    """This process's environment with additions, as NUL-separated K=V in a fixed order."""
    kept = {k: v for k, v in os.environb.items() if k not in JOB_VARIABLES and k not in _OURS}
    directory = os.fsencode(working_directory())
    kept[b"ROTA_SUBMIT_DIR"] = directory
    if scratch := os.environb.get(b"ROTA_SCRATCH"):
        _leave_scratch(kept, scratch, directory)
    for name, value in (added or {}).items():
        kept[name.encode("utf-8", "surrogateescape")] = value.encode("utf-8", "surrogateescape")
    return b"\0".join(b"%b=%b" % item for item in sorted(kept.items()))


def _leave_scratch(kept: dict[bytes, bytes], scratch: bytes, directory: bytes) -> None:
    """Undo the variables by which a job in scratch names its private directories, for we run in one."""
    if kept.get(b"TMPDIR") == os.environb.get(b"ROTA_TMPDIR"):
        del kept[b"TMPDIR"]
        if tmpdir := os.environb.get(b"ROTA_SUBMIT_TMPDIR"):
            kept[b"TMPDIR"] = tmpdir
    if _is_below(os.fsdecode(kept.get(b"PWD", b"")), os.fsdecode(scratch)):
        kept[b"PWD"] = directory


def _is_below(path: str, top: str) -> bool:
    """Is a path this directory or in it, with links resolved?"""
    if not (path and top):
        return False
    path, top = os.path.realpath(path), os.path.realpath(top)
    return path == top or path.startswith(top + "/")


def default_memory(*, cores: int | None = None, memory: int | None = None) -> int:
    """min(1G, usable memory / cores), in whole MiB. The arguments override what this host has."""
    cores = cores or len(os.sched_getaffinity(0)) or 1
    usable = memory or usable_memory()
    return max(MIB, min(GIB, usable // cores // MIB * MIB))
