"""A small batch engine on a host of its own, and the three programs by which a site would use it.

``spool_engine.py run SPOOL SLOTS`` is the engine: it starts what waits in the spool, ends what it is told to, and
lives on when the manager dies. ``spool_engine.py start|stop|list SPOOL`` are the programs of a pool with the
engine `command`. A file `lie-PROGRAM` in the spool says what that program does next instead of what it should; the
files `hold`, `deaf`, `forget`, `inert` and `slow` last as long as they are there.
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time


def write(path: pathlib.Path, text: str, mode: int = 0o644) -> None:
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w") as file:
        file.write(text)
    draft.rename(path)


def listed(path: pathlib.Path) -> list[str]:
    return sorted(name for name in os.listdir(path) if not name.startswith("."))


def note(spool: pathlib.Path, line: str) -> None:
    with open(spool / "notes", "a") as file:
        file.write(f"{line}\n")


# ------------------------------------------------------------------ the engine


def run(spool: pathlib.Path, slots: int) -> None:
    running: dict[str, subprocess.Popen[bytes]] = {}
    while spool.exists():
        for id, process in list(running.items()):
            if process.poll() is not None:
                note(spool, f"ended {id} {process.returncode}")
                del running[id]
                (spool / "running" / id).unlink(missing_ok=True)
                (spool / "tickets" / id).unlink(missing_ok=True)
        for id in listed(spool / "stop"):
            (spool / "stop" / id).unlink()
            if id in running:
                os.killpg(running[id].pid, signal.SIGKILL)
            (spool / "pending" / id).unlink(missing_ok=True)
        waiting = [] if (spool / "hold").exists() else listed(spool / "pending")
        if waiting and len(running) < slots:
            id = waiting[0]
            (spool / "pending" / id).rename(spool / "running" / id)
            running[id] = begin(spool, id)
        time.sleep(0.02)


def begin(spool: pathlib.Path, id: str) -> "subprocess.Popen[bytes]":
    asked = json.loads((spool / "running" / id).read_text())
    argv = json.loads((spool / "argv").read_text())
    argv += ["--ticket", str(spool / "tickets" / id), "--linger", str(asked["idle_s"])]
    argv += ["--until", str(asked["seconds"])]
    if (spool / "inert").exists():
        argv = ["sleep", "86400"]
    note(spool, f"began {id} {asked['name']}")
    with open(spool / "runners.log", "ab") as log:
        return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)


# ------------------------------------------------------------------ the programs


def take_lie(spool: pathlib.Path, program: str) -> str:
    try:
        (spool / f"lie-{program}").rename(spool / f"lied-{program}")
    except FileNotFoundError:
        return ""
    return (spool / f"lied-{program}").read_text()


def kill_manager(spool: pathlib.Path) -> None:
    """The manager that asks is killed, and this program dies with it."""
    note(spool, "killed")
    os.kill(os.getppid(), signal.SIGKILL)
    sys.exit(1)


def start(spool: pathlib.Path) -> object:
    asked = json.load(sys.stdin)
    lie = take_lie(spool, "start")
    note(spool, f"asked {len(asked['runners'])} {lie}".strip())
    if lie == "refuse":
        print("no more today", file=sys.stderr)
        sys.exit(2)
    if lie == "fail":
        print("something broke", file=sys.stderr)
        sys.exit(1)
    if lie == "die-before":
        kill_manager(spool)
    ids = {}
    for runner in asked["runners"]:
        for _ in range(2 if lie == "twice" else 1):
            id = f"{time.time_ns()}"
            ids[runner["name"]] = id
            if lie == "claim":
                continue
            ticket = pathlib.Path(runner["ticket"])
            assert ticket.stat().st_mode & 0o777 == 0o600
            write(spool / "tickets" / id, ticket.read_text(), 0o600)
            folder = "later" if lie == "late" else "pending"
            write(spool / folder / id, json.dumps({**runner, "idle_s": asked["idle_s"]}))
    if lie in ("hang", "late"):
        time.sleep(86400)
    if lie == "die-after":
        kill_manager(spool)
    return {"ids": ids}


def stop(spool: pathlib.Path) -> object:
    ids = json.load(sys.stdin)["ids"]
    if take_lie(spool, "stop") == "die-before":
        kill_manager(spool)
    note(spool, f"stopped {' '.join(ids)}")
    for id in ids:
        write(spool / "stop" / id, "")
    return {}


def list_(spool: pathlib.Path) -> object:
    asked = json.load(sys.stdin)
    if take_lie(spool, "list") == "die-before":
        kill_manager(spool)
    if (spool / "deaf").exists():
        print("cannot hear you", file=sys.stderr)
        sys.exit(1)
    note(spool, "listed")
    if (spool / "slow").exists():
        time.sleep(2)
    found = []
    for state in ("pending", "running"):
        for id in listed(spool / state):
            try:
                name = json.loads((spool / state / id).read_text())["name"]
            except FileNotFoundError:
                continue  # it has moved on
            if name.startswith(asked["prefix"]) and not (spool / "forget").exists():
                found.append({"name": name, "id": id, "state": state, "host": os.uname().nodename})
    return {"runners": found, "limits": {"cpus": 16}}


def main() -> None:
    what, spool = sys.argv[1], pathlib.Path(sys.argv[2])
    if what == "run":
        run(spool, int(sys.argv[3]))
    else:
        json.dump({"start": start, "stop": stop, "list": list_}[what](spool), sys.stdout)


if __name__ == "__main__":
    main()
