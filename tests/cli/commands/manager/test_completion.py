"""Completion at a real prompt: what bash has on the line after Tab."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
from pathlib import Path

import pytest

from tests.deployment import ROTA, Deployment


def completed(rota: Deployment, line: str) -> str:
    """The line as bash would run it, after Tab."""
    screen, terminal = pty.openpty()
    env = {**rota.env, "PATH": f"{Path(ROTA).parent}:{os.environ['PATH']}", "TERM": "dumb", "HOME": str(rota.work)}
    (rota.work / "rc").write_text(
        f'{rota.ok("completion", "bash")}\nPS1="ready>"\nbind "set enable-bracketed-paste off"\n'
        """bind -x '"\\C-t": printf "\\n<%s>\\n" "$READLINE_LINE"'\n"""
    )
    shell = subprocess.Popen(
        ["bash", "--noprofile", "--rcfile", "rc", "-i"],
        stdin=terminal, stdout=terminal, stderr=terminal, env=env, cwd=rota.work, start_new_session=True,
    )  # fmt: skip
    os.close(terminal)
    try:
        _until(screen, rb"ready>")
        os.write(screen, f"{line}\t\x14".encode())
        return _until(screen, rb"\n<(.*)>\r?\n").decode()
    finally:
        shell.kill()
        shell.wait(30)
        os.close(screen)


def _until(screen: int, pattern: bytes) -> bytes:
    seen = b""
    while not (found := re.search(pattern, seen)):
        assert select.select([screen], [], [], 60)[0], seen
        seen += os.read(screen, 4096)
    return found[found.lastindex or 0].rstrip(b"\r")


@pytest.fixture(scope="module")
def known(shared: Deployment) -> Deployment:
    """Groups, a limit, something learned, files and directories to be offered."""
    shared.ok("limit", "licence:3")
    shared.ok("property", "add", "vendor")
    shared.ok("resource", "add", "--hosts", "node17", "--cores", "1")
    shared.ok("run", "-g", "batch", "--learn", "aligner", "--", "true")
    shared.ok("run", "-g", "two words", "--", "true")
    (shared.work / "parameters.txt").write_text("1\n")
    (shared.work / "place").mkdir()
    return shared


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("rota jo", "rota jobs "),
        ("rota jobs @b", "rota jobs @batch "),
        ("rota jobs state=fa", "rota jobs state=failed "),
        ("rota jobs @batch,state=fa", "rota jobs @batch,state=failed "),
        ("rota jobs state=failed @b", "rota jobs state=failed @batch "),
        ("rota jobs @tw", "rota jobs @two\\ words "),
        ("rota add --limit li", "rota add --limit licence "),
        ("rota add --limit=li", "rota add --limit=licence "),
        ("rota add --override hi", "rota add --override higher "),
        ("rota add --learn al", "rota add --learn aligner "),
        ("rota learn al", "rota learn aligner "),
        ("rota add --array-file par", "rota add --array-file parameters.txt "),
        ("rota resource set --hosts no", "rota resource set --hosts node17 "),
        ("rota resource add --set ven", "rota resource add --set vendor "),
        ("rota property remove v", "rota property remove vendor "),
        ("rota property add x --above co", "rota property add x --above core "),
        ("rota run par", "rota run parameters.txt "),
        ("rota add --cwd p", "rota add --cwd place/"),
    ],
)
def test_tab_completes(known: Deployment, typed: str, expected: str) -> None:
    assert completed(known, typed) == expected
