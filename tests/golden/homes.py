"""Homes of a release, each left at a moment of its own: stopped, killed with jobs in every state, with jobs that
ended while nobody listened, with a plan."""

from __future__ import annotations

import base64
import glob
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.golden.scene import Scene, scene

#: The first attempt never ends; the next, on whatever machine, does at once.
FIRST_HANGS = '[ "$ROTA_ATTEMPT" != 1 ] || sleep 100000; echo "attempt $ROTA_ATTEMPT"'
AGAIN = ("--retries", "3", "--backoff", "0s")


def busy(top: Path, out: Path) -> None:
    """Killed with -9, manager, runner and jobs, while jobs were in every state that the queue knows but `lost`."""
    hooks = {"prologue": _hook(top, "starting"), "epilogue": _hook(top, "finishing"), "hook_timeout": "1h"}
    with scene(top, "busy", grace="1s", keep_output="64K", **hooks) as rota:
        rota.ok("manager", "start")
        rota.ok("limit", "licence:1")
        rota.ok("limit", "door:5@00:00-00:01")
        ended = _ended_jobs(rota)
        running = rota.add(
            *AGAIN, "--name", "running", "--limit", "licence", "--dep-group", "live", "--", FIRST_HANGS
        )
        rota.wait_for(running, "running")
        rota.add(*AGAIN, "--name", "scratch", "--scratch", "--", FIRST_HANGS)
        rota.add("--name", "ready", "--limit", "licence", "--", "echo ready ran")
        rota.add("--name", "dependent", "--after", str(running), "--", "echo dependent ran")
        rota.add("--name", "of group", "--after", "@live", "--", "echo of group ran")
        rota.add("--name", "of element", "--after", f"afterany:{ended['array']}", "--", "echo of element ran")
        held = rota.add("--name", "held", "--limit", "licence", "--", "echo held ran")
        rota.ok("hold", str(held))
        rota.add("--name", "blocked", "--after", str(ended["failed"]), "--", "echo never")
        delayed = rota.add("--name", "delayed", "--retries", "3", "--backoff", "30m", "--", "exit 9")
        suspended = rota.add(*AGAIN, "--name", "suspended", "--", FIRST_HANGS)
        rota.wait_for(suspended, "running")
        rota.ok("suspend", str(suspended))
        starting = rota.add(*AGAIN, "--name", "starting", "--", "echo starting ran")
        slow_end = 'run: [ "$ROTA_ATTEMPT" != 1 ] || sleep 100000'
        rota.add("--name", "behaving", "--on-exit", slow_end, "--", "echo ended once")
        finishing = rota.add("--name", "finishing", "--", "echo finished once")
        left = {suspended: "suspended", starting: "starting", finishing: "finishing", delayed: "delayed"}
        for job, state in left.items():
            rota.wait_for(job, state)
        runners = rota.runner_pids()
        for pid in runners:
            os.kill(pid, signal.SIGSTOP)
        scheduled = rota.add(*AGAIN, "--name", "scheduled", "--", "echo scheduled ran")
        rota.wait_for(scheduled, "scheduled")
        told = {"jobs": rota.known(), "outputs": rota.outputs()}
        rota.kill(rota.manager_pid(), *runners)
        rota.end()
        rota.pack(out, told)


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _hook(top: Path, name: str) -> str:
    """A script of the site that hangs for jobs of this name."""
    path = top / f"{name}.hook"
    path.write_text(f'#!/bin/sh\n[ "$ROTA_JOB_NAME" != {name} ] || sleep 100000\n')
    path.chmod(0o755)
    return str(path)


