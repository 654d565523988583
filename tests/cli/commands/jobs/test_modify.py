"""`rota modify`: the options of `add`, sent as a change; what cannot be changed says what to do instead."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

import rota
from rota.cli.commands.jobs import modify as module
from rota.cli.input.job_options import NAMES
from rota.client.fields.modification import spec_change
from rota.client.submit_environment import working_directory
from rota.core.answers import Acted
from rota.core.fields.table import CHANGEABLE, FIELDS
from rota.errors import BadInput
from rota.plan.language.retry_codes import RETRY_CODES
from rota.wire import messages as m
from tests.client.scripted import Conversation, scripted
from tests.deployment import Deployment

ROTA = str(Path(sys.executable).with_name("rota"))


def answer(conversation: Conversation, message: Any) -> None:
    conversation.reply(message.n, Acted(changed=[3, 4], unchanged=[5], missing=[]))


def command(home: object, *words: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "ROTA_HOME": str(home)}
    return subprocess.run(
        [ROTA, "modify", *words], env=env, capture_output=True, text=True, check=False, timeout=60
    )


def told(change: m.SpecChange) -> dict[str, object]:
    return {name: getattr(change, name) for name in change.__struct_fields__ if getattr(change, name) is not UNSET}


def test_it_sends_what_is_given_and_says_how_many_changed(tmp_path: Path) -> None:
    with scripted(tmp_path, answer) as (home, manager):
        done = command(
            home.path, "3", "@work", "--mem", "8G", "--no-pipefail", "--limit", "a:2", "--on-exit", "none"
        )
        assert (done.returncode, done.stdout) == (0, "2 jobs modified: 3-4; 1 unchanged\n"), done.stderr
        (heard,) = manager.conversations[0].heard
        assert isinstance(heard, m.Modify)
        assert heard.selectors == ["3", "@work"]
        assert told(heard.spec) == {
            "mem": 8 << 30,
            "pipefail": False,
            "limits": (m.NewUse("a", 2),),
            "on_exit": (),
        }
        as_json = command(home.path, "all", "--walltime", "none", "--json")
        assert json.loads(as_json.stdout) == {"changed": [3, 4], "unchanged": [5], "missing": [], "warnings": []}
        assert told(manager.conversations[1].heard[0].spec) == {"walltime_s": None}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["1"], "nothing is to be changed; give what to change"),
        (["1", "--mem", "500"], "--mem: '500' has no unit; write 500M"),
        (["1", "--limit", "a:0"], "--limit: 'a:0': the units must be"),
        (["1", "--cwd", ""], "--cwd: is empty"),
        (["1", "--cmd", " "], "--cmd: the command is empty"),
        (["1", "--scratch"], "--scratch cannot be modified"),
        (["1", "--env", "A"], "--env: 'A' is not"),
        (["1", "--array", "1-3"], "--array cannot be modified"),
        (["1", "--array-file", "x"], "--array-file cannot be modified"),
        (["1", "--after", "line:2"], "field 'after': a job that exists has no lines"),
        (["1", "--dep-group", "g"], "--dep-group cannot be modified"),
        (["1", "--no-live"], "--live cannot be modified"),
        (["1", "--allow-empty-group"], "--allow-empty-group cannot be modified"),
        (["1", "--at", "now+1h"], "--at cannot be modified: a reservation is granted when the job is added"),
        (["1", "-l", "nodes=1", "--cpus", "2"], "--request and --cpus contradict each other"),
        (["1", "--input-file", "x"], "--input-file cannot be modified: its size was taken when the job was added"),
        (["1", "--rerun"], "--rerun cannot be modified: is for adding jobs"),
        (["1", "--once"], "--once cannot be modified"),
        (["1", "--dry-run"], "--dry-run cannot be modified"),
        (["1", "--frob"], "no such option"),
        (["--mem", "1G"], "SELECTOR"),
    ],
)
def test_a_mistake_is_one_line_and_needs_no_manager(tmp_path: Path, words: list[str], expected: str) -> None:
    done = command(tmp_path / "none", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert expected in done.stderr
    assert done.stderr.count("\n") == 1


def test_every_option_of_add_is_changed_or_refused() -> None:
    assert set(NAMES) == {*CHANGEABLE, *module._REFUSED}
    assert module._REFUSED.isdisjoint(CHANGEABLE)
    for name in module._REFUSED:
        why, instead = FIELDS[name].fixed or ("", "")
        assert why
        assert instead


def test_the_help_names_every_reason_after_which_an_attempt_may_be_retried() -> None:
    assert ", ".join(RETRY_CODES) in FIELDS["retry_on"].help


def test_everything_that_can_be_changed_has_a_place_in_the_message() -> None:
    examples: dict[str, object] = {
        "cpus": 0.5, "mem": "1G", "disk": "1G", "time": "2m", "gpus": 1, "walltime": "1h", "priority": 5,
        "retries": 1, "backoff": "10s", "no_retry_over": "1h", "pipefail": True, "limits": ["a"],
        "override": "no", "input_bytes": 9, "on_success": ["remove"], "on_failure": "run: x", "on_exit": [],
        "request": "none", "where": "gpu = yes", "type": "idempotent", "checkpoint": "5m", "signal": "USR1",
        "reserve": "onfail", "reserve_for": "1h", "prefer": "gpu = yes",
        "retry_on": ["exit", "walltime"], "cwd": "/else", "env": {"B": "2", "A": "1"},
        "after": [3, "@g", "afterany:4_1-2", {"cmd": "make", "cwd": "/d"}],
    }  # fmt: skip
    change = spec_change({"cmd": ["a", "b"], **{name: examples.get(name, "text") for name in CHANGEABLE}})
    assert UNSET not in [getattr(change, name) for name in change.__struct_fields__]
    assert (change.cpus, change.time_s, change.backoff_s) == (50, 120.0, 10.0)
    assert (change.cmd, change.cwd, change.env) == (["a", "b"], "/else", b"A=1\0B=2")
    first, *others = change.after
    assert (first, others) == (
        m.NewAfter(0, 3),
        [m.NewAfter(0, "g"), m.NewAfter(0, 4, 2, elements=(1, 2)), m.NewAfter(0, "make", cwd="/d")],
    )
    relative = spec_change({"cwd": "sub", "after": ("none",), "cmd": "x"}, text=True)
    assert (relative.cwd, relative.after, relative.cmd) == (f"{working_directory()}/sub", (), "x")


def test_a_waiting_job_is_changed(shared: Deployment) -> None:
    (job,) = shared.json("add", "--after", "@nobody", "--allow-empty-group", "--", "true")["added"]
    assert shared.json("modify", str(job), "--mem", "100M", "--priority", "7")["changed"] == [job]
    shown = shared.json("show", str(job))
    assert (shown["size"]["mem_bytes"], shown["priority"]) == (100 << 20, 7)
    missing = shared.rota("modify", "999999", "--mem", "1G")
    assert missing.returncode == 3
    shared.ok("kill", str(job))


def test_an_array_with_a_file_of_parameters_runs(shared: Deployment) -> None:
    (shared.work / "p.txt").write_text("# size\nsmall\n'very large'\n\nhuge\n")
    words = ["--array-file", "p.txt", "--array", "2-3%1", "-o", "out.%a", "--", "printf", "<%s>"]
    done = shared.rota("run", *words)
    assert done.returncode == 0, done.stderr
    assert [(shared.work / f"out.{index}").read_text() for index in (2, 3)] == ["<very large>", "<huge>"]


def test_both_clients_modify(tmp_path: Path) -> None:
    with scripted(tmp_path, answer) as (home, manager):
        with rota.connect(str(home.path)) as client:
            assert client.modify(3, "@g", priority=9).changed == [3, 4]

        async def go() -> Acted:
            async with await rota.connect_async(str(home.path)) as client:
                return await client.modify("all", learn="")

        assert asyncio.run(go()).unchanged == [5]
    first, second = (conversation.heard[0] for conversation in manager.conversations)
    assert (first.selectors, told(first.spec)) == (["3", "@g"], {"priority": 9})
    assert (second.selectors, told(second.spec)) == (["all"], {"learn": ""})


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, "nothing is to be changed"),
        ({"env": "A=1"}, "field 'env': must be an object of texts"),
        ({"dep_groups": ["g"]}, "field 'dep_groups' cannot be modified"),
        ({"memm": "1G"}, "field 'memm': there is no such field; did you mean 'mem'?"),
        ({"cmd": []}, "field 'cmd': the command is empty"),
        ({"gang": "x"}, "field 'gang' cannot be modified"),
        ({"mem": None}, "field 'mem': must be a text with a unit, not null"),
    ],
)
def test_python_callers_get_the_same_refusals(fields: dict[str, object], expected: str) -> None:
    with pytest.raises(BadInput) as refused:
        spec_change(fields)
    assert expected in str(refused.value)
