"""`rota pipeline run` at a real pseudo-terminal: what it draws, what keys and signals do."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.deployment import ROTA, Deployment, deployment, wait_until
from tests.picture import Picture
from tests.typist import Typist, typing_in

_NAMES = ("fetch ", "build ")
#: Each element is built once there is a file of its name.
_WAITING = """
stages:
  - {name: fetch, run: "true", cpus: 0}
  - name: build
    imperative: true
    needs: dependencies
    cpus: 0
    run: "while ! test -e go-{name}; do sleep 0.05; done"
elements:
  base: {}
  element-1: {}
  element-2: {}
  app: {depends: [base]}
"""
_FAILING = """
stages:
  - {name: build, needs: dependencies, run: "echo this is why; test -e fixed"}
  - {name: push, run: "true"}
elements: {lib: {}, app: {depends: [lib]}}
"""


@pytest.fixture(scope="module")
def rota(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    with deployment(tmp_path_factory.mktemp("screens"), cores="2", grace="1s") as made:
        made.env |= {"SHELL": "/bin/sh", "PS1": "inside> "}
        made.start()
        yield made


class Person:
    """Somebody who looks at the screen of `rota pipeline run p.yaml`."""

    def __init__(self, typist: Typist, directory: Path, *, rows: int, cols: int) -> None:
        self.typist = typist
        self.directory = directory
        self.picture = Picture(rows=rows, cols=cols)

    def sees(self, text: str) -> None:
        """Wait until this is drawn."""
        self.picture.write(self.typist.sees(text))

    def sees_running(self, jobs: int) -> list[str]:
        """Wait until so many jobs run at the second stage, and none at the first; the lines then."""
        for _picture in range(1000):
            self.sees("── p.yaml ")  # everything below it was drawn before
            fetch, build = ([line for line in self.picture.lines if line.startswith(name)] for name in _NAMES)
            if fetch and build and fetch[-1].endswith(" .") and build[-1].endswith(f" {jobs}"):
                return self.picture.lines
        raise AssertionError(self.picture.lines)

    def ends(self) -> int:
        status = self.typist.ends()
        self.picture.write(self.typist.shown)
        assert self.typist.restored
        return status

    def go(self, *names: str) -> None:
        """Let these elements succeed."""
        for name in names:
            (self.directory / f"go-{name}").touch()


def place(rota: Deployment, name: str, text: str) -> Path:
    directory = rota.work / name
    directory.mkdir()
    (directory / "p.yaml").write_text(text)
    return directory


@contextlib.contextmanager
def at(
    rota: Deployment, directory: Path, *words: str, rows: int = 24, cols: int = 80, **env: str
) -> Iterator[Person]:
    argv = [ROTA, "pipeline", "run", "p.yaml", *words]
    with typing_in(argv, env=rota.env | env, cwd=directory, rows=rows, cols=cols) as typist:
        yield Person(typist, directory, rows=rows, cols=cols)


def session(rota: Deployment, directory: Path) -> Any:
    return rota.json("pipeline", "show", "p.yaml", cwd=directory)


@pytest.mark.parametrize(("cols", "rows_of_jobs"), [(80, [2, 1]), (200, [3])])
def test_stages_and_running_jobs_are_drawn_below_messages(
    rota: Deployment, cols: int, rows_of_jobs: list[int]
) -> None:
    directory = place(rota, f"drawn-{cols}", _WAITING)
    with at(rota, directory, cols=cols) as person:
        first = person.sees_running(3)
        assert "goes on if this terminal is closed" in " ".join(first)
        assert any(line.startswith("── p.yaml session ") and " running 0:" in line for line in first)
        assert any(line.split()[:1] == ["fetch"] and "████" in line for line in first)
        counted = [line.count(" build ") for line in first if line.startswith(" 0:")]
        assert counted == rows_of_jobs
        person.go("element-1")
        person.sees_running(2)
        person.go("base", "element-2", "app")
        assert person.ends() == 0
        *_messages, head, fetch, build, total = person.picture.lines
        assert head.split()[:3] == ["STAGE", "DONE", "SKIPPED"]
        assert fetch.split()[0] == "fetch"
        assert build.split()[:1] == ["build"]
        assert "4" in build.split()
        assert total.startswith("4 elements: 4 ok; ")
        assert sum("STAGE" in line for line in person.picture.lines) == 1  # what was drawn before is erased
        assert max(map(len, person.picture.lines)) <= cols


def test_colours_are_only_drawn_where_they_are_wanted(rota: Deployment) -> None:
    directory = place(rota, "colours", _WAITING)
    for colour, words in (("", ["\x1b[36m", "\x1b[1m"]), ("1", [])):
        with at(rota, directory, "--only", "element-1", NO_COLOR=colour) as person:
            seen = person.typist.sees("element-1")
            assert [word for word in ("\x1b[36m", "\x1b[1m") if word in seen] == words
            person.typist.hang_up()
            person.typist.ends()
    (directory / "go-element-1").touch()
    wait_until(lambda: session(rota, directory)["state"] == "ended", "it ends without us")


def test_without_a_keyboard_it_is_drawn_and_nothing_is_asked(rota: Deployment) -> None:
    directory = place(rota, "keyless", _FAILING)
    argv = ["/bin/sh", "-c", f"exec {ROTA} pipeline run p.yaml </dev/null"]
    with typing_in(argv, env=rota.env, cwd=directory, rows=24, cols=80) as typist:
        assert typist.ends() == 1
        assert "── p.yaml session " in typist.shown


def test_a_changed_window_is_drawn_anew(rota: Deployment) -> None:
    directory = place(rota, "window", _WAITING)
    with at(rota, directory) as person:
        person.sees("build element-2")
        person.typist.resize(40, 120)
        rule = "─" * 80
        person.typist.sees(rule)
        person.go("base", "element-1", "element-2", "app")
        assert person.typist.ends() == 0


def test_a_failure_asks_and_retry_goes_on(rota: Deployment) -> None:
    directory = place(rota, "asks", _FAILING)
    with at(rota, directory) as person:
        person.sees("[c]ontinue  [q]uit  [t]erminate  [r]etry  [l]og  [s]hell")
        lines = person.picture.lines
        assert any("failed-permanently build lib (job " in line for line in lines)
        assert "    | this is why" in lines
        assert any("blocked, because lib failed: app" in line for line in lines)
        assert session(rota, directory)["state"] == "asking"
        person.typist.type("x")
        person.sees("run the failed job again")
        person.typist.type("l")
        person.sees("end of the output")
        person.typist.type("s")
        person.sees("inside> ")
        person.typist.type("pwd; echo job=$ROTA_JOB_NAME; touch fixed; exit\n")
        person.sees(f"{directory}\r\njob=build\r\n")
        person.sees("[s]hell")
        person.typist.type("r")
        assert person.ends() == 0
    assert session(rota, directory)["elements"] == {"lib": "ok", "app": "ok"}


@pytest.mark.parametrize(("key", "other"), [("c", "ok"), ("t", "terminated")])
def test_a_failure_is_answered_by_a_key(rota: Deployment, key: str, other: str) -> None:
    text = _FAILING.replace("test -e fixed", "{end}").replace("{lib: {}", "{other: {}, lib: {end: exit 1}")
    waits = "defaults: {end: while ! test -e go; do sleep 0.05; done}\n"
    directory = place(rota, f"answered-{key}", text.replace('"echo this is why; {end}"', "'eval {end}'") + waits)
    with at(rota, directory) as person:
        person.sees("[s]hell")
        (directory / "go").touch()  # `other` stands still
        person.typist.type(key)
        assert person.ends() == 1
    assert session(rota, directory)["elements"] == {"other": other, "lib": "failed", "app": "blocked"}


def test_nobody_is_asked_with_yes_or_by_a_pipe(rota: Deployment) -> None:
    directory = place(rota, "yes", _FAILING)
    with at(rota, directory, "--yes", "--on-error", "ask") as person:
        assert person.ends() == 1
        assert any("failed at build: lib" in line for line in person.picture.lines)
    done = rota.rota("pipeline", "run", "p.yaml", "--on-error", "ask", cwd=directory)
    assert done.returncode == 1
    assert "\x1b" not in done.stdout
    assert "    | this is why\n" in done.stdout


def test_ctrl_c_asks_with_everything_suspended_and_a_second_one_terminates(rota: Deployment) -> None:
    directory = place(rota, "interrupted", _WAITING)
    with at(rota, directory) as person:
        person.sees("build element-2")
        person.typist.type("\x03")
        person.sees("[d]etach")
        assert session(rota, directory)["state"] == "paused"
        person.typist.type("c")
        person.sees("resumed session")
        person.typist.type("\x03")
        person.sees("[d]etach")
        person.typist.type("\x03")
        assert person.ends() == 130
    shown = session(rota, directory)
    assert (shown["state"], set(shown["elements"].values())) == ("ended", {"terminated"})


def test_who_detaches_finds_the_session_again(rota: Deployment) -> None:
    directory = place(rota, "detached", _WAITING)
    with at(rota, directory) as person:
        person.sees("build element-2")
        person.typist.type("\x03")
        person.sees("[d]etach")
        person.typist.type("d")
        assert person.ends() == 130
        assert any("goes on; 'rota pipeline run p.yaml' shows it again" in line for line in person.picture.lines)
    number = session(rota, directory)["session"]
    assert session(rota, directory)["state"] == "running"
    with at(rota, directory) as person:
        person.sees("build element-2")  # running jobs are known to who comes later
        person.typist.hang_up()
        assert person.typist.ends() == 128 + signal.SIGHUP
    with at(rota, directory) as person:
        person.sees("build element-2")
        person.go("base", "element-1", "element-2", "app")
        assert person.ends() == 0
    shown = session(rota, directory)
    assert (shown["session"], set(shown["elements"].values())) == (number, {"ok"})


def test_ctrl_z_suspends_the_session_with_its_jobs_and_fg_resumes_it(rota: Deployment) -> None:
    directory = place(rota, "stopped", _WAITING)
    with at(rota, directory) as person:
        person.sees_running(3)
        person.typist.type("\x1a")
        person.sees("all jobs are suspended")
        stat = Path(f"/proc/{person.typist.process.pid}/stat")
        wait_until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T", "it is stopped")
        shown = session(rota, directory)
        assert (shown["state"], shown["stages"]["build"]["running"]) == ("paused", 3)
        assert session(rota, directory)["elapsed_s"] == shown["elapsed_s"]
        assert person.typist.restored
        person.typist.process.send_signal(signal.SIGCONT)
        person.sees("resumed session")
        person.go("base", "element-1", "element-2", "app")
        assert person.ends() == 0


def test_in_a_pipe_an_interrupt_terminates_and_the_summary_is_last(rota: Deployment) -> None:
    directory = place(rota, "piped", _WAITING)
    running = rota.popen(
        "pipeline", "run", "p.yaml", "--json", cwd=directory, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL
    )
    assert running.stdout is not None
    events = [json.loads(running.stdout.readline())]
    while not (events[-1]["event"] == "started" and events[-1]["stage"] == "build"):
        events.append(json.loads(running.stdout.readline()))
    assert [*events[-1]] == ["event", "element", "stage", "job", "attempt", "outcome", "at"]
    running.send_signal(signal.SIGINT)
    out, _err = running.communicate(timeout=60)
    assert running.returncode == 130
    *_events, summary = [json.loads(line) for line in out.splitlines()]
    assert [*summary] == ["event", "total", "stages", "elements", "elapsed_s"]
    assert [*summary["stages"]["build"]] == ["processed", "skipped", "failed", "blocked", "terminated"]
    assert set(summary["elements"].values()) == {"terminated"}
