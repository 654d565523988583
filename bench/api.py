"""The HTTP API over a million jobs, and what open pages cost the manager.

First the answers: 900,000 finished and 100,000 live jobs in the store, one keep-alive connection. Beside each
answer the bare `SELECT` of the same page in this process, and how long the manager kept a second client waiting
meanwhile; above them the round trip of an answer that needs no work at all, and that wait while nobody asks.
Then the events: jobs at a steady rate, first with nobody listening and then with ten event streams open: how
long after a job's end its frame arrives, and the manager's CPU for a job. Last the same ratio at full speed.
"""

from __future__ import annotations

import argparse
import http.client
import json
import sqlite3
import statistics
import subprocess
import threading
import time
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import rota
from deployment import Deployment, cpu_s, print_table, save
from history import write_finished
from throughput import warm_round

_HTTP = {"ROTA_HTTP": "on"}
_FAILED_EVERY = 10
#: Each the second time and so often more; a list that is kept is answered from memory.
_AGAIN = 3
_NEWEST = "LEFT JOIN attempts AS a ON a.job = j.id AND a.number = j.attempt"


def _jobs(*select: str, **asked: object) -> str:
    words = [f"select={quote(word)}" for word in select]
    words += [f"{name}={quote(str(value))}" for name, value in asked.items()]
    return f"/jobs?{'&'.join(words)}"


def _page(where: str = "true", by: str = "j.id", join: str = "", offset: int = 0) -> str:
    return f"SELECT j.* FROM jobs AS j {join} WHERE {where} ORDER BY {by} DESC LIMIT 100 OFFSET {offset}"


def _asked(jobs: int) -> dict[str, tuple[str, str]]:
    """What is asked → the path, and the bare statement for it ("": there is none)."""
    group = "j.in_group = (SELECT n FROM groups WHERE grp = 'history')"
    commands = "j.in_group = (SELECT n FROM groups WHERE grp = 'commands')"
    half = jobs // 2
    return {
        "status": ("/status", ""),
        "first page": ("/jobs", _page()),
        "page in the middle": (_jobs(offset=half), _page(offset=half)),
        "failed ones (many)": (_jobs("state=failed"), _page("j.state > 12 AND j.state = 13")),
        "complete ones": (_jobs("state=complete"), _page("j.state = 12")),
        "ready ones": (_jobs("state=ready"), _page("j.state = 4")),
        "one group": (_jobs("@history"), _page(group)),
        "deep in a group": (_jobs("@history", offset=half - 1000), _page(group, offset=half - 1000)),
        "ready of a group": (_jobs("state=ready,@commands"), _page(f"{commands} AND j.state = 4")),
        "complete of a group by end": (
            _jobs("state=complete,@history", sort="-ended"), _page(f"{group} AND j.state = 12", "j.ended_at")),
        "of a host": (_jobs("host=history"), _page("a.host = 'history'", join=_NEWEST)),
        "of an unknown host": (_jobs("host=nowhere"), _page("a.host = 'nowhere'", join=_NEWEST)),
        "search, one match": (_jobs(search="sleep 900.0000123"), _page("j.cmd LIKE '%sleep 900.0000123%'")),
        "search, no match": (_jobs(search="nonesuch"), _page("j.cmd LIKE '%nonesuch%'")),
        "search, many, by end": (_jobs(search="echo", sort="-ended"), _page("j.cmd LIKE '%echo%'", "j.ended_at")),
        "failed, searched, by memory": (
            _jobs("state=failed", search="77", sort="-mem"),
            _page("j.state > 12 AND j.state = 13 AND j.cmd LIKE '%77%'", "a.peak_mem", _NEWEST)),
        "by submission": (_jobs(sort="-submitted"), _page(by="j.submitted_at")),
        "by start": (_jobs(sort="-started"), _page(by="a.started_at", join=_NEWEST)),
        "by end": (_jobs(sort="-ended"), _page(by="j.ended_at")),
        "by duration": (_jobs(sort="-wall"), _page(by="a.ended_at - a.started_at", join=_NEWEST)),
        "by CPU time": (_jobs(sort="-cpu"), _page(by="a.cpu_s", join=_NEWEST)),
        "by memory": (_jobs(sort="-mem"), _page(by="a.peak_mem", join=_NEWEST)),
        "by priority": (
            _jobs(sort="-priority"), _page(by="s.spec ->> 'priority'", join="JOIN specs AS s ON s.id = j.spec")),
    }  # fmt: skip


class Api:
    """One connection with a token."""

    def __init__(self, deployment: Deployment) -> None:
        link = urlsplit(deployment.json("manager", "ui", "--no-open")["url"])
        assert link.hostname is not None
        self.token = deployment.json("manager", "token", "add", f"bench-{time.monotonic_ns()}", "--role", "admin")[
            "token"
        ]
        self.connection = http.client.HTTPConnection(link.hostname, link.port, timeout=120)

    def get(self, path: str) -> Any:
        self.connection.request("GET", f"/api/v1{path}", headers={"Authorization": f"Bearer {self.token}"})
        answer = self.connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise SystemExit(f"{path}: {answer.status} {body[:300]!r}")
        return json.loads(body)

    def seconds(self, path: str) -> float:
        begun = time.perf_counter()
        self.get(path)
        return time.perf_counter() - begun


