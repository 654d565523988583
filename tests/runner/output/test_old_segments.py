"""An agent removes the output that earlier ones have left once the manager has it."""

from __future__ import annotations

import os
from pathlib import Path

from rota.runner.output.segments import Segments


def test_segments_go_when_the_directory_of_their_runner_is_gone(tmp_path: Path) -> None:
    output, runners = tmp_path / "output", tmp_path / "runners"
    for runner in ("n1-1-aaaaaaaa", "n1-2-bbbbbbbb", "n1-3-cccccccc"):
        (runners / runner).mkdir(parents=True)
        Segments(str(output), runner).append(b"text")
    other = output / "notes.txt"
    other.touch()
    (runners / "n1-1-aaaaaaaa").rmdir()
    Segments(str(output), "n1-3-cccccccc").remove_old(str(runners))
    kept = ["n1-2-bbbbbbbb-000001", "n1-3-cccccccc-000001", "notes.txt"]
    assert sorted(os.listdir(output)) == kept


def test_there_may_be_no_output_yet(tmp_path: Path) -> None:
    Segments(str(tmp_path / "output"), "n1-1-aaaaaaaa").remove_old(str(tmp_path))
