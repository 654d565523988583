"""Adding jobs by HTTP keeps nobody else waiting."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest.mock import Mock

from rota.api.routes import jobs
from rota.client import submission
from rota.client.session import Added


def test_what_takes_long_is_done_beside_the_loop(monkeypatch):
    where: list[int] = []
    prepare = submission.prepare

    def noted(*args: Any, **options: Any) -> Any:
        def batches() -> Any:
            where.append(threading.get_ident())
            yield from made

        where.append(threading.get_ident())
        made, options_for = prepare(*args, **options)
        return batches(), options_for

    monkeypatch.setattr(jobs.submission, "prepare", noted)
    sent: list[Any] = []

    class _Client:
        async def submit(self, name: str, batches: Any, _options: Any) -> Added:
            sent.extend(cmd for batch in batches for cmd in batch.cmds)
            return Added(name, [1, 2], [], [], [], [])

    @contextlib.asynccontextmanager
    async def client(_token: str) -> Any:
        yield _Client()

    request = Mock()
    request.body = jobs.NewJobs(jobs=["a", {"cmd": "b"}], defaults={"cwd": "/"})
    request.services.connections.client = client
    assert asyncio.run(jobs.add_jobs(request)).added == [1, 2]
    assert sent == ["a", "b"]
    assert len(where) == 2
    assert threading.get_ident() not in where


def test_a_submission_that_is_sent_several_times_at_once_is_added_once_and_all_are_answered(site):
    body = {
        "submission": "at-once",
        "jobs": [f"true {number}" for number in range(2000)],
        "defaults": {"cwd": str(site.rota.work), "group": "at-once"},
    }
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda _: site.user.post("/api/v1/jobs", body), range(6)))
    assert {each.status for each in answers} <= {201, 400}
    assert 201 in {each.status for each in answers}
    assert site.user.get("/api/v1/jobs?select=@at-once&limit=1").json["total"] == 2000
    assert site.user.post("/api/v1/jobs", body).status == 201


def test_a_refusal_says_which_entry_and_which_field(site):
    where = {"cwd": str(site.rota.work)}
    by_gateway = site.user.post("/api/v1/jobs", {"jobs": ["true", {"cmd": "true", "mem": 5}], "defaults": where})
    error = by_gateway.json["error"]
    assert (by_gateway.status, error["field"], error["entry"], error["line"]) == (400, "mem", 2, None)
    assert error["message"] == "entry 2: field 'mem': '5' has no unit"
    by_manager = site.user.post(
        "/api/v1/jobs", {"jobs": ["true", {"cmd": "true", "after": [10**9]}], "defaults": where}
    )
    error = by_manager.json["error"]
    assert (by_manager.status, error["field"], error["line"]) == (404, "after", 2)
