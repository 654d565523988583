"""A module that does on import what none should."""

import os
import sys

print("hello", flush=True)
os.write(1, b"and more\n")
assert sys.stdin.read() == ""
os.chdir("/")

from lab import Trace  # noqa: E402, F401
