"""Sessions of pipelines and dependency graphs over HTTP: what is shown, to whom, and what can be done."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rota.core.pipelines.definition import Definition
from tests.api.conftest import Site
from tests.core.pipelines.lab import pipeline, stage
from tests.deployment import wait_until

#: Elements that wait for a file, so that a test decides when they end.
WAITS = "while ! test -e {name}.go; do sleep 0.05; done"
STAGES = [stage("fetch", run="true"), stage("build", run=WAITS, needs_dependencies=True, imperative=True)]


@pytest.fixture
def started(site: Site) -> Callable[[str, Definition], str]:
    """Starts a pipeline; the address of its session."""

    def start(file: str, definition: Definition) -> str:
        with site.rota.client() as client:
            begun = client.start_pipeline(definition, file=f"/{file}", cwd=str(site.rota.work))
        return f"/api/v1/pipelines/{begun.session}"

    return start


def _until(site: Site, path: str, holds: Callable[[Any], bool], what: str) -> Any:
    wait_until(lambda: holds(site.admin.get(path).json), what)
    return site.admin.get(path).json


def _sums(view: Any, name: str) -> dict[str, int]:
    (found,) = [each["sums"] for each in view["stages"] if each["name"] == name]
    return {word: number for word, number in found.items() if number}


def test_a_session_is_shown_by_stages_with_what_runs_fails_and_is_blocked(site, started):
    fails = stage("build", run="test {name} != base", needs_dependencies=True)
    path = started(
        "fails.yaml", pipeline([stage("fetch", run="true"), fails], {"base": [], "app": ["base"], "x": []})
    )
    view = _until(site, path, lambda view: view["state"] == "ended", "it is over")
    assert (view["file"], view["total"]) == ("/fails.yaml", 3)
    assert _sums(view, "build") == {"processed": 1, "failed": 1, "blocked": 1}
    assert {word: n for word, n in view["outcomes"].items() if n} == {"ok": 1, "failed": 1, "blocked": 1}
    (failure,) = view["failures"]
    assert (failure["element"], failure["stage"], failure["blocks"], failure["blocked"]) == (
        "base", "build", 1, ["app"],
    )  # fmt: skip
    assert [each["stretches"] for each in view["stages"]] == ["ooo", "fbo"]
    job = site.admin.get(f"/api/v1/jobs/{failure['job']}").json
    assert (job["state"], job["cmd"]) == ("failed", "test base != base")
    (brief,) = [each for each in site.admin.get("/api/v1/pipelines").json if each["file"] == "/fails.yaml"]
    assert (brief["state"], brief["left"], brief["sums"]["failed"]) == ("ended", 0, 1)


def test_elements_are_listed_by_state_stage_and_name(site, started):
    path = started("list.yaml", pipeline(STAGES, {"base": [], "app": ["base"], "lib": ["base"]}))
    _until(site, path, lambda view: _sums(view, "build").get("running") == 1, "it builds")
    _until(site, path, lambda view: _sums(view, "fetch") == {"processed": 3}, "all are fetched")

    def listed(query: str) -> list[str]:
        answer = site.admin.get(f"{path}/elements?{query}")
        assert answer.status == 200, answer
        return [each["name"] for each in answer.json["elements"]]

    assert listed("") == ["base", "app", "lib"]
    assert listed("offset=1&limit=1") == ["app"]
    assert listed("state=running") == ["base"]
    assert listed("state=waiting&stage=build") == ["app", "lib"]
    assert listed("state=ok&stage=fetch") == ["base", "app", "lib"]
    assert listed("stage=fetch") == []
    assert listed("search=AP") == ["app"]
    (app,) = site.admin.get(f"{path}/elements?search=app").json["elements"]
    assert (app["at"], app["statuses"], app["waits_for"]) == ("build", "op", ["base"])
    graph = site.admin.get(f"{path}/graph").json
    assert [(each["name"], each["layer"]) for each in graph["nodes"]] == [("base", 0), ("app", 1), ("lib", 1)]
    assert graph["edges"] == [[0, 1, "ok"], [0, 2, "ok"]]
    assert site.admin.post(f"{path}/actions", {"action": "terminate"}).status == 200


def test_a_session_is_paused_resumed_and_terminated(site, started):
    path = started("acts.yaml", pipeline(STAGES, {"base": []}))
    _until(site, path, lambda view: view["running_total"] == 1, "it builds")
    with site.admin.events() as stream:
        stream.wait(lambda events: events, "the stream has begun")
        assert site.admin.post(f"{path}/actions", {"action": "pause"}).json["changed"] == 1
        stream.wait(lambda _events: any("pipelines" in each["what"] for each in stream.changes), "it is told")
    assert site.admin.get(path).json["state"] == "paused"
    assert site.admin.post(f"{path}/actions", {"action": "resume"}).status == 200
    assert site.admin.get(path).json["state"] == "running"
    assert site.admin.post(f"{path}/actions", {"action": "terminate"}).status == 200
    view = _until(site, path, lambda view: view["state"] == "ended", "it has ended")
    assert _sums(view, "build") == {"terminated": 1}


def test_one_element_of_those_that_failed_is_retried(site, started):
    tries = stage("build", run="test -e {name}.there")
    path = started("again.yaml", pipeline([tries], {"one": [], "two": []}))
    _until(site, path, lambda view: view["state"] == "ended", "it is over")
    for name in ("one", "two"):
        (site.rota.work / f"{name}.there").touch()
    assert site.admin.post(f"{path}/actions", {"action": "retry", "elements": ["one"]}).json["changed"] == 1
    view = _until(
        site, path, lambda view: view["outcomes"]["ok"] == 1 and view["state"] == "ended", "it is ok now"
    )
    assert view["outcomes"]["failed"] == 1


def test_others_see_no_session_and_act_on_none(site, started):
    with site.rota.client() as client:
        bob = site.nobody.as_(client.add_token("of-bob", "user", user="bob").token)
    path = started("private.yaml", pipeline(STAGES, {"base": []}))
    mine = site.admin.get("/api/v1/pipelines").json
    assert "/private.yaml" in [each["file"] for each in mine]
    assert bob.get("/api/v1/pipelines").json == []
    for below in ("", "/elements", "/graph"):
        assert bob.get(path + below).status == 404
        assert site.nobody.get(path + below).status == 401
    assert bob.post(f"{path}/actions", {"action": "terminate"}).status == 404
    assert site.admin.get(path).json["state"] == "running"
    site.admin.post(f"{path}/actions", {"action": "terminate"})


@pytest.mark.parametrize("query", ["state=odd", "limit=0", "limit=1001", "offset=-1", "stage=nowhere", "x=1"])
def test_a_wrong_question_about_elements_is_refused(site, started, query):
    path = started("wrong.yaml", pipeline([stage("build", run="true")], {"one": []}))
    assert site.admin.get(f"{path}/elements?{query}").status == 400


def test_jobs_of_a_group_have_layers_a_critical_path_and_an_end(site):
    (first,) = site.add("sleep 1000", name="first", time="2m", group="diamond")
    middle = site.add("true", "false", after=[str(first)], time="1m", group="diamond")
    (long,) = site.add("true", name="long", after=[str(first)], time="1h", group="diamond")
    (last,) = site.add("true", name="last", after=[str(id) for id in (*middle, long)], time="1m", group="diamond")
    site.add("true", after=[str(last)], group="elsewhere")
    view = site.user.get("/api/v1/layers?select=@diamond").json
    assert view["total"] == 5
    assert [sum(each["counts"].values()) for each in view["layers"]] == [1, 3, 1]
    assert [each["name"] for each in view["path"]] == ["first", "long", "last"]
    assert 3600 + 60 < view["path_s"] <= 3600 + 60 + 120
    assert view["expected_end"] is not None
    assert (len(view["edges"]), view["outside"], view["unknown"]) == (6, 0, 0)
    assert site.user.get("/api/v1/layers?select=@elsewhere").json["outside"] == 1
    site.rota.ok("kill", "@diamond", "@elsewhere")
    path = "/api/v1/layers?select=@diamond"
    over = _until(site, path, lambda view: view["counts"] == {"cancelled": 5}, "all are over")
    assert over["path_s"] is None


def test_a_dependency_group_stands_between_its_members_and_those_who_wait_for_it(site):
    site.add("sleep 1000", "sleep 1001", dep_groups=["made"], group="grouped")
    site.add("true", after=["@made"], group="grouped")
    view = site.user.get("/api/v1/layers?select=@grouped").json
    assert [each["state"] for each in view["nodes"] if each["id"] is None] == ["group"]
    assert len(view["edges"]) == 3
    assert view["total"] == 3
    site.rota.ok("kill", "@grouped")


def test_a_selector_that_is_not_understood_is_refused(site):
    assert site.user.get("/api/v1/layers?select=odd!").status == 400
    assert site.user.get("/api/v1/layers?select=999999").status == 404
