"""Two colleagues with tokens of their own: all see all jobs, and each can touch none but theirs."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rota as rota_package
from rota import Client
from rota.client.endpoint import Endpoint, find
from rota.errors import Denied
from rota.home import Home
from tests.api.client import Http
from tests.deployment import Deployment, deployment, wait_until

_LOOP = "while [ ! -e go ]; do sleep 0.1; done"


class Colleague:
    """Somebody who comes by TLS with a token and nothing else."""

    def __init__(self, rota: Deployment, name: str, *, role: str = "user", user: str = "") -> None:
        self._rota = rota
        file = rota.work / f"{name}.token"
        whose = ["--user", user] if user else []
        rota.ok("manager", "token", "add", name, "--role", role, *whose, "--out", str(file))
        self.token = file.read_text().strip()
        address = json.loads((rota.home / "manager.json").read_bytes())["address"]
        self.env = rota.env | {
            "ROTA_HOME": str(rota.work / f"{name}.home"),
            "ROTA_TOKEN_FILE": str(file),
            "ROTA_CA": str(rota.home / "tls" / "ca.pem"),
            "ROTA_MANAGER": address,
        }

    def rota(self, *args: str, **options: Any) -> subprocess.CompletedProcess[str]:
        return self._rota.rota(*args, env=self.env, **options)

    def ok(self, *args: str) -> str:
        return self._rota.ok(*args, env=self.env)

    def json(self, *args: str) -> Any:
        return self._rota.json(*args, env=self.env)

    def add(self, *args: str) -> int:
        (id,) = self.json("add", *args)["added"]
        return int(id)

    def refused(self, *args: str, says: str) -> None:
        """The command is denied, in one line."""
        done = self.rota(*args)
        assert done.returncode == 5, (args, done.returncode, done.stdout, done.stderr)
        assert says in done.stderr, (args, done.stderr)
        assert done.stderr.count("\n") == 1
        assert not done.stdout or "--json" in args


@pytest.fixture
def rota(tmp_path: Path) -> Iterator[Deployment]:
    # Names are enough for what the manager decides: as whom a job runs is another matter.
    with deployment(tmp_path, grace="1s") as made:
        made.start()
        yield made


@pytest.fixture
def ann(rota: Deployment) -> Colleague:
    return Colleague(rota, "ann", user="nobody")


@pytest.fixture
def bob(rota: Deployment) -> Colleague:
    return Colleague(rota, "bob", user="daemon")


def _running(rota: Deployment, who: Colleague, *options: str) -> int:
    id = who.add(*options, "--", "sh", "-c", _LOOP)
    wait_until(lambda: rota.state(id) == "running", "it runs")
    return id


def _all(rota: Deployment) -> list[Any]:
    """Everything about every job, but when things were last looked at."""
    shown = [rota.json("show", str(id)) for id in sorted(rota.states())]
    for each in shown:
        each.pop("expected_end", None)
        each.pop("expected_start", None)
        each.pop("wait_s", None)
    return shown


# ------------------------------------------------------------------ what is refused


def test_no_verb_touches_the_job_of_somebody_else_nor_ones_own_beside_it(
    rota: Deployment, ann: Colleague, bob: Colleague
) -> None:
    running = _running(rota, ann, "--time", "1h")
    failed = ann.add("--retries", "0", "--", "false")
    wait_until(lambda: rota.state(failed) == "failed", "it failed")
    rota.ok("manager", "pause")
    waiting, held = ann.add("--", "true"), ann.add("--", "echo", "held")
    ann.ok("hold", str(held))
    theirs = [str(id) for id in (running, failed, waiting, held)]
    own = bob.add("--", "true")
    before = _all(rota)
    verbs: list[tuple[str, ...]] = [("kill",), ("retry",), ("remove",), ("remove", "--cascade"), ("hold",)]
    verbs += [("release",), ("suspend",), ("resume",), ("checkpoint",), ("modify", "--priority", "7")]
    for verb in verbs:
        for id in theirs:
            bob.refused(*verb, str(own), id, says=f"job {id} belongs to nobody")
    for id in theirs:
        bob.refused("signal", id, "USR1", says=f"job {id} belongs to nobody")
        bob.refused("walltime", id, "+1h", says=f"job {id} belongs to nobody")
    for verb in verbs:
        bob.refused(*verb, "user=nobody", says="belongs to nobody")
    bob.refused("confirm-dead", str(own), says="administrator")
    assert _all(rota) == before


def test_output_is_for_its_owner(rota: Deployment, ann: Colleague, bob: Colleague) -> None:
    ended = ann.add("--", "echo", "swordfish")
    wait_until(lambda: rota.state(ended) == "complete", "it ended")
    script = f"echo swordfish; {_LOOP}"
    running = ann.add("--", "sh", "-c", script)
    wait_until(lambda: rota.state(running) == "running", "it runs")
    for id in (ended, running):
        for words in (["logs"], ["logs", "--err"], ["logs", "--follow"], ["logs", "--json"]):
            bob.refused(*words, str(id), says=f"job {id} belongs to nobody")
    bob.refused("exec", str(running), "--", "true", says=f"job {running} belongs to another user")
    assert ann.ok("logs", str(ended)) == "swordfish\n"
    assert ann.ok("exec", str(running), "--", "echo", "inside") == "inside\n"


def test_a_result_is_for_its_owner_and_others_see_the_job(
    rota: Deployment, ann: Colleague, bob: Colleague
) -> None:
    job = ann.add("--call", "math:hypot", "--args", "[3, 4]")
    wait_until(lambda: rota.state(job) == "complete", "it ended")
    assert ann.ok("result", str(job)) == "5.0\n"
    bob.refused("result", str(job), says=f"job {job} belongs to nobody")
    seen = bob.ok("show", str(job))
    assert "math:hypot(3, 4)" in seen
    assert "5.0" not in seen


def test_a_watch_with_output_shows_only_ones_own(rota: Deployment, ann: Colleague, bob: Colleague) -> None:
    address = json.loads((rota.home / "manager.json").read_bytes())["address"]
    theirs, own = _running(rota, ann), _running(rota, bob)
    with rota_package.connect(home=str(rota.home), address=address, token=bob.token) as client:
        for options in ({"outputs": True}, {"follow": True}):
            with pytest.raises(Denied, match="belongs to nobody"), client.watch(theirs, **options) as watching:
                list(watching)
        with client.watch("all", outputs=True) as watching:
            (rota.work / "go").touch()
            ended = {each.job for progress in watching for each in progress.ended}
        assert ended == {own}
        wait_until(lambda: rota.state(theirs) == "complete", "the other ended, too")
    bob.ok("wait", str(theirs))


def test_whoever_waits_for_a_job_is_not_removed_with_it(rota: Deployment, ann: Colleague, bob: Colleague) -> None:
    rota.ok("manager", "pause")
    first = bob.add("--", "true")
    second = bob.add("--after", str(first), "--", "true")
    third = ann.add("--after", str(second), "--", "true")
    bob.refused("remove", "--waiting", "--cascade", str(first), says=f"job {third} belongs to nobody")
    assert sorted(rota.states()) == [first, second, third]
    ann.ok("remove", "--waiting", str(third))
    assert bob.json("remove", "--waiting", "--cascade", str(first))["changed"] == [first, second]


def test_the_elements_of_anothers_array_are_refused(rota: Deployment, ann: Colleague, bob: Colleague) -> None:
    rota.ok("manager", "pause")
    first = ann.json("add", "--array", "1-3", "--", "true")["added"][0]
    wait_until(lambda: len(rota.states()) == 3, "they are there")
    for word in (f"{first}_2", f"{first}_*"):
        bob.refused("kill", word, says="belongs to nobody")
    assert set(rota.states().values()) == {"ready"}
    assert len(ann.json("kill", f"{first}_*")["changed"]) == 3


# ------------------------------------------------------------------ what a selection means


def test_a_selection_means_ones_own_jobs(rota: Deployment, ann: Colleague, bob: Colleague) -> None:
    rota.ok("manager", "pause")
    theirs = ann.add("--group", "shared", "--", "true")
    for selector in ("all", "@shared", "state=ready", f"{theirs}-{theirs + 100}"):
        own = bob.add("--group", "shared", "--", "echo", selector)
        assert bob.json("kill", selector)["changed"] == [own]
        assert rota.state(theirs) == "ready"
    assert len(bob.json("retry", "all")["changed"]) == 4
    assert len(bob.json("modify", "--priority", "9", "@shared")["changed"]) == 4
    assert rota.json("show", str(theirs))["priority"] != 9
    bob.ok("kill", "last")
    assert len(bob.json("remove", "all")["changed"]) == 1, "the others wait"
    assert len(bob.json("remove", "--waiting", "all")["changed"]) == 3
    assert list(rota.states()) == [theirs]


def test_the_same_command_of_another_user_is_another_job(rota: Deployment, ann: Colleague, bob: Colleague) -> None:
    failed = ann.add("--retries", "0", "--", "false")
    wait_until(lambda: rota.state(failed) == "failed", "it failed")
    before = rota.json("show", str(failed))
    again = bob.add("--retries", "0", "--", "false")
    assert again != failed
    wait_until(lambda: rota.state(again) == "failed", "so does this")
    assert rota.json("show", str(failed)) == before
    assert rota.json("show", str(again))["user"] == "daemon"


# ------------------------------------------------------------------ what is open to all


def test_everybody_sees_all_jobs_but_no_environment(rota: Deployment, ann: Colleague, bob: Colleague) -> None:
    ann.env["SWORD"] = "fish-in-the-environment"
    id = _running(rota, ann, "--on-failure", "run: echo swordfish >&2; false", "--retries", "0")
    assert [job["id"] for job in bob.json("jobs")["jobs"]] == [id]
    assert bob.json("status")["counts"] == {"running": 1}
    bob.ok("why", str(id))
    for asker in (ann, bob):
        shown = asker.ok("show", "--json", str(id))
        assert json.loads(shown)["user"] == "nobody"
        assert "fish-in" not in shown
    after = bob.add("--after", f"afterany:{id}", "--", "true")
    ann.ok("kill", str(id))
    bob.ok("wait", str(after))
    failing = ann.add("--on-failure", "run: echo swordfish >&2; exit 3", "--retries", "0", "--", "false")
    wait_until(lambda: rota.state(failing) == "failed", "it failed")
    (mine,), (others,) = (
        [each["message"] for each in who.json("show", str(failing))["attempts"][0]["behaviours"]]
        for who in (ann, bob)
    )
    assert "swordfish" in mine
    assert others == ""


def test_ones_own_jobs_work_as_ever(rota: Deployment, ann: Colleague) -> None:
    done = ann.rota("run", "--", "echo", "hello")
    assert (done.returncode, done.stdout) == (0, "hello\n")
    assert ann.rota("run", "--retries", "0", "--", "sh", "-c", "exit 7").returncode == 7
    id = _running(rota, ann, "--time", "1h")
    ann.ok("signal", str(id), "CONT")
    ann.ok("suspend", str(id))
    wait_until(lambda: rota.state(id) == "suspended", "it is suspended")
    ann.ok("resume", str(id))
    wait_until(lambda: rota.state(id) == "running", "it goes on")
    ann.ok("kill", str(id))
    wait_until(lambda: rota.state(id) == "cancelled", "it is over")
    (rota.work / "go").touch()
    ann.ok("modify", "--priority", "7", str(id))
    ann.ok("retry", "last")
    ann.ok("wait", str(id))
    assert rota.json("show", str(id))["priority"] == 7
    ann.ok("remove", str(id))


# ------------------------------------------------------------------ who may do all


def test_the_owner_and_administrators_may_do_all(rota: Deployment, ann: Colleague) -> None:
    admin = Colleague(rota, "chief", role="admin", user="daemon")
    plain = Colleague(rota, "laptop")  # without a user it is the owner's
    ended = ann.add("--", "echo", "hello")
    wait_until(lambda: rota.state(ended) == "complete", "it ended")
    for may in (admin.ok, plain.ok, rota.ok):
        id = _running(rota, ann)
        may("kill", str(id))
        wait_until(lambda: set(rota.states().values()) == {"complete", "cancelled"}, "it is over")
        may("modify", "--priority", "7", "state=cancelled")
        may("remove", "state=cancelled")
        assert may("logs", str(ended)) == "hello\n"
    local = Endpoint(socket=str(find(Home(rota.home), environ={}).socket), role="user")
    with Client(lambda: local) as client:  # in a lesser role, but still the owner
        assert client.output(ended) == b"hello\n"
        assert client.remove(ended).changed == [ended]


# ------------------------------------------------------------------ by HTTP


def _answers(http: Http) -> bool:
    try:
        return http.get("/healthz").status == 200
    except OSError:
        return False


def _page(http: Http, who: Colleague) -> dict[str, str]:
    """The headers of somebody's browser that has logged in."""
    code = json.loads(who.ok("manager", "ui", "--json"))["link"].partition("#")[2]
    answer = http.post("/api/v1/session", {"code": code})
    assert answer.status == 200, answer
    return {"Cookie": answer.headers["set-cookie"].partition(";")[0], "X-Rota-CSRF": answer.json["csrf"]}


