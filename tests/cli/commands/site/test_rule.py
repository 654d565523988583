"""`rota rule`, and what rules do to jobs that are added."""

from __future__ import annotations

import grp
import json
import os
import re
from typing import Any

import pytest

from rota.cli.commands.site.rule import inserted
from rota.core.admission.rule_records import placed_rules
from rota.core.admission.rule_syntax import read_rule
from tests.deployment import Deployment

BUILT_IN = ["default-queue", "nodes-walltime", "interactive-walltime", "reservations", "no-root"]


def names(made: Deployment) -> list[str]:
    return made.ok("rule", "list", "--quiet").split()


def test_the_built_in_rules_can_be_replaced_removed_and_brought_back(shared: Deployment) -> None:
    assert names(shared) == BUILT_IN
    before = shared.json("rule", "show", "nodes-walltime")
    assert before == {
        "name": "nodes-walltime", "match": {"uses": "nodes"}, "default": {"walltime": "2h"}, "position": 2,
        "built_in": True,
    }  # fmt: skip
    shared.ok("rule", "set", "nodes-walltime", "--default", "walltime=1h")
    assert shared.json("rule", "show", "nodes-walltime")["default"] == {"walltime": "1h"}
    assert shared.ok("rule", "remove", "nodes-walltime") == "removed: nodes-walltime\n"
    assert "nodes-walltime" not in names(shared)
    assert shared.rota("rule", "remove", "nodes-walltime").returncode == 3
    shared.ok("rule", "reset", "nodes-walltime")
    assert shared.json("rule", "show", "nodes-walltime") == before
    assert names(shared) == BUILT_IN


def test_rules_have_places_that_can_be_changed(shared: Deployment) -> None:
    added = shared.json(
        "rule", "add", "b", "--match", "queue=besteffort", "--cap", "walltime=12h", "--position", "3"
    )
    assert added == {"rule": "b", "position": 3}
    shared.ok("rule", "add", "a", "--match", "user=nobody", "--reject", "no", "--position", "1")
    assert names(shared) == ["a", *BUILT_IN[:2], "b", *BUILT_IN[2:]]
    assert shared.ok("rule", "move", "a", "100") == "a: rule 7\n"
    shared.ok("rule", "move", "default-queue", "2")
    assert names(shared) == ["nodes-walltime", "default-queue", "b", *BUILT_IN[2:], "a"]
    shared.ok("rule", "remove", "a")
    shared.ok("rule", "remove", "b")
    shared.ok("rule", "reset", "default-queue")
    assert names(shared) == BUILT_IN


def test_there_is_always_room_between_two_rules() -> None:
    order = placed_rules({})
    records: dict[str, Any] = {}
    for number in range(200):
        made = read_rule({"name": f"r{number}", "reject": "x"})
        changes, place = inserted(made, order, 2)
        assert place == 2
        records |= {name: value for _kind, name, value in changes}
        order = placed_rules({"rule": records})
        assert order[1].rule == made
    assert [each.rule.name for each in order] == [
        BUILT_IN[0], *(f"r{number}" for number in reversed(range(200))), *BUILT_IN[1:]
    ]  # fmt: skip


def test_a_rule_comes_from_a_file_and_goes_to_one(shared: Deployment) -> None:
    rule = {"name": "bs", "match": {"user": ["b*", "!bob"], "mem_over": "4G"}, "set": {"priority": 7, "mem": "2G"}}
    (shared.work / "rule.json").write_text(json.dumps(rule))
    shared.ok("rule", "add", "--file", "rule.json")
    assert json.loads(shared.ok("rule", "show", "bs")) == rule
    shared.ok("rule", "set", "bs", "--file", "-", input='{"reject": "no more"}')
    assert json.loads(shared.ok("rule", "show", "bs")) == {"name": "bs", "reject": "no more"}
    shared.ok("rule", "remove", "bs")
    for text, message in (("{", "not valid JSON"), ("[]", "not a JSON object"), ('{"name": "x"}', "does nothing")):
        done = shared.rota("rule", "add", "--file", "-", input=text)
        assert (done.returncode, message in done.stderr) == (2, True)


def test_a_rejected_line_refuses_the_whole_input(shared: Deployment) -> None:
    shared.ok("rule", "add", "project", "--match", "project=", "--reject", "give a project")
    try:
        done = shared.rota("add", "-", input='true\t{"project": "x"}\nfalse\n')
        assert (done.returncode, done.stderr) == (
            2, "rota: stdin line 2: give a project (rule 'project'); see 'rota rule show project'\n",
        )  # fmt: skip
        assert shared.rota("run", "--", "true").stderr.startswith("rota: give a project (rule 'project')")
        shared.ok("limit", "never:0")
        (job,) = shared.json("add", "--project", "x", "--limit", "never", "--", "true")["added"]
        done = shared.rota("modify", str(job), "--project", "")
        assert (done.returncode, "give a project (rule 'project')" in done.stderr) == (2, True)
        assert shared.json("show", str(job))["project"] == "x"
        shared.ok("kill", str(job))
    finally:
        shared.ok("rule", "remove", "project")


