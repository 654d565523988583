"""The directory a store lives in: whether it may be used, its lock, and the free space on its disk.

Nothing here knows about SQL.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Final

from rota.errors import StoreRefused

#: File systems on which locks or shared memory maps of SQLite's write-ahead log cannot be trusted.
NETWORK_FILE_SYSTEMS: Final = frozenset(
    {"9p", "acfs", "afs", "beegfs", "beegfs_nodev", "ceph", "cephfs", "cifs", "coda", "davfs", "davfs2",
     "gcsfuse", "gfs2", "glusterfs", "gpfs", "juicefs", "lizardfs", "lustre", "mfs", "moosefs", "ncpfs",
     "nfs", "nfs3", "nfs4", "ocfs2", "orangefs", "panfs", "prl_fs", "pvfs2", "quobyte", "rclone", "s3fs",
     "smb", "smb2", "smb3", "smbfs", "sshfs", "vboxsf", "webdav", "wekafs"}
)  # fmt: skip


def is_network(kind: str) -> bool:
    """Is this type of file system one on which a database is not safe?"""
    return kind.removeprefix("fuse.") in NETWORK_FILE_SYSTEMS


def file_system_of(path: Path, *, mountinfo: Path = Path("/proc/self/mountinfo")) -> str:
    """The type of the file system that holds `path`, or "" where the system does not tell."""
    return _mounted(path, mountinfo)[1]


def mount_of(path: Path, *, mountinfo: Path = Path("/proc/self/mountinfo")) -> str:
    """Where the file system that holds `path` is mounted; `path` itself where the system does not tell."""
    return _mounted(path, mountinfo)[0] or str(path)


def _mounted(path: Path, mountinfo: Path) -> tuple[str, str]:
    """Where the file system that holds `path` is mounted, and its type."""
    try:
        lines = mountinfo.read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return "", ""
    target = os.path.realpath(path)
    found, kind = "", ""
    for line in lines:
        left, _, right = line.partition(" - ")
        fields = left.split(" ")
        if len(fields) < 5 or not right:
            continue
        mount = (
            fields[4].replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\")
        )
        inside = mount == "/" or target == mount or target.startswith(mount + "/")
        # A later line of equal length is mounted over the earlier one.
        if inside and len(mount) >= len(found):
            found, kind = mount, right.split(" ", 1)[0]
    return found, kind


def prepare_home(home: Path, *, mountinfo: Path = Path("/proc/self/mountinfo")) -> None:
    """Make the directory, private to its owner. Raises `StoreRefused` where a store must not live."""
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    except FileExistsError:
        raise StoreRefused(f"{home} is not a directory", hint="set ROTA_HOME to a directory") from None
    except OSError as error:
        raise StoreRefused(
            f"{home} cannot be made: {error.strerror}", hint="set ROTA_HOME to a directory you can write to"
        ) from None
    kind = file_system_of(home, mountinfo=mountinfo)
    if is_network(kind):
        raise StoreRefused(
            f"{home} is on a network file system ({kind}), where the database could be damaged",
            hint="set ROTA_HOME to a directory on a local disk",
        )
    if not os.access(home, os.R_OK | os.W_OK | os.X_OK):
        raise StoreRefused(f"{home} is not writable", hint="check its permissions, or set ROTA_HOME")
    status = home.stat()
    if status.st_mode & 0o077 and status.st_uid == os.geteuid():
        home.chmod(0o700)


class Ballast:
    """Disk space held in reserve, so that accepted work can still be recorded on a full disk."""

    def __init__(self, home: Path, *, size: int) -> None:
        self._path = home / "ballast"
        self._home = home
        self._size = size
        self._lock = threading.Lock()
        self.held = size == 0  #: is the space reserved now?

    def free_bytes(self) -> int:
        """Free space on the disk for this user, not counting the ballast."""
        status = os.statvfs(self._home)
        return status.f_bavail * status.f_frsize

    def fill(self) -> None:
        """Reserve the space, unless that would fill the disk. Never raises."""
        with self._lock:
            if self.held:
                return
            try:
                fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
                try:
                    have = os.fstat(fd)
                    if have.st_size != self._size or have.st_blocks * 512 < self._size:
                        if self.free_bytes() < 2 * self._size:
                            return
                        os.posix_fallocate(fd, 0, self._size)
                        os.ftruncate(fd, self._size)
                    self.held = True
                except OSError:
                    os.ftruncate(fd, 0)
                finally:
                    os.close(fd)
            except OSError:
                return

    def fill_in_background(self) -> None:
        """Like `fill`, in a thread of its own."""
        if not self.held:
            threading.Thread(target=self.fill, name="rota-ballast", daemon=True).start()

    def release(self) -> None:
        """Free the reserved space for a commit that met a full disk."""
        with self._lock:
            try:
                os.truncate(self._path, 0)
            except OSError:
                pass
            self.held = self._size == 0
