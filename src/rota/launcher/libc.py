"""The few C library calls that the standard library lacks or that are too slow through it.

Nothing here knows about jobs. `os.posix_spawn` converts the whole environment, the file actions and
the signal sets for every process; here they are prepared once, which saves a fifth of what starting
a short process costs.
"""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Iterable, Sequence

# PyDLL: the runner has one thread, so no other thread needs the interpreter lock.
_libc = ctypes.PyDLL(None, use_errno=True)

_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36
_SPAWN_SETSIGDEF = 0x04
_SPAWN_SETSIGMASK = 0x08
_SPAWN_SETSID = 0x80
#: Larger than any C library's posix_spawnattr_t, posix_spawn_file_actions_t or sigset_t.
_OPAQUE_BYTES = 1024
_SFD_FLAGS = os.O_NONBLOCK | os.O_CLOEXEC

#: Signals that this process ignores or blocks. A job must find them in their default state.
RESET_SIGNALS = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGHUP)

Strings = ctypes.Array[ctypes.c_char_p]

_spawn = _libc.posix_spawn
_pointer = ctypes.c_void_p
_spawn.argtypes = [_pointer, ctypes.c_char_p, _pointer, _pointer, _pointer, _pointer]
_spawn.restype = ctypes.c_int
_pid = ctypes.c_int()
_pid_at = ctypes.addressof(_pid)


def strings(items: Sequence[bytes]) -> Strings:
    """A NULL-terminated array as `execve` wants it. Entries can be replaced by assignment."""
    return (ctypes.c_char_p * (len(items) + 1))(*items, None)


address = ctypes.addressof


class FileActions:
    """What a child does with its descriptors: prepared once, used for many spawns."""

    __slots__ = ("address", "buffer")

    def __init__(self, pairs: Iterable[tuple[int, int]], opens: Iterable[tuple[int, bytes]] = ()) -> None:
        """Copies of descriptors (source, target), after files (target, path) were opened to read and write."""
        self.buffer = ctypes.create_string_buffer(_OPAQUE_BYTES)
        self.address = ctypes.addressof(self.buffer)
        _check(_libc.posix_spawn_file_actions_init(self.buffer))
        for target, path in opens:
            _check(_libc.posix_spawn_file_actions_addopen(self.buffer, target, path, os.O_RDWR, 0))
        for source, target in pairs:
            _check(_libc.posix_spawn_file_actions_adddup2(self.buffer, source, target))

    def close(self) -> None:
        _libc.posix_spawn_file_actions_destroy(self.buffer)


def _attributes() -> ctypes.Array[ctypes.c_char]:
    buffer = ctypes.create_string_buffer(_OPAQUE_BYTES)
    _check(_libc.posix_spawnattr_init(buffer))
    flags = _SPAWN_SETSID | _SPAWN_SETSIGMASK | _SPAWN_SETSIGDEF
    _check(_libc.posix_spawnattr_setflags(buffer, ctypes.c_short(flags)))
    _check(_libc.posix_spawnattr_setsigmask(buffer, _sigset(())))
    _check(_libc.posix_spawnattr_setsigdefault(buffer, _sigset(RESET_SIGNALS)))
    return buffer


def _sigset(signals: Iterable[int]) -> ctypes.Array[ctypes.c_char]:
    buffer = ctypes.create_string_buffer(_OPAQUE_BYTES)
    _libc.sigemptyset(buffer)
    for number in signals:
        _libc.sigaddset(buffer, number)
    return buffer


def _check(error: int) -> None:
    if error:
        raise OSError(error, os.strerror(error))


_attributes_buffer = _attributes()
_attributes_at = ctypes.addressof(_attributes_buffer)


def spawn(path: bytes, argv_at: int, envp_at: int, actions_at: int) -> int:
    """Start a process in a session of its own and return its pid, or raise `OSError`.

    Takes addresses (see `address`), which are computed once for many calls. The process starts in the
    caller's working directory.
    """
    error = _spawn(_pid_at, path, actions_at, _attributes_at, argv_at, envp_at)
    if error:
        raise OSError(error, os.strerror(error))
    return _pid.value


def become_subreaper() -> None:
    """Orphans of what this process starts become its children instead of init's."""
    if _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        _check(ctypes.get_errno())


def signal_fd(signals: Iterable[int]) -> int:
    """A descriptor that is readable while one of these (blocked) signals is pending.

    Cheaper than `signal.set_wakeup_fd`: no handler runs, nothing is interrupted.
    """
    fd: int = _libc.signalfd(-1, _sigset(signals), _SFD_FLAGS)
    if fd < 0:
        _check(ctypes.get_errno())
    return fd


def forbid_dumps() -> None:
    """No other process of the same user may look into this one, and it leaves no core file."""
    if _libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0):
        _check(ctypes.get_errno())
