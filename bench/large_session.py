"""A session of 100,000 elements and five stages: how long until its first job, who waits meanwhile, what it takes
of memory, and how long the next manager needs after kill -9.

The graph is that of the pipeline benchmark, with or without conditions. Somebody else asks for the list of
sessions all the time; the slowest answer is what others wait.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import pipeline_graph as graph
from deployment import Deployment, cpu_s, describe_machine, resident_bytes, save
from rota.client import connect
from rota.client.blocking import Client

_WAIT_S = 300.0
_PAUSE_S = 0.02


class Asker(threading.Thread):
    """Asks one question after the other; keeps the time of the slowest answer."""

    def __init__(self, home: Path) -> None:
        super().__init__(daemon=True)
        self._client = connect(home)
        self._over = threading.Event()
        self.slowest_s = 0.0
        self.answers = 0

    def run(self) -> None:
        while not self._over.wait(_PAUSE_S):
            begun = time.monotonic()
            self._client.pipelines()
            self.slowest_s = max(self.slowest_s, time.monotonic() - begun)
            self.answers += 1

    def stop(self) -> None:
        self._over.set()
        self.join()
        self._client.close()


def _written(elements: int, directory: Path, *, conditions: bool) -> None:
    text = graph.as_rota(elements)
    if conditions:
        graph.write_done(directory, elements)
    else:
        text = re.sub(r"    skip_if: .*\n", "", text).replace("run: 'false'", "run: 'true'")
    (directory / "pipeline.yaml").write_text(text)


def _until(condition: Any) -> float:
    """Waits for it; the seconds that took."""
    begun = time.monotonic()
    while not condition():
        if time.monotonic() > begun + _WAIT_S:
            raise SystemExit("it takes too long")
        time.sleep(_PAUSE_S)
    return time.monotonic() - begun


def _processed(client: Client) -> int:
    sums = client.pipelines()[0].sums
    return 0 if sums is None else sums.processed


def measure(elements: int, *, conditions: bool) -> dict[str, Any]:
    found: dict[str, Any] = {"elements": elements, "conditions": conditions}
    with Deployment() as deployment, tempfile.TemporaryDirectory(prefix="rota-bench.") as top:
        directory = Path(top)
        _written(elements, directory, conditions=conditions)
        deployment.start()
        deployment.run("run", "--", "true")
        pid = deployment.manager_pid()
        found["empty_mib"] = resident_bytes(pid) >> 20
        spent = cpu_s(pid)
        asker = Asker(deployment.home)
        asker.start()
        command = [deployment.rota, "pipeline", "run", "pipeline.yaml", "--quiet"]
        watching = subprocess.Popen(command, cwd=directory, env=deployment.env, stdout=subprocess.DEVNULL)
        client = connect(deployment.home)
        begun = time.monotonic()
        found["arrived_s"] = _until(lambda: client.pipelines())
        _until(lambda: _processed(client))
        found["first_job_s"] = time.monotonic() - begun
        _until(lambda: _processed(client) > 100)
        asker.stop()
        found["slowest_answer_s"], found["answers"] = asker.slowest_s, asker.answers
        found["mib"] = resident_bytes(pid) >> 20
        found["cpu_s"] = cpu_s(pid) - spent
        watching.kill()  # a polite end would end the session, too
        watching.wait()
        client.close()
        _recover(deployment, found)
    return found


def _recover(deployment: Deployment, found: dict[str, Any]) -> None:
    """kill -9 of the manager: how long until the next one answers, and until a job has ended."""
    os.kill(deployment.manager_pid(), signal.SIGKILL)
    begun = time.monotonic()
    deployment.start()
    with connect(deployment.home) as client:
        found["recovered_s"] = time.monotonic() - begun
        before = _processed(client)
        _until(lambda: _processed(client) > before)
        found["goes_on_s"] = time.monotonic() - begun
    found["recovered_mib"] = resident_bytes(deployment.manager_pid()) >> 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--elements", type=int, default=100_000)
    options = parser.parse_args()
    print(f"{options.elements:,} elements × {len(graph.STAGES)} stages: {describe_machine()['cpu']}")
    results = []
    for conditions in (True, False):
        found = measure(options.elements, conditions=conditions)
        results.append(found)
        print("with conditions:" if conditions else "without conditions, all ready at once:")
        for name, value in found.items():
            print(f"  {name:18}{value:,.2f}" if isinstance(value, float) else f"  {name:18}{value}", flush=True)
    print(f"\nwritten to {save('large-session', {'results': results})}")


if __name__ == "__main__":
    main()
