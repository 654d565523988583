"""Homes that earlier releases left, stopped or killed, are opened, upgraded and continued: every job is there,
what can run does, what was complete is not run again, and history and output can be read."""

from __future__ import annotations

import base64
import getpass
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from rota.core.states import BY_LABEL, LEASED, TERMINAL
from tests.deployment import Deployment, deployment, wait_until
from tests.golden.here import adopt
from tests.golden.kept import RELEASES, unpack

pytestmark = pytest.mark.parametrize("release", RELEASES)
boots = pytest.mark.parametrize("rebooted", [False, True], ids=["same boot", "rebooted"])

Told = dict[str, Any]

#: What never changes once a job was told of.
_FOREVER = (
    "key cmd cwd name group user project queue priority submitted_at after dep_groups limits request where type "
    "at array_id array_index scratch retries on_success on_failure on_exit input_bytes walltime_s checkpoint_s"
).split()


@contextmanager
def continued(
    top: Path, release: str, name: str, *, rebooted: bool, **settings: str
) -> Iterator[tuple[Deployment, Told]]:
    """Today's manager on a golden home, and what was known of it. Output is kept, however old the home is."""
    told = unpack(release, name, top)
    adopt(top / "home", rebooted=rebooted)
    with deployment(top, grace="1s", output_days="36500d", **settings) as rota:
        rota.start(cold=True)
        yield rota, told


def _shown(rota: Deployment, told: Told) -> dict[int, Any]:
    return {job["id"]: rota.json("show", str(job["id"])) for job in told["jobs"]}


def _settle(rota: Deployment, ids: list[int]) -> None:
    """Until all of these have ended."""
    ended = {state.label for state in TERMINAL}
    wait_until(lambda: {rota.states(*map(str, ids))[id] for id in ids} <= ended, "what can run has run")


def _check_history(rota: Deployment, told: Told, *, ended: set[str]) -> None:
    """What had ended is as it was; and of no job is forgotten what it is."""
    shown = _shown(rota, told)
    for job in told["jobs"]:
        now = shown[job["id"]]
        assert now["state"] in BY_LABEL
        assert {key: now[key] for key in _FOREVER} == {key: job[key] for key in _FOREVER}
        assert len(now["attempts"]) >= len(job["attempts"])
        if job["state"] in ended:
            assert all(now[key] == job[key] for key in ("state", "attempt", "ended_at", "reason"))
            for one, other in zip(now["attempts"], job["attempts"], strict=True):
                assert {key: one[key] for key in other} == other
            assert now["story"] == job["story"]
    for id, text in told["outputs"].items():
        now, was = _stdout(rota, int(id)), base64.b64decode(text)
        # What was cut in the middle may be marked there.
        assert (now[:1000], now[-1000:]) == (was[:1000], was[-1000:])


def _stdout(rota: Deployment, id: int) -> bytes:
    with rota.client() as client:
        return client.output(id)


@boots
def test_a_home_killed_with_jobs_in_every_state_goes_on(release: str, tmp_path: Path, *, rebooted: bool) -> None:
    with continued(tmp_path, release, "busy", rebooted=rebooted) as (rota, told):
        states = {job["state"] for job in told["jobs"]}
        assert states == BY_LABEL.keys() - {"lost"}
        named = {job["name"]: job["id"] for job in told["jobs"] if job["name"]}
        assert rota.states().keys() == {job["id"] for job in told["jobs"]}
        assert rota.state(named["held"]) == "held"
        rota.ok("release", str(named["held"]))
        go_on = [job["id"] for job in told["jobs"] if BY_LABEL[job["state"]] in LEASED]
        go_on += [named[name] for name in ("ready", "dependent", "of group", "held")]
        _settle(rota, go_on)
        assert {rota.state(id) for id in go_on} == {"complete"}
        assert rota.state(named["blocked"]) == "blocked"
        assert rota.json("why", str(named["blocked"]))["reasons"][0]["blockers"] == [named["failed"]]
        assert rota.state(named["delayed"]) in ("delayed", "running", "failed", "ready", "scheduled")
        _check_history(rota, told, ended={"complete", "failed", "cancelled"})
        for name, text in (("finishing", b"finished once\n"), ("behaving", b"ended once\n")):
            assert _stdout(rota, named[name]) == text
            assert rota.json("show", str(named[name]))["attempt"] == 1, "it had ended, and was not run again"
        for name in ("scheduled", "starting"):
            assert _stdout(rota, named[name]) == f"{name} ran\n".encode()
        for name in ("running", "scratch", "suspended"):
            assert _stdout(rota, named[name]) == b"attempt 2\n"
        _check_that_it_is_used_as_ever(rota, told)


