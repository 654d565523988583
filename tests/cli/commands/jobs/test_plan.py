"""`rota plan`: when and where a job would run, with and without a plan; nothing is submitted."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cli.planned import Site, moment, site_of
from tests.deployment import Deployment

KEYS = {"start", "end", "resources", "hosts", "alternative", "reason", "moves"}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with site_of(tmp_path_factory.mktemp("plan")) as made:
        yield made


@pytest.fixture
def site(shared: Site) -> Iterator[Site]:
    yield shared
    shared.reset()


def planned(site: Site, *options: str) -> Any:
    found = site.json("plan", *options)
    assert set(found) >= KEYS
    return found


def test_on_an_idle_machine_it_starts_now_and_no_plan_is_opened(site: Site) -> None:
    found = planned(site, "-l", "core=2,walltime=10m")
    assert (found["resources"], len(found["hosts"]), found["alternative"]) == ("1-2", 1, 1)
    assert (found["reason"], found["moves"]) == (None, [])
    assert abs(moment(found["start"]) - time.time()) < 60
    assert moment(found["end"]) - moment(found["start"]) == pytest.approx(600)
    assert not site.json("gantt")["plan"]
    assert site.ok("plan", "-l", "core=2,walltime=10m").startswith("it would start now\n")


def test_plain_jobs_that_run_are_in_the_way_where_there_is_no_plan(site: Site) -> None:
    holders = [site.holds("--time", "30m", "--cpus", "2", "--mem", "10M") for _ in range(2)]
    found = planned(site, "--cpus", "3", "--mem", "10M", "--time", "5m")
    assert sorted(found["reason"]["blockers"]) == holders
    assert 1700 < moment(found["start"]) - time.time() < 1900
    assert not site.json("gantt")["plan"]


def test_waiting_plain_jobs_go_first_where_there_is_no_plan(site: Site) -> None:
    site.holds("--time", "30m", "--cpus", "4", "--mem", "10M")
    waiting = site.waits("--time", "10m", "--cpus", "4", "--mem", "10M")
    found = planned(site, "--cpus", "4", "--mem", "10M")
    assert waiting in found["reason"]["blockers"]
    assert 2300 < moment(found["start"]) - time.time() < 2500


def test_the_answer_is_what_becomes_of_it(site: Site) -> None:
    holder = site.holds("-l", "core=3,walltime=1h")
    first = site.waits("-l", "core=4,walltime=10m")
    site.only_reason(first)
    options = ["-l", "core=4,walltime=5m", "-l", "core=2,walltime=20m", "--priority", "5"]
    found = planned(site, *options)
    assert (found["alternative"], found["request"]) == (1, "core=4,walltime=5m")
    assert (found["moves"], found["reason"]["blockers"]) == ([first], [holder])
    assert site.states() == site.states()
    before = site.json("show", str(first))["expected_start"]
    job = site.waits(*options)
    site.only_reason(job)
    shown = site.json("show", str(job))
    assert (shown["resources"], shown["expected_start"]) == (found["resources"], found["start"])
    assert site.json("show", str(first))["expected_start"] > before


def test_nothing_is_submitted(site: Site) -> None:
    before = site.json("jobs")["total"]
    site.ok("plan", "--cpus", "1")
    site.ok("plan", "-l", "core=1", "-q", "besteffort", "-t", "besteffort")
    assert site.json("jobs")["total"] == before


def test_quotas_are_those_of_whoever_it_would_be(site: Site) -> None:
    site.ok("quota", "set", "*,*,*,eve", "1")
    try:
        found = planned(site, "-l", "core=2,walltime=1m", "--user", "eve")
        assert (found["start"], found["reason"]["code"]) == (None, "quota")
        assert "it would have no planned start" in site.ok("plan", "-l", "core=2,walltime=1m", "--user", "eve")
        assert planned(site, "-l", "core=2,walltime=1m")["reason"] is None
    finally:
        site.ok("quota", "remove", "*,*,*,eve")


def test_what_never_fits_is_an_answer_and_what_is_wrong_an_error(site: Site) -> None:
    found = planned(site, "-l", "core=400,walltime=1m")
    assert (found["start"], found["reason"]["code"]) == (None, "unsatisfiable")
    for options, said in (
        (["-l", "cores=2"], "did you mean 'core'"),
        (["-q", "nowhere"], "there is no queue 'nowhere'"),
        (["--walltime", "7"], "--walltime"),
        (["-r", "2001-01-01T00:00"], "in the past"),
        (["-p", "colour = 'red'", "-l", "core=1"], "colour"),
    ):
        done = site.rota("plan", *options)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done
        assert said in done.stderr
    assert json.loads(site.rota("plan", "-l", "cores=2", "--json").stdout)["error"]["code"]


def test_a_reservation_that_would_be_granted_and_one_that_would_not(site: Site) -> None:
    site.waits("-r", "now+1h", "-l", "core=4,walltime=1h")
    assert planned(site, "-r", "now+3h", "-l", "core=1,walltime=1h")["resources"] == "1"
    refused = planned(site, "-r", "now+90m", "-l", "core=1,walltime=1h")
    assert (refused["start"], refused["reason"]["code"]) == (None, "reservation")


def test_equal_jobs_that_no_plan_has_yet_are_spoken_of(site: Site) -> None:
    site.holds("-l", "core=4,walltime=1h")
    jobs = site.add_all("-l", "core=4,walltime=1m", "-", input="sleep 1\nsleep 2\nsleep 3\n")
    site.only_reason(jobs[0])
    found = planned(site, "-l", "core=1,walltime=1m")
    assert found["behind"] == 2
    assert "2 jobs wait that no plan has yet" in site.ok("plan", "-l", "core=1,walltime=1m")


def test_who_takes_no_core_is_in_no_plan_and_a_paused_manager_says_so(site: Site) -> None:
    found = planned(site, "--cpus", "0")
    assert (found["resources"], found["reason"]) == (None, None)
    assert found["start"] is not None
    site.ok("manager", "pause")
    for options in (["--cpus", "0"], ["-l", "core=1,walltime=1m"]):
        assert planned(site, *options)["reason"]["code"] == "paused"
    site.ok("manager", "resume")


def test_the_python_client_can_ask_as_well(site: Site) -> None:
    with site.client() as client:
        found = client.plan(request=["core=2,walltime=1m"])
        assert found.resources == "1-2"
        assert found.reason is None


def test_without_a_manager_it_says_how_to_start_one(rota: Deployment) -> None:
    done = rota.rota("plan", "--cpus", "1")
    assert done.returncode == 4
    assert "rota manager start" in done.stderr


def test_a_walltime_that_is_a_bare_number_is_told_to_be_hours(site: Site) -> None:
    done = site.rota("plan", "-l", "core=1,walltime=30")
    assert done.stderr == "rota: warning: walltime=30 is 30 h; write 30m or 90s for less\n"
    assert site.rota("plan", "-l", "core=1,walltime=0:30").stderr == ""


def test_memory_that_no_host_has_is_named(site: Site) -> None:
    found = planned(site, "-l", "core=1,walltime=5m", "--mem", "400G")
    assert found["reason"]["message"] == "never fits: no host has 400G mem"


def test_a_container_that_is_not_there_is_told_at_once(site: Site) -> None:
    plain = site.holds("--cpus", "1", "--mem", "10M")
    done = site.rota("add", "-t", f"inner={plain}", "-l", "core=1,walltime=5m", "--", "true")
    assert done.returncode == 2
    assert f"job {plain} is not a container" in done.stderr
    done = site.rota("add", "-t", "inner=nobody", "-l", "core=1,walltime=5m", "--", "true")
    assert done.returncode == 0
    assert "there is no container 'nobody'" in done.stderr
    site.holds("-t", "container", "-n", "box", "-l", "core=1,walltime=5m")
    assert site.rota("add", "-t", "inner=box", "-l", "core=1,walltime=1m", "--", "true").stderr == ""
