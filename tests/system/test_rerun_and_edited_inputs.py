"""`--rerun` and edited inputs as users meet them: files on disk, real jobs, and a witness of what ran."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deployment import Deployment, deployment


@pytest.fixture(scope="module")
def rota(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    with deployment(tmp_path_factory.mktemp("again"), cores="4", mem="8G", grace="1s") as made:
        yield made


@pytest.fixture
def witness(rota: Deployment) -> Path:
    path = rota.work / "witness"
    path.unlink(missing_ok=True)
    return path


def ran(witness: Path) -> Counter[str]:
    return Counter(witness.read_text().split()) if witness.exists() else Counter()


def write(rota: Deployment, name: str, *lines: object) -> None:
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    (rota.work / name).write_text("\n".join(texts) + "\n")


def test_a_merge_of_two_parts_runs_once_per_rerun(rota: Deployment, witness: Path) -> None:
    write(
        rota, "parts.txt",
        {"cmd": "echo one >> witness", "dep_groups": ["parts"]},
        {"cmd": "echo two >> witness", "dep_groups": ["parts"]},
        {"cmd": "echo merge >> witness", "after": ["@parts"]},
    )  # fmt: skip
    for times in range(1, 5):
        assert rota.rota("run", "--rerun", "parts.txt").returncode == 0
        rota.ok("wait", "all")
        assert ran(witness) == {"one": times, "two": times, "merge": times}
    jobs = {job["id"]: job["replaced_by"] for job in rota.json("jobs", "@parts.txt")["jobs"]}
    ids = sorted(jobs)
    assert [jobs[id] for id in ids] == [*ids[3:], None, None, None]
    assert f"job {ids[3]}" in rota.ok("show", str(ids[0]))


def test_a_corrected_line_lets_its_dependent_run(rota: Deployment, witness: Path) -> None:
    lines = ["false typo", "true", {"cmd": "echo after >> witness", "after": ["line:1", "line:2"]}]
    write(rota, "edited.txt", *lines)
    assert rota.rota("run", "edited.txt").returncode == 1
    typo, other, behind = sorted(job["id"] for job in rota.json("jobs", "last")["jobs"])
    write(rota, "edited.txt", "true fixed", *lines[1:])
    asked = rota.json("add", "--dry-run", "edited.txt")
    assert (asked["replaced"], asked["changed"], asked["existing"]) == ([typo], [behind], [other, behind])
    done = rota.rota("run", "--json", "edited.txt")
    assert done.returncode == 0
    result = json.loads(done.stdout)
    assert (result["replaced"], result["changed"], result["kept"]) == ([typo], [behind], [])
    assert ran(witness) == {"after": 1}
    shown = rota.json("show", str(typo))
    assert (shown["state"], shown["replaced_by"]) == ("failed", max(rota.states("last")))
    assert f"replaced by {shown['replaced_by']}" in rota.ok("retry", str(typo))
    *_, why = rota.json("why", str(typo))["reasons"]
    assert (why["code"], why["hint"]) == ("replaced", f"rota show {shown['replaced_by']}")
    assert "rota retry" not in rota.ok("why", str(typo)), "that would do nothing"
    write(rota, "edited.txt", *lines[1:2])
    assert rota.json("add", "edited.txt")["kept"] == [shown["replaced_by"], behind]


def test_a_line_that_is_corrected_while_its_job_runs_blocks_nobody(rota: Deployment, witness: Path) -> None:
    rest = [{"cmd": "echo freed >> witness", "after": ["@corrected"]}]
    write(rota, "early.txt", {"cmd": "sleep 1000", "dep_groups": ["corrected"]}, *rest)
    wrong, merge = rota.json("add", "early.txt")["added"]
    write(rota, "early.txt", {"cmd": "true corrected", "dep_groups": ["corrected"]}, *rest)
    assert rota.json("add", "early.txt")["kept"] == [wrong]
    rota.ok("kill", str(wrong))
    rota.rota("wait", "last")
    assert rota.states(str(merge)) == {merge: "blocked"}
    done = rota.rota("run", "--json", "early.txt")
    assert (done.returncode, json.loads(done.stdout)["replaced"]) == (0, [wrong])
    assert ran(witness) == {"freed": 1}


def test_standard_input_is_edited_only_under_a_name(rota: Deployment) -> None:
    assert rota.rota("run", "-", input="false nameless\n").returncode == 1
    assert rota.json("add", "-", input="true other\n")["replaced"] == []
    for text, replaced in (("false one\n", 0), ("false two\n", 1), ("true three\n", 1)):
        added = rota.json("add", "--retries", "0", "--input", "mine", "-", input=text)
        assert len(added["replaced"]) == replaced
        rota.rota("wait", "last")


def test_a_refused_add_uses_up_no_ids(rota: Deployment) -> None:
    (before,) = rota.json("add", "--", "true")["added"]
    for words in (("--after", "99999999"), ("--cpus", "100000")):
        assert rota.rota("add", *words, "--", "true").returncode in (2, 3)
    assert rota.json("add", "--", "true")["added"] == [before + 1]