def _ended_jobs(rota: Scene) -> dict[str, int]:
    """Jobs that are over, in every way, with output of every kind."""
    found = {}
    rota.add("--name", "out and err", "--", "echo out; echo err >&2")
    rota.add("--name", "binary", "--", r"printf '\000\377\r\n\033[0m'")
    rota.add("--name", "much", "--", "seq 1 30000")
    rota.add("--name", "words", "--", "printf", "%s\n", "a  b", "", "ü")
    rota.add("--name", "flaky", *AGAIN, "--", '[ "$ROTA_ATTEMPT" = 2 ]')
    rota.add("--name", "files", "--stdout", f"{rota.work}/%j.out", "--", "echo to a file")
    rota.add("--name", "behaved", "--on-success", "run: echo behaved", "--on-exit", "run: false", "--", "true")
    found["failed"] = rota.add("--name", "failed", "--retries", "0", "--", "echo failing; exit 3")
    rota.add("--name", "signalled", "--retries", "0", "--", "kill -SEGV $$")
    rota.add("--name", "not found", "--", "/no/such/program", "x")
    for n in range(4):
        rota.add("--name", f"learned {n}", "--learn", "golden", "--input-bytes", str(n * 1000), "--", f"echo {n}")
    array = rota.json(
        "add", "--cpus", "0", "--cwd", "/", "--array", "1-5%2", "--", "echo element $ROTA_ARRAY_INDEX"
    )
    found["array"] = array["added"][0]
    cancelled = rota.add("--name", "cancelled", "--", "sleep 100000")
    rota.wait_for(cancelled, "running")
    rota.ok("kill", str(cancelled))
    removed = rota.add("--name", "removed", "--", "true")
    rota.rota("wait", "all")
    rota.ok("remove", str(removed))
    rota.rota("add", "-", "--cpus", "0", "--cwd", "/", "--group", "file", input="echo one\necho two\necho one\n")
    rota.rota("wait", "@file")
    return found


def lost(top: Path, out: Path) -> None:
    """Killed when a runner had been silent for so long that its jobs were lost."""
    with scene(top, "lost", grace="1s", lost_after="1s", touch_s="0.2s") as rota:
        rota.ok("manager", "start")
        ids = [rota.add(*AGAIN, "--name", name, "--", FIRST_HANGS) for name in ("one", "two")]
        rota.add("--name", "behind", "--after", str(ids[0]), "--", "echo behind")
        for id in ids:
            rota.wait_for(id, "running")
        runners = rota.runner_pids()
        for pid in runners:
            os.kill(pid, signal.SIGSTOP)
        for id in ids:
            rota.wait_for(id, "lost")
        told = {"jobs": rota.known(), "outputs": rota.outputs()}
        rota.kill(rota.manager_pid(), *runners)
        rota.end()
        rota.pack(out, told)


def unreported(top: Path, out: Path) -> None:
    """The manager was killed, then jobs ended, then their runner was killed: only its journal knows how."""
    from rota.runner.report import journal

    go = top / "go"
    until = f'while [ "$ROTA_ATTEMPT" = 1 ] && [ ! -e {go} ]; do sleep 0.05; done'
    with scene(top, "unreported", grace="1s") as rota:
        rota.ok("manager", "start")
        complete = [rota.add("--", f"{until}; echo once {n}; echo err {n} >&2") for n in range(3)]
        failed = rota.add("--retries", "0", "--", f"{until}; exit 4")
        again = rota.add(*AGAIN, "--", f'{until}; [ "$ROTA_ATTEMPT" != 1 ]')
        slow_end = 'run: [ "$ROTA_ATTEMPT" != 1 ] || sleep 100000'
        ending = rota.add("--on-exit", slow_end, "--", f"{until}; echo ended once")
        hanging = rota.add(*AGAIN, "--", FIRST_HANGS)
        behind = rota.add("--after", str(complete[0]), "--", "echo behind")
        for id in (*complete, failed, again, ending, hanging):
            rota.wait_for(id, "running")
        told: dict[str, Any] = {"jobs": rota.known()}
        runners = rota.runner_pids()
        rota.kill(rota.manager_pid())
        go.touch()
        (path,) = glob.glob(f"{rota.home}/runners/*/journal")
        over = {*complete, failed, again}

        def all_written() -> bool:
            leases = {lease.intent.job: lease for lease in journal.read(path).leases.values()}
            ends = all(leases[id].finished is not None for id in over)
            return ends and leases[ending].ended is not None

        rota.states = dict  # type: ignore[method-assign]  # nobody is there to be asked
        rota.wait_until(all_written, "the journal tells it all")
        told["ends"] = {
            "complete": [*complete, ending], "failed": [failed], "again": [again, hanging], "behind": [behind],
        }  # fmt: skip
        told["outputs"] = {id: _encoded(f"once {n}\n") for n, id in enumerate(complete)}
        told["outputs"][ending] = _encoded("ended once\n")
        rota.kill(*runners)
        rota.end()
        go.unlink()
        rota.pack(out, told)


