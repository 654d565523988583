"""Jobs in several report groups, and groups with commas in their names."""

from __future__ import annotations

from tests.deployment import Deployment


def ids(rota: Deployment, *selectors: str) -> list[int]:
    return [job["id"] for job in rota.json("jobs", *selectors)["jobs"]]


def test_a_job_in_several_groups_is_found_and_counted_in_each_and_once_in_all(rota: Deployment) -> None:
    rota.ok("run", "-g", "a", "-g", "b", "--", "true")
    rota.ok("run", "-g", "b", "--", "true")
    rota.ok("add", "-", "--sync", input='{"cmd": "true third", "group": ["c,d", "a"], "name": "third"}\n')
    waiting = ("--after", "@x", "--allow-empty-group")
    (later,) = rota.json("add", "-g", "a", "-g", "b", *waiting, "--", "true")["added"]
    for _ in range(2):
        assert ids(rota, "@a") == [1, 3, 4]
        assert ids(rota, "@b") == [1, 2, 4]
        assert ids(rota, "@c\\,d") == [3]
        assert ids(rota, "@a,state=complete") == [1, 3]
        assert ids(rota, "group=b", "@c\\,d") == [1, 2, 3, 4]
        status = rota.json("status")
        assert status["counts"] == {"complete": 3, "dependent": 1}
        assert status["groups"] == {
            "a": {"complete": 2, "dependent": 1},
            "b": {"complete": 2, "dependent": 1},
            "c,d": {"complete": 1},
        }
        assert rota.json("status", "@a")["groups"] == {"a": {"complete": 2, "dependent": 1}}
        assert rota.json("status", "@a", "state=complete")["counts"] == {"complete": 3, "dependent": 1}
        job = rota.json("show", "1")
        assert (job["group"], job["groups"]) == ("a", ["a", "b"])
        rota.ok("manager", "stop")
        rota.ok("manager", "start")
    rota.ok("modify", str(later), "-g", "e", "-g", "a")
    assert (ids(rota, "@b"), ids(rota, "@e")) == ([1, 2], [4])
    assert "a, b" in rota.ok("jobs", "1")
    assert rota.rota("wait", "@nobody").returncode == 3
    assert rota.rota("kill", "@e").returncode == 0
    assert rota.json("status", "@e")["groups"] == {"e": {"cancelled": 1}}
    rota.ok("remove", "@a", "--cascade")
    assert ids(rota, "all") == [2]


def test_rules_match_any_group_of_a_job(rota: Deployment) -> None:
    rota.start()
    rota.ok("rule", "add", "second", "--match", "group=b", "--set", "priority=7")
    assert rota.json("rule", "test", "-g", "a", "-g", "b")["job"]["priority"] == 7
    assert rota.json("rule", "test", "-g", "a")["job"]["priority"] == 0
