"""`rota usage` and `rota node usage`: how machines spent their time."""

from __future__ import annotations

import csv
import socket
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.deployment import Deployment, wait_until

HOST = socket.gethostname()


@pytest.fixture(scope="module")
def used(shared: Deployment) -> Deployment:
    """The host was busy for a moment."""
    shared.ok("run", "--", "true")
    job = shared.json("add", "--", "sleep", "100")["added"][0]

    def running() -> bool:
        return any(row["usage"] == "running" for row in shared.json("usage")["rows"])

    wait_until(running, "it is busy")
    shared.ok("kill", str(job))
    wait_until(lambda: shared.state(job) == "cancelled", "it ended")
    return shared


def window_s(view: Any) -> float:
    return (datetime.fromisoformat(view["to"]) - datetime.fromisoformat(view["from"])).total_seconds()


@pytest.mark.parametrize("words", [["usage"], ["node", "usage"], ["node", "usage", HOST]])
@pytest.mark.parametrize("by", [[], ["--by", "host"], ["--by", "group"], ["--by", "cluster"]])
def test_the_seconds_of_each_key_add_up_to_the_window(used: Deployment, words: list[str], by: list[str]) -> None:
    view = used.json(*words, "--last", "2h", *by)
    assert list(view) == ["from", "to", "rows"]
    assert {tuple(row) for row in view["rows"]} == {("host", "condition", "usage", "seconds")}
    assert len({row["host"] for row in view["rows"]}) == 1
    assert sum(row["seconds"] for row in view["rows"]) == pytest.approx(window_s(view), abs=1e-6)
    spent = {(row["condition"], row["usage"]): row["seconds"] for row in view["rows"]}
    assert spent["automated", "running"] > 0
    assert spent["unknown", "unknown"] > 0, "it has not been there for two hours"


def test_the_table_has_a_column_for_each_part_of_the_time(used: Deployment) -> None:
    head, row = used.ok("usage").splitlines()[:2]
    assert head.split()[:3] == ["HOST", "BUSY", "IDLE"]
    assert row.split()[0] == HOST
    assert used.ok("usage", "--quiet") == f"{HOST}\n"
    assert used.ok("node", "usage", "--by", "group").splitlines()[1].split()[0] == "(none)"


def test_values_separated_by_commas_tell_the_state_too(used: Deployment) -> None:
    rows = list(csv.DictReader(used.ok("usage", "--csv", "--window", "hour", "--last", "3h").splitlines()))
    assert list(rows[0]) == ["from", "to", "host", "condition", "usage", "state", "seconds"]
    assert {row["state"] for row in rows} >= {"unknown", "alive"}
    ends = sorted({row["to"] for row in rows})
    whole = {"from": min(row["from"] for row in rows), "to": ends[-1]}
    assert sum(float(row["seconds"]) for row in rows) == pytest.approx(window_s(whole), abs=1e-5)
    assert sorted({row["from"] for row in rows})[1:] == ends[:-1], "windows follow each other"


def test_a_plot_has_a_bar_for_each_day(used: Deployment) -> None:
    lines = used.ok("usage", "--plot", "--from", "-2d", env=used.env | {"COLUMNS": "60", "TZ": "UTC"}).splitlines()
    assert lines[0] == "all: 1 machine"
    days = lines[1 : lines.index("")]
    assert len(days) == 3
    assert all(len(line) <= 60 for line in lines)
    assert "busy" in lines[-1]


def test_a_year_fits_on_a_screen_unless_days_are_asked_for(used: Deployment) -> None:
    def bars(*args: str) -> int:
        lines = used.ok("usage", "--plot", "--last", "365d", *args, env=used.env | {"TZ": "UTC"}).splitlines()
        return lines.index("") - 1

    assert bars() in (12, 13)
    assert bars("--window", "day") in (365, 366)


def test_pictures_are_written_whole(used: Deployment, tmp_path: Path) -> None:
    for name, start in (("u.svg", b"<?xml"), ("u.png", b"\x89PNG")):
        assert used.ok("usage", "--by", "host", "-o", str(tmp_path / name)) == f"drawn into {tmp_path / name}\n"
        assert (tmp_path / name).read_bytes().startswith(start)
    assert {each.name for each in tmp_path.iterdir()} == {"u.svg", "u.png"}


def test_nothing_is_known_of_long_ago(used: Deployment) -> None:
    past = ("--from", "2020-01-01", "--to", "2020-01-02")
    assert used.ok("usage", *past) == "nothing is known of any host in this time\n"
    (row,) = used.json("usage", *past)["rows"]
    assert row == {"host": HOST, "condition": "unknown", "usage": "unknown", "seconds": 86_400.0}


@pytest.mark.parametrize(
    ("args", "status", "said"),
    [
        (["--from", "2026-01-02", "--to", "2026-01-01"], 2, "--to: the time is not after --from"),
        (["--from", "now+1h"], 2, "'from' lies in the future"),
        (["nosuch"], 3, "there is no host 'nosuch'"),
        (["--by", "nosuch"], 2, "there is no property 'nosuch'"),
        (["--by", ""], 2, "--by: it is empty"),
        (["-o", "usage.html"], 2, "is not the name of a picture file"),
        (["-o", "/no/such/place/usage.svg"], 2, "there is no directory"),
        (["--window", "90m", "--csv"], 2, "a window must have whole hours"),
        (["--from", "1500-01-01"], 2, "'from'"),
    ],
)
def test_what_makes_no_sense_is_refused(used: Deployment, args: list[str], status: int, said: str) -> None:
    done = used.rota("node", "usage", *args)
    assert (done.returncode, done.stdout) == (status, "")
    assert said in done.stderr
