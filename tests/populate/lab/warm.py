"""An interpreter that has imported what takes long, and forks for each command: `python -c` and `python -m`."""

import contextlib
import json
import os
import runpy
import select
import signal
import socket
import sys
import traceback


def serve(path, modules):
    for name in modules:
        __import__(name)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen(64)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        while True:
            connection, _ = listening.accept()
            if os.fork() == 0:
                listening.close()
                attend(connection)
            connection.close()


def attend(connection):
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    data, fds, _, _ = socket.recv_fds(connection, 1 << 20, 3)
    while not data.endswith(b"\n"):
        data += connection.recv(1 << 20)
    asked = json.loads(data)
    pid = os.fork()
    if pid == 0:
        connection.close()
        for number, fd in enumerate(fds):
            os.dup2(fd, number)
            os.close(fd)
        os._exit(run(asked))
    for fd in fds:
        os.close(fd)
    ended = os.pidfd_open(pid)
    if ended not in select.select([ended, connection], [], [])[0]:
        # The command in the place of this process was killed.
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    with contextlib.suppress(OSError):
        connection.sendall(str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


def run(asked):
    os.environ.clear()
    os.environ.update(asked["env"])
    os.chdir(asked["cwd"])
    sys.path[:0] = ["", *filter(None, asked["env"].get("PYTHONPATH", "").split(":"))]
    kind, what, *sys.argv[1:] = asked["args"]
    status = 0
    try:
        if kind == "-c":
            exec(compile(what, "<command>", "exec"), {"__name__": "__main__"})
        else:
            runpy.run_module(what, run_name="__main__", alter_sys=True)
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        traceback.print_exc()
        status = 1
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    return status


#: A command in the place of the interpreter: it passes on its arguments, environment and files.
CLIENT = """#!{python} -SE
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as s:
    s.connect({path!r})
    data = json.dumps(dict(args=sys.argv[1:], env=dict(os.environ), cwd=os.getcwd())).encode() + b"\\n"
    sent = socket.send_fds(s, [data], [0, 1, 2])
    s.sendall(data[sent:])
    for fd in (0, 1):
        os.close(fd)
    status = int(s.recv(16) or b"1")
if status < 0:
    import signal
    os.kill(os.getpid(), -status)
os._exit(status)
"""


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2:])
