"""Pools from the command line, with a real manager and an engine that starts nothing."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deployment import Deployment, deployment, wait_until

#: An engine whose `start` fails, saying that nothing was done, and whose `list` shows nothing.
ENGINE = """#!/bin/sh
case $1 in
  start) cat > "$0.given"; echo "no partition is up" >&2; exit 2 ;;
  list) echo '{"runners": []}' ;;
esac
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    top = tmp_path_factory.mktemp("pools")
    program = top / "engine"
    program.write_text(ENGINE)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    with deployment(top, cores="2") as made:
        _configure(made, program)
        made.ok("manager", "start")
        yield made


def _configure(made: Deployment, program: Path) -> None:
    keys = "".join(f'{key} = ["{program}", "{key}"]\n' for key in ("start", "stop", "list"))
    made.home.mkdir(mode=0o700, exist_ok=True)
    with (made.home / "rota.toml").open("a") as file:
        file.write(f'[pools.far]\nengine = "command"\nmax_runners = 2\n{keys}')


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--pool", "nope"), ("field 'pool'", "there is no pool 'nope'", "use one of local, nodes, far")),
        (("--pool", "far", "-l", "nodes=2"), ("field 'request'", "cores on one host")),
        (("--pool", "far", "-t", "container"), ("field 'type'", "'container'")),
        (("--pool", "far", "-p", "core > 1"), ("field 'where'", "it has no properties")),
        (("--pool", "far", "-r", "now+1h"), ("field 'at'", "no reservations")),
        (("--pool", "local", "--cpus", "64"), ("never fits: asked 64 cpus, largest host has 2",)),
    ],
)
def test_what_a_pool_has_not_is_refused_at_submission(
    site: Deployment, options: tuple[str, ...], words: tuple[str, ...]
) -> None:
    refused = site.rota("add", *options, "--", "true")
    assert refused.returncode == 2
    for word in words:
        assert word in refused.stderr


def test_a_job_shows_where_it_ran_and_what_was_asked_for(site: Deployment) -> None:
    (job,) = site.json("add", "--pool", "local", "--retries", "0", "--", "true")["added"]
    site.ok("wait", str(job))
    shown = site.json("show", str(job))
    assert (shown["pool"], shown["asked_pool"]) == ("local", "local")
    (job,) = site.json("add", "--retries", "0", "--", "true")["added"]
    site.ok("wait", str(job))
    shown = site.json("show", str(job))
    assert (shown["pool"], shown["asked_pool"]) == ("local", "")


def test_jobs_of_another_engine_wait_and_the_pool_tells_why(site: Deployment) -> None:
    named, asked = "nodes=1/core=4,walltime=2h", ("--pool", "far")
    (one,) = site.json("add", *asked, "-l", named, "--", "true")["added"]
    (big,) = site.json("add", "--cpus", "64", "--", "true")["added"]
    assert site.json("show", str(one))["size"]["cpus"] == 4, "a request for one host is a size"

    def failed() -> object:
        (far,) = site.json("pool", "status", "far")["pools"]
        return far if len(far["groups"]) == 2 and all(each["error"] for each in far["groups"]) else None

    far = wait_until(failed, "the engine has refused both groups")
    assert (far["name"], far["engine"], far["state"], far["max_runners"]) == ("far", "command", "error", 2)
    assert "no partition is up" in far["error"]
    assert [each["ready"] for each in far["groups"]] == [1, 1]
    assert [each["walltime_s"] for each in far["groups"]] == [7200, None]
    assert sum(each["wanted"] for each in far["groups"]) <= 2
    for job in (one, big):
        (reason,) = site.json("why", str(job))["reasons"]
        assert reason["code"] == "pool"
        assert "no partition is up" in reason["message"]
    site.ok("kill", str(one), str(big))

    def idle() -> bool:
        (far,) = site.json("pool", "list", "far")["pools"]
        return not any(each["ready"] or each["wanted"] for each in far["groups"])

    wait_until(idle, "nothing is wanted any more")


def test_pools_are_listed_in_the_order_in_which_they_are_tried(site: Deployment) -> None:
    pools = site.json("pool", "list")["pools"]
    assert [each["name"] for each in pools] == ["local", "nodes", "far"]
    assert [each["state"] for each in pools[:2]] == ["ok", "ok"]
    assert [each["state"] for each in pools[0]["runners"]] == ["running"]
    assert site.ok("pool", "list", "--quiet").split() == ["local", "nodes", "far"]
    assert site.rota("pool", "status", "nope").returncode == 3


