"""Fair share in simulated sites: endless demand is served by the shares, and old use is forgotten."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sim.sites import Fields, Result, job, run

CORES = 2
SITE: list[Fields] = [{"ids": f"1-{CORES}", "host": "n1"}]
#: Nobody goes to the front for having waited.
PATIENT = {"order": "fairshare", "max_wait": "1000d", "backfill": "easy"}


def fair(shares: dict[str, float], **more: Any) -> dict[str, Any]:
    return {"queues": {"default": PATIENT | {"shares": shares} | more}}


def used(found: Result, jobs: list[Fields], *, until: float, by: str = "project") -> dict[str, float]:
    """Core-seconds of each project, or user, up to a moment."""
    sums: dict[str, float] = {}
    for number, each in enumerate(jobs, 1):
        start, end = found[number]["start"], found[number]["end"]
        if start is not None and start < until:
            cores = int(each["request"].partition(",")[0].removeprefix("core="))
            sums[each[by]] = sums.get(each[by], 0.0) + cores * (min(end, until) - start)
    return sums


def endless(users: list[tuple[str, str, int, int]], *, number: int) -> list[Fields]:
    """Of each user and project so many jobs, of so many cores and seconds, all there from the beginning."""
    return [
        job(f"core={cores},walltime={seconds}s", user=user, project=project)
        for _ in range(number)
        for user, project, cores, seconds in users
    ]


#: Seconds of the jobs of either project, and how many users each has.
MIXES = [(60, 60, 1, 1), (60, 240, 1, 1), (150, 60, 1, 2), (90, 100, 2, 1), (60, 60, 3, 2)]


@pytest.mark.parametrize(("seconds_p", "seconds_q", "users_p", "users_q"), MIXES)
def test_two_projects_with_shares_of_three_to_one_use_three_to_one(
    seconds_p: int, seconds_q: int, users_p: int, users_q: int
) -> None:
    users = [(f"p{n}", "p", 1, seconds_p) for n in range(users_p)]
    users += [(f"q{n}", "q", 1, seconds_q) for n in range(users_q)]
    jobs = endless(users, number=80 // min(users_p, users_q))
    found = run(SITE, *jobs, **fair({"project:p": 0.75, "project:q": 0.25}))
    sums = used(found, jobs, until=2500.0)
    assert sums["p"] / (sums["p"] + sums["q"]) == pytest.approx(0.75, abs=0.04)
    each = used(found, jobs, until=2500.0, by="user")
    for project in "pq":
        its = [each[user] for user, own, *_ in users if own == project]
        assert max(its) == pytest.approx(min(its), rel=0.25), "users of one project share what it has"


def test_without_shares_of_projects_their_users_use_the_same() -> None:
    jobs = endless([("ann", "p", 1, 60), ("bob", "q", 1, 60)], number=120)
    sums = used(run(SITE, *jobs, **fair({})), jobs, until=1800.0)
    assert sums["p"] == pytest.approx(sums["q"], rel=0.1)


def test_shares_of_users_work_as_those_of_projects() -> None:
    jobs = endless([("ann", "", 1, 60), ("bob", "", 1, 60)], number=70)
    sums = used(run(SITE, *jobs, **fair({"ann": 0.75, "bob": 0.25})), jobs, until=1800.0, by="user")
    assert sums["ann"] / (sums["ann"] + sums["bob"]) == pytest.approx(0.75, abs=0.06)


def test_the_weights_decide_whose_use_counts() -> None:
    users = [("ann", "p", 1, 60), ("bob", "q", 1, 60), ("carl", "q", 1, 60)]
    jobs = endless(users, number=65)
    shares = {"project:p": 0.5, "project:q": 0.5}
    by_project = used(
        run(SITE, *jobs, fair_share={"project": 1, "used": 0, "asked": 0}, **fair(shares)), jobs, until=1800.0
    )
    assert by_project["p"] == pytest.approx(by_project["q"], rel=0.1)
    by_user = used(run(SITE, *jobs, fair_share={"project": 0}, **fair({})), jobs, until=1800.0)
    assert 2 * by_user["p"] == pytest.approx(by_user["q"], rel=0.1)


def test_what_is_asked_for_counts_by_its_weight() -> None:
    """One of two asks for ten times as long as needed."""
    jobs = [
        job("core=1,walltime=600s" if user == "ann" else "core=1,walltime=60s", user=user, run=60)
        for _ in range(120)
        for user in ("ann", "bob")
    ]
    by_use = used(run(SITE, *jobs, fair_share={"asked": 0}, **fair({})), jobs, until=2000.0, by="user")
    assert by_use["ann"] == pytest.approx(by_use["bob"], rel=0.1)
    by_asking = used(run(SITE, *jobs, fair_share={"used": 0}, **fair({})), jobs, until=1200.0, by="user")
    assert by_asking["ann"] < 0.3 * by_asking["bob"]


def first(half_life: str, *, gap: int, window: str | None = None) -> str:
    """Who goes first a while after ann used ten times as much as bob, who used his just now."""
    jobs = [
        job("core=2,walltime=100s", user="ann"),
        job("core=2,walltime=10s", user="bob", submit=gap),
        job("core=2,walltime=50s", user="carl", submit=gap + 1),
        *(job("core=2,walltime=50s", user=user, submit=gap + 2) for user in ("ann", "bob")),
    ]
    settings = {"half_life": half_life} | ({} if window is None else {"window": window})
    found = run(SITE, *jobs, fair_share=settings, **fair({}))
    ann, bob = found[4]["start"], found[5]["start"]
    assert ann is not None
    assert bob is not None
    return "ann" if ann < bob else "bob"


def test_old_use_counts_less_by_the_half_life() -> None:
    assert first("1000s", gap=2000) == "bob", "after two half-lives a quarter of a hundred is more than ten"
    assert first("1000s", gap=6000) == "ann", "after six it is not"
    assert first("100000s", gap=6000) == "bob"


def test_use_before_the_window_does_not_count() -> None:
    assert first("1000000s", gap=6000) == "bob"
    assert first("1000000s", gap=6000, window="5000s") == "ann"


def test_who_runs_much_for_long_has_used_it_before_it_ends() -> None:
    """Ann holds half of the site for an hour; what becomes free is not hers again."""
    jobs = [
        job("core=1,walltime=3600s", user="ann"),
        job("core=1,walltime=100s", user="bob"),
        job("core=1,walltime=100s", user="ann", submit=1),
        job("core=1,walltime=100s", user="bob", submit=2),
        job("core=1,walltime=100s", user="carl", submit=3),
    ]
    found = run(SITE, *jobs, **fair({}))
    starts = found.starts()
    assert starts[5] == 100, "carl had nothing"
    assert starts[4] == 200, "bob had less than ann"
    assert starts[3] == 300


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"half_life": "0s"}, "fair_share.half_life"),
        ({"project": -1}, "fair_share.project: -1 is not a weight"),
        ({"weights": 1}, "there is no 'weights' here"),
        ({"window": "7"}, "fair_share.window"),
    ],
)
def test_what_is_no_setting_of_fair_share_is_named(said: Fields, message: str) -> None:
    from rota.errors import BadInput

    with pytest.raises(BadInput) as refused:
        run(SITE, fair_share=said)
    assert message in refused.value.message
