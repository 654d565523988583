"""Files that were written for `wr add` run here, and mean what they meant there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.deployment import LEFT_ALONE, Deployment

PIPELINE = """\
# made for wr
echo 1 > $OUT/a\t{"dep_grps": ["parts"], "rep_grp": "made", "env": ["OUT=OUTDIR"], "memory": "50M", "time": "1m"}

{"cmd": "echo 2 > $OUT/b", "dep_grps": ["parts"], "rep_grp": "made", "env": ["OUT=OUTDIR"], "disk": 0}
{"cmd": "cat a b > c", "deps": ["parts"], "cwd": "OUTDIR", "cwd_matters": true, "rep_grp": "joined", "priority": 9}
{"cmd": "wc -l < OUTDIR/c", "cmd_deps": [{"cmd": "cat a b > c", "cwd": "OUTDIR"}], "rep_grp": "joined"}
"""


@pytest.fixture
def pipeline(rota: Deployment) -> Path:
    """Two parts, what joins them, and what counts the result."""
    out = rota.work / "out"
    out.mkdir()
    made = rota.work / "pipeline.wr"
    made.write_text(PIPELINE.replace("OUTDIR", str(out)))
    return made


def jobs(rota: Deployment) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = rota.json("jobs", "all")["jobs"]
    return found


def test_a_file_of_wr_runs_in_its_order(rota: Deployment, pipeline: Path) -> None:
    done = rota.rota("import", "wr", str(pipeline), "--sync")
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr
    assert rota.ok("logs", "4") == "2\n"
    assert [job["group"] for job in jobs(rota)] == ["made", "made", "joined", "joined"]
    assert jobs(rota)[0]["size"]["mem_bytes"] == 50 << 20
    assert jobs(rota)[2]["priority"] == 9


def test_a_converted_file_does_the_same(rota: Deployment, pipeline: Path) -> None:
    converted = rota.rota("import", "wr", str(pipeline), "--dry-run", "--retries", "0", "--env", "A=b")
    assert converted.returncode == 0, converted.stderr
    assert not (rota.home / "manager.json").exists()
    lines = [json.loads(line) for line in converted.stdout.splitlines()]
    assert [line["retries"] for line in lines] == [0] * 4
    assert lines[0]["env"] == {"A": "b", "OUT": str(rota.work / "out")}
    assert lines[3]["after"] == ["line:3"]
    (rota.work / "jobs.jsonl").write_text(converted.stdout)
    done = rota.rota("add", "jobs.jsonl", "--sync")
    assert done.returncode == 0, done.stderr
    assert rota.ok("logs", "4") == "2\n"
    # The commands are the same, so these are the same jobs.
    again = json.loads(rota.ok("import", "wr", str(pipeline), "--json"))
    assert again == {"added": [], "existing": [1, 2, 3, 4], "retried": [], **LEFT_ALONE}


def test_a_dry_run_in_json_is_one_array(rota: Deployment, pipeline: Path) -> None:
    found = json.loads(rota.ok("import", "wr", str(pipeline), "--dry-run", "--json"))
    assert [job["group"] for job in found] == ["made", "made", "joined", "joined"]


def test_a_directory_that_was_stated_is_kept_even_if_it_is_this_one(rota: Deployment) -> None:
    said = json.dumps({"cmd": "pwd", "cwd": str(rota.work), "cwd_matters": True})
    converted = rota.ok("import", "wr", "-", "--dry-run", input=said)
    elsewhere = rota.work / "elsewhere"
    elsewhere.mkdir()
    assert rota.ok("run", "-", input=converted, cwd=elsewhere) == f"{rota.work}\n"


def test_jobs_run_as_they_did_under_wr(rota: Deployment) -> None:
    said = (
        'test "$PWD" != WORK && test "$TMPDIR" != WORK && [[ ab == a* ]] && echo own directory, in bash\n'
        'test "$HOME" = "$PWD" && echo at home\t{"change_home": true}\n'
        'test "$PWD" = WORK && echo here\t{"cwd_matters": true}\n'
        "false | true\n"
    ).replace("WORK", str(rota.work))
    done = rota.rota("import", "wr", "-", "--sync", "--retries", "0", input=said)
    assert done.returncode == 1
    assert rota.ok("logs", "1") == "own directory, in bash\n"
    assert rota.ok("logs", "2") == "at home\n"
    assert rota.ok("logs", "3") == "here\n"
    assert rota.states("state=failed") == {4: "failed"}


def test_options_are_the_defaults_of_lines_that_do_not_say(rota: Deployment) -> None:
    said = 'true\nfalse || true\t{"rep_grp": "own", "cpus": 0.5}\n'
    rota.ok("import", "wr", "-", "--cwd-matters", "-g", "all", "--cpus", "0.25", "--sync", input=said)
    found = jobs(rota)
    assert [(job["group"], job["size"]["cpus"]) for job in found] == [("all", 0.25), ("own", 0.5)]
    assert {job["cwd"] for job in found} == {str(rota.work)}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('x\t{"memory": "1"}', "stdin line 2: field 'memory': '1' has no unit"),
        ('x\t{"rep_grp": "@a"}', "stdin line 2: field 'rep_grp': cannot be a group"),
        ('x\t{"cpus": -1}', "stdin line 2: field 'cpus': must be from 0"),
        ('x\t{"no_retry_over_walltime": "soon"}', "field 'no_retry_over_walltime': 'soon' is not a time"),
        ('x\t{"deps": ["a:b"]}', "field 'deps': 'a:b'"),
        ('x\t{"dep_grps": ["a:b"]}', "field 'dep_grps': 'a:b'"),
        ('x\t{"limit_grps": ["a b"]}', "field 'limit_grps': 'a b'"),
        ("x\ty\tz", "stdin line 2: has 3 columns"),
    ],
)
def test_a_bad_line_adds_nothing_and_is_named_in_words_of_wr(rota: Deployment, line: str, expected: str) -> None:
    done = rota.rota("import", "wr", "-", input=f"true\n{line}\n")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("rota: ")
    assert expected in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (rota.home / "manager.json").exists()


def test_what_has_no_equivalent_is_refused_unless_its_loss_is_accepted_and_then_said_once(
    rota: Deployment,
) -> None:
    said = "".join(f'echo {n}\t{{"cloud_os": "Ubuntu"}}\n' for n in range(3)) + "echo 1\n"
    for options in ((), ("--drop", "mounts"), ("--drop", "cloud_os", "--strict")):
        refused = rota.rota("import", "wr", "-", *options, input=said)
        assert refused.returncode == 2
        assert "stdin line 1: field 'cloud_os'" in refused.stderr
    assert "--drop cloud_os" in rota.rota("import", "wr", "-", input=said).stderr
    done = rota.rota("import", "wr", "-", "--json", "--drop", "cloud_os", input=said)
    assert json.loads(done.stdout)["added"] == [1, 2, 3]
    assert done.stderr.splitlines() == [
        "rota: warning: stdin line 1: field 'cloud_os': has no equivalent and is left out: "
        "it chooses machines of a cloud (and 2 more like it)",
        "rota: warning: stdin line 4: repeats the command of another line, so it is the same job to wr",
    ]


def test_limits_that_lines_declare_are_set_first(rota: Deployment) -> None:
    said = 'true\t{"limit_grps": ["few:2"]}\nfalse || true\t{"limit_grps": ["few"]}\n'
    dry = rota.rota("import", "wr", "-", "--dry-run", input=said)
    assert "rota limit few:2" in dry.stderr
    rota.ok("import", "wr", "-", "--sync", input=said)
    assert "few" in rota.ok("limit")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('x\t{"deps": ["nobody"]}', "stdin line 2: field 'deps': group 'nobody' has never had a member"),
        (
            'x\t{"cmd_deps": [{"cmd": "nowhere", "cwd": ""}]}',
            "stdin line 2: field 'cmd_deps': no job has the command 'nowhere' in a directory of its own; "
            "add that first, or do not wait for it: --drop cmd_deps",
        ),
        ('x\t{"cpus": 99999}', "stdin line 2: never fits"),
    ],
)
def test_what_the_manager_refuses_adds_nothing_either(rota: Deployment, line: str, expected: str) -> None:
    done = rota.rota("import", "wr", "-", input=f"true\n{line}\n")
    assert done.returncode in (2, 3)
    assert expected in done.stderr
    assert jobs(rota) == []


def test_a_limit_that_nobody_has_declared_holds_nobody_up_and_is_listed(rota: Deployment) -> None:
    said = 'true\t{"limit_grps": ["unknown", "free:-1"]}\n'
    assert rota.rota("import", "wr", "-", "--sync", input=said).returncode == 0
    listed = {each["name"]: (each["capacity"], each["by_jobs"]) for each in rota.json("limit")["limits"]}
    assert listed == {"unknown": (None, True), "free": (None, False)}


def test_commands_of_earlier_files_are_waited_for_and_dates_decide_when(rota: Deployment) -> None:
    first = f'echo first\necho second\t{{"cwd": "{rota.work}", "cwd_matters": true}}\necho third\n'
    rota.ok("import", "wr", "-", "--sync", input=first)
    rota.ok("import", "wr", "-", input='echo held\t{"limit_grps": ["stop:0"]}\n')
    deps = [{"cmd": cmd, "cwd": ""} for cmd in ("echo first", "echo held")] + [
        {"cmd": "echo second", "cwd": str(rota.work)}
    ]
    said = {
        "cmd": "echo last",
        "cmd_deps": deps,
        "limit_grps": ["2020-01-01 00:00:00 < datetime < 2090-01-01 00:00:00"],
    }
    rota.ok("import", "wr", "-", "-t", "type:wr", input=json.dumps(said))
    job = rota.json("show", "5")
    assert job["after"] == ["1", "4", "2"]
    assert job["state"] == "dependent"
    assert [word.partition("=")[0] for word in job["type"]] == ["postpone", "expire", "type:wr"]
    converted = rota.ok("import", "wr", "-", "--dry-run", input=json.dumps(said | {"cmd": "echo again"}))
    assert (
        rota.json("show", str(json.loads(rota.ok("add", "-", "--json", input=converted))["added"][0]))["after"]
        == job["after"]
    )
    unknown = 'echo x\t{"cmd_deps": [{"cmd": "nowhere", "cwd": ""}]}\n'
    dropped = rota.rota("import", "wr", "-", "--drop", "cmd_deps", input=unknown)
    assert dropped.returncode == 0
    assert "'nowhere' is not in this input, so it is not waited for" in dropped.stderr


def test_dependencies_may_point_down_and_windows_are_limits(rota: Deployment) -> None:
    said = (
        'echo last\t{"deps": ["g"], "cmd_deps": [{"cmd": "echo third", "cwd": ""}]}\n'
        'echo first\t{"dep_grps": ["g"], "limit_grps": ["00:00:00 < time < 23:59:00", "time < 23:59:00"]}\n'
        "echo third\n"
    )
    done = rota.json("import", "wr", "-", input=said)
    assert done["added"] == [1, 2, 3]
    assert rota.json("show", "1")["after"]
    assert "time_0000_2359" in rota.ok("limit")


def test_mistakes_in_the_call_are_named(rota: Deployment) -> None:
    missing = rota.rota("import", "wr", "nowhere.txt")
    assert missing.returncode == 2
    assert "cannot read nowhere.txt" in missing.stderr
    empty = rota.rota("import", "wr", "-", input="# nothing\n")
    assert empty.returncode == 2
    assert "no commands in stdin" in empty.stderr
    both = rota.rota("import", "wr", "-", "--scratch", "--cwd-matters", input="true\n")
    assert both.returncode == 2
    assert "contradict" in both.stderr
