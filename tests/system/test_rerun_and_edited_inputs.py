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
