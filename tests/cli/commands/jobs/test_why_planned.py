"""`rota why`, `show` and `jobs` of jobs that are in the plan: every reason, who is behind it, and when it ends."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest

from tests.cli.planned import Site, moment, site_of
from tests.deployment import wait_until


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with site_of(tmp_path_factory.mktemp("planned")) as made:
        yield made


@pytest.fixture
def site(shared: Site) -> Iterator[Site]:
    yield shared
    shared.reset()


def test_resources_name_who_holds_them_and_when_it_will_start(site: Site) -> None:
    holder = site.holds("-l", "core=3,walltime=1h")
    job = site.waits("-l", "core=2,walltime=10m")
    reason = site.only_reason(job)
    assert (reason["code"], reason["blockers"]) == ("resources", [holder])
    assert f"until job {holder} ends" in reason["message"]
    start = moment(site.why(job)["expected_start"])
    started = moment(site.json("show", str(holder))["started_at"])
    assert abs(start - started - 3600) < 60
    said = site.ok("why", str(job))
    assert f"held up by   {holder}" in said
    assert f"expected start: {datetime.fromtimestamp(start):%Y-%m-%d %H:%M:%S}" in said


def test_show_and_jobs_tell_planned_start_end_and_resources(site: Site) -> None:
    holder = site.holds("-l", "core=4,walltime=1h")
    job = site.waits("-l", "core=2,walltime=10m")
    site.only_reason(job)
    shown = site.json("show", str(job))
    (listed,) = site.json("jobs", str(job))["jobs"]
    for found in (shown, listed):
        assert found["resources"] == "1-2"
        assert moment(found["expected_end"]) - moment(found["expected_start"]) == pytest.approx(600)
    card = site.ok("show", str(job))
    assert "  resources    1-2\n" in card
    assert (
        f"  starts       {datetime.fromtimestamp(moment(shown['expected_start'])):%Y-%m-%d %H:%M:%S} (expected)\n"
        in card
    )
    assert "  ends  " in card
    given = site.json("show", str(holder))
    assert (given["resources"], given["given_walltime_s"], given["expected_start"]) == ("1-4", 3600, None)
    assert given["attempts"][0]["resources"] == "1-4"
    assert any(line.split()[:2] == ["walltime", "1h"] for line in site.ok("show", str(holder)).splitlines())
    site.ok("kill", str(holder))
    site.until("cancelled", holder)
    assert site.json("show", str(holder))["resources"] == "1-4"


def test_who_stands_behind_others_that_ask_for_the_same_is_told_so(site: Site) -> None:
    site.holds("-l", "core=4,walltime=1h")
    first, second, third = site.add_all("-l", "core=4,walltime=1m", "-", input="sleep 1\nsleep 2\nsleep 3\n")
    site.only_reason(first)
    reasons = site.why(third)["reasons"]
    assert reasons[0]["message"] == "2 jobs that ask for the same are before it"
    assert reasons[0]["blockers"] == [first]
    assert reasons[1]["message"].startswith(f"job {first}: waits for resources")
    assert site.why(second)["reasons"][0]["message"] == "1 job that asks for the same is before it"
    assert f"rota modify {third} --priority 255" in site.ok("why", str(third))


def test_a_quota_is_named_with_those_who_hold_it(site: Site) -> None:
    site.ok("quota", "set", "*,*,*,/", "2")
    try:
        holder = site.holds("-l", "core=2,walltime=1h")
        job = site.waits("-l", "core=1,walltime=10m")
        reason = site.only_reason(job)
        assert (reason["code"], reason["blockers"]) == ("quota", [holder])
        assert "*,*,*,/" in reason["message"]
        assert site.why(job)["expected_start"] is not None
        assert "try          rota quota list" in site.ok("why", str(job))
        never = site.waits("-l", "core=3,walltime=10m")
        assert site.only_reason(never)["code"] == "quota"
        assert site.why(never)["expected_start"] is None
    finally:
        site.ok("quota", "remove", "*,*,*,/")


def test_a_quota_of_the_calendar_has_a_code_of_its_own(site: Site) -> None:
    tomorrow = datetime.now() + timedelta(days=1)
    period = ["--from", "2020-01-01T00:00", "--to", f"{tomorrow:%Y-%m-%dT%H:%M}"]
    site.ok("quota", "set", "*,*,*,*", "1", "--set", "small")
    site.ok("calendar", "add", *period, "small")
    try:
        job = site.waits("-l", "core=2,walltime=10m")
        assert site.only_reason(job)["code"] == "calendar"
        assert moment(site.why(job)["expected_start"]) >= tomorrow.timestamp() - 120
    finally:
        site.ok("calendar", "remove", *period)
        site.ok("quota", "remove", "*,*,*,*", "--set", "small")


def test_a_reservation_in_the_way_and_ones_own(site: Site) -> None:
    own = site.waits("-r", "now+30m", "-l", "core=4,walltime=1h")
    reason = site.only_reason(own)
    assert reason["code"] == "reservation"
    assert site.why(own)["expected_start"] == site.json("show", str(own))["at"]
    job = site.waits("-l", "core=1,walltime=45m")
    reason = site.only_reason(job)
    assert (reason["code"], reason["blockers"]) == ("reservation", [own])


def test_a_placeholder_is_named(site: Site) -> None:
    holder = site.holds("-t", "placeholder=lab", "-l", "core=4,walltime=1h")
    job = site.waits("-l", "core=1,walltime=5m")
    reason = site.only_reason(job)
    assert (reason["code"], reason["blockers"]) == ("placeholder", [holder])
    assert "'lab'" in reason["message"]
    assert f"rota modify {job} --type allowed=lab" in site.ok("why", str(job))


def test_what_does_not_fit_its_container_names_it(site: Site) -> None:
    holder = site.holds("-t", "container", "-l", "core=2,walltime=1h")
    job = site.waits("-t", f"inner={holder}", "-l", "core=3,walltime=5m")
    reason = site.only_reason(job)
    assert (reason["code"], reason["blockers"]) == ("container", [holder])
    homeless = site.waits("-t", "inner=999999", "-l", "core=1,walltime=5m")
    assert site.only_reason(homeless)["code"] == "container"


def test_a_postponed_job_is_delayed(site: Site) -> None:
    job = site.waits("-t", "postpone=now+2h", "-l", "core=1,walltime=5m")
    assert site.only_reason(job)["code"] == "delayed"
    assert site.why(job)["expected_start"] is not None


def test_resources_that_may_not_be_used_now(site: Site) -> None:
    site.ok("resource", "add", "--hosts", "away", "--cores", "8")
    try:
        job = site.waits("-l", "core=10,walltime=5m")
        reason = site.only_reason(job)
        assert (reason["code"], reason["blockers"]) == ("no_resources", [])
        assert "away" in reason["message"]
        site.ok("kill", str(job))
    finally:
        site.ok("resource", "remove", "--hosts", "away")


def test_where_only_the_first_is_planned_the_others_are_beyond_the_plan(site: Site) -> None:
    site.ok("queue", "set", "default", "--backfill", "easy")
    try:
        site.holds("-l", "core=4,walltime=1h")
        first = site.waits("-l", "core=4,walltime=10m")
        job = site.waits("-l", "core=3,walltime=10m")
        wait_until(lambda: site.why(first)["expected_start"], "the first has a planned start")
        reason = site.only_reason(job)
        assert (reason["code"], reason["blockers"]) == ("beyond_plan", [first])
        assert "easy" in reason["message"]
        assert site.why(job)["expected_start"] >= site.why(first)["expected_end"]
    finally:
        site.ok("queue", "set", "default", "--backfill", "conservative")


def test_the_json_is_that_of_the_contract(site: Site) -> None:
    site.holds("-l", "core=4,walltime=1h")
    job = site.waits("-l", "core=1,walltime=1m")
    found = json.loads(site.ok("why", str(job), "--json"))
    assert set(found) == {"id", "state", "reasons", "expected_start", "expected_end", "expected_reason"}
    assert found["expected_start"].endswith("Z")


def test_a_free_core_before_a_reservation_only_wants_a_walltime(site: Site) -> None:
    holder = site.holds("-l", "core=2,walltime=1h")
    reserved = site.waits("-r", "now+2h", "-l", "core=4,walltime=1h")
    job = site.waits("--cpus", "1")
    reason = site.only_reason(job)
    assert (reason["code"], reason["blockers"]) == ("reservation", [reserved])
    assert [cause["kind"] for cause in reason["causes"]] == ["walltime"]
    said = site.ok("why", str(job))
    assert f"it has no walltime, and reservation {reserved} begins in " in said
    assert f"try          rota modify {job} --walltime 1h55m" in said
    assert "  try          --walltime 1h55m\n" in site.ok("plan", "--cpus", "1")
    assert f"(it has no walltime, and reservation {reserved} begins" in site.ok("show", str(job))
    site.ok("modify", str(job), "--walltime", "1h50m")
    site.until("running", job, holder)


def test_available_until_is_named_and_no_reservation(site: Site) -> None:
    (host,) = {each["host"] for each in site.json("node", "list")["nodes"]}
    site.ok("node", "set", host, "--available-until", "now+2h")
    try:
        soft = site.waits("--cpus", "1")
        reason = site.only_reason(soft)
        assert reason["code"] == "available_until"
        assert f"{host} may not be used any more in " in reason["message"]
        long = site.waits("-l", "core=1,walltime=3h")
        assert site.only_reason(long)["causes"] == [{"kind": "available_until", "name": host}]
        listed = site.ok("gantt")
        assert f"  {long:<6} it would take 3h00m, and {host} may not be used any more" in listed
        planned = site.ok("plan", "-l", "core=1,walltime=3h")
        assert f"try          rota node set {host} --available-until never" in planned
    finally:
        site.ok("node", "set", host, "--available-until", "never")


def test_a_reservation_on_a_drained_node_is_told_wherever_it_is_shown(site: Site) -> None:
    (host,) = {each["host"] for each in site.json("node", "list")["nodes"]}
    granted = site.waits("-r", "now+1h", "-l", "core=1,walltime=10m")
    site.only_reason(granted)
    site.ok("node", "set", host, "--drain", "--reason", "new disk")
    try:
        said = f"in danger: {host} is drained (new disk)"
        wait_until(lambda: said in site.ok("why", str(granted)), "the plan knows it")
        assert said in site.ok("show", str(granted))
        assert f"reservation {granted} is {said}" in site.ok("gantt")
        asked = site.ok("plan", "-r", "now+2h", "-l", "core=1,walltime=10m")
        assert f"it is decided when something can: {host} is drained (new disk)" in asked
        assert f"  try          rota node set {host} --no-drain\n" in asked
        late = site.rota("add", "-r", "now+2h", "-l", "core=1,walltime=10m", "--", "true")
        assert (
            f"nothing can be reserved now, and it is decided when something can: {host} is drained" in late.stderr
        )
    finally:
        site.ok("node", "set", host, "--no-drain")
