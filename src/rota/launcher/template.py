"""Calls Python functions under the interpreter that the user chose, which need not have Rota.

One file, standard library only, Python 3.9 or later; it imports nothing of Rota, and Rota never imports it. It has
three ways to run:

- `call`: one call, whose request is in the file of descriptor 3, in this interpreter.
- `check [N]`: the same up to the call itself: is the function there, and does it take these arguments? The request
  is in the file of descriptor N.
- `serve MODULE`: a template. It imports the module once, then forks for each call that it is asked for on the
  socket of descriptor 3.

The request is a JSON object. The outcome is written after it: a line with a JSON object that describes it, then
the result as JSON. Nothing is pickled.

A call that is forked is a child of the template's own parent, and leads a session of its own: whoever starts
processes here sees its end like that of any other. It waits in its control groups, with its own environment and
descriptors, until it is told to go on, so a call that nobody knows of never begins.
"""

from __future__ import annotations

import atexit
import fcntl
import gc
import importlib
import importlib.util
import inspect
import json
import os
import signal
import socket
import struct
import sys
import threading
import traceback
import typing

#: The most that a result may have in bytes of JSON, and the most that is kept of a traceback, and of a message.
MOST_RESULT = 1 << 20
MOST_TRACEBACK = 64 * 1024
MOST_MESSAGE = 16 * 1024
#: A module that is not imported after so long has no template.
IMPORT_S = 120
#: A template that nobody asks for so long ends.
IDLE_S = 600
#: A template that has grown by half and by this much since it was ready is replaced.
GROWTH_BYTES = 64 << 20
#: Descriptors that modules must not meet are moved up to here: a module that closes all descriptors begins with 3.
_OUT_OF_THE_WAY = 900
_MAIN = "__mp_main__"

Args = list[typing.Any]
Words = dict[str, typing.Any]


class Failure(Exception):
    """Why a call has no result: a reason code, and the exception that says it."""

    def __init__(self, reason: str, cause: BaseException) -> None:
        super().__init__(reason)
        self.reason = reason
        self.cause = cause


class ResultError(Exception):
    """The function returned something that cannot be kept as its result."""


# -------------------------------------------------------------- one call


