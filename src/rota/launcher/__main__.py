"""`python -m rota.launcher`: started by an agent, never by hand."""

from __future__ import annotations

import argparse
import os
import signal
import socket
import sys

from rota.launcher import libc
from rota.launcher.log import say, say_exception
from rota.launcher.server import Server


def main() -> int:
    parser = argparse.ArgumentParser(prog="rota.launcher", description="Holds the processes of jobs for an agent.")
    parser.add_argument("--dir", required=True, help="a private directory, for its socket and its journal")
    parser.add_argument("--fd", required=True, type=int, help="its connection to the agent that starts it")
    given = parser.parse_args()
    os.set_inheritable(given.fd, False)
    # Jobs must not get descriptors that the agent itself inherited.
    os.closerange(3, given.fd)
    os.closerange(given.fd + 1, 1 << 20)
    os.chdir("/")
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    if os.getsid(0) != os.getpid():
        os.setsid()
    libc.become_subreaper()
    libc.forbid_dumps()
    try:
        server = Server(given.dir, socket.socket(fileno=given.fd))
    except OSError:
        say_exception("cannot begin")
        return 1
    server.run()
    say("the launcher ends")
    return 0


if __name__ == "__main__":
    sys.exit(main())
