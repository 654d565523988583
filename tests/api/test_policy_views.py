"""Queues and rules in the API, with those that are built in, in their order; quotas with what is held of them."""

from __future__ import annotations

from typing import Any

import msgspec

from rota.api.routes.policy_views import queues_view, rules_view
from rota.core.admission.rule_records import BUILT_IN_RULES, REMOVED
from rota.wire.views import SiteView
from tests.api.conftest import Site
from tests.deployment import wait_until


def records(*records: tuple[str, str, Any]) -> SiteView:
    return SiteView(
        version=7,
        records=[(kind, name, msgspec.json.encode(value).decode()) for kind, name, value in records],
        hosts={},
    )


def test_a_site_without_records_has_the_built_in_queues_the_first_planned_first() -> None:
    view = queues_view(records())
    assert view.version == 7
    assert [(each.name, each.built_in, each.record) for each in view.queues] == [
        ("admin", True, None),
        ("default", True, None),
        ("besteffort", True, None),
    ]


def test_a_queue_has_every_value_that_holds_and_what_was_written_down() -> None:
    view = queues_view(records(("queue", "night", {"priority": 5, "shares": {"bob": 0.5}})))
    night = view.queues[1]
    assert (night.name, night.priority, night.order, night.built_in) == ("night", 5, "fifo", False)
    assert night.record == {"priority": 5, "shares": {"bob": 0.5}}


def test_rules_are_in_the_order_in_which_they_are_tried() -> None:
    view = rules_view(
        records(("rule", "short", {"rank": 150, "match": {"user": "bob"}, "cap": {"walltime": "12h"}}))
    )
    assert [each.name for each in view.rules[:3]] == ["default-queue", "short", "nodes-walltime"]
    assert [each.position for each in view.rules] == list(range(1, len(view.rules) + 1))
    short = view.rules[1]
    assert (short.cap, short.match, short.built_in, short.replaces) == (
        {"walltime": "12h"},
        {"user": "bob"},
        False,
        False,
    )


def test_a_rule_of_the_site_stands_in_for_the_built_in_one_of_its_name() -> None:
    view = rules_view(records(("rule", "no-root", {"rank": 1, "reject": "not here"})))
    assert (view.rules[0].name, view.rules[0].reject, view.rules[0].replaces) == ("no-root", "not here", True)
    assert len(view.rules) == len(BUILT_IN_RULES)


def test_built_in_rules_that_a_site_does_not_want_are_named() -> None:
    view = rules_view(records(("rule", "reservations", REMOVED)))
    assert view.removed == ["reservations"]
    assert "reservations" not in [each.name for each in view.rules]


def test_a_quota_is_listed_with_what_is_held_of_it(site: Site) -> None:
    assert site.user.get("/api/v1/quotas").json["use"] == {}
    limits = {"*,/,*,*": ["ALL", 30], "*,*,*,*": [-1, 40, 100], "night: *,*,*,/": [1]}
    for name, most in limits.items():
        of_set, _colon, rule = name.rpartition(": ")
        value = {"rule": rule, "limits": most, **({"set": of_set} if of_set else {})}
        put = site.admin.ask("PUT", f"/api/v1/quotas/{name.replace('/', '%2F').replace(' ', '%20')}", value)
        assert put.status == 200, put
    ids = site.add("sleep 1000", "sleep 1001", request="core=1,walltime=30m", project="genome")
    try:
        wait_until(lambda: {site.rota.states()[id] for id in ids} == {"running"}, "they run")
        found = site.user.get("/api/v1/quotas").json
        assert {name: each["limits"] for name, each in found["records"].items()} == limits
        each, together, night = (found["use"][name] for name in limits)
        assert each["holders"] == [
            {"who": {"project": "genome"}, "resources": 2, "jobs": 2, "resource_hours": None}
        ]
        assert (each["resources"] >= 2, each["jobs"], each["resource_hours"]) == (True, 30, None)
        assert together["holders"] == [{"who": {}, "resources": 2, "jobs": 2, "resource_hours": 1.0}]
        assert (night["applies"], night["holders"]) == (False, [])
    finally:
        site.user.post("/api/v1/jobs/actions", {"action": "kill", "select": [str(id) for id in ids]})


def test_rules_are_tried_on_a_job_that_is_not_submitted(site):
    rules = {
        "short": {"match": {"queue": "default"}, "cap": {"walltime": "1h"}, "rank": 1000},
        "never": {"match": {"project": "p"}, "reject": "not today", "rank": 1001},
    }
    for name, rule in rules.items():
        assert site.admin.ask("PUT", f"/api/v1/rules/{name}", rule).status == 200
    before = site.user.get("/api/v1/jobs").json["total"]

    tried = site.user.post("/api/v1/rules/test", {"job": {"walltime": "5h"}, "user": "bob"}).json
    assert "short" in tried["matched"]
    assert (tried["admitted"], tried["job"]["user"], tried["job"]["walltime_s"]) == (True, "bob", 3600)
    assert ("short", "cap", "walltime") in [
        (each["rule"], each["action"], each["field"]) for each in tried["changes"]
    ]
    refused = site.user.post("/api/v1/rules/test", {"job": {"project": "p"}}).json
    assert (refused["admitted"], refused["rejected_by"], refused["message"]) == (False, "never", "not today")
    wrong = site.user.post("/api/v1/rules/test", {"job": {"walltime": "soon"}})
    assert (wrong.status, "walltime" in wrong.json["error"]["message"]) == (400, True)

    reserve = {"at": "now+1h", "request": "core=1,walltime=1h", "priority": 5}
    for already, admitted in ((1, True), (2, False)):
        asked = {"job": reserve, "reservations": already}
        assert site.user.post("/api/v1/rules/test", asked).json["admitted"] is admitted, "two may wait"
    assert site.user.get("/api/v1/jobs").json["total"] == before
    for name in rules:
        assert site.admin.ask("DELETE", f"/api/v1/rules/{name}").status == 204


def test_a_queue_is_closed_and_opened_by_administrators_only(site: Site) -> None:
    assert site.user.post("/api/v1/queues/besteffort/close", {"reason": "new disks"}).status == 403
    closed = site.admin.post("/api/v1/queues/besteffort/close", {"reason": "new disks"})
    assert closed.status == 200
    (queue,) = [each for each in site.user.get("/api/v1/queues").json["queues"] if each["name"] == "besteffort"]
    assert (queue["closed"], queue["closed_reason"]) == (True, "new disks")
    refused = site.user.post("/api/v1/jobs", {"jobs": [{"cmd": "true", "cwd": "/", "queue": "besteffort"}]})
    assert refused.status in (400, 422)
    assert "queue 'besteffort' is closed: new disks" in refused.json["error"]["message"]
    assert site.admin.post("/api/v1/queues/nowhere/open").status == 404
    assert site.admin.post("/api/v1/queues/besteffort/open").status == 200
    again = site.admin.post("/api/v1/queues/besteffort/open")
    assert again.json["version"] == site.user.get("/api/v1/queues").json["version"], "nothing to change"
