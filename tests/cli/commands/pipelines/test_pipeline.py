"""`rota pipeline` with real jobs: what it prints, what it leaves, and what survives."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import textwrap
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.deployment import Deployment, deployment, wait_until

_STAGES = """
limits: {process: 2, download: 1}
stages:
  - name: pull
    run: echo pull {name} >> log; exit 77
    takes: {download: 1}
    on_ok: skip-to push
  - name: fetch
    skip_if: test -d sources/{name}
    run: mkdir -p sources/{name}; echo fetch {name} >> log
    takes: {download: 1}
  - name: build
    imperative: true
    needs: dependencies
    skip_if: test -e out-{name}
    run: echo build {name} >> log; test ! -e bad-{name} && touch out-{name}
    takes: {process: 1}
  - name: push
    also_failed: true
    run: echo push {name} $ROTA_OUTCOME >> log
elements:
  base: {}
  lib: {depends: [base]}
  other: {}
  app: {depends: [lib, other]}
"""


@pytest.fixture(scope="module")
def rota(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    with deployment(tmp_path_factory.mktemp("pipelines")) as made:
        made.start()
        yield made


def place(rota: Deployment, name: str, text: str = _STAGES) -> Path:
    """A directory of its own with a pipeline; what is in the text goes there."""
    directory = rota.work / name
    directory.mkdir()
    (directory / "p.yaml").write_text(textwrap.dedent(text))
    return directory


def run(rota: Deployment, directory: Path, *words: str, status: int = 0) -> list[dict[str, Any]]:
    done = rota.rota("pipeline", "run", "p.yaml", "--json", *words, cwd=directory)
    assert done.returncode == status, done.stdout + done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def log(directory: Path) -> list[str]:
    path = directory / "log"
    return path.read_text().splitlines() if path.exists() else []


def test_a_pipeline_runs_its_stages_in_order_and_ends_with_a_summary(rota: Deployment) -> None:
    directory = place(rota, "order")
    *events, summary = run(rota, directory)
    assert summary["event"] == "summary"
    assert summary["total"] == 4
    assert summary["elements"] == dict.fromkeys(("base", "lib", "other", "app"), "ok")
    assert summary["stages"]["pull"] == {
        "processed": 0, "skipped": 4, "failed": 0, "blocked": 0, "terminated": 0
    }  # fmt: skip
    assert summary["stages"]["build"]["processed"] == 4
    lines = log(directory)
    built = [line.split()[1] for line in lines if line.startswith("build")]
    assert built.index("base") < built.index("lib") < built.index("app")
    for element in ("base", "lib", "other", "app"):
        own = [line.split()[0] for line in lines if line.split()[1] == element]
        assert own == ["pull", "fetch", "build", "push"]
    keys = {"event", "element", "stage", "job", "attempt", "outcome", "at"}
    assert all(keys <= each.keys() for each in events)
    pairs = Counter((each["event"], each["stage"]) for each in events)
    assert pairs["started", "build"] == pairs["ended", "build"] == 4


def test_a_failure_blocks_what_depends_on_it_by_name_and_is_pushed(rota: Deployment) -> None:
    directory = place(rota, "failure")
    (directory / "bad-lib").touch()
    *events, summary = run(rota, directory, status=1)
    assert summary["elements"] == {"base": "ok", "lib": "failed", "other": "ok", "app": "blocked"}
    assert {each["by"] for each in events if each["event"] == "blocked"} == {"lib"}
    assert "push lib failed" in log(directory)
    assert "push base ok" in log(directory)
    shown = rota.json("pipeline", "show", "p.yaml", "--json", cwd=directory)
    assert shown["state"] == "ended"
    assert shown["stages"]["build"] | {"waiting": 0, "running": 0} == shown["stages"]["build"]
    (directory / "bad-lib").unlink()
    (directory / "log").unlink()
    assert "1 changed" in rota.ok("pipeline", "retry", "p.yaml", cwd=directory)
    wait_until(
        lambda: rota.json("pipeline", "show", "p.yaml", "--json", cwd=directory)["state"] == "ended", "it ends"
    )
    assert sorted(log(directory)) == ["build app", "build lib", "fetch app", "push app ok", "push lib ok"] or (
        "build lib" in log(directory) and "build app" in log(directory) and "build base" not in log(directory)
    )


def test_running_the_same_file_again_runs_only_what_is_missing(rota: Deployment) -> None:
    directory = place(rota, "again")
    run(rota, directory, "--only", "lib", "base")
    assert {line.split()[1] for line in log(directory)} == {"base", "lib"}
    (directory / "log").unlink()
    *_events, summary = run(rota, directory)
    assert {line.split()[1] for line in log(directory)} == {"other", "app"}
    assert summary["elements"] == {"base": "skipped", "lib": "skipped", "other": "ok", "app": "ok"}


_PLAIN = """
stages: [{name: s, run: "%s"}]
elements: {a: {}, b: {}, c: {}}
"""


def test_what_only_leaves_out_is_not_built_again_by_the_next_session(rota: Deployment) -> None:
    directory = place(rota, "selected", _PLAIN % "echo {name} >> log")
    run(rota, directory)
    for words in (["--only", "a"], ["--only", "b"], []):
        *_events, summary = run(rota, directory, *words)
        assert set(summary["elements"].values()) == {"skipped"}
    assert len(summary["elements"]) == 3
    for element in "ab":
        run(rota, directory, "--only", element, "--rerun")
        os.kill(rota.manager_pid(), signal.SIGKILL)
        rota.start()
    run(rota, directory)
    assert Counter(log(directory)) == {"a": 2, "b": 2, "c": 1}


def _watched(rota: Deployment, directory: Path) -> subprocess.Popen[bytes]:
    """A session that does not end by itself, and its watcher, which has seen that it runs."""
    words = ("pipeline", "run", "p.yaml", "--json")
    watching = rota.popen(*words, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert watching.stdout is not None
    assert json.loads(watching.stdout.readline())["event"] == "started"
    (directory / "p.yaml").write_text(_PLAIN % "echo new {name} >> log")
    return watching


def test_a_watcher_whose_session_is_ended_by_restart_gets_its_summary(rota: Deployment) -> None:
    directory = place(rota, "replaced", _PLAIN % "sleep 1000")
    watching = _watched(rota, directory)
    *_events, summary = run(rota, directory, "--restart")
    assert summary["elements"] == dict.fromkeys("abc", "ok")
    out, _err = watching.communicate(timeout=60)
    assert watching.returncode == 1
    last = json.loads(out.splitlines()[-1])
    assert last["event"] == "summary"
    assert last["elements"] == dict.fromkeys("abc", "terminated")


def test_a_watcher_whose_session_was_replaced_while_it_was_away_ends_and_says_so(rota: Deployment) -> None:
    directory = place(rota, "away", _PLAIN % "sleep 1000")
    watching = _watched(rota, directory)
    os.kill(watching.pid, signal.SIGSTOP)
    os.kill(rota.manager_pid(), signal.SIGKILL)
    rota.start()
    run(rota, directory, "--restart")
    os.kill(watching.pid, signal.SIGCONT)
    _out, err = watching.communicate(timeout=60)
    assert watching.returncode == 3
    assert b"has taken its place" in err


def test_rerun_does_all_again_that_no_condition_skips(rota: Deployment) -> None:
    directory = place(rota, "rerun")
    run(rota, directory)
    (directory / "log").unlink()
    (directory / "out-app").unlink()
    run(rota, directory)
    assert log(directory) == []  # it was done
    *_events, summary = run(rota, directory, "--rerun")
    assert Counter(line.split()[0] for line in log(directory)) == {"pull": 1, "build": 1, "push": 4}
    assert summary["stages"]["build"]["skipped"] == 3  # what these made is there
    (directory / "log").unlink()
    run(rota, directory)
    assert log(directory) == []  # it counts as done again


def test_conditions_survive_what_people_write_in_them(rota: Deployment) -> None:
    text = """
    stages:
      - {name: quit, run: "true", skip_if: exit 0}
      - {name: syntax, run: "touch ran-{name}", skip_if: "if ("}
      - {name: signal, run: "true", skip_if: "test {name} = killed && kill -KILL $(exec sh -c 'echo $PPID')"}
      - {name: noise, run: "true", skip_if: "echo 0 0 0; echo 0 2 0 >&3"}
    elements: {"it's $(odd) \\"name\\"": {}, killed: {}}
    """
    directory = place(rota, "odd", text)
    *_events, summary = run(rota, directory, status=1)
    assert summary["stages"]["quit"]["skipped"] == 2
    assert summary["stages"]["syntax"]["processed"] == 2
    assert (directory / 'ran-it\'s $(odd) "name"').exists()
    assert summary["elements"]["killed"] == "failed"
    assert summary["stages"]["noise"] == {
        "processed": 1, "skipped": 0, "failed": 0, "blocked": 1, "terminated": 0
    }  # fmt: skip


def test_a_stage_that_redefines_gives_every_element_its_key(rota: Deployment) -> None:
    text = """
    stages:
      - {name: track, redefines: "refs/{name}", run: "mkdir -p refs; echo {v} > refs/{name}"}
      - {name: build, needs: dependencies, run: "echo {name} {key} >> log"}
    elements: {base: {v: "1"}, app: {v: "1", depends: [base]}}
    """
    directory = place(rota, "keys", text)
    run(rota, directory)
    first = dict(line.split() for line in log(directory))
    assert len(first["base"]) == len(first["app"]) == 64
    (directory / "p.yaml").write_text(
        (directory / "p.yaml").read_text().replace('base: {v: "1"}', 'base: {v: "2"}')
    )
    run(rota, directory)
    second = dict(line.split() for line in log(directory))
    assert second["base"] != first["base"]
    assert second["app"] != first["app"]  # what it depends on has changed


def test_a_paused_session_starts_nothing_until_it_is_resumed(rota: Deployment) -> None:
    text = """
    stages: [{name: a, run: "touch began-{name}; while ! test -e go; do sleep 0.05; done"}, {name: b, run: "true"}]
    elements: {e1: {}}
    """
    directory = place(rota, "pause", text)
    watching = rota.popen("pipeline", "run", "p.yaml", "--json", cwd=directory, stdout=subprocess.PIPE)
    wait_until(lambda: (directory / "began-e1").exists(), "the job begins")
    wait_until(
        lambda: rota.json("pipeline", "show", "p.yaml", "--json", cwd=directory)["stages"]["a"]["running"],
        "it runs",
    )
    assert "1 changed" in rota.ok("pipeline", "pause", "p.yaml", cwd=directory)
    wait_until(lambda: "suspended" in rota.states("state=suspended").values(), "the job stands still")
    (directory / "go").touch()
    shown = rota.json("pipeline", "show", "p.yaml", "--json", cwd=directory)
    assert (shown["state"], shown["stages"]["a"]["running"]) == ("paused", 1)
    assert "1 changed" in rota.ok("pipeline", "resume", "p.yaml", cwd=directory)
    out, _err = watching.communicate(timeout=60)
    *events, summary = [json.loads(line) for line in out.splitlines()]
    assert summary["elements"] == {"e1": "ok"}
    assert [each["event"] for each in events if each["element"] is None] == ["suspended", "resumed"]


def test_a_session_outlives_its_manager_and_builds_nothing_twice(rota: Deployment) -> None:
    text = """
    limits: {slow: 2}
    stages:
      - {name: a, run: "echo a {name} >> log", skip_if: "test -e never"}
      - {name: b, needs: dependencies, run: "sleep 0.05; echo b {name} >> log", takes: {slow: 1}}
    elements: {%s}
    """
    elements = ", ".join(f"e{n}: {{depends: [{f'e{n // 2}' if n else ''}]}}" for n in range(40))
    directory = place(rota, "killed", text % elements)
    watching = rota.popen("pipeline", "run", "p.yaml", "--json", cwd=directory, stdout=subprocess.PIPE)
    for lines in (15, 35, 60):
        wait_until(lambda lines=lines: len(log(directory)) >= lines, "some of it is done")  # type: ignore[misc]
        os.kill(rota.manager_pid(), signal.SIGKILL)
        rota.start()
    out, _err = watching.communicate(timeout=120)
    summary = json.loads(out.splitlines()[-1])
    assert summary["event"] == "summary", summary
    assert set(summary["elements"].values()) == {"ok"}
    assert summary["stages"]["b"]["processed"] == 40
    assert Counter(log(directory)) == Counter(f"{stage} e{n}" for stage in "ab" for n in range(40))


def test_conditions_of_stages_for_failed_elements_see_the_outcome(rota: Deployment) -> None:
    directory = place(
        rota,
        "outcomes",
        """
        stages:
          - name: fetch                                   # asks at once what later stages will need
            run: echo fetch {name} >> log
          - name: check
            always: true
            skip_if: test {name} = good || sh -c 'kill -9 $$'
            run: echo check {name} >> log
          - name: build
            imperative: true
            skip_if: "true"
            run: echo build {name} >> log
          - name: tell
            imperative: true
            also_failed: true
            run_if: test "$ROTA_OUTCOME" = failed
            run: echo tell {name} $ROTA_OUTCOME >> log
        elements: {good: {}, bad: {}}
        """,
    )
    *_, summary = run(rota, directory, status=1)
    assert summary["elements"] == {"good": "skipped", "bad": "failed"}
    assert log(directory) == ["tell bad failed"]


def test_an_element_whose_source_failed_comes_to_stages_for_failed_ones_that_need_no_key(rota: Deployment) -> None:
    directory = place(
        rota,
        "untracked",
        """
        stages:
          - {name: track, redefines: "ref-{name}", run: "echo 1 > ref-{name}; test {name} != bad"}
          - {name: build, imperative: true, run: "echo build {name} >> log"}
          - {name: push, also_failed: true, run: "echo push {name} {key} >> log"}
          - {name: tell, also_failed: true, run: "echo tell {name} $ROTA_OUTCOME >> log"}
        elements: {bad: {}}
        """,
    )
    *events, _summary = run(rota, directory, status=1)
    assert log(directory) == ["tell bad failed"]
    blocked = {each["stage"]: each.get("lacks") for each in events if each["event"] == "blocked"}
    assert blocked == {"build": None, "push": "key"}
    assert "blocked push bad because its {key} is not known" in rota.rota(
        "pipeline", "run", "p.yaml", "--rerun", cwd=directory
    ).stdout  # fmt: skip


def test_what_is_wrong_with_a_request_is_said(rota: Deployment) -> None:
    directory = place(rota, "wrong")
    assert "no session of" in rota.rota("pipeline", "show", "p.yaml", cwd=directory).stderr
    assert "there is no element 'nobody'" in rota.rota(
        "pipeline", "run", "p.yaml", "--only", "nobody", cwd=directory
    ).stderr  # fmt: skip
    assert "there is no element 'nobody'" in rota.rota(
        "pipeline", "run", "p.yaml", "--only", "lib", "nobody", cwd=directory
    ).stderr  # fmt: skip
    for empty in (["--only", ""], ["--stages", ""], ["--stages", " ,"], ["--only", "lib", ""]):
        assert "leave them out for all" in rota.rota("pipeline", "run", "p.yaml", *empty, cwd=directory).stderr
    assert "use --only lib for elements" in rota.rota("pipeline", "run", "p.yaml", "lib", cwd=directory).stderr
    assert "there is no stage 'x'" in rota.rota("pipeline", "run", "p.yaml", "--stages", "x", cwd=directory).stderr


def test_a_stage_that_would_be_refused_as_a_job_refuses_the_session(rota: Deployment) -> None:
    text = "stages: [{{name: s, run: 'true'}}, {{name: t, run: 'true', {}}}]\nelements: {{a: {{}}}}\n"
    refusals = {
        'where: "colour = red"': "stage 't', field 'where': unknown property 'colour' at column 1",
        "prefer: colour = 1": "stage 't', field 'prefer': unknown property 'colour' at column 1",
        "request: /rack=1": "stage 't', field 'request': ",
        "cpus: 10000": "stage 't': never fits: asked 10000 cpus, largest host has ",
        "pool: nowhere": "stage 't', field 'pool': there is no pool 'nowhere'",
    }
    known = rota.rota("pipeline", "list", "--json").stdout
    for number, (field, message) in enumerate(refusals.items()):
        directory = place(rota, f"refused{number}", text.format(field))
        done = rota.rota("pipeline", "run", "p.yaml", cwd=directory)
        assert (done.returncode, done.stdout) == (2, ""), done.stdout + done.stderr
        assert done.stderr.startswith(f"rota: {message}")
        assert done.stderr.count("\n") == 1
        run(rota, directory, "--stages", "s")  # it never comes to the other one
    assert known.count('"session"') + len(refusals) == rota.rota("pipeline", "list", "--json").stdout.count(
        '"session"'
    )
    assert "bugs" not in rota.rota("manager", "status").stdout


def test_conditions_are_looked_at_in_the_pool_of_a_stage_that_runs(rota: Deployment) -> None:
    directory = place(
        rota,
        "other-pool",
        """
        stages:
          - {name: r, run: 'true', pool: nowhere}
          - {name: s, skip_if: 'ls nothing || exit 3', run: 'echo {name} >> log'}
        elements: {a: {}}
        """,
    )
    assert run(rota, directory, "--stages", "s")[-1]["elements"] == {"a": "ok"}
    assert log(directory) == ["a"]


def test_what_a_job_says_of_its_progress_is_told_once_it_has_said_it(rota: Deployment) -> None:
    directory = place(
        rota,
        "progress",
        """
        stages:
          - name: build
            run: |
              printf '1/4 begins\\n2/4 x\\n3.5/4 link \\033[31m{name}\\n1/4 not a whole line' >&$ROTA_PROGRESS
              until test -e go; do sleep 0.1; done
              printf '\\n4/4 done\\n' >&$ROTA_PROGRESS
              until test -e end; do sleep 0.1; done
        elements:
          app: {}
        """,
    )
    going = rota.popen("pipeline", "run", "p.yaml", "--json", cwd=directory, stdout=subprocess.PIPE)
    assert going.stdout is not None
    told = []
    for line in going.stdout:
        event = json.loads(line)
        if event["event"] == "progress":
            told.append((event["element"], event["stage"], event["attempt"], event["progress"]))
            (directory / ("end" if (directory / "go").exists() else "go")).touch()
    assert going.wait() == 0
    first = {"done": 3.5, "of": 4.0, "text": "link [31mapp"}
    assert told == [("app", "build", 1, first), ("app", "build", 1, {"done": 4.0, "of": 4.0, "text": "done"})]


def test_last_is_the_newest_session_and_nothing_else(rota: Deployment) -> None:
    directory = place(rota, "last", "stages: [{name: s, run: 'true'}]\nelements: {a: {}}\n")
    rota.ok("run", "--", "true")
    rota.ok("pipeline", "run", "p.yaml", cwd=directory)
    assert [job["name"] for job in rota.json("jobs", "last")["jobs"]] == ["s a"]
    rota.ok("wait", "last")
    rota.ok("pipeline", "run", "p.yaml", cwd=directory)  # all was done before, so it has no job
    assert rota.json("jobs", "last")["jobs"] == []
