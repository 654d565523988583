"""One bad job never stops the rest: a thousand jobs of which every tenth can never run."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sim.sites import P32, Result, job, plan, run

JOBS = 1000
#: Every tenth job is one of these, in turn, each with the reason it must be given.
BAD: list[tuple[dict[str, Any], str]] = [
    (job("nodes=5,walltime=60s", user="ann"), "unsatisfiable"),
    (job("nodes=1,walltime=60s", user="ann", type=["inner=nowhere"]), "container"),
    (job("nodes=3,walltime=60s", user="greedy"), "quota"),
]
QUOTAS = {"*,*,*,greedy": [16, -1, -1]}


def _jobs(bad: bool) -> list[dict[str, Any]]:
    jobs = []
    for number in range(JOBS):
        if number % 10 == 9:
            if bad:
                jobs.append(BAD[number // 10 % 3][0] | {"id": number})
        else:
            cores, length = 1 + number * 7 % 32, 10 + number * 13 % 300
            jobs.append(job(f"core={cores},walltime={length}s", user=f"u{number % 5}", id=number))
    return jobs


@pytest.fixture(scope="module", params=[plan, run], ids=["planned", "run"])
def with_and_without(request: pytest.FixtureRequest) -> tuple[Result, Result]:
    simulated = request.param
    return simulated(P32, *_jobs(True), quotas=QUOTAS), simulated(P32, *_jobs(False), quotas=QUOTAS)


def test_every_good_job_is_planned_as_if_the_bad_ones_were_not_there(
    with_and_without: tuple[Result, Result],
) -> None:
    mixed, good = with_and_without
    assert len(good) == 900
    assert all(job["start"] is not None and job["reason"] is None for job in good.values())
    assert {id: mixed[id] for id in good} == good


def test_every_bad_job_keeps_its_own_reason(with_and_without: tuple[Result, Result]) -> None:
    mixed, good = with_and_without
    bad = sorted(mixed.keys() - good.keys())
    assert len(bad) == 100
    for id in bad:
        assert mixed.place(id) == (None, None)
        assert mixed[id]["state"] == "ready"
        assert mixed.code(id) == BAD[id // 10 % 3][1]
        assert mixed[id]["reason"]["message"]
