"""The process that commands, managers, runners and gateways of tests are forked from: it has loaded Rota already.

A fork has the arguments, environment, directory, limits and descriptors that a new process would have, and shows
them in `/proc`; it shares no other descriptor. It begins as the zygote is, with one thread, no lock, no handler,
and the generators of random numbers are seeded anew by Python. Only the seed of `hash` is shared.

A process is a child of the one that spawned it. Only an ancestor can become a parent, so a manager has a zygote of
its own, forked before it began, which ends with it.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import faulthandler
import fcntl
import gc
import importlib
import inspect
import json
import os
import pkgutil
import resource
import runpy
import selectors
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

#: Bytes that a fork has for its arguments and for its environment: where its zygote has its own.
ROOM = 16_384

_NUMBER = struct.Struct("i")
_MOST = 100_000  #: bytes of one request
_MOST_FDS = 64
_HIGH = 150  #: descriptors that nobody asked for are above
_PIPES = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
_MODULES = ("rota.manager", "rota.runner", "rota.api")
_PR_SET_CHILD_SUBREAPER = 36
_LIMITS = [number for name, number in vars(resource).items() if name.startswith("RLIMIT_")]
_libc = ctypes.CDLL(None, use_errno=True)
_entered: list[str] = []  #: namespaces of this process that its zygote is not in


class Request(NamedTuple):
    """What shall be forked. Its descriptors are sent beside it; then one for the answer, its id."""

    argv: list[str]
    env: dict[str, str]
    cwd: str
    targets: list[int]  #: the number that each descriptor has there
    module: str = ""  #: of Rota, which is run as by `python -m`; none is a command, whose status is told as well
    session: bool = False  #: a new one
    umask: int = -1
    limits: Sequence[tuple[int, tuple[int, int]]] = ()
    namespaces: Sequence[str] = ()  #: files of those that it is in, and all that it starts

    def packed(self) -> bytes:
        """Raises `ValueError` if it is too large."""
        data = json.dumps(self).encode()
        if len(data) > _MOST or len(_block(self.argv)) > ROOM or len(_block(_pairs(self.env))) > ROOM:
            raise ValueError("too much for a fork")
        return data


def ask(line: socket.socket, request: Request, fds: Sequence[int]) -> int:
    """The id of the new process, which is an orphan. Raises `ValueError` or `OSError`."""
    answer, end = os.pipe()
    try:
        socket.send_fds(line, [request.packed()], [*fds, end])
    except BaseException:
        os.close(answer)
        raise
    finally:
        os.close(end)
    with open(answer, "rb") as said:
        data = said.read()
    if len(data) != _NUMBER.size:
        raise OSError("the zygote is gone")
    return int(_NUMBER.unpack(data)[0])


def adopt(line: socket.socket, request: Request, fds: Sequence[int]) -> int:
    """Like `ask`, for an ancestor of the zygote: it becomes the parent."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        return ask(line, request, fds)
    finally:
        _libc.prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


# ------------------------------------------------------------------ serving


def _load() -> None:
    """All of Rota, but what only a screen needs."""
    import rota

    for module in pkgutil.walk_packages(rota.__path__, "rota."):
        if not module.name.endswith("__main__") and "screen" not in module.name.split("."):
            importlib.import_module(module.name)
    gc.collect()
    gc.freeze()


class _Birth(NamedTuple):
    """What a fork has from its zygote."""

    request: Request
    fds: list[int]
    answer: int
    line: socket.socket  #: where a command asks for more


def _serve(line: socket.socket) -> _Birth:
    """Fork until nobody asks any more. Returns in each fork."""
    running: dict[int, tuple[int, int]] = {}  #: what becomes readable at a command's end → its id, and who is told
    lines = {line.fileno(): line}
    with selectors.DefaultSelector() as waiting:
        waiting.register(line, selectors.EVENT_READ)
        while True:
            for key, _ in waiting.select():
                if key.fd in running:
                    waiting.unregister(key.fd)
                    os.close(key.fd)
                    _tell_end(*running.pop(key.fd))
                    continue
                data, fds, _flags, _address = socket.recv_fds(lines[key.fd], 2 * _MOST, _MOST_FDS)
                if not data and key.fd == line.fileno():
                    os._exit(0)
                if not data:
                    waiting.unregister(key.fd)
                    lines.pop(key.fd).close()
                    continue
                request = Request(*json.loads(data))
                answer = fds.pop()
                ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                pid = 0
                if _fork_orphan() if request.module else (pid := os.fork()) == 0:
                    ours.close()
                    for each in lines.values():
                        each.close()
                    return _Birth(request, fds, answer, _high(theirs))
                theirs.close()
                for fd in fds:
                    os.close(fd)
                if request.module:  # it answers itself when it looks like what it is
                    os.close(answer)
                    ours.close()
                else:
                    _tell(answer, pid)
                    handle = os.pidfd_open(pid)
                    running[handle] = pid, answer
                    waiting.register(handle, selectors.EVENT_READ)
                    lines[ours.fileno()] = ours
                    waiting.register(ours, selectors.EVENT_READ)