def test_a_rule_sets_the_pool_and_modify_takes_it_back(site: Deployment) -> None:
    site.ok("rule", "add", "wide", "--match", "name=wide*", "--set", "pool=far")
    (job,) = site.json("add", "-n", "wide1", "--cpus", "8", "--", "true")["added"]
    assert site.json("show", str(job))["asked_pool"] == "far"
    site.ok("rule", "remove", "wide")
    site.ok("modify", str(job), "--pool", "none", "--cpus", "1")
    site.ok("wait", str(job))
    assert site.json("show", str(job))["pool"] == "local"


def test_pools_are_part_of_the_configuration_that_is_shown(site: Deployment) -> None:
    far = site.json("config", "show")["pools"]["far"]
    assert (far["engine"], far["max_runners"], far["idle_s"], far["start"][1]) == ("command", 2, 2.0, "start")
    shown = site.ok("config", "show")
    assert "[pools.far]" in shown
    assert "max_runners = 2" in shown


def test_a_manager_that_only_this_machine_reaches_is_warned_of(site: Deployment) -> None:
    warning = "[pools.far]: only runners on this machine reach 127.0.0.1"
    assert warning in site.rota("config", "check").stderr
    assert warning in site.rota("doctor", "--quick").stdout
    assert warning in (site.home / "logs" / "manager.log").read_text()


def test_a_manager_whose_address_no_runner_could_use_is_refused(tmp_path: Path) -> None:
    with deployment(tmp_path, host="0.0.0.0") as made:
        _configure(made, Path("/bin/false"))
        for words in (("config", "check"), ("manager", "start")):
            refused = made.rota(*words)
            assert refused.returncode == 2
            assert "[pools.far]: 'address' is missing, and 0.0.0.0 is no address" in refused.stderr
            assert 'address = "NAME:PORT"' in refused.stderr
        assert "'address' is missing" in made.rota("doctor", "--quick").stdout


def test_the_programs_of_pools_are_checked(site: Deployment) -> None:
    engine = f"{site.home.parent / 'engine'}"
    found = [each for each in site.json("doctor", "--quick")["checks"] if each["name"] == "pools"]
    assert [(each["level"], each["message"]) for each in found] == [("good", "far: its programs can be run")]
    (Path(engine)).chmod(0o600)
    try:
        result = site.rota("doctor", "--quick", "--json")
    finally:
        (Path(engine)).chmod(0o700)
    (bad,) = [each for each in json.loads(result.stdout)["checks"] if each["name"] == "pools"]
    assert result.returncode == 1
    assert (bad["level"], bad["message"]) == ("bad", f"far: {engine} is no program that can be run (start)")


def test_a_program_is_told_how_rota_is_started_and_people_when_it_is_asked_again(site: Deployment) -> None:
    (job,) = site.json("add", "--pool", "far", "--", "true")["added"]
    wait_until(
        lambda: "again at " in site.ok("pool", "status", "far"), "people see when the engine is asked again"
    )
    given = json.loads((site.home.parent / "engine.given").read_text())
    assert Path(given["rota"]).name == "rota"
    assert Path(given["rota"]).exists()
    site.ok("kill", str(job))


def test_the_example_of_a_pool_runs_jobs(tmp_path: Path) -> None:
    program = Path(__file__).parents[2] / "examples" / "local_pool.py"
    keys = "".join(f'{key} = ["{program}", "{key}", "{tmp_path}/lab"]\n' for key in ("start", "stop", "list"))
    with deployment(tmp_path, local="off") as made:
        made.home.mkdir(mode=0o700)
        with (made.home / "rota.toml").open("a") as file:
            file.write(f'[pools.lab]\nengine = "command"\nidle_s = 0.2\n{keys}')
        assert made.ok("run", "--quiet", "--", "echo", "from the lab").splitlines()[-1] == "from the lab"
        assert made.json("show", "last")["pool"] == "lab"

        def left() -> bool:
            (lab,) = made.json("pool", "status", "lab")["pools"]
            return not lab["runners"]

        wait_until(left, "the runner has left")
