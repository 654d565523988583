"""The contract of the command line: JSON shapes, exit statuses, one-line errors."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path

import pytest

from rota.client.calls import Call
from rota.errors import BadInput
from rota.wire import messages as m
from rota.wire.views import NewTokenView
from tests.deployment import LEFT_ALONE, ROTA, Deployment

#: Every process here has an interpreter of its own.
pytestmark = pytest.mark.cold

# The fields that the contract promises.
JOB_FIELDS = set(
    (
        "id key cmd cwd name group user project queue priority state reason request size limits after dep_groups "
        "attempts attempt exit_code signal host pool resources submitted_at ready_at scheduled_at started_at "
        "ended_at expected_start wall_s cpu_s peak_mem_bytes peak_disk_bytes retries_left"
    ).split()
)


def one_line(text: str) -> str:
    assert text.startswith("rota: "), text
    assert text.endswith("\n")
    assert text.count("\n") == 1, text
    return text


def test_a_job_in_json_has_every_promised_field(shared: Deployment) -> None:
    (job,) = shared.json("add", "-g", "fields", "--", "sh", "-c", "echo out; exit 3")["added"]
    shared.rota("kill", str(job))  # it would be retried in half a minute
    shared.rota("wait", str(job))
    page = shared.json("jobs", str(job))
    assert set(page) == {"jobs", "next", "total"}
    assert page["next"] is None
    assert page["total"] == 1
    (found,) = page["jobs"]
    assert set(found) >= JOB_FIELDS
    assert isinstance(found["attempts"], int)
    assert set(found["size"]) == {"cpus", "mem_bytes", "disk_bytes", "time_s", "gpus"}
    assert datetime.fromisoformat(found["submitted_at"]).utcoffset() is not None
    shown = shared.json("show", str(job))
    assert set(shown) >= JOB_FIELDS
    assert isinstance(shown["attempts"], list)


def test_add_run_wait_and_status_in_json(shared: Deployment) -> None:
    added = shared.json("add", "-", input="true\ntrue # two\n")
    assert set(added) == {"added", "existing", "retried", "replaced", "changed", "kept"}
    assert len(added["added"]) == 2
    waited = shared.json("wait", *map(str, added["added"]))
    assert waited == {"counts": {"complete": 2}, "failed": []}
    again = shared.json("add", "-", input="true\ntrue # two\n")
    assert again == {"added": [], "existing": added["added"], "retried": [], **LEFT_ALONE}
    done = shared.rota("run", "--json", "-", input="echo noise\nexit 4\n")
    assert done.returncode == 1
    result = json.loads(done.stdout)
    assert result["counts"] == {"complete": 1, "failed": 1}
    assert len(result["failed"]) == 1
    status = shared.json("status")
    assert set(status) >= {"counts", "groups"}
    assert status["groups"]["default"]["complete"] >= 3


def test_pages_follow_one_another(shared: Deployment) -> None:
    ids = shared.json("add", "-g", "pages", "-", input="".join(f"true {n}\n" for n in range(5)))["added"]
    first = shared.json("jobs", "@pages", "--limit", "2")
    second = shared.json("jobs", "@pages", "--limit", "2", "--cursor", str(first["next"]))
    third = shared.json("jobs", "@pages", "--limit", "2", "--cursor", str(second["next"]))
    assert [job["id"] for page in (first, second, third) for job in page["jobs"]] == ids
    assert third["next"] is None
    assert first["total"] == 5


def test_quiet_prints_ids_only(shared: Deployment) -> None:
    ids = shared.ok("add", "--quiet", "-g", "quiet", "-", input="true a\ntrue b\n").split()
    assert shared.ok("jobs", "--quiet", "@quiet").split() == ids
    assert all(word.isdigit() for word in ids)


@pytest.mark.parametrize(
    ("arguments", "status", "expected"),
    [
        (["show", "999999"], 3, "there is no job 999999"),
        (["logs", "999999"], 3, "there is no job 999999"),
        (["kill", "999999"], 3, "there is no job 999999"),
        (["wait", "999999"], 3, "there is no job 999999"),
        (["jobs", "999999"], 3, "there is no job 999999"),
        (["show", "abc"], 2, "selector 'abc' is not understood"),
        (["jobs", "state=odd"], 2, "there is no state"),
        (["jobs", "what?"], 2, "is not understood"),
        (["jobs", "--limit", "0"], 2, "limit"),
        (["jobs", "--cursor", "x"], 2, "not a cursor"),
        (["kill"], 2, "missing argument"),
        (["frobnicate"], 2, "there is no command 'frobnicate'"),
        (["joobs"], 2, "did you mean 'jobs'?"),
        (["jobs", "--frob"], 2, "no such option '--frob'; see 'rota jobs --help'"),
        (["add", "--on-sucess", "--", "true"], 2, "no such option '--on-sucess'; did you mean '--on-success'"),
        (["completion"], 2, "missing argument SHELL; give one of bash, zsh, fish"),
        (["add", "nosuchfile"], 2, "cannot read nosuchfile"),
        (["add", "."], 2, "cannot read ."),
        (["add", "--script", "nosuchfile"], 2, "rota: cannot read nosuchfile: No such file or directory; give"),
        (["add", "--"], 2, "there is no command after '--'"),
        (["add", "file", "--", "true"], 2, "both a file and a command"),
        (["add", "--mem", "500", "--", "true"], 2, "--mem: '500' has no unit; write 500M"),
        (["add", "--time", "90", "--", "true"], 2, "--time: '90' has no unit"),
        (["add", "--cpus", "-1", "--", "true"], 2, "--cpus"),
        (["add", "--cpus", "nan", "--", "true"], 2, "--cpus: must be a number"),
        (["add", "--priority", "256", "--", "true"], 2, "--priority: must be from 0 to 255"),
        (["add", "--retries", "-1", "--", "true"], 2, "--retries: must be from 0 to 10000"),
        (["add", "--retries", "few", "--", "true"], 2, "--retries: must be a whole number, not 'few'"),
        (["add", "--env", "nothing", "--", "true"], 2, "--env: 'nothing' is not NAME=VALUE"),
        (["add", "--after", "999999", "--", "true"], 3, "999999"),
        (["add", "--after", "@g", "--", "true"], 3, "has never had a member"),
        (["add", "--after", "line:1", "--", "true"], 2, "line:"),
        (["add", "--queue", "fast", "--", "true"], 2, "field 'queue': there is no queue 'fast'"),
        (["add", "--queue", "", "--", "true"], 2, "--queue: '' cannot be a queue"),
        (["add", "--rerun", "--once", "--", "true"], 2, "contradict"),
        (["add", "--cpus", "9999", "--", "true"], 2, "never fits"),
        (["run", "-I", "file"], 2, "-I runs one command"),
        (["manager", "token", "add", "t", "--role", "runner", "--host", ""], 2, "'' cannot be the name of a node"),
        (["manager", "token", "add", "t", "--role", "runner", "--host", "-x"], 2, "'-x' cannot be the name"),
        (["node", "add", "--ssh", "", "n1"], 2, "--ssh: there is no command"),
        (["node", "add", "--ssh", "ssh '", "n1"], 2, "--ssh: 'ssh '' cannot be read: no closing quotation"),
        (["node", "add", "--option", "a 'b", "n1"], 2, "--option: 'a 'b' cannot be read"),
        (["node", "add", "--", "-oProxyCommand"], 2, "'-oProxyCommand' cannot be the name of a host"),
        (["node", "add", ".."], 2, "'..' cannot be the name of a host"),
        (["node", "run", "--manager", "h:1", "--token", "t", "--name", ""], 2, "'' cannot be the name of a node"),
        (["node", "run", "--manager", "h:1", "--token", "t", "--name", "n" * 300], 2, "cannot be the name of"),
        (["node", "run", "--manager", "h:1", "--token", "nofile"], 2, "token add NAME --role runner --out FILE"),
        (["run", "--output", "odd", "--", "true"], 2, "--output"),
        (["wait", "all", "--timeout", "5"], 2, "--timeout: '5' has no unit"),
        ],
)  # fmt: skip
def test_a_mistake_is_one_line_and_a_status(
    shared: Deployment, arguments: list[str], status: int, expected: str
) -> None:
    before = shared.states()
    done = shared.rota(*arguments)
    assert done.returncode == status, done.stderr
    assert expected in one_line(done.stderr)
    assert done.stdout == ""
    command, rest = arguments[0], arguments[1:]
    again = shared.rota(command, "--json", *rest)
    assert again.returncode == status
    error = json.loads(again.stdout)["error"]
    assert set(error) == {"code", "message", "hint", "field", "line", "entry"}
    assert json.loads(again.stderr) == {"error": error}
    assert shared.states().keys() == before.keys()


@pytest.mark.parametrize("noun", ["import", "manager", "manager token", "config", "node"])
def test_a_noun_without_a_verb_tells_its_verbs(shared: Deployment, noun: str) -> None:
    done = shared.rota(*noun.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == shared.ok(*noun.split(), "--help")
    in_json = shared.rota(*noun.split(), "--json")
    assert in_json.returncode == 2
    assert json.loads(in_json.stdout)["error"]["message"] == f"'rota {noun}' needs a command"


@pytest.mark.parametrize("data", [b"", b"\n\n", b"# only a comment\n", b"[]", b"\xef\xbb\xbf"])
def test_an_input_without_commands_is_refused(shared: Deployment, data: bytes) -> None:
    done = shared.rota("add", "-", input=data)
    assert done.returncode == 2
    assert "no commands in stdin" in one_line(done.stderr)


@pytest.mark.parametrize(
    "arguments",
    [["jobs"], ["status"], ["show", "1"], ["logs", "1"], ["wait", "all"], ["kill", "all"], ["manager", "status"],
     ["manager", "stop"], ["add", "--no-start", "--", "true"], ["run", "--no-start", "--", "true"]],
)  # fmt: skip
def test_without_a_manager_one_line_says_how_to_start_it(rota: Deployment, arguments: list[str]) -> None:
    done = rota.rota(*arguments)
    assert done.returncode == 4
    assert one_line(done.stderr) == "rota: no manager is running; start one with 'rota manager start'\n"


def test_global_options_stand_before_or_after_the_subcommand(shared: Deployment) -> None:
    for words in (["--json", "version"], ["version", "--json"]):
        assert "version" in json.loads(shared.ok(*words))
    home = str(shared.home)
    for words in (["--home", home, "jobs", "--json"], ["jobs", "--home", home, "--json"]):
        done = shared.rota(*words, env={**shared.env, "ROTA_HOME": "/nonexistent"})
        assert "jobs" in json.loads(done.stdout)
    assert json.loads(shared.ok("config", "show", "--json"))["home"] == home


def test_wait_gives_up_with_status_6(shared: Deployment) -> None:
    (job,) = shared.json("add", "--", "sleep", "60")["added"]
    done = shared.rota("wait", str(job), "--timeout", "0.2s")
    assert done.returncode == 6
    one_line(done.stderr)
    shared.ok("kill", str(job))


def test_sync_ends_with_the_jobs_own_status(shared: Deployment) -> None:
    assert shared.rota("add", "--sync", "--retries", "0", "--", "sh", "-c", "exit 9").returncode == 9
    assert shared.rota("wait", "last").returncode == 9


def test_a_dry_run_adds_nothing(shared: Deployment) -> None:
    before = shared.json("jobs", "--limit", "1")["total"]
    assert "would add 2 jobs" in shared.ok("add", "--dry-run", "-", input="dry 1\ndry 2\n")
    assert shared.rota("add", "--dry-run", "-", input='{"cmd": "x", "cpus": 9999}\n').returncode == 2
    assert shared.json("jobs", "--limit", "1")["total"] == before


def test_a_dry_run_of_an_array_shows_which_element_is_which(shared: Deployment) -> None:
    told = shared.ok("add", "--dry-run", "-", input='{"cmd": "same", "array": "4-5"}\nalone\n')
    assert told.splitlines() == ["would add 3 jobs", "  [4] same", "  [5] same", "  alone"]


def test_an_interrupted_upload_has_added_nothing_and_says_so(shared: Deployment) -> None:
    before = shared.json("jobs", "--limit", "1")["total"]
    process = shared.popen("add", "-", stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write(b"sleep 60\n" * 100_000)  # more than a pipe holds: it is being read
    process.send_signal(signal.SIGINT)
    process.wait(30)
    assert process.returncode == 130
    assert process.stderr is not None
    assert process.stderr.read() == b"rota: interrupted; nothing was added\n"
    process.stdin.close()
    process.stderr.close()
    assert shared.json("jobs", "--limit", "1")["total"] == before


def test_who_no_longer_waits_for_added_jobs_is_told_that_they_go_on(shared: Deployment) -> None:
    words = ["add", "--sync", "-g", "goes-on", "--", "sleep", "60"]
    process = shared.popen(*words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline().startswith(b"added 1 job")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert err == b"rota: interrupted; the jobs go on; wait for them with 'rota wait last'\n"
    assert shared.ok("kill", "@goes-on").startswith("1 job killed")


def test_hostile_text_cannot_reach_the_terminal(shared: Deployment) -> None:
    evil = "true '\x1b]0;owned\x07\u202e' \x9b31m"
    shared.ok("add", "-g", "evil", "-n", "\x1b[2J", "-", input=json.dumps({"cmd": evil}))
    for words in (["jobs", "@evil"], ["show", shared.ok("jobs", "--quiet", "@evil").strip()], ["status", "@evil"]):
        shown = shared.ok(*words)
        assert not any(c in shown for c in "\x1b\x07\x9b\u202e")
    failing = shared.rota("run", "-", input=json.dumps({"cmd": f"false {evil}"}))
    assert "\x1b" not in failing.stderr
    assert json.loads(shared.ok("jobs", "--json", "@evil"))["jobs"][0]["cmd"] == evil


def test_output_is_passed_through_byte_for_byte(shared: Deployment) -> None:
    script = "printf '\\033[31m\\000\\377\\r\\n'; printf 'to err' >&2"
    done = subprocess.run(
        [ROTA, "run", "--", "sh", "-c", script], env=shared.env, capture_output=True, check=False
    )
    assert done.stdout == b"\x1b[31m\x00\xff\r\n"
    assert done.stderr == b"to err"
    logs = subprocess.run([ROTA, "logs", "last"], env=shared.env, capture_output=True, check=False)
    assert (logs.returncode, logs.stdout, logs.stderr) == (0, done.stdout, done.stderr)
    job = max(shared.states())
    logs = subprocess.run([ROTA, "logs", str(job)], env=shared.env, capture_output=True, check=False)
    assert (logs.stdout, logs.stderr) == (done.stdout, done.stderr)
    only = subprocess.run([ROTA, "logs", str(job), "--err"], env=shared.env, capture_output=True, check=False)
    assert (only.stdout, only.stderr) == (b"to err", b"")


def test_large_output_comes_whole_and_in_order(shared: Deployment) -> None:
    lines = "".join(f"for i in $(seq 20000); do echo {name} $i; done\n" for name in "abc")
    done = shared.rota("run", "--keep-order", "-", input=lines)
    expected = [f"{name} {n}" for name in "abc" for n in range(1, 20_001)]
    assert done.stdout.split("\n")[:-1] == expected


def test_a_reader_that_leaves_is_no_error(shared: Deployment) -> None:
    done = subprocess.run(
        f"{ROTA} run -- seq 100000 | head -n 1",
        shell=True,
        env=shared.env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "1\n"
    # Who leaves while the job still prints is told that it goes on; nothing else is ever said.
    assert done.stderr in ("", "rota: the output has no reader any more; the jobs go on; see 'rota status last'\n")


def test_a_single_job_streams(shared: Deployment) -> None:
    process = shared.popen("run", "--", "sh", "-c", "echo first; read x < go; echo second", stdout=subprocess.PIPE)
    os.mkfifo(shared.work / "go")
    assert process.stdout is not None
    assert process.stdout.readline() == b"first\n"
    (shared.work / "go").write_text("go\n")
    assert process.stdout.read() == b"second\n"
    assert process.wait(30) == 0


def test_line_mode_never_breaks_a_line(shared: Deployment) -> None:
    script = "for i in 1 2 3 4 5; do printf {0}{0}; sleep 0.05; echo {0}; done\n"
    done = shared.rota("run", "--output", "line", "-", input="".join(script.format(c) for c in "ab"))
    assert sorted(done.stdout.split()) == ["aaa"] * 5 + ["bbb"] * 5
    assert shared.rota("run", "--output", "none", "--", "echo", "x").stdout == ""


def test_the_working_directory_and_environment_are_those_of_the_submission(shared: Deployment) -> None:
    link = shared.work / "link"
    link.symlink_to(shared.work, target_is_directory=True)
    env = {**shared.env, "PWD": str(link), "SPECIAL": "a\nb", "ROTA_JOB_ID": "77", "ROTA_ATTEMPT": "9"}
    script = 'echo "$PWD|$SPECIAL|$MORE|$ROTA_ATTEMPT|$ROTA_HOME"'
    done = shared.rota("run", "--env", "MORE=x=y", "--", "sh", "-c", script, env=env, cwd=link)
    assert done.stdout == f"{link}|a\nb|x=y|1|{shared.home}\n"


def test_acting_tells_how_many_changed(shared: Deployment) -> None:
    ids = shared.json("add", "-g", "acts", "-", input="sleep 61\nsleep 62\nsleep 63\nsleep 64\nsleep 65\n")[
        "added"
    ]
    last = str(ids[-1])
    assert shared.json("hold", last) == {"changed": [ids[-1]], "unchanged": [], "missing": []}
    assert shared.ok("release", last).startswith("1 job released")
    assert shared.ok("kill", "@acts").startswith("5 jobs killed")
    shared.rota("wait", "@acts")
    assert shared.json("kill", "@acts")["changed"] == []
    assert shared.ok("kill", last) == "0 jobs killed; 1 unchanged (cancelled)\n"
    assert shared.ok("retry", last).startswith("1 job")
    shared.ok("kill", last)
    shared.rota("wait", last)
    assert sorted(shared.json("remove", "@acts")["changed"]) == ids
    assert shared.rota("show", last).returncode == 3


def test_tokens_are_made_listed_and_removed_and_let_in_by_tls(shared: Deployment) -> None:
    path = shared.work / "a.token"
    shared.ok("manager", "token", "add", "alice", "--out", str(path))
    assert path.stat().st_mode & 0o777 == 0o600
    assert "alice" in shared.ok("manager", "token", "list")
    address = _address(shared)
    env = {**shared.env, "ROTA_MANAGER": address, "ROTA_TOKEN_FILE": str(path)}
    env |= {"ROTA_CA": str(shared.home / "tls" / "ca.pem"), "ROTA_HOME": str(shared.work / "elsewhere")}
    assert shared.rota("jobs", "--json", env=env).returncode == 0
    assert shared.rota("manager", "stop", env=env).returncode == 5
    shared.ok("manager", "token", "remove", "alice")
    refused = shared.rota("jobs", env=env)
    assert refused.returncode == 5
    one_line(refused.stderr)
    assert shared.rota("manager", "token", "remove", "alice").returncode == 3


def test_the_token_of_a_node_is_listed_with_its_host(shared: Deployment) -> None:
    shared.ok("manager", "token", "add", "bound", "--role", "runner", "--host", "desk4", "--out", "desk4.pass")
    (line,) = (line for line in shared.ok("manager", "token", "list").splitlines() if line.startswith("bound "))
    assert line.split()[:3] == ["bound", "runner", "desk4"]
    shared.ok("manager", "token", "remove", "bound")


@pytest.mark.parametrize("host", ["", "-x", "a/b", "n" * 254])
def test_a_manager_makes_no_token_for_a_host_that_cannot_be(shared: Deployment, host: str) -> None:
    args = {"name": "odd", "role": "runner", "host": host}
    with shared.client() as client, pytest.raises(BadInput, match="cannot be the name of a node"):
        client.ask(Call(lambda n: m.Control(n, "token-add", args), NewTokenView))


def test_an_error_in_json_that_nobody_reads_is_no_traceback(shared: Deployment) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    env = {**shared.env, "PYTHONUNBUFFERED": "1"}
    with shared.popen("show", "--json", "abc", stdout=writer, stderr=subprocess.PIPE, env=env) as process:
        os.close(writer)
        _, told = process.communicate(timeout=60)
    assert json.loads(told)["error"]["code"] == "bad_input"


def _address(shared: Deployment) -> str:
    for _ in range(200):
        if address := shared.json("manager", "status")["address"]:
            return str(address)
        time.sleep(0.05)
    raise AssertionError("the manager has no address")


def test_wherever_nobody_answers_the_status_is_4(rota: Deployment, tmp_path: Path) -> None:
    token = tmp_path / "t"
    token.write_text("rota_user_" + "x" * 43)
    token.chmod(0o600)
    env = {**rota.env, "ROTA_MANAGER": "127.0.0.1:1", "ROTA_TOKEN_FILE": str(token)}
    done = rota.rota("jobs", env=env)
    assert done.returncode == 4
    one_line(done.stderr)


def test_config_and_doctor_answer_without_a_manager(rota: Deployment) -> None:
    rota.home.mkdir(mode=0o700)
    (rota.home / "rota.toml").write_text('grace = "3s"\n')
    env = {key: value for key, value in rota.env.items() if key != "ROTA_GRACE"}
    settings = json.loads(rota.ok("config", "show", "--json", env=env))["settings"]
    unasked = {"running": None, "restart": False}  # no manager is running that could be asked
    assert settings["grace"] == {"value": 3.0, "origin": str(rota.home / "rota.toml"), **unasked}
    assert settings["idle_stop"] == {"value": 20.0, "origin": "ROTA_IDLE_STOP", **unasked}
    rota.ok("config", "check", env=env)
    report = rota.rota("doctor", "--json", env=env)
    assert {check["name"] for check in json.loads(report.stdout)["checks"]} >= {
        "python",
        "home",
        "manager",
        "disk",
    }
    (rota.home / "rota.toml").write_text("grce = 1\n")
    bad = rota.rota("config", "check", env=env)
    assert bad.returncode == 2
    assert "did you mean 'grace'?" in one_line(bad.stderr)
    assert rota.rota("doctor", env=env).returncode == 1


def test_doctor_tells_what_holds_jobs_and_what_that_does_not_guarantee(rota: Deployment) -> None:
    found = rota.rota("doctor", "--json", env=rota.env | {"ROTA_CONTAINMENT": "session"}).stdout
    (check,) = [one for one in json.loads(found)["checks"] if one["name"] == "containment"]
    assert check["level"] == "note"
    assert "sessions" in check["message"]
    assert "not guaranteed" in check["hint"]
    missing = rota.env | {"ROTA_CONTAINMENT_SCRIPT": "/nonexistent/script"}
    found = rota.rota("doctor", "--json", env=missing).stdout
    checks = [one for one in json.loads(found)["checks"] if one["name"] == "containment"]
    assert checks[0]["level"] == "bad"
    assert "/nonexistent/script cannot be executed" in checks[0]["message"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_and_words(shared: Deployment, shell: str) -> None:
    assert "_ROTA_COMPLETE" in shared.ok("completion", shell)
    env = {**shared.env, "_ROTA_COMPLETE": "bash_complete", "COMP_WORDS": "rota jobs state=fa", "COMP_CWORD": "2"}
    assert "state=failed" in shared.rota(env=env).stdout


def test_two_that_start_a_manager_at_once_use_the_same_one(rota: Deployment) -> None:
    racers = [rota.popen("add", "--quiet", "--", "true", stdout=subprocess.PIPE) for _ in range(4)]
    outputs = [racer.communicate(timeout=60)[0] for racer in racers]
    assert [racer.returncode for racer in racers] == [0] * 4
    assert sorted(int(text) for text in outputs) == [1, 2, 3, 4]


def test_a_manager_cannot_be_started_twice(rota: Deployment) -> None:
    rota.start()
    pid = rota.manager_pid()
    assert "already" in rota.ok("manager", "start")
    second = rota.rota("manager", "start", "--foreground")
    assert second.returncode != 0
    one_line(second.stderr)
    assert rota.manager_pid() == pid
    rota.ok("manager", "stop")
    assert rota.rota("manager", "status").returncode == 4


def test_a_home_with_a_very_long_path_works(rota: Deployment) -> None:
    home = rota.work / ("x" * 100) / ("y" * 100)
    env = {**rota.env, "ROTA_HOME": str(home), "XDG_RUNTIME_DIR": str(rota.work)}
    try:
        done = rota.rota("run", "--", "echo", "far", env=env)
        assert done.stdout == "far\n", done.stderr
    finally:
        rota.rota("manager", "stop", "--kill", env=env)


def test_version_starts_fast_and_imports_little() -> None:
    seen = subprocess.run(
        [sys.executable, "-X", "importtime", ROTA, "version"], capture_output=True, text=True, check=True
    ).stderr
    loaded = {line.rpartition("|")[2].strip() for line in seen.splitlines()}
    assert "click" in loaded
    assert not loaded & {"msgspec", "asyncio", "rich", "cryptography", "subprocess", "ssl", "tomllib"}


def test_add_imports_neither_asyncio_nor_tls(shared: Deployment) -> None:
    seen = subprocess.run(
        [sys.executable, "-X", "importtime", ROTA, "add", "--", "true"],
        capture_output=True,
        text=True,
        check=True,
        env=shared.env,
    ).stderr
    loaded = {line.rpartition("|")[2].strip() for line in seen.splitlines()}
    assert not loaded & {"asyncio", "rich", "cryptography", "subprocess", "ssl", "rota.client.aio"}


@pytest.mark.parametrize(
    ("lines", "field", "line", "entry", "message"),
    [
        ('true\n{"cmd": "true", "mem": 5}\n', "mem", 2, None, "stdin line 2: field 'mem': '5' has no unit"),
        ('[{"cmd": "true"},\n{"cmd": "true", "after": "x"}]', "after", 2, 2, "stdin line 2 (entry 2): field"),
        ('true\ntrue\n{"cmd": "true", "after": [999999]}\n', "after", 3, None, "stdin line 3: field 'after': "),
        ('true\n{"cmd": "true", "queue": "none-such"}\n', "queue", 2, None, "stdin line 2: field 'queue': "),
        ('true\n{"cmd": "true", "mem": "900P"}\n', None, 2, None, "stdin line 2: "),
        ("true\n\0\n", None, 2, None, "stdin line 2: contains a NUL byte"),
    ],
)  # fmt: skip
def test_a_mistake_has_its_place_as_data(
    shared: Deployment, lines: str, field: str | None, line: int, entry: int | None, message: str
) -> None:
    """Whether the client finds it or the manager."""
    done = shared.rota("add", "--json", "-", input=lines)
    assert done.returncode in (2, 3)
    error = json.loads(done.stdout)["error"]
    assert (error["field"], error["line"], error["entry"]) == (field, line, entry), error
    assert error["message"].startswith(message)


def test_a_mistake_in_a_flag_has_its_field(shared: Deployment) -> None:
    error = json.loads(shared.rota("add", "--json", "--dep-group", "a:b", "--", "true").stdout)["error"]
    assert (error["field"], error["line"]) == ("dep_groups", None)
    assert error["message"].startswith("--dep-group: ")
    error = json.loads(shared.rota("add", "--json", "--after", "999999", "--", "true").stdout)["error"]
    assert (error["field"], error["line"]) == ("after", None)
