"""This life of the machine: what it is called, and how long it has lasted."""

from __future__ import annotations

import time


def boot_id() -> str:
    """Another one after each start of the machine; empty where the system does not tell."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def since_boot() -> float:
    """Seconds since the machine was started, those in which it slept included."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
