"""Small sites, and how to put a trace through the simulation and read what became of each job."""

from __future__ import annotations

from typing import Any

import msgspec

from rota.sim.site_run import simulate

Fields = dict[str, Any]

#: Resources 1-32 in four nodes of eight.
P32: list[Fields] = [{"ids": f"{8 * n + 1}-{8 * n + 8}", "host": f"n{n + 1}"} for n in range(4)]
#: Five resources on three hosts.
P5: list[Fields] = [{"ids": "1-2", "host": "h0"}, {"ids": "3-4", "host": "h1"}, {"ids": "5", "host": "h2"}]


class Result(dict[int, Fields]):
    """What became of the jobs, by id."""

    def starts(self) -> dict[int, float | None]:
        return {id: job["start"] for id, job in self.items()}

    def code(self, id: int) -> str | None:
        reason = self[id]["reason"]
        return None if reason is None else reason["code"]

    def place(self, id: int) -> tuple[float | None, str | None]:
        return self[id]["start"], self[id]["resources"]


def run(
    resources: list[Fields], *jobs: Fields, plan_only: bool = False, policy: str | None = None, **rest: Any
) -> Result:
    """Simulate these jobs, numbered from 1 unless they say otherwise."""
    numbered = [{"id": number} | job for number, job in enumerate(jobs, 1)]
    document = msgspec.json.encode({"resources": resources, "jobs": numbered} | rest)
    result = simulate(document, plan_only=plan_only, policy=policy)
    return Result({job["id"]: job for job in result["jobs"]})


def plan(resources: list[Fields], *jobs: Fields, **rest: Any) -> Result:
    """The plan at time 0."""
    return run(resources, *jobs, plan_only=True, **rest)


def job(request: str | list[str], **fields: Any) -> Fields:
    return {"request": request} | fields