def _tell(answer: int, number: int) -> None:
    with contextlib.suppress(BrokenPipeError):  # who asked is gone
        os.write(answer, _NUMBER.pack(number))


def _tell_end(pid: int, answer: int) -> None:
    _tell(answer, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    os.close(answer)


def _fork_orphan() -> bool:
    """Is this the new process? Its parent has ended."""
    between = os.fork()
    if between == 0:
        if os.fork() == 0:
            return True
        os._exit(0)
    os.waitpid(between, 0)
    return False


def _high(line: socket.socket) -> socket.socket:
    """The same with a number that is in nobody's way."""
    with line:
        return socket.socket(fileno=fcntl.fcntl(line, fcntl.F_DUPFD_CLOEXEC, _HIGH))


# ------------------------------------------------------------------ being forked


def _become(birth: _Birth) -> None:
    """Take on what makes this process another one than its zygote."""
    request = birth.request
    high = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _HIGH) for fd in (*birth.fds, birth.answer)]
    _close_all_but({*high, birth.line.fileno()})
    *fds, answer = high
    for fd, target in zip(fds, request.targets, strict=True):
        os.dup2(fd, target)
        os.close(fd)
    # Those that are there have looked at what was there before.
    sys.stdin = os.fdopen(0, "r", encoding=sys.stdin.encoding, errors=sys.stdin.errors)
    sys.stdout = os.fdopen(1, "w", encoding=sys.stdout.encoding, errors=sys.stdout.errors)
    sys.stderr = os.fdopen(2, "w", 1, encoding=sys.stderr.encoding, errors=sys.stderr.errors)
    os.environ.clear()
    os.environ.update(request.env)
    os.chdir(request.cwd)
    if request.umask >= 0:
        os.umask(request.umask)
    for limit, (soft, hard) in request.limits:
        if resource.getrlimit(limit) != (soft, hard):
            resource.setrlimit(limit, (soft, hard))
    if request.env.get("PYTHONFAULTHANDLER"):
        faulthandler.enable()
    _show(request.argv, request.env)
    if request.module:
        _tell(answer, os.getpid())
    os.close(answer)


def _close_all_but(kept: set[int]) -> None:
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in kept:
            with contextlib.suppress(OSError):  # that of the list itself is closed by now
                os.close(int(name))