class Pings(threading.Thread):
    """A second client, which asks the manager itself for next to nothing, again and again."""

    def __init__(self, deployment: Deployment) -> None:
        super().__init__(daemon=True)
        self._client = rota.connect(deployment.home)
        self._worst = 0.0
        self._over = threading.Event()

    def run(self) -> None:
        while not self._over.wait(0.002):
            begun = time.perf_counter()
            self._client.limits()
            self._worst = max(self._worst, time.perf_counter() - begun)

    def end(self) -> None:
        self._over.set()
        self.join()
        self._client.close()

    def worst(self) -> float:
        """The longest wait since this was asked last."""
        time.sleep(0.01)
        worst, self._worst = self._worst, 0.0
        return worst


def _bare(database: sqlite3.Connection, sql: str) -> float:
    begun = time.perf_counter()
    database.execute(sql).fetchall()
    return time.perf_counter() - begun


def answers(finished: int, live: int) -> dict[str, dict[str, float]]:
    """What is asked → seconds: `first`, `then` (the median of some more), `lag` of other clients during the
    first, `cpu` of the manager for it, and `bare`."""
    with Deployment(settings=_HTTP) as deployment:
        deployment.start()
        deployment.run("manager", "stop")
        write_finished(deployment.home, finished, failed_every=_FAILED_EVERY)
        deployment.start()
        for part, more in (((0, live * 9 // 10), ()), ((live * 9 // 10, live), ("--priority", "5"))):
            commands = deployment.top / "commands"
            with commands.open("w") as file:
                file.writelines(f"sleep 900.{number:07d}\n" for number in range(*part))
            deployment.run("add", "--quiet", *more, str(commands), stdout=subprocess.DEVNULL)
        return ask_all(deployment, finished + live)


def ask_all(deployment: Deployment, jobs: int) -> dict[str, dict[str, float]]:
    api, pings, manager = Api(deployment), Pings(deployment), deployment.manager_pid()
    database = sqlite3.connect(f"file:{deployment.home / 'rota.db'}?mode=ro", uri=True)
    pings.start()
    pings.worst()
    time.sleep(2)
    found = {"nothing (healthz)": {"lag": pings.worst(), "first": api.seconds("/healthz")}}
    found["nothing (healthz)"]["then"] = statistics.median(api.seconds("/healthz") for _ in range(50))
    for name, (path, sql) in _asked(jobs).items():
        pings.worst()
        before = cpu_s(manager)
        one = found[name] = {"first": api.seconds(path), "cpu": cpu_s(manager) - before, "lag": pings.worst()}
        one["then"] = statistics.median(api.seconds(path) for _ in range(_AGAIN))
        if sql:
            one["bare"] = _bare(database, sql)
    database.close()
    pings.end()
    return found


class Reader(threading.Thread):
    """Reads an event stream, counts, and remembers when it was told of ends."""

    def __init__(self, api: Api) -> None:
        super().__init__(daemon=True)
        self.events = self.bytes = self.changes = 0
        self.ends: dict[int, float] = {}
        self._api = api

    def run(self) -> None:
        connection = self._api.connection
        connection.request("GET", "/api/v1/events", headers={"Authorization": f"Bearer {self._api.token}"})
        stream = connection.getresponse()
        while line := stream.readline():
            now = time.time()
            self.bytes += len(line)
            self.events += line.startswith(b"event:")
            if line.startswith(b"data:"):
                jobs = json.loads(line[5:]).get("jobs") or []
                self.changes += len(jobs)
                self.ends |= {
                    id: now for id, state, _attempt in jobs if state == "complete" and id not in self.ends
                }


def _steady(deployment: Deployment, word: str, rate: int, seconds: float) -> tuple[list[int], float, float]:
    """Add jobs at this rate; their ids, how many ended in a second, and CPU seconds of the manager for one."""
    ids: list[int] = []
    manager = deployment.manager_pid()
    before, begun = cpu_s(manager), time.monotonic()
    with rota.connect(deployment.home) as client:
        while (now := time.monotonic()) < begun + seconds:
            due = int((now - begun) * rate) - len(ids)
            if due > 0:
                ids += client.add([f"true {word} {len(ids) + n}" for n in range(due)]).added
            time.sleep(0.1)
        client.wait(*ids[:1], ids[-1], timeout=120)
        deployment.wait_for(
            lambda: (
                not sum(n for state, n in client.status().counts.items() if state not in ("complete", "failed"))
            ),
            seconds=120,
            what="the last job",
        )
    return ids, len(ids) / (time.monotonic() - begun), (cpu_s(manager) - before) / len(ids)


def events(rate: int, seconds: float, number: int) -> dict[str, float]:
    """Jobs at a steady rate, without and with readers."""
    with Deployment(settings=_HTTP) as deployment:
        deployment.start()
        deployment.run("run", "--", "true")
        _ids, _rate, without = _steady(deployment, "alone", rate, seconds / 2)
        listening = [Reader(Api(deployment)) for _ in range(number)]
        for reader in listening:
            reader.start()
        time.sleep(1)
        begun = time.monotonic()
        ids, ended, cpu = _steady(deployment, "heard", rate, seconds)
        time.sleep(1)
        took = time.monotonic() - begun
        api = Api(deployment)
        late: list[float] = []
        for low in range(ids[0], ids[-1] + 1, 1000):
            page = api.get(_jobs(f"{low}-{min(low + 999, ids[-1])}", limit=1000))
            at = {job["id"]: datetime.fromisoformat(job["ended_at"]).timestamp() for job in page["jobs"]}
            late += [each.ends[id] - at[id] for each in listening for id in at if id in each.ends]
        late.sort()
        return {
            "jobs_per_s": ended,
            "changes_per_s": sum(each.changes for each in listening) / number / took,
            "named": len(late) / number / len(ids),
            "median_s": statistics.median(late),
            "p99_s": late[len(late) * 99 // 100],
            "cpu_without_s": without,
            "cpu_with_s": cpu,
        }


def readers(jobs: int, number: int, rounds: int) -> dict[str, Any]:
    """CPU of the manager for a job at full speed, without and with readers."""
    found: dict[str, list[float]] = {"without": [], "with": []}
    with ExitStack() as stack:
        homes = {name: stack.enter_context(Deployment(settings=_HTTP)) for name in found}
        listening: list[Reader] = []
        for name, deployment in homes.items():
            deployment.start()
            deployment.run("run", "--", "true")
            if name == "with":
                listening = [Reader(Api(deployment)) for _ in range(number)]
                for reader in listening:
                    reader.start()
        for turn in range(rounds):
            for name, deployment in homes.items():
                directory = deployment.work / str(turn)
                directory.mkdir()
                commands = Path(deployment.top, "commands")
                commands.write_text("true\n" * jobs)
                _seconds, cpu = warm_round(deployment, commands, jobs, directory)
                found[name].append(cpu["manager"])
        return {
            **{name: statistics.median(values) for name, values in found.items()},
            "events": sum(reader.events for reader in listening),
            "bytes": sum(reader.bytes for reader in listening),
        }


def _ms(seconds: float | None) -> str:
    return "" if seconds is None else f"{1e3 * seconds:.1f}"


def print_answers(told: dict[str, dict[str, float]]) -> None:
    nothing = told["nothing (healthz)"]["then"]
    rows = [
        [name, *(_ms(one.get(column)) for column in ("first", "then", "lag", "cpu", "bare")),
         f"{one['first'] / one['bare']:.1f}" if "bare" in one else "", f"{one['then'] / nothing:.1f}"]
        for name, one in told.items()
    ]  # fmt: skip
    heading = ["answer", "first ms", "then ms", "worst lag", "CPU ms", "bare ms", "first × bare", "then × nothing"]
    print_table([heading, *rows])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--finished", type=int, default=900_000)
    parser.add_argument("--live", type=int, default=100_000)
    parser.add_argument("--rate", type=int, default=500, help="jobs a second in the second part")
    parser.add_argument("--seconds", type=float, default=20.0, help="how long they come")
    parser.add_argument("--jobs", type=int, default=3000, help="jobs run in each round of the third part")
    parser.add_argument("--readers", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=["answers", "events", "readers"])
    options = parser.parse_args()
    result: dict[str, Any] = {}
    if options.only in (None, "answers"):
        result["answers"] = answers(options.finished, options.live)
        print_answers(result["answers"])
    if options.only in (None, "events"):
        told = result["events"] = events(options.rate, options.seconds, options.readers)
        ratio = told["cpu_with_s"] / told["cpu_without_s"]
        print(f"\n{told['jobs_per_s']:.0f} jobs/s ended; each of {options.readers} readers was told of"
              f" {told['changes_per_s']:.0f} changes/s, and of {100 * told['named']:.0f} % of the ends by name,"
              f" after {_ms(told['median_s'])} ms (median), {_ms(told['p99_s'])} ms (99 %);"
              f" manager, µs a job: {1e6 * told['cpu_without_s']:.0f} without,"
              f" {1e6 * told['cpu_with_s']:.0f} with ({ratio:.2f} times)")  # fmt: skip
    if options.only in (None, "readers"):
        cost = result["readers"] = readers(options.jobs, options.readers, options.rounds)
        ratio = cost["with"] / cost["without"]
        print(f"\nmanager at full speed, µs a job: {cost['without']:.0f} without, {cost['with']:.0f} with"
              f" {options.readers} readers ({ratio:.2f} times); they got {cost['events']:,} events,"
              f" {cost['bytes']:,} bytes")  # fmt: skip
    print(f"\nwritten to {save('api', result)}")


if __name__ == "__main__":
    main()
