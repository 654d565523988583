"""Old output goes first, by age and by space, and never what may still be written to."""

from __future__ import annotations

import os
from pathlib import Path

from rota.core.effects import RemoveSegments
from rota.core.engine import Engine
from rota.core.events import OutputOutdated
from rota.core.output.output_blocks import checksums
from rota.core.output.output_report import OutputReport
from rota.core.stored import StoredAttempt
from rota.core.turn import Batch, Turn
from rota.core.world import World
from rota.manager.output.outputs import OutputChecks
from rota.manager.output.pruning import outdated, remove
from rota.plan.dispatch.planning import Planning
from rota.store.memory.store import MemoryStore

_NOW = 10_000_000.0
_DAY = 86_400.0


def _segment(directory: Path, name: str, *, days: float, size: int = 100) -> None:
    (directory / name).write_bytes(bytes(size))
    os.utime(directory / name, (_NOW - days * _DAY, _NOW - days * _DAY))


def test_what_is_too_old_goes(tmp_path: Path) -> None:
    for name, days in (("old", 40), ("middle", 20), ("new", 0)):
        _segment(tmp_path, name, days=days)
    assert outdated(tmp_path, now=_NOW, keep_s=30 * _DAY, keep_bytes=10**9) == ["old"]
    remove(tmp_path, ["old", "never there"])
    assert sorted(os.listdir(tmp_path)) == ["middle", "new"]


def test_the_oldest_go_until_the_rest_fits(tmp_path: Path) -> None:
    for days in (4, 3, 2, 1):
        _segment(tmp_path, f"d{days}", days=days)
    assert outdated(tmp_path, now=_NOW, keep_s=30 * _DAY, keep_bytes=250) == ["d4", "d3"]


def test_a_segment_in_use_stays_whatever_its_size(tmp_path: Path) -> None:
    _segment(tmp_path, "now", days=0, size=1000)
    assert outdated(tmp_path, now=_NOW, keep_s=1.0, keep_bytes=1) == []


def test_it_is_recorded_before_a_segment_is_removed_and_told_of_its_outputs(tmp_path: Path) -> None:
    (tmp_path / "r-000001").write_bytes(b"out")
    attempt = StoredAttempt(1, 1, 1, "r", "h", 1.0, segment="r-000001", out_len=3, out_total=3)
    attempt.kept = OutputReport(checksums(b"out", b""))
    store, batch = MemoryStore(), Batch()
    checks = OutputChecks(tmp_path, store)
    assert checks.missing([attempt]) == [None]
    turn = Turn(wall=1.0, mono=1.0, random=lambda: 0.5, batch=batch)
    Engine(World(Planning(first_seat=1))).step([OutputOutdated(["r-000001"])], turn)
    assert RemoveSegments(["r-000001"]) in batch.effects
    store.commit(batch.changes)
    assert checks.missing([attempt]) == [None], "it is still there"
    (tmp_path / "r-000001").unlink()
    (missing,) = checks.missing([attempt])
    assert missing is not None
    assert missing.code == "pruned"
    attempt.segment = "r-000002"
    assert [each and each.code for each in checks.missing([attempt])] == ["gone"]
