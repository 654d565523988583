"""What a first-time user does by hand, and sees: where the dashboard is, what changed, and what was wrong."""

from __future__ import annotations

from typing import Any

from tests.api.client import Events
from tests.deployment import wait_until


def _named(events: Events) -> dict[int, str]:
    """Every job that was told to have changed, with its last state."""
    found: dict[int, str] = {}
    for name, _id, data in list(events.events):
        for job in data["jobs"] if name == "change" else ():
            found[job[0]] = job[1]
    return found


def _changes(events: Events) -> list[Any]:
    return [data for name, _id, data in list(events.events) if name == "change"]


def test_the_card_of_the_manager_tells_where_the_dashboard_is(site):
    lines = site.rota.ok("manager", "status").splitlines()
    assert [line.split() for line in lines if line.startswith("dashboard")] == [["dashboard", site.url]]


def test_the_stream_names_jobs_that_are_added_and_modified_though_they_only_wait(site):
    (first,) = site.add("sleep 600")
    events = site.user.events()
    try:
        wait_until(lambda: events.events, "the stream is open")
        (job,) = site.add("true", after=[first], name="waits")
        wait_until(lambda: _named(events).get(job) == "dependent", "the new job is named")
        before = len(_changes(events))
        answer = site.user.ask("PATCH", "/api/v1/jobs", {"select": [str(job)], "change": {"priority": 77}})
        assert answer.json["changed"] == 1
        wait_until(
            lambda: any(job in [each[0] for each in data["jobs"]] for data in _changes(events)[before:]),
            "the modified job is named",
        )
        for change, status in (
            ({"cmd": ["true", "2"], "after": [first]}, 200),
            ({"after": [job]}, 400),
            ({"cwd": "x"}, 400),
        ):
            answer = site.user.ask("PATCH", "/api/v1/jobs", {"select": [str(job)], "change": change})
            assert answer.status == status, answer.json
        assert site.user.get(f"/api/v1/jobs/{job}").json["cmd"] == ["true", "2"]
        named = {"action": "remove", "select": [str(job)]}
        refused = site.user.post("/api/v1/jobs/actions", named)
        assert (refused.status, "rota remove --waiting" in refused.json["error"]["hint"]) == (400, True)
        for kind in ({"select": ["all,state=dependent"]}, {"lenient": True}):
            kept = site.user.post("/api/v1/jobs/actions", {**named, **kind}).json
            assert (kept["changed"], kept["kept"], kept["jobs"]) == (0, 1, [])
        removed = site.user.post("/api/v1/jobs/actions", {**named, "waiting": True}).json
        assert (removed["changed"], removed["kept"]) == (1, 0)
        wait_until(lambda: _named(events).get(job) == "removed", "the removed job is named")
    finally:
        events.close()
        site.user.post("/api/v1/jobs/actions", {"action": "kill", "select": [str(first)]})


def test_a_wrong_sort_key_is_answered_with_the_right_ones(site):
    refused = site.user.get("/api/v1/jobs?sort=-started_at")
    assert refused.status == 400
    assert "started, -started" in refused.json["error"]["hint"]


def test_a_walltime_in_a_request_is_the_time_that_was_asked_for(site):
    (job,) = site.add("true", request="core=1,walltime=5m")
    view = site.user.get(f"/api/v1/jobs/{job}").json
    assert (view["walltime_s"], view["asked"]["time_s"], view["size"]["time_s"]) == (300.0, 300.0, 300.0)


def test_running_jobs_are_suspended_resumed_signalled_and_get_another_walltime(site):
    (job,) = site.add("trap : USR1; while :; do sleep 0.05; done", walltime="10m", retries=0)

    def state() -> str:
        return str(site.user.get(f"/api/v1/jobs/{job}").json["state"])

    def act(action: str, **more: Any) -> int:
        body = {"action": action, "select": [str(job)], **more}
        return int(site.user.post("/api/v1/jobs/actions", body).json["changed"])

    wait_until(lambda: state() == "running", "it runs")
    try:
        answer = site.user.post(f"/api/v1/jobs/{job}/walltime", {"change": "+5m"})
        assert answer.json == {"id": job, "walltime_s": 900.0, "pending_s": 0.0}
        assert act("signal", signal="USR1") == 1
        assert act("suspend", keep=True) == 1
        wait_until(lambda: state() == "suspended", "it is suspended")
        assert act("resume") == 1
        wait_until(lambda: state() == "running", "it runs again")
        refused = site.user.post("/api/v1/jobs/actions", {"action": "signal", "select": [str(job)], "signal": "X"})
        assert refused.status == 400
    finally:
        act("kill")
        wait_until(lambda: state() == "cancelled", "it is gone")


def test_what_would_be_killed_is_told_before_it_is(site):
    ended = site.add("true", "echo done")
    waits, held = site.add("sleep 601", "sleep 602", group="counted")
    wait_until(lambda: all(site.rota.state(job) == "complete" for job in ended), "two have ended")
    site.user.post("/api/v1/jobs/actions", {"action": "hold", "select": [str(held)]})
    everything = [str(job) for job in (*ended, waits, held)]

    def told(action: str) -> Any:
        body = {"action": action, "select": everything, "check": True, "lenient": action == "remove"}
        return site.user.post("/api/v1/jobs/actions", body).json

    assert (told("kill")["jobs"], told("kill")["unchanged"]) == ([waits, held], 2)
    assert told("remove")["jobs"] == ended
    assert site.rota.state(held) in ("held", "scheduled", "starting", "running")  # it may begin before it is held
    killed = site.user.post("/api/v1/jobs/actions", {"action": "kill", "select": everything}).json
    assert killed["jobs"] == [waits, held]


def test_an_element_of_an_array_is_found_by_its_place_in_it(site):
    with site.rota.client() as client:
        first, *_rest = client.add(["echo element"], array="3-5", cwd=str(site.rota.work)).added
    for path in ("", "/why", "/graph", "/output"):
        assert site.user.get(f"/api/v1/jobs/{first}_4{path}").status in (200, 404 if path == "/output" else 200)
    shown = site.user.get(f"/api/v1/jobs/{first}_4").json
    assert (shown["id"], shown["array_id"], shown["array_index"]) == (first + 1, first, 4)
    missing = site.user.get(f"/api/v1/jobs/{first}_9")
    assert (missing.status, missing.json["error"]["message"]) == (404, f"there is no job {first}_9")
    assert site.user.get("/api/v1/jobs/4_").status == 400
