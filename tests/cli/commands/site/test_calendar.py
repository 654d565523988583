"""`rota calendar`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from rota.errors import BadInput
from rota.plan.policy.calendar_file import read_calendar
from tests.deployment import Deployment, deployment


@pytest.fixture(scope="module")
def paris(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    with deployment(tmp_path_factory.mktemp("paris"), grace="1s") as made:
        made.env["TZ"] = "Europe/Paris"
        made.start()
        yield made


def test_periods_are_added_listed_shown_and_removed(paris: Deployment) -> None:
    paris.ok("quota", "set", "*,*,*,/", "8", "--set", "day")
    assert paris.ok("calendar", "add", "08:00-19:00 Mon-Fri", "day") == "added: 08:00-19:00 mon-fri: day\n"
    done = paris.rota("calendar", "add", "--from", "2026-03-30T00:00", "--to", "2026-03-31T00:00", "holiday")
    assert done.stdout == "added: 2026-03-30T00:00/2026-03-31T00:00: holiday\n"
    assert done.stderr.startswith("rota: warning: no quota belongs to rule set 'holiday' yet; ")
    assert paris.json("calendar", "list")["periods"] == [
        {
            "period": None,
            "from": "2026-03-30T00:00",
            "to": "2026-03-31T00:00",
            "set": "holiday",
            "description": "",
        },
        {"period": "08:00-19:00 mon-fri", "from": None, "to": None, "set": "day", "description": ""},
    ]
    # Clocks are put forward on Sunday the 29th; the holiday takes the Monday.
    shown = paris.json("calendar", "show", "--from", "2026-03-27T00:00", "--to", "2026-04-01T00:00")["periods"]
    assert shown == [
        {"from": "2026-03-27T07:00:00Z", "to": "2026-03-27T18:00:00Z", "sets": ["day"]},
        {"from": "2026-03-29T22:00:00Z", "to": "2026-03-30T22:00:00Z", "sets": ["holiday"]},
        {"from": "2026-03-31T06:00:00Z", "to": "2026-03-31T17:00:00Z", "sets": ["day"]},
    ]
    lines = paris.ok("calendar", "show", "--from", "2026-03-27T00:00", "--to", "2026-03-28T00:00").splitlines()
    assert lines[1].split() == ["Fri", "2026-03-27", "08:00", "Fri", "2026-03-27", "19:00", "day"]
    assert paris.rota("calendar", "add", "08:00-19:00  mon-fri", "day").returncode == 2, "it is there already"
    assert paris.json("calendar", "remove", "08:00-19:00 mon-fri", "day") == {
        "removed": ["08:00-19:00 mon-fri: day"]
    }
    paris.ok("calendar", "remove", "--from", "2026-03-30T00:00", "--to", "2026-03-31T00:00")
    assert paris.ok("calendar", "show") == "no rule set applies in this time\n"
    assert "no periods" in paris.ok("calendar", "list")
    assert paris.rota("calendar", "remove", "mon", "day").returncode == 3


def test_periods_of_oar_are_taken_with_their_four_parts_and_descriptions(paris: Deployment) -> None:
    paris.ok("quota", "set", "*,*,*,/", "8", "--set", "day")
    added = paris.ok("calendar", "add", "08:00-19:00 mon-fri * *", "day", "--description", "workdays")
    assert added == "added: 08:00-19:00 mon-fri: day\n"
    paris.ok("calendar", "add", "* * 24-31 dec", "day")
    paris.ok("calendar", "add", "--from", "2026-07-23 8:30", "--to", "2026-07-24 19:30", "day")
    listed = paris.json("calendar", "list")["periods"]
    assert [(each["period"], each["from"], each["description"]) for each in listed] == [
        (None, "2026-07-23T08:30", ""),
        ("* * 24-31 dec", None, ""),
        ("08:00-19:00 mon-fri", None, "workdays"),
    ]
    assert "workdays" in paris.ok("calendar", "list")
    paris.ok("calendar", "remove", "08:00-19:00 mon-fri * *", "day")
    paris.ok("calendar", "remove", "* * 24-31 dec")
    paris.ok("calendar", "remove", "--from", "2026-07-23T08:30", "--to", "2026-07-24T19:30")
    assert "no periods" in paris.ok("calendar", "list")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["add", "day"], "say when, and which rule set"),
        (["add", "8-19 mon", "day"], "'8-19' is not HH:MM-HH:MM"),
        (["add", "mon-fry", "day"], "'fry' is not a day"),
        (["add", "mon", "a b"], "cannot be the name of a rule set"),
        (["add", "--from", "2026-01-01", "day"], "weekly hours, or a start and an end"),
        (["add", "--from", "2026-01-02", "--to", "2026-01-01", "day"], "not after its start"),
        (["add", "--from", "x", "--to", "2026-01-01", "day"], "'x' is not a date and time"),
        (
            ["add", "mon", "--from", "2026-01-01", "--to", "2026-01-02", "day"],
            "weekly hours, or a start and an end",
        ),
        (["add", "* * 30 feb", "day"], "there is no such day"),
        (["add", "mon", "day", "--description", "a\nb"], "description of the period"),
        (["remove"], "say which period"),
        (["show", "--from", "2026-01-02", "--to", "2026-01-01"], "--to must be after --from"),
        (["show", "--to", "9999-01-01"], "100 years"),
    ],
)
def test_mistakes_are_named_in_one_line(paris: Deployment, words: list[str], message: str) -> None:
    done = paris.rota("calendar", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


#: As OAR has it: periods of four fields with descriptions, rule sets beside them.
OAR: dict[str, Any] = {
    "periodical": [
        ["08:00-19:00 mon-fri * *", "quotas_day", "working hours"],
        ["* sat,sun * *", "quotas_weekend", "weekend"],
    ],
    "oneshot": [["2030-12-24 00:00", "2030-12-27 00:00", "quotas_holiday", "Christmas"]],
    "quotas_day": {"*,*,*,/": [8, -1, -1], "default,*,*,bob": ["0.5*ALL", 10, -1]},
    "quotas_weekend": {"*,*,*,/": [16, -1, -1]},
    "quotas_holiday": {"*,*,*,/": ["ALL", -1, -1]},
}


def test_a_calendar_of_oar_is_loaded_whole(paris: Deployment) -> None:
    paris.ok("quota", "set", "*,*,*,ann", "4")
    paris.ok("quota", "set", "*,*,*,/", "1", "--set", "old")
    file = paris.work / "quotas.json"
    file.write_text(json.dumps(OAR))
    before = paris.json("calendar", "list"), paris.json("quota", "list")
    would = paris.json("calendar", "load", str(file), "--dry-run")
    assert (len(would["changes"]), would["dry_run"]) == (7, True)
    assert (paris.json("calendar", "list"), paris.json("quota", "list")) == before
    done = paris.ok("calendar", "load", str(file))
    assert "added: period 08:00-19:00 mon-fri: quotas_day\n" in done
    assert done.endswith("3 periods and 4 quotas, 7 changes\n")
    listed = {each["set"]: each for each in paris.json("calendar", "list")["periods"]}
    assert listed["quotas_holiday"]["from"] == "2030-12-24T00:00"
    assert listed["quotas_day"]["description"] == "working hours"
    limits = {(each["rule"], each["set"]): each["limits"] for each in paris.json("quota", "list")["quotas"]}
    assert limits["default,*,*,bob", "quotas_day"] == ["0.5*ALL", 10, -1]
    assert limits["*,*,*,ann", None] == [4, -1, -1]
    assert paris.ok("calendar", "load", "-", input=json.dumps(OAR)).endswith("all there already\n")
    replaced = paris.json("calendar", "load", str(file), "--replace")["changes"]
    assert {"change": "removed", "kind": "quota", "name": "old: *,*,*,/"} in replaced
    left = {(each["rule"], each["set"]) for each in paris.json("quota", "list")["quotas"]}
    assert left == {
        ("*,*,*,ann", None),
        *((rule, name) for rule, name in limits if (name or "").startswith("quotas_")),
    }


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"periodical": [*OAR["periodical"], ["25:00-26:00 mon * *", "quotas_day"]]}, "periodical, entry 3: "),
        ({"oneshot": [["2030-12-24", "2030-12-23", "quotas_day"]]}, "oneshot, entry 1: the period ends at "),
        ({"quotas_day": {"*,*,/": [1]}}, "rule set 'quotas_day', rule '*,*,/': "),
        ({"quotas_day": {"*,*,*,/": 8}}, "rule set 'quotas_day', rule '*,*,*,/': its limits are not a list"),
        ({"periodical": [["* mon * *", "missing"]]}, "calendar names rule set 'missing'"),
        ({"periodical": [["* mon * *"]]}, "periodical of the calendar, entry 1: "),
        ({"periodical": [], "oneshot": []}, "the calendar has no period"),
        (
            {"periodical": [["* mon * *", "quotas_day"]] * 2},
            "entry 2: the period '* mon: quotas_day' is there twice",
        ),
    ],
)
def test_an_entry_that_cannot_be_read_is_named(change: dict[str, Any], says: str) -> None:
    with pytest.raises(BadInput) as refused:
        read_calendar({**OAR, **change})
    assert says in refused.value.message
    assert refused.value.hint


def test_a_file_with_a_mistake_changes_nothing(paris: Deployment) -> None:
    before = paris.json("calendar", "list"), paris.json("quota", "list")
    wrong = {**OAR, "quotas_day": {"*,*,*,/": ["many"]}}
    done = paris.rota("calendar", "load", "-", input=json.dumps(wrong))
    assert done.returncode == 2
    assert "rule set 'quotas_day', rule '*,*,*,/'" in done.stderr
    assert (paris.json("calendar", "list"), paris.json("quota", "list")) == before
    for text, says in (("{", "is not JSON"), ("[]", "calendar is not an object"), ("", "is not JSON")):
        assert says in paris.rota("calendar", "load", "-", input=text).stderr
    assert "cannot read /nowhere: No such file" in paris.rota("calendar", "load", "/nowhere").stderr


def test_a_rule_set_without_a_period_is_told(paris: Deployment) -> None:
    extra = {**OAR, "spare": {"*,*,*,/": [1, -1, -1]}}
    done = paris.rota("calendar", "load", "-", "--dry-run", input=json.dumps(extra))
    assert "warning: no period names rule set 'spare'" in done.stderr
    assert done.stdout.endswith("dry run, nothing was changed\n")