def _show(argv: Sequence[str], env: Mapping[str, str]) -> None:
    """Write them where the kernel looks for them when `/proc` is read."""
    with open("/proc/self/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    arg_start, arg_end, env_start, env_end = map(int, fields[45:49])
    for start, end, block in (arg_start, arg_end, _block(argv)), (env_start, env_end, _block(_pairs(env))):
        ctypes.memset(start, 0, end - start)
        ctypes.memmove(start, block, min(len(block), end - start - 1))


def _pairs(env: Mapping[str, str]) -> list[str]:
    return [f"{name}={value}" for name, value in env.items()]


def _block(words: Sequence[str]) -> bytes:
    return b"".join(os.fsencode(word) + b"\0" for word in words)


# ------------------------------------------------------------------ spawning


def _spawn_from(line: socket.socket, *, is_ancestor: bool) -> None:
    """From now on parts of Rota are spawned from that zygote, and all else as before."""
    spawn, asked = os.posix_spawn, adopt if is_ancestor else ask

    def posix_spawn(path: Any, argv: Any, env: Any, **options: Any) -> int:
        module = _module(argv)
        if not module or options.keys() - {"file_actions", "setsid"}:
            return spawn(path, argv, env, **options)
        with contextlib.ExitStack() as opened:
            fds = {int(name): int(name) for name in os.listdir("/proc/self/fd") if _is_inheritable(int(name))}
            for action in options.get("file_actions", ()):
                if action[0] == os.POSIX_SPAWN_OPEN:
                    fds[action[1]] = os.open(*action[2:])
                    opened.callback(os.close, fds[action[1]])
                else:
                    assert action[0] == os.POSIX_SPAWN_DUP2
                    fds[action[2]] = fds.get(action[1], action[1])
            request = _request(module, argv, env, fds, session=bool(options.get("setsid")))
            try:
                return asked(line, request, list(fds.values()))
            except ValueError:
                return spawn(path, argv, env, **options)

    os.posix_spawn = posix_spawn
    if is_ancestor:
        Popen.line = line
        subprocess.Popen = Popen  # type: ignore[misc]


class Popen(subprocess.Popen[Any]):
    """A process of an ancestor of the zygote."""

    line: socket.socket

    def _execute_child(self, *args: Any) -> None:
        real = super()._execute_child  # type: ignore[misc]
        given = inspect.signature(real).bind(*args).arguments
        module = _module(given["args"])
        if not module or given["preexec_fn"] is not None or given["cwd"] is not None or not given["close_fds"]:
            real(*args)
            return
        ends = [given["p2cread"], given["c2pwrite"], given["errwrite"]]
        fds = {number: number if end < 0 else end for number, end in enumerate(ends)}
        fds |= {fd: fd for fd in given["pass_fds"]}
        env = os.environ if given["env"] is None else given["env"]
        request = _request(module, given["args"], env, fds, session=given["start_new_session"])
        try:
            self.pid = adopt(self.line, request, list(fds.values()))
        except ValueError:
            real(*args)
            return
        self._child_created = True
        self._close_pipe_fds(*(given[end] for end in _PIPES))  # type: ignore[attr-defined]


def _request(module: str, argv: Any, env: Mapping[Any, Any], fds: Mapping[int, int], *, session: bool) -> Request:
    return Request(
        argv=[os.fsdecode(word) for word in argv],
        env={os.fsdecode(name): os.fsdecode(value) for name, value in env.items()},
        cwd=os.getcwd(),
        targets=list(fds),
        module=module,
        session=session,
        umask=_umask(),
        limits=[(limit, resource.getrlimit(limit)) for limit in _LIMITS],
        namespaces=_entered,
    )


def _module(argv: Sequence[Any]) -> str:
    """Of Rota, if an interpreter shall run one."""
    words = [os.fsdecode(word) for word in argv[:4]] if isinstance(argv, list | tuple) else []
    ours = words[:3] == [sys.executable, "-P", "-m"] and words[3] in _MODULES
    return words[3] if ours else ""


def _is_inheritable(fd: int) -> bool:
    try:
        return os.get_inheritable(fd)
    except OSError:
        return False  # that of the list itself


def _umask() -> int:
    """Without setting it, which other threads would notice."""
    with open("/proc/self/status", encoding="ascii", errors="replace") as file:
        return next(int(line.split()[1], 8) for line in file if line.startswith("Umask:"))


# ------------------------------------------------------------------ all of it


def _next(line: socket.socket) -> Request:
    """Serve until this process is to be another one; then take that on."""
    while True:
        birth = _serve(line)
        request = birth.request
        if request.session:
            os.setsid()
        _enter(request.namespaces)
        if request.module:
            birth.line.close()
        if request.module == "rota.manager":
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            if os.fork() == 0:
                ours.close()
                line = _high(theirs)
                _be_quiet(line.fileno())
                continue
            theirs.close()
            birth = birth._replace(line=_high(ours))
        _become(birth)
        if birth.line.fileno() >= 0:
            _spawn_from(birth.line, is_ancestor=request.module != "")
        return request


def _enter(namespaces: Sequence[str]) -> None:
    for path in namespaces:
        with open(path, "rb") as file:
            if _libc.setns(file.fileno(), 0) != 0:
                raise OSError(ctypes.get_errno(), "cannot enter a namespace", path)
    _entered[:] = namespaces


def _be_quiet(kept: int) -> None:
    """A zygote of a manager has nothing open but the way to it."""
    null = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        os.dup2(null, standard)
    _close_all_but({0, 1, 2, kept})


def main() -> None:
    number, _room = sys.argv[1:]
    _load()
    try:
        request = _next(socket.socket(fileno=int(number)))
    except KeyboardInterrupt:
        raise SystemExit(0) from None
    try:
        if request.module:
            sys.argv = [request.module, *request.argv[4:]]
            runpy.run_module(request.module, run_name="__main__", alter_sys=True)
        else:
            from rota.cli.main import main as command

            sys.argv = request.argv[1:]
            command()
    except SystemExit as leaving:
        if isinstance(leaving.code, str):
            raise
        # Taking an interpreter apart takes longer than most commands.
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(int(leaving.code or 0))


if __name__ == "__main__":
    main()
