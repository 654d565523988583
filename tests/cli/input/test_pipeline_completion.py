"""What shells offer for `rota pipeline`: files, and elements and stages of the file on the command line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from rota.cli.main import rota

_FILE = """
stages: [{name: fetch, run: "true"}, {name: build, run: "true"}]
elements: {base: {}, binary: {}, app: {}}
"""


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "p.yaml").write_text(_FILE)
    (tmp_path / "broken.yaml").write_text("stages: [")
    monkeypatch.chdir(tmp_path)


def offered(words: str) -> list[str]:
    *before, typed = words.split(" ")
    made = ShellComplete(rota, {}, "rota", "_ROTA_COMPLETE")
    return [item.value if item.type == "plain" else item.type for item in made.get_completions(before, typed)]


def test_elements_and_stages_of_the_file_are_offered() -> None:
    assert offered("pipeline retry p.yaml b") == ["base", "binary"]
    assert offered("pipeline run p.yaml --only ") == ["base", "binary", "app"]
    assert offered("pipeline run p.yaml --stages ") == ["fetch", "build"]
    assert offered("pipeline run p.yaml --stages fetch,") == ["fetch,build"]


def test_files_are_offered_first_and_nothing_of_a_file_that_cannot_be_read() -> None:
    assert offered("pipeline pause ") == ["file"]
    assert offered("pipeline run ") == ["file"]
    assert offered("pipeline retry broken.yaml ") == []
    assert offered(f"pipeline retry {os.devnull} ") == []
    assert offered("pipeline retry absent.yaml ") == []
