"""Labs of single machines, and what became of their jobs and machines in a simulation."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import msgspec

from rota.sim.site_run import simulate
from tests.sim.sites import Fields, Result


def machines(names: str, **values: str) -> list[Fields]:
    """One resource on each of these machines, numbered from 1; `lab="xxy"`: a property, one letter each."""
    rows: list[Fields] = []
    for number, name in enumerate(names):
        own = {key: letters[number] for key, letters in values.items() if letters[number] != "-"}
        rows.append({"ids": str(number + 1), "host": name} | own)
    return rows


ABC = machines("ABC")


def need(*hosts: str, run: float = 10, **fields: Any) -> Fields:
    """A job for one of these machines, or for any."""
    where = " or ".join(f"host='{host}'" for host in hosts)
    return {"request": "nodes=1,walltime=1000s", "run": run} | ({"where": where} if hosts else {}) | fields


class Lab(Result):
    """What became of jobs and machines."""

    usage: dict[str, list[list[Any]]]
    refused: list[Fields]

    def host(self, id: int) -> Any:
        return self[id]["host"]

    def times(self, id: int) -> tuple[Any, Any]:
        return self[id]["start"], self[id]["end"]

    def used(self, host: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self.usage[host]]


def lab(resources: list[Fields], *jobs: Fields, policy: str | None = None, **rest: Any) -> Lab:
    """Simulate these jobs, numbered from 1 unless they say otherwise. All results must add up."""
    numbered = [{"id": number} | job for number, job in enumerate(jobs, 1)]
    document = msgspec.json.encode({"resources": resources, "jobs": numbered} | rest)
    result: Any = msgspec.json.decode(msgspec.json.encode(simulate(document, plan_only=False, policy=policy)))
    found = Lab({job["id"]: job for job in result["jobs"]})
    found.usage, found.refused = result["usage"], result.get("refused", [])
    _check(found)
    return found


def _check(found: Lab) -> None:
    """Rows have no gaps, no two jobs have one machine at a time, and the parts of a job's time add up."""
    ends = [job["end"] + job["hold_s"] for job in found.values() if job["end"] is not None]
    for rows in found.usage.values():
        assert not rows or (rows[0][2] == 0 and (not ends or rows[-1][3] == max(ends)))
        for one, other in pairwise(rows):
            assert one[3] == other[2]
            assert one[:2] != other[:2]
    for job in found.values():
        if job["start"] is not None and job["end"] is not None:
            executed = job["end"] - job["submit"] - job["wait_s"] - job["provision_s"]
            assert executed >= 0
            assert job["wait_s"] >= 0
