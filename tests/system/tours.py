"""A tour of a page of the documentation: its commands, pasted into a shell."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).parents[2]
#: The language of a block, and what is in it. Only blocks without a language are pasted.
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_WRONG = ("Traceback", "Usage:", "not understood", "no such option", "command not found", "no manager is running")


#: On a busy machine. It only ends a tour that hangs.
LONGEST_S = 600


def _blocks(page: str, *, begin: str) -> str:
    """The commands in one section of a page."""
    text = (TOP / page).read_text()
    section = text[text.index(begin) :].partition("\n## How it compares")[0]
    return "".join(block for language, block in _BLOCK.findall(section) if not language)


def paste(tmp_path: Path, *, page: str, begin: str, expected: list[str]) -> None:
    """All of them work, and say what is expected."""
    script = _blocks(page, begin=begin)
    env = {key: value for key, value in os.environ.items() if not key.startswith("ROTA_")}
    env |= {"PATH": f"{Path(sys.executable).parent}:{env['PATH']}", "HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        ["bash", "-c", script],
        env=env,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=LONGEST_S,
        check=False,
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    for words in expected:
        assert words in said, said
    for words in _WRONG:
        assert words not in said, said