def planned(top: Path, out: Path) -> None:
    """Stopped in order, paused, with records of a site, and jobs that a plan had places for."""
    with scene(top, "planned", grace="1s") as rota:
        rota.ok("manager", "start")
        rota.ok("property", "add", "gpu", "--type", "text")
        rota.ok("property", "add", "rack", "--level", "--above", "host")
        rota.ok("resource", "add", "--hosts", "far[1-3]", "--cores", "4", "--set", "gpu=YES", "--set", "rack=r1")
        rota.ok("queue", "add", "night", "--priority", "3", "--order", "fairshare", "--share", "ann=0.5")
        rota.ok("quota", "set", "*,*,*,/", "-1", "50")
        rota.ok("quota", "set", "night,*,*,*", "0.5*ALL", "--set", "day")
        rota.ok("calendar", "add", "08:00-19:00 mon-fri", "day")
        rota.ok("rule", "add", "short", "--match", "queue=night", "--cap", "walltime=12h")
        rota.ok("limit", "licence:2")
        rota.ok("limit", "door:5@08:00-17:30")
        rota.ok("manager", "token", "add", "laptop", "--role", "user", "--out", str(rota.work / "laptop.token"))
        done = rota.add("--name", "done", "--project", "p", "--", "echo done")
        rota.ok("wait", str(done))
        rota.ok("manager", "pause")
        rota.plan("--name", "request", "-l", "nodes=1/core=1,walltime=10m", "--", "echo request ran")
        rota.plan("--name", "either", "-l", "nodes=99", "-l", "core=1,walltime=1h", "--", "echo either ran")
        rota.plan("--name", "best", "-t", "besteffort", "-l", "core=1,walltime=10m", "--", "echo best ran")
        rota.plan(
            "--name", "night", "-q", "night", "--checkpoint", "5s", "--walltime", "5m", "--", "echo night ran"
        )
        rota.plan(
            "--name", "reserved", "--at", "2090-01-01T00:00Z", "-l", "core=1,walltime=10m", "--", "echo then"
        )
        rota.plan(
            "--name", "far", "--allow-unsatisfiable", "-p", "gpu='YES'", "-l", "core=9,walltime=1m", "--", "true"
        )
        rota.ok(
            "add", "--cwd", "/", "--array", "1-3", "--limit", "licence", "--", "echo element $ROTA_ARRAY_INDEX"
        )
        backup = top / "kept.backup"
        rota.ok("manager", "backup", str(backup))
        told = {"jobs": rota.known(), "outputs": rota.outputs(), "site": _site(rota)}
        rota.ok("manager", "stop")
        rota.end()
        rota.pack(out, told, backup)


def nodes(top: Path, out: Path) -> None:
    """Manager and agents of two nodes killed with -9, while jobs ran there, one of them on both."""
    with scene(top, "nodes", grace="1s", local="off") as rota:
        rota.ok("manager", "start")
        token, agents = top / "pass", top / "agents"
        rota.ok("manager", "token", "add", "agents", "--role", "runner", "--out", str(token))
        pids = [rota.agent(name, token, agents / name) for name in ("n1", "n2")]
        rota.wait_until(lambda: len(rota.json("node", "list")["nodes"]) == 2, "both are there")
        done = rota.plan("--name", "done", "-l", "nodes=1/core=1,walltime=1h", "--", "echo done")
        rota.ok("wait", str(done))
        wide = rota.plan(*AGAIN, "--name", "wide", "-l", "nodes=2/core=1,walltime=1h", "--", FIRST_HANGS)
        narrow = rota.plan(*AGAIN, "--name", "narrow", "-l", "core=1,walltime=1h", "--", FIRST_HANGS)
        for id in (wide, narrow):
            rota.wait_for(id, "running")
        told = {"jobs": rota.known(), "outputs": rota.outputs(), "nodes": rota.json("node", "list")["nodes"]}
        rota.kill(rota.manager_pid(), *pids)
        rota.end()
        rota.pack(out, told, token, agents)


def _site(rota: Scene) -> dict[str, Any]:
    """What was said of the site, command by command."""
    kinds = ("property", "resource", "queue", "quota", "calendar", "rule")
    return {kind: rota.json(kind, "list") for kind in kinds} | {"limit": rota.json("limit")}


HOMES: dict[str, Callable[[Path, Path], None]] = {
    "busy": busy, "lost": lost, "unreported": unreported, "planned": planned, "nodes": nodes,
}  # fmt: skip