def load(module: str) -> typing.Any:
    """The module of this name, or the file of this path as `__mp_main__`."""
    if not module.endswith(".py"):
        return importlib.import_module(module)
    path = os.path.abspath(module)
    known = sys.modules.get(_MAIN)
    if known is not None and getattr(known, "__file__", None) == path:
        return known
    directory = os.path.dirname(path)
    if directory not in sys.path:
        sys.path.insert(1, directory)
    spec = importlib.util.spec_from_file_location(_MAIN, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{module} cannot be imported")
    found = importlib.util.module_from_spec(spec)
    sys.modules[_MAIN] = found
    try:
        spec.loader.exec_module(found)
    except BaseException:
        del sys.modules[_MAIN]
        raise
    return found


def find(call: str) -> typing.Any:
    """The function of `module:function`."""
    module, _, name = call.rpartition(":")
    found = load(module)
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise ImportError(f"{module} has no function {name!r}") from None
    if not callable(found):
        raise ImportError(f"{call} is no function but of type {type(found).__name__}")  # noqa: TRY004
    return found


def bound(function: typing.Any, args: Args, kwargs: Words) -> tuple[Args, Words, bool]:
    """The arguments, converted as the function is annotated where msgspec can be imported; whether it was."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return args, kwargs, False  # a function that is not written in Python
    given = signature.bind(*args, **kwargs)
    if not getattr(inspect.unwrap(function), "__annotations__", None):
        return args, kwargs, False
    try:
        import msgspec
    except ImportError:
        return args, kwargs, False
    try:
        hints = typing.get_type_hints(inspect.unwrap(function))
    except Exception:
        return args, kwargs, False  # names that exist for type checkers only

    def decode(kind: typing.Any, value: typing.Any) -> typing.Any:
        if isinstance(value, str) and isinstance(kind, type) and issubclass(kind, os.PathLike):
            return kind(value)  # type: ignore[call-arg]
        raise NotImplementedError

    def converted(name: str, value: typing.Any) -> typing.Any:
        if name not in hints:
            return value
        try:
            return msgspec.convert(value, hints[name], dec_hook=decode)
        except msgspec.ValidationError as error:
            raise TypeError(f"argument {name!r}: {error}") from None
        except (TypeError, NotImplementedError):
            return value  # a type of which msgspec knows nothing

    for name, value in given.arguments.items():
        how = signature.parameters[name].kind
        if how is inspect.Parameter.VAR_POSITIONAL:
            given.arguments[name] = tuple(converted(name, each) for each in value)
        elif how is inspect.Parameter.VAR_KEYWORD:
            given.arguments[name] = {key: converted(name, each) for key, each in value.items()}
        else:
            given.arguments[name] = converted(name, value)
    return list(given.args), dict(given.kwargs), True


def text_of(value: typing.Any) -> bytes:
    """A result as JSON. Raises `ResultError`."""

    def simpler(found: typing.Any) -> typing.Any:
        if not isinstance(found, (bytes, bytearray, memoryview)) and "msgspec" in sys.modules:
            try:
                return sys.modules["msgspec"].to_builtins(found)
            except Exception:
                pass  # refused below
        raise ResultError(
            f"it returned something of type {type(found).__name__}, which is not JSON;"
            " return numbers, texts, lists and dictionaries of them, or write a file and return its path"
        )

    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"), default=simpler)
        data = text.encode()
    except ResultError:
        raise
    except RecursionError:
        raise ResultError("what it returned is nested too deeply, or contains itself") from None
    except (TypeError, ValueError) as error:
        raise ResultError(f"what it returned is not JSON: {error}") from None
    if len(data) > MOST_RESULT:
        raise ResultError(
            f"its result has {len(data)} bytes of JSON, and at most {MOST_RESULT} are kept;"
            " write it to a file and return the path"
        )
    return data


def execute(request: Words, *, check: bool, about: Words) -> bytes:
    """The result of a call as JSON. Raises `Failure`; `about` is filled in with what is to be said of it."""
    try:
        function = find(request["call"])
    except BaseException as error:
        raise Failure("import", error) from None
    if not about["warm"] and threading.active_count() > 1:
        about["note"] = "its module starts threads when it is imported, so each call has an interpreter of its own"
    each = request.get("each", False)
    values = []
    try:
        for given in request.get("args", []) if each else [request.get("args", [])]:
            args, kwargs, about["typed"] = bound(function, given, request.get("kwargs", {}))
            if not check:
                values.append(called(function, args, kwargs))
    except BaseException as error:
        raise Failure("exception", error) from None
    try:
        return b"null" if check else text_of(values if each else values[0])
    except BaseException as error:
        raise Failure("result", error) from None


def called(function: typing.Any, args: Args, kwargs: Words) -> typing.Any:
    value = function(*args, **kwargs)
    if inspect.iscoroutine(value):
        value = importlib.import_module("asyncio").run(value)  # which Rota's own processes never need
    return value


def story_of(error: BaseException) -> str:
    """The traceback of an exception, without our own frames."""
    where = error.__traceback__
    while where is not None and where.tb_frame.f_code.co_filename in (__file__, "<frozen importlib._bootstrap>"):
        where = where.tb_next
    text = "".join(traceback.format_exception(type(error), error, where))
    return text if len(text) <= MOST_TRACEBACK else f"[…]\n{text[-MOST_TRACEBACK:]}"


def name_of(kind: type) -> str:
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def perform(descriptor: int, *, check: bool = False, warm: bool = False) -> int:
    """Carry out the call whose request is in this file, and write its outcome there. The exit code."""
    request = os.pread(descriptor, os.fstat(descriptor).st_size, 0)
    file = out_of_the_way(descriptor)
    about: Words = {"warm": warm, "typed": False, "note": ""}
    result, code = b"", 0
    try:
        result = execute(json.loads(request), check=check, about=about)
    except Failure as failure:
        error, code = failure.cause, 1
        ours = isinstance(error, ResultError)
        message = str(error) if len(str(error)) <= MOST_MESSAGE else f"{str(error)[:MOST_MESSAGE]} […]"
        story = "" if ours else story_of(error)
        about["reason"] = failure.reason
        about["error"] = [name_of(type(error)) if not ours else "ResultError", message, story]
        if not check:
            printed(story or f"{message}\n")
    data = json.dumps(about).encode() + b"\n" + result
    try:
        while data:
            done = os.pwrite(file, data, os.fstat(file).st_size)
            data = data[done:]
    except OSError as error:
        printed(f"the result cannot be written: the descriptor that was open for it is gone ({error.strerror})\n")
        code = 1
    return code


def printed(text: str) -> None:
    """Say this on stderr, if there still is one."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except Exception:
        pass


def out_of_the_way(descriptor: int) -> int:
    """The same file under another number, which no program that is executed inherits."""
    try:
        moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _OUT_OF_THE_WAY)
    except (OSError, ValueError):  # so many may not be open
        moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(descriptor)
    return moved


