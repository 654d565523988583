"""Scratch directories of jobs: made, measured and removed. Links are never followed."""

from __future__ import annotations

import os
import stat
import time

from rota.runner.log import say

#: A measurement may take this share of the time.
_SHARE = 0.05
#: The longest time that `rm -rf` may take.
_PATIENCE_S = 60.0


class Scratch:
    """The scratch directory of one attempt, and beside it one for temporary files."""

    __slots__ = ("_measure_at", "path", "tmp")

    def __init__(self, root: str, job: int, attempt: int) -> None:
        """Makes it, empty and for the owner only. Raises `OSError`."""
        self.path, self.tmp = directories(root, job, attempt)
        self._measure_at = 0.0
        os.makedirs(root, mode=0o700, exist_ok=True)
        for path in (self.path, self.tmp):
            try:
                os.mkdir(path, 0o700)
            except FileExistsError:
                remove(path)  # left over from a runner that died
                os.mkdir(path, 0o700)

    def measure(self, now: float) -> int:
        """Bytes on disk below both, or 0 if that was measured too recently for its size."""
        if now < self._measure_at:
            return 0
        before = time.monotonic()
        size = self.usage()
        self._measure_at = now + (time.monotonic() - before) / _SHARE
        return size

    def usage(self) -> int:
        """Bytes on disk below both."""
        return usage(self.path) + usage(self.tmp)

    def remove(self) -> None:
        self.keep()
        remove(self.path)

    def keep(self) -> None:
        """Remove only what was temporary."""
        remove(self.tmp)


def directories(root: str, job: int, attempt: int) -> tuple[str, str]:
    """Where an attempt works, and where its temporary files are."""
    path = f"{root}/{job}.{attempt}"
    return path, f"{path}.tmp"


def usage(path: str) -> int:
    """Bytes allocated below a directory; hard links count once, symbolic links are not followed."""
    total = 0
    linked: set[tuple[int, int]] = set()
    stack = [path]
    while stack:
        try:
            entries = os.scandir(stack.pop())
        except OSError:
            continue
        with entries:
            for entry in entries:
                try:
                    seen = entry.stat(follow_symlinks=False)
                except OSError:
                    continue
                if seen.st_nlink > 1 and not stat.S_ISDIR(seen.st_mode):
                    if (seen.st_dev, seen.st_ino) in linked:
                        continue
                    linked.add((seen.st_dev, seen.st_ino))
                total += seen.st_blocks * 512
                if stat.S_ISDIR(seen.st_mode):
                    stack.append(entry.path)
    return total


def remove(path: str) -> None:
    """Remove a tree without following links; what cannot be removed stays and is logged."""
    import shutil

    if not shutil.rmtree.avoids_symlink_attacks:
        say(f"{path} is not removed: this system cannot do that safely")
        return
    try:
        shutil.rmtree(path)
    except FileNotFoundError:
        pass
    except (OSError, RecursionError):  # the latter where directories are a thousand deep
        _remove_stubborn(path)
        if os.path.lexists(path):
            say(f"{path} could not be removed")


def _remove_stubborn(path: str) -> None:
    import subprocess

    try:
        _make_writable(path)
    except (OSError, RecursionError):
        pass
    try:
        words = ["rm", "-rf", "--", path]  # does it by descriptors too, to any depth
        subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PATIENCE_S, check=False)
    except (OSError, subprocess.SubprocessError) as error:
        say(f"{path}: {error}")


def _make_writable(path: str) -> None:
    """Make directories writable: a job may have removed the permission."""
    for directory, names, _, handle in os.fwalk(path, follow_symlinks=False, onerror=None):
        del directory
        for name in names:
            try:
                if stat.S_ISDIR(os.lstat(name, dir_fd=handle).st_mode):
                    os.chmod(name, 0o700, dir_fd=handle)
            except OSError:
                continue
