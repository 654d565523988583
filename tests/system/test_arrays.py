"""Arrays: one entry, many jobs; their indexes, their names in selectors, how many run at once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.deployment import LEFT_ALONE, wait_until
from tests.system.queueing import Queue, most_at_once, queue_of


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Queue]:
    with queue_of(tmp_path_factory.mktemp("arrays")) as made:
        yield made


@pytest.fixture
def queue(shared: Queue) -> Iterator[Queue]:
    yield shared
    shared.clear()


def test_a_hundred_elements_never_run_more_than_five_at_once(queue: Queue) -> None:
    line = "echo + >> five; sleep 0.02; echo - >> five"
    jobs = queue.add_all("--array", "1-100%5", "--", line)
    assert len(jobs) == 100
    assert queue.rota("wait", f"{jobs[0]}_*").returncode == 0
    marks = queue.ran("five")
    assert len(marks) == 200
    assert 1 < most_at_once(marks) <= 5


def test_each_array_has_its_own_bound_and_why_names_who_runs(queue: Queue) -> None:
    jobs = queue.add_all("--array", "1-6%2", "--", queue.waits_for("bound"))
    wait_until(lambda: queue.count("running", *jobs) == 2, "two run")
    assert queue.count("ready", *jobs) == 4
    reason = queue.reason(jobs[5])
    assert (reason["code"], reason["blockers"]) == ("limit", jobs[:2])
    assert reason["message"] == f"limit of array {jobs[0]}: 2 of 2 in use, it takes 1"
    assert f"of array {jobs[0]}" in queue.rota("limit").stdout
    assert f"limits       that of array {jobs[0]}\n" in queue.rota("show", str(jobs[5])).stdout
    other = queue.add_all("--array", "1-6%2", "--", queue.waits_for("bound") + "; : other")
    wait_until(lambda: queue.count("running", *other) == 2, "each array has its own bound")
    queue.open("bound")
    queue.until("complete", *jobs, *other)


def test_each_element_knows_its_index_and_its_array(queue: Queue) -> None:
    jobs = queue.add_all("--array", "2-8:3,20", "--", 'echo "$ROTA_ARRAY_ID $ROTA_ARRAY_INDEX $ROTA_JOB_ID"')
    queue.until("complete", *jobs)
    array = jobs[0]
    said = [queue.ok("logs", f"{array}_{index}").split() for index in (2, 5, 8, 20)]
    assert said == [[str(array), str(i), str(job)] for i, job in zip((2, 5, 8, 20), jobs, strict=True)]
    shown = queue.json("show", f"{array}_8")
    assert (shown["id"], shown["array_id"], shown["array_index"]) == (jobs[2], array, 8)
    assert f"{array}_8" in queue.ok("show", str(jobs[2]))
    plain = queue.put("true")
    assert queue.look(plain).array_id is None


def test_elements_are_selected_by_index_by_range_and_all_together(queue: Queue) -> None:
    queue.set_limits("never:0")
    jobs = queue.add_all("--limit", "never", "--array", "1-9", "--", "true")
    array = jobs[0]
    assert queue.json("why", f"{array}_3")["id"] == jobs[2]
    assert queue.rota("wait", f"{array}_3", "--timeout", "0.1s").returncode == 6
    assert queue.json("kill", f"{array}_3")["changed"] == [jobs[2]]
    assert queue.json("kill", f"{array}_1-5")["changed"] == [jobs[0], jobs[1], jobs[3], jobs[4]]
    assert queue.states(f"{array}_1-3") == dict.fromkeys(jobs[:3], "cancelled")
    assert queue.json("kill", f"{array}_*")["changed"] == jobs[5:]
    assert sorted(queue.states(f"{array}_*")) == jobs
    assert queue.states(f"{array}_*,state=ready") == {}
    assert queue.json("retry", f"{array}_2", f"{array}_7")["changed"] == [jobs[1], jobs[6]]
    assert queue.json("modify", f"{array}_2", "--limit", "none")["changed"] == [jobs[1]]
    queue.until("complete", jobs[1])
    assert queue.json("remove", f"{array}_2")["changed"] == [jobs[1]]
    for selector in (f"{array}_2", f"{array}_99", "999999_1"):
        done = queue.rota("show", selector)
        assert (done.returncode, done.stderr.count("\n")) == (3, 1), done.stderr
    assert queue.rota("jobs", f"{array}_5-2").returncode == 2


def test_a_file_of_parameters_is_one_job_a_line(queue: Queue) -> None:
    (queue.work / "list.txt").write_text("# name size\nalpha 1\n\nbeta '2 3'\ngamma 4\n")
    jobs = queue.add_all("--array-file", "list.txt", "--", "printf", "<%s>")
    assert len(jobs) == 3
    queue.until("complete", *jobs)
    assert [queue.ok("logs", f"{jobs[0]}_{index}") for index in (1, 2, 3)] == [
        "<alpha><1>",
        "<beta><2 3>",
        "<gamma><4>",
    ]
    picked = queue.add_all("--array-file", "list.txt", "--array", "2-3%1", "--", "printf", "<%s>")
    assert len(picked) == 2
    queue.until("complete", *picked)
    done = queue.rota("add", "--array-file", "list.txt", "--array", "4", "--", "printf")
    assert (done.returncode, "index 4" in done.stderr) == (2, True)
    done = queue.rota("add", "--array-file", "none.txt", "--", "printf")
    assert (done.returncode, "none.txt" in done.stderr) == (2, True)


def test_submitting_an_array_again_is_the_same_jobs(queue: Queue) -> None:
    line = json.dumps({"cmd": 'test "$ROTA_ARRAY_INDEX" -ne 2 -o -e mended', "array": "1-3", "retries": 0})
    first = queue.json("add", "-", input=line)
    assert len(first["added"]) == 3
    queue.rota("wait", "last")
    one, two, three = first["added"]
    queue.open("mended")
    again = queue.json("add", "-", input=line)
    assert again == {"added": [], "existing": [one, three], "retried": [two], **LEFT_ALONE}
    queue.until("complete", two)
    wider = queue.json("add", "-", input=line.replace("1-3", "1-5"))
    assert (len(wider["added"]), wider["existing"]) == (2, [one, two, three])
    fresh = queue.json("add", "--rerun", "-", input=line)
    assert len(fresh["added"]) == 3


def test_dependents_wait_for_all_elements(queue: Queue) -> None:
    lines: list[dict[str, Any]] = [
        {"cmd": queue.waits_for("elements") + "; exit $((ROTA_ARRAY_INDEX == 9))", "array": "1-3"},
        {"cmd": "echo after >> elements-after", "after": ["line:1"]},
    ]
    *elements, last = queue.add_lines(*lines)
    assert len(elements) == 3
    reasons = queue.why(last)["reasons"]
    assert sorted(job for reason in reasons for job in reason["blockers"]) == elements
    queue.open("elements")
    queue.until("complete", last)
    assert queue.ran("elements-after") == ["after"]


@pytest.mark.parametrize(
    "spec", ["", "0-", "5-1", "1-3:0", "a-b", "1,1", "1-10%0", "1-10%", "%5", "1-2000000", "-1"]
)
def test_what_is_not_an_array_is_refused_naming_the_field(queue: Queue, spec: str) -> None:
    done = queue.rota("add", "--dry-run", f"--array={spec}", "--", "true")
    assert done.returncode == 2, done.stdout
    assert "--array" in done.stderr
    assert done.stderr.count("\n") == 1


def test_output_files_may_be_named_after_the_element(queue: Queue) -> None:
    jobs = queue.add_all("--array", "1-2", "-n", "nm", "-o", "out-%A-%a-%x", "--", "echo $ROTA_ARRAY_INDEX")
    queue.until("complete", *jobs)
    assert [queue.ran(f"out-{jobs[0]}-{index}-nm") for index in (1, 2)] == [["1"], ["2"]]


def test_the_python_client_adds_arrays(queue: Queue) -> None:
    with queue.client() as client:
        fields: dict[str, Any] = {"cwd": str(queue.work), "env": {"ROTA_HOME": str(queue.home)}}
        added = client.add("echo $ROTA_ARRAY_INDEX >> python-array", array="3-5", **fields).added
        client.wait(f"{added[0]}_*")
        page = client.jobs(f"{added[0]}_4")
        assert [(job.id, job.array_index) for job in page.jobs] == [(added[1], 4)]
    assert sorted(queue.ran("python-array")) == ["3", "4", "5"]
