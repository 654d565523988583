"""Nodes that really sleep and wake: scripts of the site stop and start the agents of nodes on this host."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tests.deployment import ROTA, Deployment, deployment, is_alive, wait_until

SLEEP = """#!/bin/sh
# Puts node $1 to sleep: its agent is gone, as if its machine were.
echo "sleep $1" >> "$SITE/asked"
[ -e "$SITE/broken-sleep-$1" ] && exit 3
kill -KILL "$(cat "$SITE/$1.pid")"
"""

WAKE = """#!/bin/sh
# Wakes node $1: its agent comes.
echo "wake $1" >> "$SITE/asked"
rm "$SITE/broken-wake" 2> /dev/null && { echo "no route to $1"; exit 4; }
[ -e "$SITE/deaf-$1" ] && exit 0
"$ROTA" node run --manager "$(cat "$SITE/address")" --token "$SITE/pass" --name "$1" --cores 1 --mem 1G \\
    --dir "$SITE/$1" --log "$SITE/$1.log" &
echo $! > "$SITE/$1.pid"
"""

SOON = {"sleep_after": "1s", "sleep_gap": "5s", "wake_time": "3s", "wake_timeout": "60s"}


class Site:
    """A deployment without a host of its own, nodes that scripts start and stop, and what was asked of them."""

    def __init__(self, made: Deployment, top: Path) -> None:
        self.made, self.top = made, top

    def begin(self, *nodes: str) -> None:
        self.made.start()
        address = wait_until(
            lambda: json.loads((self.made.home / "manager.json").read_bytes())["address"], "it listens"
        )
        (self.top / "address").write_text(address)
        self.made.ok("manager", "token", "add", "lab", "--role", "runner", "--out", str(self.top / "pass"))
        for node in nodes:
            self.wake_by_hand(node)
        # Some may sleep before the last has come.
        wait_until(lambda: set(nodes) <= self.states().keys(), "all nodes have been there")

    def wake_by_hand(self, node: str) -> None:
        subprocess.run([self.top / "wake", node], env=self.made.env, check=True, timeout=60)

    def states(self) -> dict[str, str]:
        with self.made.client() as client:
            return {each.host: each.state for each in client.nodes()}

    def state(self, node: str) -> str:
        return self.states().get(node, "")

    def asked(self) -> list[str]:
        """What the scripts were called with, in order, without what the test itself did."""
        path = self.top / "asked"
        return path.read_text().splitlines() if path.exists() else []

    def calls(self, what: str) -> int:
        return self.asked().count(what)

    def asleep(self, *nodes: str) -> None:
        wait_until(lambda: all(self.state(node) == "asleep" for node in nodes), f"{nodes} are asleep")

    def lives(self, node: str) -> bool:
        return is_alive(int((self.top / f"{node}.pid").read_text()))


@pytest.fixture
def site(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Site]:
    settings = {**SOON, **getattr(request, "param", {})}
    top = tmp_path / "site"
    top.mkdir()
    for name, text in (("sleep", SLEEP), ("wake", WAKE)):
        (top / name).write_text(text)
        (top / name).chmod(stat.S_IRWXU)
    with deployment(
        tmp_path, local="off", sleep_cmd=str(top / "sleep"), wake_cmd=str(top / "wake"), **settings
    ) as made:
        made.env |= {"SITE": str(top), "ROTA": ROTA}
        yield Site(made, top)


def test_idle_nodes_sleep_and_a_job_over_all_of_them_wakes_them_and_runs(site: Site) -> None:
    nodes = ("n1", "n2", "n3", "n4")
    site.begin(*nodes)
    site.asleep(*nodes)
    # What put them to sleep has ended before their agents have.
    wait_until(lambda: not any(site.lives(node) for node in nodes), "their agents have ended")
    ran = site.made.rota("run", "-l", "nodes=4,walltime=5m", "--", "sh", "-c", "cat $ROTA_NODEFILE", timeout=180)
    assert ran.returncode == 0, ran.stderr + site.made.logs()
    assert sorted(ran.stdout.split()) == list(nodes)
    for node in nodes:
        assert site.calls(f"wake {node}") == 2, "once by the test, once for the job"
    site.asleep(*nodes)  # again, when it has ended


def test_a_waiting_job_says_whom_it_waits_for_and_the_node_is_known_to_sleep(site: Site) -> None:
    site.begin("n1")
    site.asleep("n1")
    (site.top / "deaf-n1").touch()
    job = int(re.findall(r"\d+", site.made.ok("add", "--", "true"))[0])
    wait_until(lambda: site.state("n1") == "waking", "it is being woken")
    why = site.made.json("why", str(job))
    assert why["reasons"][0]["code"] == "waking"
    assert "waking n1" in why["reasons"][0]["message"]
    assert "waking" in site.made.ok("node", "list")
    (site.top / "deaf-n1").unlink()
    site.wake_by_hand("n1")
    wait_until(lambda: site.made.state(job) == "complete", "it has run")
    history = site.made.json("node", "show", "n1")["history"]
    assert "asleep" in [each["state"] for each in history]


def test_a_restart_of_the_manager_forgets_no_sleeper(site: Site) -> None:
    site.begin("n1", "n2")
    site.asleep("n1", "n2")
    os.kill(site.made.manager_pid(), 9)
    site.made.start()
    address = json.loads((site.made.home / "manager.json").read_bytes())["address"]
    (site.top / "address").write_text(address)
    assert site.states() == {"n1": "asleep", "n2": "asleep"}
    assert site.made.rota("run", "--", "true", timeout=180).returncode == 0


def test_a_node_that_cannot_be_woken_is_suspected_and_its_job_runs_on_another(site: Site) -> None:
    site.begin("n1", "n2")
    site.asleep("n1", "n2")
    (site.top / "broken-wake").touch()  # for the first that is tried
    before = len(site.asked())
    assert site.made.rota("run", "--", "true", timeout=180).returncode == 0
    first, second = (line.removeprefix("wake ") for line in site.asked()[before : before + 2])
    assert {first, second} == {"n1", "n2"}
    assert site.state(first) == "suspected"
    assert f"no route to {first}" in site.made.json("node", "show", first)["why"]


@pytest.mark.parametrize("site", [{"wake_timeout": "4s"}], indirect=True)
def test_a_node_that_does_not_come_in_time_is_suspected_and_heals_when_it_comes(site: Site) -> None:
    site.begin("n1")
    site.asleep("n1")
    (site.top / "deaf-n1").touch()
    job = int(re.findall(r"\d+", site.made.ok("add", "--", "true"))[0])
    wait_until(lambda: site.state("n1") == "suspected", "it is given up")
    assert site.made.state(job) == "ready"
    (site.top / "deaf-n1").unlink()
    site.wake_by_hand("n1")
    wait_until(lambda: site.made.state(job) == "complete", "it is used again")


def test_a_node_that_cannot_be_put_to_sleep_goes_on_running_jobs(site: Site) -> None:
    (site.top / "broken-sleep-n1").touch()
    site.begin("n1")
    wait_until(lambda: site.calls("sleep n1"), "it was tried")
    assert site.made.rota("run", "--", "true").returncode == 0
    assert site.lives("n1")


@pytest.mark.parametrize("site", [{"keep_alive": "1"}], indirect=True)
def test_one_idle_node_stays_awake(site: Site) -> None:
    site.begin("n1", "n2")
    wait_until(lambda: sorted(site.states().values()) == ["alive", "asleep"], "one sleeps")
    assert site.made.rota("run", "--", "true").returncode == 0
    assert len([line for line in site.asked() if line.startswith("sleep")]) >= 1


@pytest.mark.parametrize("site", [{"sleep_after": "1d", "sleep_gap": "2d"}], indirect=True)
def test_outside_its_hours_a_node_runs_nothing_until_an_administrator_says_otherwise(site: Site) -> None:
    site.begin("n1")
    begin, end = (datetime.now() + timedelta(hours=hours) for hours in (2, 3))
    hours = f"{begin:%H:%M}-{end:%H:%M}"
    site.made.ok("node", "set", "n1", "--hours", hours)
    assert site.made.json("node", "show", "n1")["hours"] == hours
    job = int(re.findall(r"\d+", site.made.ok("add", "--walltime", "10m", "--", "true"))[0])
    reason = site.made.json("why", str(job))["reasons"][0]
    assert reason["code"] == "window"
    assert "outside the hours of n1" in reason["message"]
    refused = site.made.rota("node", "set", "n1", "--hours", "at night")
    assert refused.returncode == 2
    assert "20:00-07:00 mon-fri" in refused.stderr
    site.made.ok("node", "set", "n1", "--hours", "always")
    wait_until(lambda: site.made.state(job) == "complete", "it has run")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"keep_alive": "2 were gpu"}, "keep_alive"),
        ({"wake_cmd": "'"}, "wake_cmd"),
        ({"sleep_cmd": "true"}, "wake_cmd is not"),
        ({"sleep_cmd": "true", "wake_cmd": "true", "sleep_gap": "1s", "wake_time": "1m"}, "sleep_gap"),
    ],
)
def test_wrong_settings_are_found_by_config_check(tmp_path: Path, settings: dict[str, str], said: str) -> None:
    with deployment(tmp_path, **settings) as made:
        done = made.rota("config", "check")
        assert done.returncode == 2
        assert said in done.stderr
        assert made.rota("manager", "start").returncode != 0