# -------------------------------------------------------------- a template


class Template:
    """Imports a module and forks for each call."""

    def __init__(self, descriptor: int) -> None:
        self.control = socket.socket(fileno=out_of_the_way(descriptor))
        self.directory = identity(b".")
        self.files: Words = {}
        self.size = 0

    def tell(self, **words: typing.Any) -> None:
        self.control.sendall(json.dumps(words).encode() + b"\n")

    def serve(self, module: str) -> int:
        """Fork for each call that is asked for. Returns in the forks only: the descriptor of their request."""
        try:
            self.prepare(module)
            self.control.settimeout(IDLE_S)
            while True:
                descriptor = self.next()
                if descriptor is not None:
                    return descriptor
        except OSError:
            os._exit(0)  # nobody asks any more

    def prepare(self, module: str) -> None:
        signal.setitimer(signal.ITIMER_REAL, IMPORT_S)  # kills a template whose import hangs
        self.end_with_the_other_end(True)
        try:
            if not self.control.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT):
                os._exit(0)  # it was closed before
        except BlockingIOError:
            pass
        try:
            load(module)
        except BaseException:
            self.leave("import")  # a call in an interpreter of its own says what is wrong
        signal.setitimer(signal.ITIMER_REAL, 0)
        self.end_with_the_other_end(False)
        if threading.active_count() > 1:
            self.leave("threads")
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()  # else each fork would print it
            except Exception:
                pass
        self.files = {path: stamp(path) for path in own_files(module)}
        gc.collect()
        gc.freeze()
        self.size = resident()
        self.tell(ready=True)

    def end_with_the_other_end(self, on: bool) -> None:
        """Be killed (by SIGIO) when the other end of the socket is closed, whatever is executed here then."""
        descriptor = self.control.fileno()
        flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
        fcntl.fcntl(descriptor, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(descriptor, fcntl.F_SETFL, flags | os.O_ASYNC if on else flags & ~os.O_ASYNC)

    def leave(self, why: str) -> typing.NoReturn:
        self.tell(why=why)
        os._exit(0)

    def next(self) -> int | None:
        """Fork for the next call; only the fork gets a descriptor."""
        head, fds, _, _ = socket.recv_fds(self.control, 4, 8)
        if len(head) < 4:
            os._exit(0)
        settings = json.loads(self.receive(*struct.unpack("!I", head)))
        moved = identity(os.fsencode(settings["cwd"])) != self.directory
        if moved or any(stamp(path) != known for path, known in self.files.items()):
            self.leave("changed")
        if resident() > self.size + max(self.size // 2, GROWTH_BYTES):
            self.leave("large")
        heard, say = os.pipe()
        try:
            first = os.fork()
        except OSError as error:
            self.tell(pid=0, error=error.strerror)
        else:
            if first == 0:
                return self.fork_again(settings, fds, heard, say)
            os.close(say)
            os.waitpid(first, 0)
            told = os.read(heard, 8)
            pid = struct.unpack("!q", told)[0] if len(told) == 8 else 0
            self.tell(pid=pid, error="" if pid else "it cannot fork")
            say = -1
        for fd in (heard, say, *fds):
            if fd >= 0:
                os.close(fd)
        return None

    def receive(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self.control.recv(size - len(data))
            if not more:
                os._exit(0)
            data += more
        return data

    def fork_again(self, settings: Words, fds: list[int], heard: int, say: int) -> int:
        """In the fork: fork once more and end, so that the second is no child of the template."""
        try:
            if os.fork():
                os._exit(0)
            os.close(heard)
            self.control.close()
            go = fds.pop()
            become(settings, fds)
            os.write(say, struct.pack("!q", os.getpid()))
            os.close(say)
            if os.read(go, 1) != b"!":
                os._exit(0)  # nobody knows of it
            os.close(go)
        except BaseException:
            os._exit(127)
        return fds[3]


def become(settings: Words, fds: list[int]) -> None:
    """Make a fork what an interpreter would be that was started for this call."""
    os.setsid()
    for target in range(3):
        os.dup2(fds[target], target)
        os.close(fds[target])
    for group in settings["cgroups"]:
        try:
            with open(f"{group}/cgroup.procs", "w") as file:
                file.write(str(os.getpid()))
        except OSError:
            pass  # it is moved later
    if settings["cores"]:
        try:
            os.sched_setaffinity(0, settings["cores"])
        except OSError:
            pass
    os.environb.clear()
    for entry in settings["variables"]:
        name, _, value = entry.encode("latin-1").partition(b"=")
        if name:
            os.environb[name] = value
    atexit._clear()
    numbers = sys.modules.get("numpy")
    if numbers is not None:
        try:
            numbers.random.seed()  # else all forks would draw the same
        except Exception:
            pass


def own_files(module: str) -> set[str]:
    """The files of the module and of what else is not part of an installation."""
    installed = {
        os.path.realpath(prefix) + os.sep for prefix in (sys.prefix, sys.base_prefix, os.path.dirname(os.__file__))
    }
    found = set()
    for name, each in list(sys.modules.items()):
        path = getattr(each, "__file__", None)
        if not isinstance(path, str) or path == __file__:
            continue
        if name in (module, _MAIN) or not os.path.realpath(path).startswith(tuple(installed)):
            found.add(path)
    return found


def stamp(path: str) -> tuple[int, int, int] | None:
    try:
        seen = os.stat(path)
    except OSError:
        return None
    return seen.st_mtime_ns, seen.st_size, seen.st_ino


def identity(directory: bytes) -> tuple[int, int] | None:
    """Which directory it is, whatever its path is now."""
    try:
        seen = os.stat(directory)
    except OSError:
        return None
    return seen.st_dev, seen.st_ino


def resident() -> int:
    """Bytes in memory."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def end_fork(code: int) -> typing.NoReturn:
    """End a fork without what the template's own end would need."""
    try:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
    except BaseException:
        traceback.print_exc()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass
    os._exit(code)


def main() -> typing.NoReturn:
    sys.path[0] = os.getcwd()  # instead of the directory of this file
    mode, *rest = sys.argv[1:]
    if mode == "serve":
        sys.argv = [rest[0]]
        end_fork(perform(Template(3).serve(rest[0]), warm=True))
    sys.argv = [""]
    sys.exit(perform(int(rest[0]) if rest else 3, check=mode == "check"))


if __name__ == "__main__":
    main()