def test_http_and_pages_keep_to_the_same_rules(tmp_path: Path) -> None:
    with deployment(tmp_path, grace="1s", http="on") as rota:
        rota.start()
        ann, bob = Colleague(rota, "ann", user="nobody"), Colleague(rota, "bob", user="daemon")
        id = _running(rota, ann)
        with rota.client() as client:
            url = client.manager_status().http or ""
        nobody = Http("127.0.0.1", int(url.rpartition(":")[2].strip("/")))
        wait_until(lambda: _answers(nobody), "the gateway answers")
        kill = {"action": "kill", "select": [str(id)]}
        for http, headers in ((nobody.as_(bob.token), {}), (nobody, _page(nobody, bob))):
            refused = http.post("/api/v1/jobs/actions", kill, headers=headers)
            assert (refused.status, refused.code) == (403, "denied"), refused
            refused = http.get(f"/api/v1/jobs/{id}/output", headers=headers)
            assert refused.status == 403, refused
        assert rota.state(id) == "running"
        owners = _page(nobody, Colleague(rota, "laptop"))
        for http, headers in ((nobody.as_(ann.token), {}), (nobody, owners)):
            assert http.post("/api/v1/jobs/actions", kill, headers=headers).status == 200
            wait_until(lambda: rota.state(id) == "cancelled", "it is over")
            ann.ok("retry", str(id))


