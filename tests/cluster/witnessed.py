"""A witnessed command: `witnessed.py DIRECTORY CORES ROLE COMMAND` runs it and writes down what it sees.

One line at its start and one at its end, on disk before it goes on: `id attempt host pid what cores`. It holds
locks that only its death, and that of all its children, can open: on its job, and on as many cores of its host as
it was given. Where a lock is taken already, something runs that must not; that is written down too. The role is
`job`, or `part` for what a job runs on its other nodes: then all that it may use is locked.
"""

import fcntl
import os
import socket
import subprocess
import sys


def main(directory: str, cores: int, role: str, command: str) -> int:
    job, attempt, host = os.environ["ROTA_JOB_ID"], os.environ["ROTA_ATTEMPT"], socket.gethostname()

    def say(what: str) -> None:
        seen = ",".join(map(str, sorted(os.sched_getaffinity(0))))
        line = f"{job} {attempt} {host} {os.getpid()} {what} {seen}\n"
        fd = os.open(f"{directory}/witness", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        os.write(fd, line.encode())
        os.fsync(fd)
        os.close(fd)

    if role == "job" and not lock(f"{directory}/job-{job}"):
        say("twice")
    wanted = int(os.environ["ROTA_CPUS"]) if role == "job" else len(os.sched_getaffinity(0))
    for number in range(cores):
        wanted -= wanted > 0 and lock(f"{directory}/core-{host}-{number}")
    if wanted:
        say("crowded")
    say("start" if role == "job" else "part")
    status = subprocess.run(["/bin/sh", "-c", command], close_fds=False).returncode
    if 0 <= status < 128:  # nobody killed it
        say("end" if role == "job" else "part-end")
    return status if status >= 0 else 128 - status


def lock(path: str) -> bool:
    """Hold it until this process and everything that it starts is dead; False if somebody has it."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return False
    os.set_inheritable(fd, True)
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:5]))
