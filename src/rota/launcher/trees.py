"""Trees of files that jobs have made: measured and removed, and single files. Links are never followed."""

from __future__ import annotations

import os
import stat

#: The longest time that `rm -rf` may take.
_PATIENCE_S = 60.0


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


def remove_file(path: str) -> list[str]:
    """Remove a file, if there is one; what went wrong, for the log."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        return [f"{path} could not be removed: {error}"]
    return []


def remove(path: str) -> list[str]:
    """Remove a tree without following links. What cannot be removed stays; returns why, for the log."""
    import shutil

    if not shutil.rmtree.avoids_symlink_attacks:
        return [f"{path} is not removed: this system cannot do that safely"]
    wrong = []
    try:
        shutil.rmtree(path)
    except FileNotFoundError:
        pass
    except (OSError, RecursionError):  # the latter where directories are a thousand deep
        wrong = _remove_stubborn(path)
        if os.path.lexists(path):
            wrong.append(f"{path} could not be removed")
    return wrong


def _remove_stubborn(path: str) -> list[str]:
    import subprocess

    try:
        _make_writable(path)
    except (OSError, RecursionError):
        pass
    try:
        words = ["rm", "-rf", "--", path]  # does it by descriptors too, to any depth
        subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PATIENCE_S, check=False)
    except (OSError, subprocess.SubprocessError) as error:
        return [f"{path}: {error}"]
    return []


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