def test_a_job_is_taken_out_of_the_quotas_by_an_administrator_or_a_rule_and_by_nobody_else(
    rota: Deployment, ann: Colleague
) -> None:
    done = ann.rota("add", "-t", "no_quotas", "--", "true")
    assert (done.returncode, "only an administrator or a rule may give 'no_quotas'" in done.stderr) == (2, True)
    own = ann.add("--after", "@later", "--allow-empty-group", "--", "true")
    assert ann.rota("modify", str(own), "-t", "no_quotas").returncode == 2
    assert rota.rota("modify", str(own), "-t", "no_quotas").returncode == 0
    ann.ok("modify", str(own), "--priority", "3")
    assert rota.json("show", str(own))["type"] == ["no_quotas"]


def test_sessions_of_pipelines_are_ones_own_even_of_the_same_file(
    rota: Deployment, ann: Colleague, bob: Colleague
) -> None:
    file = rota.work / "p.yaml"
    file.write_text(f"""
limits: {{shared: 2}}
stages:
  - {{name: build, run: "{_LOOP}", takes: {{shared: 1}}}}
elements: {{one: {{}}}}
""")
    runs = [rota.popen("pipeline", "run", "--json", str(file), env=each.env) for each in (ann, bob)]
    wait_until(lambda: len(rota.json("pipeline", "list")) == 2, "both have begun")
    sessions = {each["user"]: each["session"] for each in rota.json("pipeline", "list")}
    assert [each["user"] for each in ann.json("pipeline", "list")] == ["nobody"]
    assert rota.ok("pipeline", "list").splitlines()[0].endswith("USER")
    (other,) = [number for user, number in sessions.items() if user != "nobody"]
    for words in (("show",), ("pause",), ("retry",)):
        done = ann.rota("pipeline", *words, str(other))
        assert (done.returncode, f"there is no session {other}" in done.stderr) == (3, True)
    assert ann.ok("pipeline", "pause", str(file)) == "1 changed\n"
    states = {each["user"]: each["state"] for each in rota.json("pipeline", "list")}
    assert states["nobody"] == "paused"
    assert sorted(states.values()) == ["paused", "running"]
    assert rota.ok("pipeline", "resume", str(sessions["nobody"])) == "1 changed\n"
    (rota.work / "go").touch()
    assert [each.wait() for each in runs] == [0, 0]


def test_a_pipeline_takes_no_limit_alone_that_a_job_of_its_user_may_not(rota: Deployment, ann: Colleague) -> None:
    rota.ok("limit", "site:2")
    file = rota.work / "p.yaml"
    text = """
limits: {%s: 2}
stages:
  - {name: clean, per: session, run: "true", takes: {%s: exclusive}}
elements: {one: {}}
"""
    file.write_text(text % ("site", "site"))
    ann.refused(
        "pipeline", "run", str(file), says="limit 'site' cannot be taken alone by nobody: it is the site's"
    )
    file.write_text(text % ("own", "own"))
    ann.ok("pipeline", "run", str(file))
