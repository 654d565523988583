"""`rota simulate` as a user types it: its JSON, its tables and pictures, and what it says of mistakes."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.deployment import ROTA

TRACE = """\
; MaxProcs: 4
; Note: two that fit, one that does not, one that never ran
1 0 -1 10 2 -1 -1 2 10 -1 1 3 -1 -1 -1 -1 -1 -1
2 1 -1 10 -1 -1 -1 3 10 -1 1 4 -1 -1 -1 -1 -1 -1
3 2 -1 10 -1 -1 -1 4 10 -1 1 4 -1 -1 -1 -1 -1 -1
4 3 -1 100 -1 -1 -1 1 100 -1 1 -1 -1 -1 -1 -1 -1 -1
5 3 -1 100 -1 -1 -1 5 100 -1 1 -1 -1 -1 -1 -1 -1 -1
6 3 -1 0 1 -1 -1 1 100 -1 1 -1 -1 -1 -1 -1 -1 -1
"""


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "small.swf"
    path.write_text(TRACE)
    return path


def rota(
    *words: str | Path, cwd: Path | None = None, input: bytes | None = None
) -> subprocess.CompletedProcess[str]:
    """Without a deployment: a simulation needs none."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("ROTA_")}
    env |= {"ROTA_HOME": "/nonexistent/rota", "NO_COLOR": "1"}
    given: dict[str, Any] = {"input": input} if input is not None else {"stdin": subprocess.DEVNULL}
    done = subprocess.run(
        [ROTA, *map(str, words)], capture_output=True, env=env, cwd=cwd, timeout=100, check=False, **given
    )
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def simulated(*words: str | Path, **options: Any) -> Any:
    done = rota("simulate", "--json", *words, **options)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout)


def starts(result: Any) -> list[float]:
    return [job["start"] for job in result["jobs"]]


def test_the_json_is_that_of_the_contract(trace: Path) -> None:
    assert simulated(trace, "--procs", "4", "--policy", "easy") == {
        "jobs": [
            {"id": 1, "submit": 0, "start": 0, "end": 10},
            {"id": 2, "submit": 1, "start": 10, "end": 20},
            {"id": 3, "submit": 2, "start": 103, "end": 113},
            {"id": 4, "submit": 3, "start": 3, "end": 103},
        ],
        "metrics": {
            "avg_bounded_slowdown": pytest.approx((1 + 1.9 + 11.1 + 1) / 4),
            "avg_flow_s": (10 + 19 + 111 + 100) / 4,
            "avg_wait_s": (0 + 9 + 101 + 0) / 4,
            "makespan_s": 113,
            "utilisation": pytest.approx((20 + 30 + 40 + 100) / (4 * 113)),
        },
        "skipped": [
            {"id": 5, "reason": "it has 5 processors, and there are 4"},
            {"id": 6, "reason": "it did not run"},
        ],
    }


def test_policies_differ_and_conservative_is_the_default(trace: Path) -> None:
    assert starts(simulated(trace)) == starts(simulated(trace, "--policy", "conservative")) == [0, 10, 20, 30]
    both = simulated(trace, "--policy", "easy", "--policy", "fcfs")["policies"]
    assert {policy: starts(each) for policy, each in both.items()} == {
        "easy": [0, 10, 103, 3],
        "fcfs": [0, 10, 20, 30],
    }


def test_more_processors_let_more_jobs_in(trace: Path) -> None:
    found = simulated(trace, "--procs", "16")
    assert starts(found) == [0, 1, 2, 3, 3]
    assert [each["id"] for each in found["skipped"]] == [6]


def test_exact_estimates_are_the_runs(tmp_path: Path) -> None:
    path = tmp_path / "early.swf"
    # The first ends early: only who knows that lets the third, which ends just then, pass the second.
    path.write_text(
        "; MaxProcs: 2\n"
        "1 0 -1 10 1 -1 -1 1 100 -1 1 1 -1 -1 -1 -1 -1 -1\n"
        "2 1 -1 10 1 -1 -1 2 10 -1 1 1 -1 -1 -1 -1 -1 -1\n"
        "3 2 -1 20 1 -1 -1 1 90 -1 1 1 -1 -1 -1 -1 -1 -1\n"
    )
    assert starts(simulated(path, "--policy", "easy", "--estimates", "requested")) == [0, 22, 2]
    assert starts(simulated(path, "--policy", "easy", "--estimates", "exact")) == [0, 10, 20]


def test_processors_may_be_only_counted(trace: Path) -> None:
    assert starts(simulated(trace, "--processors", "count", "--policy", "easy")) == [0, 10, 103, 3]


def test_a_trace_may_be_compressed_and_come_from_stdin(trace: Path, tmp_path: Path) -> None:
    expected = simulated(trace)
    packed = tmp_path / "small.swf.gz"
    packed.write_bytes(gzip.compress(TRACE.encode()))
    assert simulated(packed) == expected
    assert simulated("-", input=TRACE.replace("\n", "\r\n").encode()) == expected


