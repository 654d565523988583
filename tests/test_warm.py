"""Commands that are forked are as those that a shell starts."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.deployment import Deployment
from tests.warm import COLD


@pytest.fixture
def rota(tmp_path: Path) -> Deployment:
    return Deployment(tmp_path)


@pytest.mark.parametrize(
    ("words", "input"),
    [
        (["version"], None),
        (["--help"], None),
        (["jobs"], None),
        (["jobs", "--json"], None),
        (["no-such-command"], None),
        (["config", "show", "--json"], None),
        (["add", "--dry-run", "-", "--\udcff"], "true\n"),
        (["simulate", "-"], "{" + " " * 300_000),
    ],
)
def test_a_forked_command_says_and_ends_as_any_other(
    rota: Deployment, monkeypatch: pytest.MonkeyPatch, words: list[str], input: str | None
) -> None:
    warm = rota.rota(*words, input=input)
    monkeypatch.setenv(COLD, "1")
    cold = rota.rota(*words, input=input)
    assert (warm.args, warm.returncode, warm.stdout, warm.stderr) == (
        cold.args, cold.returncode, cold.stdout, cold.stderr,
    )  # fmt: skip


def test_it_has_the_environment_and_the_directory_that_were_asked_for(rota: Deployment, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("")
    shown = json.loads(rota.ok("config", "show", "--json", env={**rota.env, "ROTA_CORES": "7"}))
    assert shown["settings"]["cores"]["value"] == 7
    (tmp_path / "here.txt").write_text("true\n")
    with pytest.raises(AssertionError):
        rota.ok("simulate", "here.txt")
    assert "cannot read" not in rota.rota("simulate", "here.txt", cwd=tmp_path).stderr


@pytest.fixture
def busy(rota: Deployment) -> Iterator[tuple[Deployment, str]]:
    try:
        rota.start()
        yield rota, rota.ok("add", "--quiet", "--", "sleep", "1000").strip()
    finally:
        rota.close()


def test_one_does_not_wait_for_another(busy: tuple[Deployment, str]) -> None:
    rota, job = busy
    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(rota.rota, "wait", job)
        rota.ok("kill", job)
        assert "1 cancelled" in waiting.result().stderr


def test_one_that_takes_too_long_is_killed(busy: tuple[Deployment, str]) -> None:
    rota, job = busy
    with pytest.raises(subprocess.TimeoutExpired):
        rota.rota("wait", job, timeout=1)
    assert job in rota.ok("jobs", job)
