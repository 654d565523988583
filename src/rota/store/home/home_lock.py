"""The lock of a home: one manager at a time.

It is taken before the store is opened and released after it is closed, whatever the store is.
"""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

from rota.errors import StoreRefused
from rota.store.home.files import prepare_home


class HomeLock:
    """`manager.lock`: held for as long as a manager uses the home; the file names its process."""

    def __init__(self, home: Path) -> None:
        """Raises `StoreRefused` if another manager holds it, or the directory cannot be a home."""
        prepare_home(home)
        self._path = home / "manager.lock"
        try:
            self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise StoreRefused(
                f"{self._path} cannot be opened: {error.strerror}",
                hint="check the permissions of the directory",
            ) from None
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.pread(self._fd, 64, 0).decode("ascii", "replace").split("\n")[0] or "unknown"
            os.close(self._fd)
            raise StoreRefused(
                f"another manager (pid {holder}) already uses {home}",
                hint="use that one, or stop it with `rota manager stop`",
                code="locked",
            ) from None
        if not self.holds():
            # The file was removed, perhaps with the whole home, before the lock was taken: the lock would exclude
            # no other manager.
            self.release()
            raise StoreRefused(f"{home} was removed while it was being opened", hint="try again", code="locked")
        try:
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, f"{os.getpid()}\n".encode(), 0)
        except OSError as error:
            # Without room for a few bytes the lock still holds; the file just cannot name its holder.
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                self.release()
                raise

    def holds(self) -> bool:
        """Does the lock still exclude others? Not if its file is gone or was replaced: another manager would lock
        the new file."""
        if self._fd < 0:
            return False
        try:
            return os.path.samestat(os.stat(self._path, follow_symlinks=False), os.fstat(self._fd))
        except OSError:
            return False

    def release(self) -> None:
        """Let another manager in. The file stays: removing it would race with the next holder."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
