"""`rota share`: what fair share is reckoned by, and how everybody stands."""

from __future__ import annotations

import pytest

from tests.deployment import Deployment


def test_what_is_set_is_shown_and_can_be_taken_back(shared: Deployment) -> None:
    made = shared.json("share", "set", "--half-life", "14d", "--window", "60d", "--project", "2", "--asked", "0")
    assert made["fair_share"] == {
        "project": 2.0, "used": 1.0, "asked": 0.0, "half_life_s": 14 * 86400.0, "window_s": 60 * 86400.0,
    }  # fmt: skip
    assert shared.json("share", "list")["fair_share"] == made["fair_share"]
    shared.ok("share", "set", "--window", "none", "--project", "none", "--asked", "none", "--half-life", "none")
    usual = {"project": None, "used": 1.0, "asked": 1.0, "half_life_s": 7 * 86400.0, "window_s": None}
    assert shared.json("share", "list")["fair_share"] == usual
    assert shared.json("share", "set", "--window", "none")["fair_share"] == usual, "nothing is left to take back"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "say what to change"),
        (["--used", "-1"], "--used: '-1' is not a weight"),
        (["--used", "nan"], "--used: 'nan' is not a weight"),
        (["--asked", "ünï"], "--asked: 'ünï' is not a weight"),
        (["--project", "1e9"], "--project: '1e9' is not a weight"),
        (["--half-life", "7"], "--half-life: "),
        (["--half-life", "1s"], "--half-life: '1s' is too short; give at least 1m"),
        (["--window", "1m"], "--window: '1m' is too short; give at least 1h"),
        (["--window", "500d"], "--window: use is known for 400 days"),
    ],
)
def test_mistakes_are_named(shared: Deployment, options: list[str], said: str) -> None:
    done = shared.rota("share", "set", *options)
    assert done.returncode == 2
    assert said in done.stderr


def test_a_record_that_is_no_fair_share_is_refused_whoever_sends_it(shared: Deployment) -> None:
    from rota.errors import BadInput

    with shared.client() as client:
        for record in ({"used": -1}, {"half_life_s": 0}, {"window_s": 10}, {"weight": 1}, [1]):
            with pytest.raises(BadInput, match="fair_share"):
                client.set_site([("setting", "fair_share", record)])


def test_standings_say_who_goes_first_and_why(shared: Deployment) -> None:
    assert "no queue is ordered by fair share" in shared.ok("share", "list")
    done = shared.rota("queue", "set", "default", "--share", "project:bio=0.75", "--share", "project:chem=0.25")
    assert "shares do not count; see --order fairshare" in done.stderr
    assert "its order is fifo: nothing of this counts" in shared.ok("share", "list")
    shared.ok("queue", "set", "default", "--order", "fairshare")
    (job,) = shared.json("add", "--project", "chem", "--", "sleep 0.2")["added"]
    shared.ok("wait", str(job))
    (queue,) = shared.json("share", "list")["queues"]
    assert (queue["queue"], queue["order"], queue["project_weight"]) == ("default", "fairshare", 1.0)
    bio, chem = queue["projects"]
    assert (bio["project"], bio["share"], bio["target"], bio["target_by"]) == ("bio", 0.0, 0.75, "share")
    assert (chem["project"], chem["share"], chem["target"], chem["target_by"]) == ("chem", 1.0, 0.25, "share")
    (user,) = queue["users"]
    assert user["project"] == "chem"
    assert user["karma"] == pytest.approx(sum(part["value"] for part in user["parts"]))
    assert "project chem used 100% of all (target 25%)" in user["why"]
    text = shared.ok("share", "list")
    assert "project chem used 100% of all (target 25%)" in text
    assert shared.ok("share", "list", "--quiet").split() == [user["user"]]
    accounts = shared.json("accounting", "--by", "project")["rows"]
    used_s = sum(row["used_s"] for row in accounts if row["project"] == "chem")
    assert chem["used_s"] == pytest.approx(used_s, rel=0.01), "as the accounts have it"


def test_of_a_queue_that_is_not_there_nothing_is_said(shared: Deployment) -> None:
    done = shared.rota("share", "list", "--queue", "fast")
    assert done.returncode == 3
    assert "there is no queue 'fast'" in done.stderr