def _check_that_it_is_used_as_ever(rota: Deployment, told: Told) -> None:
    """Known commands are known, new ones get new ids, and what was learned and declared is there."""
    words = ("add", "--json", "--cpus", "0", "--cwd", "/", "--group", "file", "-")
    if getpass.getuser() == told["jobs"][0]["user"]:
        again = rota.json(*words[:1], *words[2:], input="echo one\necho two\necho one\n")
        assert again["added"] == []
        assert len(again["existing"]) == 3
    (new,) = rota.json("add", "--cpus", "0", "--cwd", "/", "--", "true")["added"]
    assert new > max(job["id"] for job in told["jobs"])
    rota.ok("wait", str(new))
    assert rota.json("learn", "golden")["groups"][0]["observations"] == 4
    assert {"licence", "door"} <= {limit["name"] for limit in rota.json("limit")["limits"]}
    assert rota.json("accounting")["window_s"] == 86400
    array = next(job["array_id"] for job in told["jobs"] if job["array_id"])
    assert len(rota.states(f"{array}_*")) == 5


@boots
def test_lost_jobs_are_settled_and_run_again(release: str, tmp_path: Path, *, rebooted: bool) -> None:
    with continued(tmp_path, release, "lost", rebooted=rebooted) as (rota, told):
        ids = [job["id"] for job in told["jobs"]]
        assert {job["state"] for job in told["jobs"]} == {"lost", "dependent"}
        _settle(rota, ids)
        assert set(rota.states().values()) == {"complete"}
        for id in ids[:2]:
            first, second = rota.json("show", str(id))["attempts"]
            assert (first["reason"]["code"], second["exit_code"]) == ("lost", 0)
        _check_history(rota, told, ended=set())


@boots
def test_ends_that_only_a_journal_knew_are_told_and_nothing_runs_twice(
    release: str, tmp_path: Path, *, rebooted: bool
) -> None:
    with continued(tmp_path, release, "unreported", rebooted=rebooted) as (rota, told):
        ends = told["ends"]
        _settle(rota, [id for ids in ends.values() for id in ids])
        shown = _shown(rota, told)
        found = {id: (job["state"], job["attempt"], job["exit_code"]) for id, job in shown.items()}
        expected = dict.fromkeys(ends["complete"] + ends["behind"], ("complete", 1, 0))
        expected |= dict.fromkeys(ends["failed"], ("failed", 1, 4))
        expected |= dict.fromkeys(ends["again"], ("complete", 2, 0))
        assert found == expected
        _check_history(rota, told, ended=set())


@boots
def test_agents_of_nodes_come_back_and_their_jobs_run_again(
    release: str, tmp_path: Path, *, rebooted: bool
) -> None:
    with continued(tmp_path, release, "nodes", rebooted=rebooted, local="off") as (rota, told):
        address = json.loads((rota.home / "manager.json").read_bytes())["address"]
        for node in told["nodes"]:
            words = ("--manager", address, "--token", str(tmp_path / "pass"), "--name", node["host"])
            place = ("--dir", str(tmp_path / "agents" / node["host"]), "--cores", "2")
            rota.popen("node", "run", *words, *place, "--log", str(tmp_path / "agents.log"))
        named = {job["name"]: job["id"] for job in told["jobs"]}
        _settle(rota, list(named.values()))
        assert set(rota.states().values()) == {"complete"}
        for name in ("wide", "narrow"):
            assert _stdout(rota, named[name]) == b"attempt 2\n"
        assert sorted(rota.json("show", str(named["wide"]))["hosts"]) == ["n1", "n2"]
        _check_history(rota, told, ended={"complete"})


def test_a_site_with_its_plan_goes_on_where_it_was_paused(release: str, tmp_path: Path) -> None:
    with continued(tmp_path, release, "planned", rebooted=True) as (rota, told):
        assert rota.json("status")["paused"]
        _check_history(rota, told, ended={"complete"})
        for kind, was in told["site"].items():
            now = rota.json(kind) if kind == "limit" else rota.json(kind, "list")
            _check_site(kind, was, now)
        named = {job["name"]: job["id"] for job in told["jobs"] if job["name"]}
        rota.ok("manager", "resume")
        waiting = {named["reserved"], named["far"]}
        _settle(rota, [job["id"] for job in told["jobs"] if job["id"] not in waiting])
        states = rota.states()
        assert {states[id] for id in states.keys() - waiting} == {"complete"}
        assert {states[id] for id in waiting} == {"ready"}
        assert rota.json("show", str(named["reserved"]))["expected_start"] == "2090-01-01T00:00:00Z"


def _check_site(kind: str, was: Any, now: Any) -> None:
    """Records of the site are as they were. The host itself has another name here."""
    for name, records in was.items():
        for record in records:
            if kind == "resource" and record.get("host") == "golden":
                continue
            assert any(_same(record, other) for other in now[name]), (kind, record, now[name])


def _same(was: Any, now: Any) -> bool:
    if not isinstance(was, dict):
        return bool(was == now)
    moving = {"use", "used", "waiting", "open", "hosts", "resources"}
    return all(now.get(key) == value for key, value in was.items() if key not in moving)


def test_a_backup_is_restored(release: str, tmp_path: Path) -> None:
    told = unpack(release, "planned", tmp_path / "old")
    with deployment(tmp_path / "new", grace="1s") as rota:
        rota.ok("manager", "restore", str(tmp_path / "old" / "kept.backup"))
        rota.start()
        assert rota.states().keys() == {job["id"] for job in told["jobs"]}
        assert rota.json("status")["paused"]
