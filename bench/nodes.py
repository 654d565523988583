"""Nodes: jobs a second over four agents beside the local pool, and what thousands of agents cost the manager.

First, rounds of `true` run by the local pool with four seats and by four agents with one seat each, interleaved,
with the same containment. Then a crowd of agents that connect by TLS, send heartbeats and run a job each: what
memory and CPU the manager spends on each, and how long it takes until all are back after the manager was killed.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from deployment import Deployment, cpu_s, describe_machine, is_alive, print_table, resident_bytes, save

_AGENTS = 4
_WAIT_S = 120.0


class Agents:
    """Processes that belong to a deployment: they are ended with it."""

    def __init__(self) -> None:
        self._all: list[subprocess.Popen[bytes]] = []

    def start(self, argv: list[str], env: dict[str, str], log: Path) -> subprocess.Popen[bytes]:
        with log.open("wb") as out:
            process = subprocess.Popen(argv, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        self._all.append(process)
        return process

    def stop(self) -> None:
        for process in self._all:
            process.kill()
            process.wait()


def address(deployment: Deployment) -> str:
    return str(json.loads((deployment.home / "manager.json").read_bytes())["address"])


def make_pass(deployment: Deployment, name: str) -> Path:
    path = deployment.top / f"{name}.pass"
    deployment.run("manager", "token", "add", name, "--role", "runner", "--out", str(path))
    return path


# ------------------------------------------------------------------ jobs a second


def throughput(*, jobs: int, rounds: int, containment: str) -> dict[str, Any]:
    common = {"ROTA_HTTP": "off", "ROTA_CONTAINMENT": containment}
    seconds: dict[str, list[float]] = {"local": [], "nodes": []}
    agents = Agents()
    with (
        Deployment(settings={**common, "ROTA_CORES": str(_AGENTS)}) as local,
        Deployment(settings={**common, "ROTA_LOCAL": "off"}) as nodes,
        tempfile.TemporaryDirectory(prefix="rota-bench.") as top,
    ):
        try:
            for each in (local, nodes):
                each.start()
            ready = make_pass(nodes, "bench")
            for number in range(_AGENTS):
                argv = [
                    nodes.rota, "node", "run", "--manager", address(nodes), "--token", str(ready), "--cores", "1",
                    "--name", f"n{number}", "--dir", str(nodes.top / f"n{number}"),
                ]  # fmt: skip
                agents.start(argv, nodes.env, nodes.top / f"n{number}.log")
            nodes.wait_for(lambda: joined(nodes) == _AGENTS, seconds=_WAIT_S, what="the agents")
            commands = Path(top, "commands")
            commands.write_text("true\n" * jobs)
            for number in range(rounds):
                for name, deployment in (("local", local), ("nodes", nodes)):
                    work = Path(top, f"{name}{number}")
                    work.mkdir()
                    before = cpu_s(deployment.manager_pid())
                    begun = time.perf_counter()
                    with commands.open("rb") as stdin:
                        deployment.run("run", "-", stdin=stdin, cwd=work, stdout=subprocess.DEVNULL)
                    took = time.perf_counter() - begun
                    spent = (cpu_s(deployment.manager_pid()) - before) * 1e6 / jobs
                    seconds[name].append(took)
                    rate = f"{name:<6} {jobs / took:6.0f} jobs/s  manager {spent:.0f} µs"
                    print(f"round {number + 1}/{rounds}  {rate}", flush=True)
        finally:
            agents.stop()
    rates = {name: jobs / statistics.median(each) for name, each in seconds.items()}
    return {"jobs_per_s": rates, "ratio": rates["nodes"] / rates["local"]}


def joined(deployment: Deployment) -> int:
    return sum(each["connected"] for each in deployment.json("node", "list")["nodes"])


# ------------------------------------------------------------------ a crowd


class Crowd:
    """Simulated agents in another process, and what they last said of themselves."""

    def __init__(self, deployment: Deployment, agents: Agents, number: int) -> None:
        self._log = deployment.top / "crowd.log"
        argv = [
            sys.executable, str(Path(__file__).with_name("agents.py")), "--manager", address(deployment),
            "--pass", str(make_pass(deployment, "crowd")), "--agents", str(number), "--seconds", "900",
        ]  # fmt: skip
        self.process = agents.start(argv, deployment.env, self._log)

    def now(self) -> dict[str, int]:
        lines = self._log.read_text().splitlines()
        for line in reversed(lines):
            if line.startswith("{") and line.endswith("}"):
                found: dict[str, int] = json.loads(line)
                return found
        return {"joined": 0, "jobs": 0}


def wait(condition: Callable[[], bool], what: str, seconds: float = 300.0) -> float:
    begun = time.perf_counter()
    while not condition():
        if time.perf_counter() - begun > seconds:
            raise SystemExit(f"waited {seconds:.0f} s in vain for {what}")
        time.sleep(0.1)
    return time.perf_counter() - begun


def crowd(*, number: int, minutes: float) -> dict[str, Any]:
    agents = Agents()
    settings = {"ROTA_HTTP": "off", "ROTA_LOCAL": "off", "ROTA_PORT": str(free_port())}
    with Deployment(settings=settings) as deployment:
        try:
            deployment.start()
            empty = resident_bytes(deployment.manager_pid())
            people = Crowd(deployment, agents, number)
            connecting = wait(lambda: people.now()["joined"] == number, "all to join")
            time.sleep(2)
            pid = deployment.manager_pid()
            full = resident_bytes(pid)
            before, begun = cpu_s(pid), time.perf_counter()
            time.sleep(60 * minutes)
            idle = (cpu_s(pid) - before) / (time.perf_counter() - begun)

            lines = "\n".join(f"true {each}" for each in range(number)) + "\n"
            before, begun = cpu_s(pid), time.perf_counter()
            deployment.run("run", "-", input=lines.encode(), stdout=subprocess.DEVNULL)
            a_job_each = time.perf_counter() - begun
            working = (cpu_s(pid) - before) * 1e6 / number
            after_jobs = resident_bytes(pid)

            os.kill(pid, signal.SIGKILL)
            wait(lambda: not is_alive(pid), "the manager's end", 10)
            wait(lambda: people.now()["joined"] == 0, "all to notice")
            begun = time.perf_counter()
            deployment.start()
            wait(lambda: people.now()["joined"] == number, "all to come back")
            healed = time.perf_counter() - begun
            storm_cpu = cpu_s(deployment.manager_pid())
        finally:
            agents.stop()
    return {
        "agents": number,
        "kib_per_agent": (full - empty) / 1024 / number,
        "kib_per_agent_after_jobs": (after_jobs - empty) / 1024 / number,
        "cpu_ms_per_agent_minute": idle * 60 * 1000 / number,
        "connected_in_s": connecting,
        "a_job_each_s": a_job_each,
        "cpu_us_per_job": working,
        "storm_heals_in_s": healed,
        "storm_cpu_ms_per_agent": storm_cpu * 1000 / number,
    }


def free_port() -> int:
    import socket

    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--agents", type=int, default=2000)
    parser.add_argument("--minutes", type=float, default=1.0, help="how long heartbeats are watched")
    parser.add_argument("--containment", default="auto", choices=["auto", "cgroup", "session"])
    options = parser.parse_args()
    how = f"{_AGENTS} at a time, containment {options.containment}"
    print(f"{options.jobs} × `true`, {how}: {describe_machine()['cpu']}")
    speed = throughput(jobs=options.jobs, rounds=options.rounds, containment=options.containment)
    rates = speed["jobs_per_s"]
    print()
    print_table(
        [
            ["", "jobs/s", "of local"],
            ["local pool", f"{rates['local']:.0f}", "1.00"],
            [f"{_AGENTS} agents", f"{rates['nodes']:.0f}", f"{speed['ratio']:.2f}"],
        ]
    )
    print()
    many = crowd(number=options.agents, minutes=options.minutes)
    rows = [[name.replace("_", " "), f"{value:.1f}"] for name, value in many.items()]
    print_table([["a crowd of agents", ""], *rows])
    print(f"\nwritten to {save('nodes', {'throughput': speed, 'crowd': many})}")


if __name__ == "__main__":
    main()