def test_people_get_a_table_with_a_row_for_each_policy(trace: Path) -> None:
    done = rota("simulate", trace, "--policy", "easy", "--policy", "fcfs")
    assert (done.returncode, done.stderr) == (0, "")
    title, head, easy, fcfs, skipped = done.stdout.splitlines()
    assert title == "small.swf on 4 processors"
    assert head.split() == ["POLICY", "JOBS", "SLOWDOWN", "FLOW", "WAIT", "MAKESPAN", "UTILISATION"]
    assert easy.split() == ["easy", "4", "3.75", "1m00s", "28s", "1m53s", "42.0%"]
    assert fcfs.split()[:2] == ["fcfs", "4"]
    assert skipped == "skipped 2 jobs: job 5: it has 5 processors, and there are 4; job 6: it did not run"


def test_quiet_prints_the_ids_of_those_that_ran(trace: Path) -> None:
    assert rota("simulate", "--quiet", trace).stdout == "1\n2\n3\n4\n"


def test_a_trace_without_jobs_has_metrics_of_zero(tmp_path: Path) -> None:
    (tmp_path / "none.swf").write_text("; MaxProcs: 4\n")
    found = simulated("none.swf", cwd=tmp_path)
    assert found["jobs"] == found["skipped"] == []
    assert set(found["metrics"].values()) == {0}
    assert rota("simulate", "none.swf", "--gantt", "none.png", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize(
    ("suffix", "begin"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("html", b"<!DOCTYPE html>")]
)
@pytest.mark.parametrize("processors", ["numbered", "count"])
def test_a_picture_is_drawn(trace: Path, tmp_path: Path, suffix: str, begin: bytes, processors: str) -> None:
    name = f"out.{suffix}"
    done = rota("simulate", trace, "--policy", "easy", "--processors", processors, "--gantt", name, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / name).read_bytes().startswith(begin)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([name, "small.swf"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nosuch.swf"], "cannot read nosuch.swf: No such file or directory; give a trace"),
        (["."], "cannot read .: Is a directory"),
        (["empty.swf"], "there is nothing in empty.swf"),
        (["binary.swf"], "binary.swf is not a text file"),
        (["cut.swf"], "cut.swf, line 1: 3 of the 18 fields"),
        (["nosize.swf"], "nosize.swf does not say how many processors there are; give --procs"),
        (["small.swf", "--policy", "lifo"], "'lifo' is not one of 'fcfs', 'easy', 'easy-sjbf', 'conservative'"),
        (["small.swf", "--procs", "0"], "must be a number from 1 to"),
        (["small.swf", "--procs", "x"], "must be a number from 1 to"),
        (["small.swf", "--estimates", "odd"], "--estimates"),
        (["small.swf", "--processors", "odd"], "--processors"),
        (["small.swf", "--plan-only"], "--plan-only is for JSON traces"),
        (["small.swf", "--gantt", "out.pdf"], "end it with .png, .svg, .html"),
        (["small.swf", "--gantt", "no/where.png"], "there is no directory no"),
        (["small.swf", "--gantt", "dir.png"], "it is a directory"),
        (["small.swf", "--gantt", "a.png", "--policy", "easy", "--policy", "fcfs"], "--gantt draws one policy"),
        (["site.json", "--procs", "4"], "--procs is for traces in the Standard Workload Format"),
        (["site.json", "--estimates", "exact"], "--estimates is for traces in the Standard Workload Format"),
        (["site.json"], ""),
        ([], "missing argument"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line_and_status_2(
    trace: Path, tmp_path: Path, words: Sequence[str], message: str
) -> None:
    (tmp_path / "empty.swf").write_bytes(b"")
    (tmp_path / "binary.swf").write_bytes(bytes(range(256)))
    (tmp_path / "cut.swf").write_text("1 2 3\n")
    (tmp_path / "nosize.swf").write_text(TRACE.partition("\n")[2])
    (tmp_path / "site.json").write_text("{]")
    (tmp_path / "dir.png").mkdir()
    before = sorted(tmp_path.iterdir())
    done = rota("simulate", *words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert done.stderr.startswith("rota: ")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert sorted(tmp_path.iterdir()) == before


def test_an_interrupt_ends_it_quietly_with_status_130(tmp_path: Path) -> None:
    # It waits for its trace when the signal comes.
    process = subprocess.Popen(
        [sys.executable, "-c", _READY, "simulate", "-", "--gantt", "out.png"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == b"reading\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err.strip()) == (130, b"", b"")  # a line end after the terminal's ^C
    assert list(tmp_path.iterdir()) == []


_READY = """
import sys
import rota.cli.input.files as files
from rota.cli.main import main

read = files.read_input

def told(path, **options):
    print("reading", flush=True)
    return read(path, **options)

files.read_input = told
main()
"""
