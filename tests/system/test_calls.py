"""Calls of Python functions as jobs: results, failures, templates, and what bad modules can do."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.deployment import Deployment, deployment, is_alive, wait_until

_MODULE = """
import os, sys, time
from dataclasses import dataclass

print("imported")

def add(a, b=1):
    return a + b

def who():
    job = int(os.environ["ROTA_JOB_ID"])
    return {"pid": os.getpid(), "parent": os.getppid(), "group": os.getsid(0), "job": job}

def groups():
    return open("/proc/self/cgroup").read()

def fail(text):
    print("about to fail")
    raise ValueError(text)

def nap(seconds, mark):
    open(mark, "w").close()
    time.sleep(seconds)
    return "rested"

def gone():
    os._exit(0)

def killed():
    os.kill(os.getpid(), 9)

def leave():
    sys.exit(7)

@dataclass
class Point:
    x: int
    y: float = 0.5

def move(point: Point, by: int) -> Point:
    return Point(point.x + by, point.y)

def swap(first, *rest: int, **named: str):
    return [rest, named, first]

async def later(x):
    return x
"""


@pytest.fixture
def rota(tmp_path: Path) -> Any:
    with deployment(tmp_path, grace="1s") as made:
        (made.work / "shop.py").write_text(_MODULE)
        made.env["PATH"] = f"{Path(sys.executable).parent}:{made.env['PATH']}"
        yield made


def _add(rota: Deployment, call: str, *args: Any, options: tuple[str, ...] = (), **kwargs: Any) -> int:
    words = ["--call", call, "--args", json.dumps(args), "--kwargs", json.dumps(kwargs), *options]
    return int(rota.json("add", *words)["added"][0])


def _called(
    rota: Deployment, call: str, *args: Any, options: tuple[str, ...] = (), **kwargs: Any
) -> dict[str, Any]:
    """The result of a call that has ended, without retries."""
    job = _add(rota, call, *args, options=("--retries", "0", *options), **kwargs)
    rota.rota("wait", str(job))
    return _result(rota, job)


def _result(rota: Deployment, job: int) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(rota.rota("result", "--json", str(job)).stdout)
    return found


def _templates(rota: Deployment) -> list[int]:
    found = []
    for name in os.listdir("/proc"):
        try:
            words = Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0") if name.isdigit() else []
            here = Path(f"/proc/{name}/cwd").readlink() == rota.work if words else False
        except OSError:
            continue
        if b"serve" in words and here and is_alive(int(name)):
            found.append(int(name))
    return found


def _warm(rota: Deployment, call: str, *args: Any) -> dict[str, Any]:
    """The result of a call that was a fork of a template."""

    def forked() -> dict[str, Any] | None:
        found = _called(rota, call, *args)
        with rota.client() as client:
            return found if client.results(found["id"])[0].warm else None

    made: dict[str, Any] = wait_until(forked, f"a template forks for {call}")
    return made


def test_run_prints_what_the_function_returned(rota: Deployment) -> None:
    assert rota.ok("run", "--call", "math:hypot", "--args", "[3, 4]") == "5.0\n"
    assert rota.ok("run", "--call", "shop:add", "--args", '["a"]', "--kwargs", '{"b": "ä"}') == 'imported\n"aä"\n'


def test_an_exception_has_type_message_and_traceback(rota: Deployment) -> None:
    done = rota.rota("run", "--call", "shop:fail", "--args", '["no such thing"]')
    assert done.returncode == 1
    assert "about to fail" in done.stdout
    assert "ValueError: no such thing" in done.stderr
    with rota.client() as client:
        job = client.job(1)
        assert job.reason is not None
        assert (job.state, job.exit_code, job.reason.code) == ("failed", 1, "exception")
        assert job.reason.message == "ValueError: no such thing"
    found = _result(rota, 1)
    assert found["result"] is None
    assert (found["error"]["type"], found["error"]["message"]) == ("ValueError", "no such thing")
    assert "raise ValueError(text)" in found["error"]["traceback"]
    assert "template.py" not in found["error"]["traceback"]
    assert rota.rota("result", "1").returncode == 1


def test_a_fork_of_a_template_is_a_process_like_any_other_job(rota: Deployment) -> None:
    found = _warm(rota, "shop:who")["result"]
    assert found["group"] == found["pid"]
    assert found["parent"] in rota.runner_pids()
    assert "called in    a fork of a template" in rota.ok("show", str(found["job"]))
    assert rota.ok("logs", str(found["job"])) == ""  # the module was imported before


def test_output_and_measurements_of_forks_are_those_of_any_job(rota: Deployment) -> None:
    (rota.work / "busy.py").write_text(
        "import sys\n"
        "def spin(text):\n"
        "    held = bytearray(300_000_000)\n"
        "    print(text); print('oh', file=sys.stderr)\n"
        "    return sum(range(3_000_000)) and len(held)\n"
    )
    job = _warm(rota, "busy:spin", "hello")["id"]
    with rota.client() as client:
        view = client.job(job)
        assert view.cpu_s is not None
        assert view.peak_mem_bytes is not None
        assert view.peak_mem_bytes > 300_000_000
    assert rota.ok("logs", str(job)) == "hello\n"
    assert "oh" in rota.ok("logs", "--err", str(job))


def test_a_killed_fork_is_cancelled_and_its_template_goes_on(rota: Deployment) -> None:
    _warm(rota, "shop:add", 1)
    (template,) = _templates(rota)
    job = _add(rota, "shop:nap", 600, str(rota.work / "began"))
    wait_until((rota.work / "began").exists, "it runs")
    rota.ok("kill", str(job))
    rota.rota("wait", str(job))
    assert _result(rota, job)["state"] == "cancelled"
    assert _result(rota, job)["error"]["type"] == "kill_requested"
    assert _warm(rota, "shop:add", 1)["result"] == 2
    assert _templates(rota) == [template]


def test_a_fork_ends_at_its_walltime(rota: Deployment) -> None:
    _warm(rota, "shop:add", 1)
    found = _called(rota, "shop:nap", 600, str(rota.work / "began"), options=("--walltime", "1s"))
    assert (found["state"], found["error"]["type"]) == ("failed", "walltime")


def test_a_fork_is_in_a_group_of_its_own_before_its_function_begins(tmp_path: Path) -> None:
    with deployment(tmp_path, containment="cgroup") as rota:
        (rota.work / "shop.py").write_text(_MODULE)
        found = _warm(rota, "shop:groups")
        kind = rota.ok("doctor") if os.path.exists("/sys/fs/cgroup") else ""
        if "control groups: none" in kind:
            pytest.skip("there are no control groups here")
        assert f"-{found['id']}.1" in found["result"]
        (template,) = _templates(rota)
        assert f"-{found['id']}.1" not in Path(f"/proc/{template}/cgroup").read_text()


def test_a_template_is_replaced_when_its_module_changes(rota: Deployment) -> None:
    assert _warm(rota, "shop:add", 1)["result"] == 2
    (first,) = _templates(rota)
    (rota.work / "shop.py").write_text(_MODULE.replace("return a + b", "return a - b"))
    assert _called(rota, "shop:add", 1)["result"] == 0
    assert _warm(rota, "shop:add", 1)["result"] == 0
    wait_until(lambda: first not in _templates(rota), "the old one is gone")


def test_a_template_that_died_is_replaced(rota: Deployment) -> None:
    _warm(rota, "shop:add", 1)
    (first,) = _templates(rota)
    os.kill(first, signal.SIGKILL)
    assert _called(rota, "shop:add", 1)["result"] == 2


def test_a_module_that_starts_threads_gets_a_fresh_interpreter_for_each_call(rota: Deployment) -> None:
    (rota.work / "threads.py").write_text(
        "import os, threading, time\n"
        "threading.Thread(target=lambda: time.sleep(3600), daemon=True).start()\n"
        "def me():\n    return os.getpid()\n"
    )
    found = [_called(rota, "threads:me") for _ in range(4)]
    assert len({each["result"] for each in found}) == 4
    with rota.client() as client:
        results = client.results(*(each["id"] for each in found))
    assert not any(each.warm for each in results)
    assert all("starts threads" in each.note for each in results)


@pytest.mark.parametrize(
    ("text", "reason", "words"),
    [
        ("import nosuchmodule\n", "import", "ModuleNotFoundError: No module named 'nosuchmodule'"),
        ("def f(:\n", "import", "SyntaxError"),
        ("import sys\nsys.exit(3)\n", "import", "SystemExit: 3"),
        ("f = 3\n", "import", "is no function but of type int"),
        ("def f():\n    return b'abc'\n", "result", "type bytes, which is not JSON"),
        ("def f():\n    return float('nan')\n", "result", "is not JSON"),
        ("def f():\n    x = []\n    x.append(x)\n    return x\n", "result", "is not JSON"),
        ("def f():\n    return 'x' * 100_000_000\n", "result", "has 100000002 bytes of JSON, and at most 1048576"),
        ("def f():\n    return '\\ud800'\n", "result", "is not JSON"),
        ("import os\ndef f():\n    os._exit(0)\n", "result", "ended before it could leave a result"),
        ("import os\nos.closerange(3, 65536)\ndef f():\n    return 1\n", "result", "closed the descriptor"),
        ("def f(x):\n    return x\n", "exception", "missing a required argument: 'x'"),
        ("def f():\n    raise KeyboardInterrupt\n", "exception", "KeyboardInterrupt"),
        ("def f():\n    f()\n", "exception", "RecursionError"),
    ],
)  # fmt: skip
def test_bad_modules_and_results_are_clear_errors_cold_and_warm(
    rota: Deployment, text: str, reason: str, words: str
) -> None:
    (rota.work / "bad.py").write_text(text)
    for _ in range(4):
        job = _called(rota, "bad:f")["id"]
        with rota.client() as client:
            view = client.job(job)
        assert view.reason is not None
        assert (view.state, view.exit_code, view.reason.code) == ("failed", 1, reason)
        assert words in view.reason.message


def test_modules_that_chdir_print_and_close_descriptors_work_cold_and_warm(rota: Deployment) -> None:
    (rota.work / "elsewhere").mkdir()
    (rota.work / "odd.py").write_text(
        "import os, sys\nos.chdir('elsewhere')\nos.closerange(3, 256)\nsys.stdout.write('hello')\n"
        "def f():\n    return os.getcwd()\n"
    )
    assert _called(rota, "odd:f")["result"] == str(rota.work / "elsewhere")
    assert _warm(rota, "odd:f")["result"] == str(rota.work / "elsewhere")


def test_a_module_that_is_imported_for_ever_ends_at_the_walltime(rota: Deployment) -> None:
    (rota.work / "ever.py").write_text("import time\nwhile True:\n    time.sleep(1)\n")
    for _ in range(3):
        found = _called(rota, "ever:f", options=("--walltime", "1s"))
        assert (found["state"], found["error"]["type"]) == ("failed", "walltime")
    assert _called(rota, "shop:add", 1)["result"] == 2  # others go on


def test_a_signal_ends_a_call_as_it_ends_a_command(rota: Deployment) -> None:
    found = _called(rota, "shop:killed")
    assert (found["state"], found["error"]["type"]) == ("failed", "signal")


def test_arguments_are_converted_as_the_function_is_annotated(rota: Deployment) -> None:
    assert _called(rota, "shop:move", {"x": 1}, 2)["result"] == {"x": 3, "y": 0.5}
    assert _called(rota, "shop:swap", 1, 2, 3, k="v")["result"] == [[2, 3], {"k": "v"}, 1]
    assert _called(rota, "shop:later", 5)["result"] == 5
    found = _called(rota, "shop:move", {"x": "one"}, 2)
    assert found["error"]["type"] == "TypeError"
    assert "argument 'point'" in found["error"]["message"]
    assert "arguments converted by msgspec" in rota.ok("show", "1")


def test_an_interpreter_without_rota_and_msgspec_gets_plain_json(rota: Deployment) -> None:
    python = "/usr/bin/python3"
    without = subprocess.run([python, "-c", "import msgspec"], capture_output=True, check=False).returncode
    if without == 0:
        pytest.skip("this interpreter has msgspec")
    found = _called(rota, "shop:move", 1, 2, options=("--python", python))
    assert found["error"]["type"] == "AttributeError"
    assert _called(rota, "shop:add", 1, b=2, options=("--python", python))["result"] == 3
    assert "arguments as plain JSON" in rota.ok("show", "2")


def test_an_interpreter_that_does_not_exist_is_said_so(rota: Deployment) -> None:
    found = _called(rota, "shop:add", 1, options=("--python", "/nowhere/python"))
    assert (found["state"], found["error"]["type"]) == ("failed", "not_found")


def test_a_file_is_imported_without_being_run_as_a_program(rota: Deployment) -> None:
    (rota.work / "program.py").write_text(
        "import shop\ndef name():\n    return __name__, shop.add(1)\n"
        "if __name__ == '__main__':\n    raise SystemExit(9)\n"
    )
    assert _called(rota, "program.py:name")["result"] == ["__mp_main__", 2]


def test_equal_calls_are_known_again(rota: Deployment) -> None:
    entries = [{"call": "shop:add", "args": [1], "kwargs": {"b": 2}}, {"call": "shop:add", "args": [1]}]
    text = "\n".join(map(json.dumps, entries))
    first = rota.json("add", "-", input=text)
    rota.ok("wait", "all")
    again = rota.json("add", "-", input=text)
    assert len(first["added"]) == 2
    assert (again["added"], again["existing"]) == ([], first["added"])
    other = rota.json("add", "-", input='{"call": "shop:add", "args": [2]}')
    assert len(other["added"]) == 1


def test_learning_group_and_rows_of_calls(rota: Deployment) -> None:
    job = _called(rota, "shop:add", 1)["id"]
    with rota.client() as client:
        assert client.job(job).learn == "shop:add"
    assert "shop:add(1)" in rota.ok("jobs", str(job))
    view = rota.json("show", str(job))
    assert view["cmd"] == {"call": "shop:add", "args": [1]}


def test_results_survive_kill_9_of_manager_and_runner_and_are_backed_up(rota: Deployment, tmp_path: Path) -> None:
    job = _called(rota, "shop:add", 41)["id"]
    for pid in [rota.manager_pid(), *rota.runner_pids()]:
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda pid=pid: not is_alive(pid), "it is dead")
    rota.start()
    assert _result(rota, job)["result"] == 42
    assert _called(rota, "shop:add", 1)["result"] == 2
    backup = str(tmp_path / "backup")
    rota.ok("manager", "backup", backup)
    rota.ok("remove", str(job))
    rota.ok("manager", "stop")
    with sqlite3.connect(rota.home / "rota.db") as database:
        assert database.execute("SELECT count(*) FROM returned WHERE job = ?", (job,)).fetchone() == (0,)
    rota.ok("manager", "restore", "--replace", backup)
    rota.start()
    assert _result(rota, job)["result"] == 42


def test_templates_end_with_their_runner(rota: Deployment) -> None:
    _warm(rota, "shop:add", 1)
    (template,) = _templates(rota)
    for pid in rota.runner_pids():
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not is_alive(template), "it has noticed")


def test_a_retry_of_a_call_has_the_result_of_the_last_attempt(rota: Deployment) -> None:
    (rota.work / "twice.py").write_text(
        "import os\ndef f():\n    if os.path.exists('tried'):\n        return 'good'\n"
        "    open('tried', 'w').close()\n    raise OSError('first')\n"
    )
    found = _called(rota, "twice:f", options=("--retries", "1", "--backoff", "0s"))
    assert (found["state"], found["result"], found["error"]) == ("complete", "good", None)


def test_bad_input_is_refused_where_it_is_given(rota: Deployment) -> None:
    for words, said in (
        (("--call", "nofunction"), "--call: 'nofunction' names no function"),
        (("--call", "a b:c"), "is neither a module nor the path"),
        (("--call", "m:f", "--args", "{}"), "--args: must be a list"),
        (("--call", "m:f", "--args", "[1"), "--args: is not valid JSON"),
        (("--call", "m:f", "--kwargs", '{"a b": 1}'), "is no name of an argument"),
        (("--args", "[]"), "--call: missing"),
        (("--call", "m:f", "--", "true"), "both a function and commands"),
    ):
        done = rota.rota("add", *words)
        assert done.returncode == 2
        assert said in done.stderr
    done = rota.rota("add", "-", input='{"call": "m:f", "cmd": "true"}')
    assert "both a command and a call" in done.stderr
    done = rota.rota("add", "-", input=json.dumps({"call": "m:f", "args": ["x" * 200_000]}))
    assert "at most 131,071 are allowed" in done.stderr


def test_check_imports_the_function_here(rota: Deployment) -> None:
    done = rota.rota("add", "--check", "--call", "shop:add", "--args", "[1, 2, 3]")
    assert done.returncode == 2
    assert "does not take these arguments" in done.stderr
    done = rota.rota("add", "--check", "--call", "nosuch:add")
    assert "cannot be imported" in done.stderr
    assert rota.ok("add", "--check", "--call", "shop:add", "--args", "[1]")


def test_a_command_has_no_result_and_a_running_call_none_yet(rota: Deployment) -> None:
    rota.ok("run", "--", "true")
    assert "is no call of a function" in rota.rota("result", "1").stderr
    job = _add(rota, "shop:nap", 600, str(rota.work / "began"))
    wait_until((rota.work / "began").exists, "it runs")
    done = rota.rota("result", str(job))
    assert done.returncode == 3
    assert "has no result yet: it is running" in done.stderr
    rota.ok("kill", str(job))
