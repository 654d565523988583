"""The usable memory of this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

_GIB: Final = 1 << 30


def usable_memory() -> int:
    """The memory of this host, or less if a control group of this process limits it."""
    total = _GIB
    with open("/proc/meminfo", encoding="ascii") as file:
        for line in file:
            if line.startswith("MemTotal:"):
                total = int(line.split()[1]) * 1024
                break
    return min([total, *_group_limits()])


def _group_limits() -> Iterator[int]:
    """Every memory limit on this process, from its own control group up to the root."""
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
