"""The first process of a host: gives it a name, a boot id and a machine id, says that it is up, and reaps.

Run as `boot.py DIRECTORY` in namespaces of its own. When it is killed, everything on the host dies.
"""

import contextlib
import os
import pathlib
import signal
import socket
import subprocess
import sys
import uuid

SEEN_AS = {"boot_id": "/proc/sys/kernel/random/boot_id", "machine_id": "/etc/machine-id"}


def main(directory: pathlib.Path) -> None:
    socket.sethostname(directory.name)
    (directory / "boot_id").write_text(f"{uuid.uuid4()}\n")
    if not (directory / "machine_id").exists():
        (directory / "machine_id").write_text(f"{uuid.uuid4().hex}\n")
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"], check=True)
    for name, path in SEEN_AS.items():
        if os.path.exists(path):
            subprocess.run(["mount", "--bind", str(directory / name), path], check=True)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    print("up", flush=True)
    while True:
        signal.sigwait({signal.SIGCHLD})
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


main(pathlib.Path(sys.argv[1]))
