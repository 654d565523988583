"""The check for import cycles finds them, however they are written."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_CHECK = Path(__file__).parents[1] / "tools" / "check_cycles.py"


def check(source: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, _CHECK, source], capture_output=True, text=True, check=False)


def package(top: Path, **files: str) -> Path:
    (top / "p").mkdir()
    (top / "p" / "__init__.py").write_text("")
    for name, text in files.items():
        (top / "p" / f"{name}.py").write_text(text)
    return top


@pytest.mark.parametrize(
    "back",
    [
        "import p.a",
        "from p import a",
        "from p.a import X",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from p.a import X",
        "def late():\n    from p import a",
    ],
)
def test_a_cycle_is_found_wherever_its_import_stands(tmp_path: Path, back: str) -> None:
    done = check(package(tmp_path, a="from p import b", b="import p.c", c=back))
    assert (done.returncode, done.stdout) == (1, "import cycle: p.a -> p.b -> p.c -> p.a\n")


def test_modules_that_import_in_one_direction_pass(tmp_path: Path) -> None:
    done = check(package(tmp_path, a="from p import b, c", b="from p.c import X", c="import os"))
    assert (done.returncode, done.stdout) == (0, "")
