"""The cases by which pipelines are defined, with real processes."""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.deployment import Deployment, deployment, wait_until

_WAIT = "until test -e go-{name}; do sleep 0.05; done"


@pytest.fixture(scope="module")
def rota(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    with deployment(tmp_path_factory.mktemp("cases"), cores="4", grace="1s") as made:
        made.start()
        yield made


class Case:
    """A pipeline in a directory of its own. What its jobs do stands in a log."""

    def __init__(self, rota: Deployment, name: str, text: str) -> None:
        self.rota = rota
        self.directory = rota.work / name
        self.directory.mkdir()
        self.file = self.directory / f"{name}.yaml"
        self.file.write_text(textwrap.dedent(text).replace("WAIT", _WAIT))

    def run(self, *words: str, status: int = 0) -> list[dict[str, Any]]:
        """All events of a session, and its summary."""
        done = self.rota.rota("pipeline", "run", str(self.file), "--json", *words)
        assert done.returncode == status, done.stdout + done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    def begin(self, *words: str) -> Any:
        return self.rota.popen("pipeline", "run", str(self.file), "--json", *words)

    def sums(self, stage: str) -> dict[str, int]:
        """Those of a stage now, without zeros. They add up."""
        said = self.rota.json("pipeline", "show", str(self.file))
        sums = said["stages"][stage]
        assert sum(sums.values()) == said["total"]
        return {word: number for word, number in sums.items() if number}

    @property
    def log(self) -> list[str]:
        path = self.directory / "log"
        return path.read_text().splitlines() if path.exists() else []

    def logs(self, *lines: str) -> None:
        """Wait until the log has these lines."""
        wait_until(lambda: {*lines} <= {*self.log}, f"{lines} are logged")

    def go(self, *names: str) -> None:
        for name in names:
            (self.directory / f"go-{name}").touch()


def test_an_element_that_misses_in_pull_is_fetched_before_the_next_is_pulled(rota: Deployment) -> None:
    case = Case(
        rota,
        "misses",
        """
        limits: {token: 1}
        stages:
          - {name: pull, run: "echo pull {name} >> log; exit 77", takes: {token: 1}, on_ok: skip-to push}
          - {name: fetch, run: "echo fetch {name} >> log", takes: {token: 1}}
          - {name: push, run: "true"}
        elements: {e1: {}, e2: {}, e3: {}}
        """,
    )
    case.run()
    assert case.log == [f"{stage} {element}" for element in ("e1", "e2", "e3") for stage in ("pull", "fetch")]


def test_what_is_skipped_in_three_stages_makes_no_job_and_takes_no_token(rota: Deployment) -> None:
    case = Case(
        rota,
        "skips",
        """
        limits: {skips: 1}
        stages:
          - {name: s1, skip_if: "true", run: "exit 1", takes: {skips: 1}}
          - {name: s2, skip_if: "test -n {name}", run: "exit 1", takes: {skips: 1}}
          - {name: s3, run_if: "echo looked >&2; false", run: "exit 1", takes: {skips: 1}}
          - {name: s4, run: "echo s4 {name} >> log"}
        elements: {e1: {}, e2: {}}
        """,
    )
    rota.ok("run", "--limit", "skips:1", "--", "true")
    holds = rota.popen(
        "run", "--limit", "skips", "--", "sh", "-c", f"until test -e {case.directory}/go; do sleep 0.05; done"
    )
    wait_until(lambda: _used(rota, "skips") == 1, "the token is taken")
    *_, summary = case.run()
    assert [summary["stages"][stage]["skipped"] for stage in ("s1", "s2", "s3")] == [2, 2, 2]
    assert Counter(case.log) == {"s4 e1": 1, "s4 e2": 1}
    named = [each["name"] for each in rota.json("jobs", "@skips.yaml")["jobs"]]
    assert Counter(named) == {"conditions": 1, "s4 e1": 1, "s4 e2": 1}
    (case.directory / "go").touch()
    assert holds.wait() == 0


def _used(rota: Deployment, limit: str) -> int:
    (used,) = [each["used"] for each in rota.json("limit")["limits"] if each["name"] == limit]
    return int(used)


def test_limits_of_two_one_and_one_are_never_exceeded(rota: Deployment) -> None:
    case = Case(
        rota,
        "limits",
        """
        limits: {two: 2, one: 1, alone: 1}
        stages:
          - {name: a, run: "echo +1 two >> log; echo -1 two >> log", takes: {two: 1}}
          - {name: b, run: "echo +2 two >> log; echo -2 two >> log", takes: {two: 2}}
          - {name: c, run: "echo +1 one +1 alone >> log; echo -1 one -1 alone >> log", takes: {one: 1, alone: 1}}
        elements: {e1: {}, e2: {}, e3: {}, e4: {}, e5: {}, e6: {}}
        """,
    )
    case.run()
    taken: Counter[str] = Counter()
    for line in case.log:
        words = line.split()
        for units, name in zip(words[::2], words[1::2], strict=True):
            taken[name] += int(units)
            assert taken[name] <= {"two": 2, "one": 1, "alone": 1}[name], case.log
    assert len(case.log) == 36
    assert not any(taken.values())


def test_an_exclusive_interest_lets_nobody_begin_to_share_and_runs_alone(rota: Deployment) -> None:
    case = Case(
        rota,
        "exclusive",
        """
        limits: {cache: 2}
        stages:
          - {name: build, run: "echo begin {name} >> log; WAIT; echo end {name} >> log", takes: {cache: 1}}
          - {name: clean, per: session, run: "echo clean >> log", takes: {cache: exclusive}}
        elements: {e1: {}, e2: {}, e3: {}, e4: {}}
        """,
    )
    case.go("e3", "e4")
    going = case.begin()
    case.logs("begin e1", "begin e2")
    case.go("e1")
    case.logs("end e1")
    wait_until(lambda: case.sums("build").get("processed") == 1, "one has ended, and the interest is registered")
    assert "begin e3" not in case.log
    case.go("e2")
    assert going.wait() == 0
    log = case.log
    assert log.index("clean") == 4
    assert {*log[:4]} == {"begin e1", "begin e2", "end e1", "end e2"}
    assert {*log[5:]} >= {"begin e3", "end e3", "begin e4", "end e4"}


def test_a_temporary_error_with_two_retries_is_tried_three_times_and_a_permanent_one_once(
    rota: Deployment,
) -> None:
    case = Case(
        rota,
        "retries",
        """
        stages: [{name: a, run: "echo {name} >> log; exit {code}", retries: 2}]
        elements: {temporary: {code: "75"}, permanent: {code: "1"}}
        """,
    )
    *events, _summary = case.run(status=1)
    assert Counter(case.log) == {"temporary": 3, "permanent": 1}
    ends = {each["element"]: each["outcome"] for each in events if each["event"] == "ended"}
    assert ends == {"temporary": "failed", "permanent": "failed-permanently"}


def test_quit_with_one_builder_and_two_failing_siblings_attempts_one_and_pushes_its_failure(
    rota: Deployment,
) -> None:
    case = Case(
        rota,
        "quits",
        """
        limits: {process: 1}
        stages:
          - {name: build, imperative: true, run: "echo build {name} >> log; exit 1", takes: {process: 1}}
          - {name: push, also_failed: true, run: "echo push {name} $ROTA_OUTCOME >> log"}
        elements: {bad1: {}, bad2: {}}
        """,
    )
    *_, summary = case.run("--on-error", "quit", status=1)
    assert case.log == ["build bad1", "push bad1 failed"]
    assert summary["elements"] == {"bad1": "failed", "bad2": "terminated"}


def test_suspended_children_stand_still_nothing_starts_and_clocks_exclude_it(rota: Deployment) -> None:
    case = Case(
        rota,
        "pauses",
        """
        limits: {pauses: 1}
        stages:
          - name: a
            run: "while :; do echo >> ticks; sleep 0.01; done & echo {name} >> log; WAIT; kill $!"
            takes: {pauses: 1}
        elements: {e1: {}, e2: {}}
        """,
    )
    ticks = case.directory / "ticks"
    going = case.begin()
    case.logs("e1")
    wait_until(lambda: case.sums("a").get("running") == 1, "it runs")
    rota.ok("pipeline", "pause", str(case.file))
    first = rota.json("pipeline", "show", str(case.file))
    case.go("e1", "e2")

    def stands_still() -> bool:
        before = ticks.stat().st_size
        rota.ok("run", "--", "sleep", "0.3")
        return ticks.stat().st_size == before

    wait_until(stands_still, "the child of the job stands still")
    second = rota.json("pipeline", "show", str(case.file))
    assert first["elapsed_s"] == second["elapsed_s"]
    assert case.log == ["e1"]
    assert case.sums("a") == {"running": 1, "waiting": 1}
    rota.ok("pipeline", "resume", str(case.file))
    assert going.wait() == 0
    assert case.log == ["e1", "e2"]


def test_terminate_stops_all_and_counts_as_terminated_what_had_not_begun_too(rota: Deployment) -> None:
    case = Case(
        rota,
        "terminates",
        """
        limits: {terminates: 2}
        stages:
          - name: a
            needs: dependencies
            run: "echo $$ {name} >> log; until test -e go-{name}; do sleep 0.05; done; exit 1"
            takes: {terminates: 1}
          - {name: b, run: "true"}
        elements: {bad: {}, runs: {}, waits: {}, later: {depends: [waits]}}
        """,
    )
    going = case.begin("--on-error", "terminate")
    wait_until(lambda: len(case.log) == 2, "two of them run")
    case.go("bad")
    assert going.wait() == 1
    said = rota.json("pipeline", "show", str(case.file))
    assert said["elements"] == {"bad": "failed", **dict.fromkeys(("runs", "waits", "later"), "terminated")}
    assert case.sums("a") == {"failed": 1, "terminated": 3}
    assert case.sums("b") == {"blocked": 1, "terminated": 3}
    assert not any(Path(f"/proc/{line.split()[0]}").exists() for line in case.log)