def test_who_gave_more_than_is_allowed_is_told_and_others_are_not(shared: Deployment) -> None:
    shared.ok("rule", "add", "day", "--cap", "walltime=1d", "--cap", "priority=5")
    try:
        done = shared.rota("add", "-", "--json", input='echo 1\necho 2\t{"walltime": "3d"}\n')
        assert done.stderr == ("rota: warning: line 2: walltime 3d is more than allowed; it is 1d (rule 'day')\n")
        first, second = json.loads(done.stdout)["added"]
        for job in (first, second):
            assert shared.json("show", str(job))["walltime_s"] == 86400
            assert re.search(r"^ +walltime .* 1d ", shared.ok("show", str(job)), re.MULTILINE)
    finally:
        shared.ok("rule", "remove", "day")


def test_a_default_queue_can_be_another(shared: Deployment) -> None:
    shared.ok("rule", "set", "default-queue", "--default", "queue=admin")
    try:
        (job,) = shared.json("add", "--", "true")["added"]
        (other,) = shared.json("add", "-q", "default", "--", "true")["added"]
        assert [shared.json("show", str(id))["queue"] for id in (job, other)] == ["admin", "default"]
    finally:
        shared.ok("rule", "reset", "default-queue")


def test_two_reservations_of_a_user_may_wait_and_no_more(shared: Deployment) -> None:
    lines = "".join(f'echo {n}\t{{"at": "now+{n}h", "request": "core=1,walltime=1m"}}\n' for n in (1, 2, 3))
    done = shared.rota("add", "--dry-run", "-", input=lines)
    assert (done.returncode, done.stderr) == (
        2,
        "rota: stdin line 3: at most 2 reservations of a user may wait (rule 'reservations'); "
        "see 'rota rule show reservations'\n",
    )
    assert shared.rota("add", "--dry-run", "-", input="".join(lines.splitlines(keepends=True)[:2])).returncode == 0


def test_a_dry_run_says_what_a_job_would_become(shared: Deployment) -> None:
    shared.ok("rule", "add", "bob", "--match", "user=bob", "--cap", "walltime=12h")
    try:
        asked = ("rule", "test", "--user", "bob", "-l", "nodes=2,walltime=20h", "-l", "core=1")
        found = json.loads(shared.ok(*asked, "--json"))
        assert found["admitted"] is True
        assert found["matched"] == ["default-queue", "nodes-walltime", "bob"]
        assert [(each["rule"], each["field"]) for each in found["changes"]] == [
            ("default-queue", "queue"), ("nodes-walltime", "walltime"), ("bob", "walltime"),
        ]  # fmt: skip
        assert (found["job"]["queue"], found["job"]["walltime_s"]) == ("default", 7200.0)
        assert found["job"]["request"] == ["/host=2,walltime=12h", "core=1"]
        assert shared.ok(*asked).splitlines()[:3] == [
            "rule default-queue: default queue=default",
            "rule nodes-walltime: default walltime=2h",
            "rule bob: cap walltime=12h",
        ]
        assert shared.json("jobs", "user=bob")["jobs"] == [], "nothing was submitted"
    finally:
        shared.ok("rule", "remove", "bob")


def test_a_rule_that_makes_a_job_besteffort_is_seen_by_the_next_and_by_the_dry_run(shared: Deployment) -> None:
    shared.ok("rule", "add", "filler", "--match", "name=filler", "--set", "type=besteffort")
    shared.ok("rule", "add", "low", "--match", "queue=besteffort", "--cap", "walltime=1h", "--cap", "priority=1")
    asked = ("--name", "filler", "--walltime", "3d", "--priority", "9")
    try:
        said = shared.json("rule", "test", *asked)["job"]
        (job,) = shared.json("add", *asked, "--after", "@none", "--allow-empty-group", "--", "true")["added"]
        became = shared.json("show", str(job))
        for field in ("queue", "type", "walltime_s", "priority", "retries"):
            assert said[field] == became[field]
        assert (said["queue"], said["type"], said["walltime_s"]) == ("besteffort", ["besteffort"], 3600.0)
        assert "set type=besteffort, set queue=besteffort" in shared.ok("rule", "test", *asked)
    finally:
        shared.ok("rule", "remove", "filler")
        shared.ok("rule", "remove", "low")


