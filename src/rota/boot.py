"""This machine: its id, the id of its current boot, and the seconds since then."""

from __future__ import annotations

import time


def boot_id() -> str:
    """The kernel's boot id, new with every boot; empty where the system has none."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def since_boot() -> float:
    """Seconds since boot, including time asleep."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def machine_id(default: str) -> str:
    """Identifies this machine among others that share its file system."""
    for path in ("/etc/machine-id", "/var/lib/dbus/machine-id"):
        try:
            with open(path, encoding="ascii") as file:
                if text := file.read().strip():
                    return text
        except (OSError, UnicodeDecodeError):
            continue
    return default
