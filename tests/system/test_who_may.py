"""What users who are no administrators may not ask for, whichever way they ask."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.api.client import Http
from tests.deployment import Deployment, deployment
from tests.system.test_users_apart import Colleague


class Site:
    """A deployment with users, an administrator, and somebody with a token of the owner's."""

    def __init__(self, rota: Deployment) -> None:
        self.rota = rota
        rota.start()
        rota.ok("limit", "never:0")
        self.ann = Colleague(rota, "ann", user="nobody")
        self.bob = Colleague(rota, "bob", user="daemon")
        self.admin = Colleague(rota, "boss", role="admin", user="boss")
        self.script = Colleague(rota, "script")
        with rota.client() as client:
            url = urlsplit(client.ui_link().url)
        self.http = Http(url.hostname or "", url.port or 0)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with deployment(tmp_path_factory.mktemp("site"), grace="1s", http="on") as made:
        yield Site(made)


#: No job is like another one.
NUMBERS = itertools.count()
#: How somebody adds a job that waits: the status of a command, and what was said.
Way = Callable[[Site, Colleague, dict[str, Any]], tuple[int, str]]


def by_command(site: Site, who: Colleague, fields: dict[str, Any]) -> tuple[int, str]:
    words = [word for name, value in fields.items() if name != "limits" for word in (f"--{name}", str(value))]
    words += [word for limit in fields.get("limits", ()) for word in ("--limit", limit)]
    done = who.rota("add", *words, "--limit", "never", "--", "true")
    return done.returncode, done.stdout + done.stderr


def by_file(site: Site, who: Colleague, fields: dict[str, Any]) -> tuple[int, str]:
    line = {"cmd": f"echo {next(NUMBERS)}", **fields, "limits": [*fields.get("limits", ()), "never"]}
    done = who.rota("add", "-", input=json.dumps(line) + "\n")
    return done.returncode, done.stdout + done.stderr


def by_http(site: Site, who: Colleague, fields: dict[str, Any]) -> tuple[int, str]:
    job = {"cmd": f"echo {next(NUMBERS)}", "cwd": "/", **fields, "limits": [*fields.get("limits", ()), "never"]}
    answer = site.http.as_(who.token).post("/api/v1/jobs", {"jobs": [job]})
    return {200: 0, 201: 0, 403: 5}.get(answer.status, answer.status), answer.body.decode()


def by_plan(site: Site, who: Colleague, fields: dict[str, Any]) -> tuple[int, str]:
    words = [word for name, value in fields.items() if name != "limits" for word in (f"--{name}", str(value))]
    words += [word for limit in fields.get("limits", ()) for word in ("--limit", limit)]
    done = who.rota("plan", *words)
    return done.returncode, done.stdout + done.stderr


def by_modify(site: Site, who: Colleague, fields: dict[str, Any]) -> tuple[int, str]:
    id = who.add("--limit", "never", "--", "true")
    words = [word for name, value in fields.items() if name != "limits" for word in (f"--{name}", str(value))]
    words += [word for limit in fields.get("limits", ()) for word in ("--limit", limit)]
    done = who.rota("modify", str(id), *words)
    return done.returncode, done.stdout + done.stderr


WAYS = (by_command, by_file, by_http, by_plan, by_modify)


@pytest.mark.parametrize("way", WAYS)
def test_users_may_not_name_the_queue_of_administrators(site: Site, way: Way) -> None:
    status, said = way(site, site.ann, {"queue": "admin"})
    assert (status, "only administrators may use queue 'admin'" in said) == (5, True), said
    for who in (site.admin, site.script):
        assert way(site, who, {"queue": "admin"})[0] == 0
    assert way(site, site.ann, {"queue": "default"})[0] == 0


@pytest.mark.parametrize("way", WAYS)
def test_users_may_not_take_alone_what_is_not_theirs(site: Site, way: Way) -> None:
    site.rota.ok("limit", "licence:5")
    status, said = way(site, site.ann, {"limits": ["licence!"]})
    assert (status, "limit 'licence' cannot be taken alone by nobody: it is the site's" in said) == (5, True), said
    assert way(site, site.admin, {"limits": ["licence!"]})[0] == 0
    assert way(site, site.ann, {"limits": ["licence"]})[0] == 0, "beside others they may"


def test_a_limit_that_jobs_declared_is_the_users_whose_jobs_did(site: Site) -> None:
    site.ann.add("--limit", "anns:3", "--limit", "never", "--", "true")
    (limit,) = [each for each in site.rota.json("limit")["limits"] if each["name"] == "anns"]
    assert limit["owner"] == "nobody"
    site.bob.refused("add", "--limit", "anns!", "--", "true", says="jobs of nobody declared it")
    site.bob.refused("add", "--limit", "anns:1", "--", "true", says="only theirs may change that")
    assert site.bob.rota("add", "--limit", "anns:3", "--limit", "never", "--", "true").returncode == 0
    site.ann.add("--limit", "anns!", "--limit", "never", "--", "echo", "alone")
    site.ann.add("--limit", "anns:4", "--limit", "never", "--", "echo", "four")
    site.admin.add("--limit", "anns:5", "--limit", "never", "--", "echo", "five")
    site.admin.add("--limit", "roots:2", "--limit", "never", "--", "echo", "two")
    site.ann.refused("add", "--limit", "roots!", "--", "true", says="declared it")
    site.ann.refused("add", "--limit", "roots:1", "--", "true", says="only theirs may change that")