def test_a_dry_run_says_why_a_job_would_be_refused(shared: Deployment) -> None:
    done = shared.rota("rule", "test", "--system", "--user", "root")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (
        2,
        "refused: root may not run jobs (rule 'no-root')",
    )
    done = shared.rota("rule", "test", "--json", "-r", "now+1h", "--reservations", "3")
    assert (done.returncode, json.loads(done.stdout)["rejected_by"]) == (2, "reservations")
    done = shared.rota("rule", "test", "-q", "nowhere")
    assert (done.returncode, "there is no queue 'nowhere'" in done.stdout) == (2, True)
    assert shared.rota("rule", "test", "--interactive", "--walltime", "20h").returncode == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["add", "x"], "rule 'x': it does nothing"),
        (["add", "--reject", "x"], "say how the rule is called"),
        (["add", "a b", "--reject", "x"], "cannot be the name of a rule"),
        (["add", "no-root", "--reject", "x"], "there is a rule 'no-root' already"),
        (["add", "x", "--cap", "walltim=1h"], "did you mean 'walltime'?"),
        (["add", "x", "--cap", "walltime"], "--cap: 'walltime' is not FIELD=VALUE"),
        (["add", "x", "--cap", "walltime=12"], "cap: field 'walltime': '12' has no unit"),
        (["add", "x", "--cap", "walltime=1h", "--reject", "y"], "both 'cap' and 'reject'"),
        (["add", "x", "--match", "usr=bob", "--reject", "y"], "did you mean 'user'?"),
        (["add", "x", "--file", "nowhere.json"], "cannot read nowhere.json"),
        (["add", "x", "--file", "f", "--reject", "y"], "--file and --reject contradict each other"),
        (["add", "x", "--reject", "y", "--position", "0"], "--position"),
        (["set", "no-root"], "say what to change"),
        (["test", "--walltime", "3"], "--walltime"),
    ],
)
def test_mistakes_are_named_in_one_line(shared: Deployment, words: list[str], message: str) -> None:
    done = shared.rota("rule", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("verb", ["show", "remove", "reset"])
def test_a_rule_that_is_not_there_is_not_found(shared: Deployment, verb: str) -> None:
    done = shared.rota("rule", verb, "default-queu")
    assert (done.returncode, "default-queue" in done.stderr) == (3, True)


def test_a_request_for_levels_that_the_site_has_not_is_an_error(shared: Deployment) -> None:
    done = shared.rota("rule", "test", "-l", "foo=2")
    assert done.returncode == 2
    assert "unknown level 'foo'" in done.stderr
    assert "cpus" not in shared.rota("rule", "test", "-l", "core=2").stdout


def test_rules_bind_jobs_to_nodes_and_give_types_that_quotas_count(shared: Deployment) -> None:
    mine = grp.getgrgid(os.getgid()).gr_name
    shared.ok("property", "add", "fast", "--type", "yesno")
    shared.ok("rule", "add", "bind", "--match", "project=fast", "--set", "where=fast is null")
    shared.ok("rule", "add", "ours", "--match", f"unix_group={mine}", "--set", "type=type:ours")
    shared.ok("quota", "set", "*,*,type:ours,*", "0")
    asked = ("--project", "fast", "-p", "host like '%'")
    try:
        refused = shared.rota("property", "remove", "fast")
        assert (refused.returncode, "rule 'bind'" in refused.stderr) == (2, True)
        said = shared.json("rule", "test", *asked)["job"]
        (job,) = shared.json("add", *asked, "--", "true")["added"]
        became = shared.json("show", str(job))
        assert said["where"] == became["where"] == "host like '%' and fast is null"
        assert said["type"] == became["type"] == ["type:ours"]
        assert shared.json("why", str(job))["reasons"][0]["code"] == "quota"
        assert shared.json("rule", "test", "--unix-group", "others")["job"]["type"] == []
        (exempt,) = shared.json("add", "-t", "no_quotas", "--", "true")["added"]
        assert shared.rota("wait", str(exempt)).returncode == 0
        done = shared.rota("rule", "test", "-t", "no_quotas")
        assert (done.returncode, "only an administrator or a rule" in done.stdout) == (2, True)
        assert shared.rota("rule", "test", "-t", "no_quotas", "--admin").returncode == 0
        shared.ok("kill", str(job))
    finally:
        shared.ok("quota", "remove", "*,*,type:ours,*")
        shared.ok("rule", "remove", "ours")
        shared.ok("rule", "remove", "bind")
        shared.ok("property", "remove", "fast")
