"""What a submission takes from where it is made: directory, environment, and the default memory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Final

from rota.errors import BadInput

GIB: Final = 1 << 30
MIB: Final = 1 << 20

#: Set by Rota for every job, so those of the job we may be running in are not passed on.
# fmt: off
JOB_VARIABLES: Final = frozenset({
    b"ROTA_JOB_ID", b"ROTA_JOB_NAME", b"ROTA_GROUP", b"ROTA_ATTEMPT", b"ROTA_ARRAY_INDEX", b"ROTA_NODEFILE",
    b"ROTA_CPUS", b"ROTA_CPU_LIST", b"ROTA_MEM_MB", b"ROTA_WALLTIME_S", b"ROTA_SUBMIT_DIR", b"ROTA_TMPDIR",
    b"ROTA_OUTCOME", b"ROTA_LEASE",
})
# fmt: on
#: Belongs to the shell that started us, and differs between equal submissions.
_OURS: Final = frozenset({b"_", b"SHLVL", b"OLDPWD"})


def working_directory() -> str:
    """The absolute path of this directory, as the shell calls it if it goes through links."""
    try:
        physical = os.getcwd()
    except OSError as error:
        raise BadInput(f"the working directory cannot be used: {error.strerror}", hint="go to another") from None
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
    kept[b"ROTA_SUBMIT_DIR"] = os.fsencode(working_directory())
    for name, value in (added or {}).items():
        kept[name.encode("utf-8", "surrogateescape")] = value.encode("utf-8", "surrogateescape")
    return b"\0".join(b"%b=%b" % item for item in sorted(kept.items()))


def default_memory(*, cores: int | None = None, memory: int | None = None) -> int:
    """min(1G, usable memory / cores), in whole MiB. The arguments override what this host has."""
    cores = cores or len(os.sched_getaffinity(0)) or 1
    usable = memory or usable_memory()
    return max(MIB, min(GIB, usable // cores // MIB * MIB))


def usable_memory() -> int:
    """Memory of this host, or what the control groups around this process leave of it."""
    total = GIB
    with open("/proc/meminfo", encoding="ascii") as file:
        for line in file:
            if line.startswith("MemTotal:"):
                total = int(line.split()[1]) * 1024
                break
    return min([total, *_group_limits()])


def _group_limits() -> Iterator[int]:
    """Every memory limit of the groups that this process is in, from its own up to the root."""
    try:
        with open("/proc/self/cgroup", encoding="utf-8", errors="surrogateescape") as file:
            groups = [line.rstrip("\n").split(":", 2) for line in file]
    except OSError:
        return
    for number, controllers, path in groups:
        if number == "0":
            roots, limit = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"], "memory.max"
        elif "memory" in controllers.split(","):
            roots, limit = ["/sys/fs/cgroup/memory"], "memory.limit_in_bytes"
        else:
            continue
        for root in roots:
            here = path
            while True:
                try:
                    with open(f"{root}{here}/{limit}", encoding="ascii") as file:
                        text = file.read().strip()
                    if text.isdigit() and int(text) > 0:
                        yield int(text)
                except OSError:
                    pass
                if here in {"", "/"}:
                    break
                here = os.path.dirname(here)