@pytest.mark.parametrize("way", [by_command, by_file, by_http])
def test_a_priority_above_what_the_queue_allows_is_capped_and_told(site: Site, way: Way) -> None:
    site.rota.ok("queue", "set", "default", "--max-priority", "100")
    status, said = way(site, site.ann, {"priority": 200})
    assert status == 0
    assert "priority 200 is more than allowed; it is 100 (queue 'default')" in said
    last = site.rota.json("jobs", "user=nobody", "--limit", "1000")["jobs"][-1]["id"]
    shown = site.rota.json("show", str(last))
    assert (shown["priority"], shown["asked_priority"]) == (100, 200)
    assert "priority 100 (200 was asked for)" in site.rota.ok("show", str(last))
    assert "is more than allowed" not in way(site, site.admin, {"priority": 200})[1]
    assert "is more than allowed" not in way(site, site.ann, {"priority": 100})[1]
    site.rota.ok("queue", "set", "default", "--max-priority", "none")


def test_a_change_does_not_lift_a_priority_above_what_the_queue_allows(site: Site) -> None:
    site.rota.ok("queue", "set", "default", "--max-priority", "100")
    id = site.ann.add("--limit", "never", "--", "true")
    told = "priority 255 is more than allowed; it is 100 (queue 'default')"
    done = site.ann.rota("modify", str(id), "--priority", "255")
    assert (done.returncode, done.stderr) == (0, f"rota: warning: {told}\n")
    assert site.rota.json("show", str(id))["priority"] == 100
    assert json.loads(site.ann.ok("modify", str(id), "--priority", "255", "--json"))["warnings"] == [told]
    change = {"select": [str(id)], "change": {"priority": 255}}
    answer = site.http.as_(site.ann.token).ask("PATCH", "/api/v1/jobs", change)
    assert (answer.status, answer.json["warnings"]) == (200, [told])
    assert site.admin.rota("modify", str(id), "--priority", "255").stderr == ""
    assert site.rota.json("show", str(id))["priority"] == 255
    site.rota.ok("queue", "set", "default", "--max-priority", "none")


def test_rules_and_administrators_may_put_jobs_of_users_into_that_queue(site: Site) -> None:
    site.rota.ok("rule", "add", "urgent", "--match", "project=urgent", "--set", "queue=admin", "--position", "1")
    id = site.ann.add("--project", "urgent", "--limit", "never", "--", "true")
    assert site.rota.json("show", str(id))["queue"] == "admin"
    site.ann.ok("modify", str(id), "--name", "mine")
    other = site.ann.add("--limit", "never", "--", "true")
    site.admin.ok("modify", str(other), "--queue", "admin")
    site.ann.ok("modify", str(other), "--name", "moved")
    assert site.rota.json("show", str(other))["queue"] == "admin"


def test_a_site_may_open_that_queue_and_keep_another_to_administrators(site: Site) -> None:
    site.rota.ok("queue", "set", "admin", "--for", "all")
    site.rota.ok("queue", "add", "maintenance", "--for", "admins")
    assert by_command(site, site.ann, {"queue": "admin"})[0] == 0
    assert by_command(site, site.ann, {"queue": "maintenance"})[0] == 5
    assert by_command(site, site.admin, {"queue": "maintenance"})[0] == 0
    site.rota.ok("queue", "set", "admin", "--for", "none")
    assert by_command(site, site.ann, {"queue": "admin"})[0] == 5
    found = {each["name"]: each["admins_only"] for each in site.rota.json("queue", "list")["queues"]}
    assert found == {"admin": True, "default": False, "besteffort": False, "maintenance": True}


def test_who_makes_a_token_for_another_user_is_told_what_jobs_can_read(site: Site) -> None:
    file = site.rota.work / "eve.token"
    done = site.rota.rota("manager", "token", "add", "eve", "--user", "eve", "--out", str(file))
    assert done.returncode == 0
    assert "jobs of eve run as the user of the agent" in done.stderr
    assert str(site.rota.home) in done.stderr
    told = site.rota.json("manager", "token", "add", "eve2", "--user", "eve")
    assert "run as the user of the agent" in told["notice"]
    assert site.rota.json("manager", "token", "add", "mine")["notice"] is None
    assert "can read" not in site.rota.rota("manager", "token", "add", "mine2").stderr
