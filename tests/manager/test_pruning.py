"""Old output goes first, by age and by space, and never what may still be written to."""

from __future__ import annotations

import os
from pathlib import Path

from rota.manager.pruning import prune

_NOW = 10_000_000.0
_DAY = 86_400.0


def _segment(directory: Path, name: str, *, days: float, size: int = 100) -> None:
    (directory / name).write_bytes(bytes(size))
    os.utime(directory / name, (_NOW - days * _DAY, _NOW - days * _DAY))


def test_what_is_too_old_goes(tmp_path: Path) -> None:
    for name, days in (("old", 40), ("middle", 20), ("new", 0)):
        _segment(tmp_path, name, days=days)
    assert prune(tmp_path, now=_NOW, keep_s=30 * _DAY, keep_bytes=10**9) == ["old"]
    assert sorted(os.listdir(tmp_path)) == ["middle", "new"]


def test_the_oldest_go_until_the_rest_fits(tmp_path: Path) -> None:
    for days in (4, 3, 2, 1):
        _segment(tmp_path, f"d{days}", days=days)
    assert prune(tmp_path, now=_NOW, keep_s=30 * _DAY, keep_bytes=250) == ["d4", "d3"]


def test_a_segment_in_use_stays_whatever_its_size(tmp_path: Path) -> None:
    _segment(tmp_path, "now", days=0, size=1000)
    assert prune(tmp_path, now=_NOW, keep_s=1.0, keep_bytes=1) == []
