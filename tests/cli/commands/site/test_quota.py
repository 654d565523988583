"""`rota quota`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.deployment import Deployment, wait_until


def listed(rota: Deployment) -> list[dict[str, Any]]:
    """The quotas without their use."""
    found: list[dict[str, Any]] = rota.json("quota", "list")["quotas"]
    for each in found:
        del each["use"]
    return found


def test_quotas_are_set_listed_and_removed(shared: Deployment) -> None:
    assert shared.ok("quota", "set", "*,*,*,/", "16", "-1", "-1") == (
        "*,*,*,/: 16 resources, any jobs, any resource-hours\n"
    )
    shared.ok("quota", "set", "*, *,*, /", "8", "--set", "day")
    shared.ok("quota", "set", "default,*,*,bob", "0.5*ALL", "10", "100.5")
    assert listed(shared) == [
        {"rule": "*,*,*,/", "limits": [16, -1, -1], "set": None},
        {"rule": "default,*,*,bob", "limits": ["0.5*ALL", 10, 100.5], "set": None},
        {"rule": "*,*,*,/", "limits": [8, -1, -1], "set": "day"},
    ]
    assert [line.split() for line in shared.ok("quota", "list", "--set", "day").splitlines()] == [
        ["QUOTA", "RESOURCES", "JOBS", "RESOURCE-HOURS", "SET", "HOLDER"],
        ["*,*,*,/", "8", "any", "any", "day", "(not", "now)", "nobody"],
    ]
    shared.ok("quota", "set", "*,*,*,/", "4")
    shared.ok("quota", "remove", "default,*,*,bob")
    assert shared.json("quota", "remove", "*,*,*,/", "--set", "day") == {"removed": "day: *,*,*,/"}
    assert listed(shared) == [{"rule": "*,*,*,/", "limits": [4, -1, -1], "set": None}]
    shared.ok("quota", "remove", "*,*,*,/")
    assert "no quotas" in shared.ok("quota", "list")
    done = shared.rota("quota", "remove", "*,*,*,/", "--json")
    assert done.returncode == 3
    assert json.loads(done.stderr or done.stdout)["error"]["code"] == "not_found"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["*,*,/", "16"], "has 3 parts, not queue,project,type,user"),
        (["*,*,*,", "16"], "its user is empty"),
        (["*,*,besteffrot,/", "16"], "no type 'besteffrot'"),
        (["*,*,*,/", "many"], "'many' is not a number"),
        (["*,*,*,/", "-2"], "is negative"),
        (["*,*,*,/", "1.5"], "is not a whole number"),
        (["*,*,*,/", "1", "2", "3", "4"], "is not [resources, jobs, resource-hours]"),
        (["*,*,*,/", "1", "--sett", "day"], "'--sett' is not a number"),
        (["*,*,*,/", "1", "--set", "a b"], "cannot be the name of a rule set"),
        (["*,*,*,/"], "RESOURCES"),
    ],
)
def test_mistakes_are_named_in_one_line(shared: Deployment, words: list[str], message: str) -> None:
    done = shared.rota("quota", "set", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_list_shows_who_holds_how_much(shared: Deployment) -> None:
    shared.ok("quota", "set", "*,*,*,*", "0.5*ALL", "7")
    shared.ok("quota", "set", "*,*,*,bob", "1")
    shared.ok("quota", "set", "*,/,*,*", "ALL", "4", "100")
    try:
        shared.ok("add", "-g", "held", "--project", "genome", "-l", "core=1,walltime=30m", "--", "sleep", "1000")
        wait_until(lambda: set(shared.states("@held").values()) == {"running"}, "it runs")
        rows = {line.split()[0]: line.split()[1:] for line in shared.ok("quota", "list").splitlines()[1:]}
        assert rows == {
            "*,*,*,*": ["1/0.5*ALL", "1/7", "any", "always", "all"],
            "*,*,*,bob": ["0/1", "0/any", "any", "always", "all"],
            "*,/,*,*": ["1/ALL", "1/4", "0.5/100", "always", "genome"],
        }
        whole, _bob, each = (quota["use"] for quota in shared.json("quota", "list")["quotas"])
        assert each["holders"] == [
            {"who": {"project": "genome"}, "resources": 1, "jobs": 1, "resource_hours": 0.5}
        ]
        assert whole["resources"] == each["resources"] // 2
    finally:
        shared.ok("kill", "@held")
        for rule in ("*,*,*,*", "*,*,*,bob", "*,/,*,*"):
            shared.ok("quota", "remove", rule)
