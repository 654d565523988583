"""Derives the blocking client from the asynchronous one: `make client`.

Each module of `rota.client.aio` but `transport` (and the package itself) becomes the module of the same name in
`rota.client.blocking`: without `async` and `await`, with the blocking names, formatted by ruff. `--check` only
compares.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
SOURCE = TOP / "src/rota/client/aio"
TARGET = TOP / "src/rota/client/blocking"
#: Written by hand in both packages.
BY_HAND = {"__init__.py", "transport.py"}
_HEADER = "# Derived from {source} by `make client`: change it there.\n"

#: Applied in this order, to code and docstrings alike.
_CHANGES = [
    (r"\(await (\w[\w.]*\([^()]*\))\)", r"\1"),  # (await manager.status()).counts
    (r"\bawait ", ""),
    (r"\basync (?=(def|with|for)\b)", ""),
    (r"\b__a(enter|exit|iter|next)__\b", r"__\1__"),
    (r"\bconnect_async\b", "connect"),
    (r"\bAsync(?=[A-Z])", ""),
    (r"\bclient\.aio\b", "client.blocking"),
    (r"\ban asynchronous (?=iterator)", "an "),
]


def derive(source: str, name: str) -> str:
    """The blocking module that belongs to an asynchronous one."""
    for pattern, replacement in _CHANGES:
        source = re.sub(pattern, replacement, source)
    source = _HEADER.format(source=f"rota/client/aio/{name}") + source
    path = str(TARGET / name)  # by which ruff finds its rules
    ruff = [str(Path(sys.executable).with_name("ruff"))]
    for arguments in (["check", "--select=I", "--fix", "--quiet"], ["format", "--quiet"]):
        command = [*ruff, *arguments, "--stdin-filename", path, "-"]
        source = subprocess.run(command, input=source, capture_output=True, text=True, check=True, cwd=TOP).stdout
    return source


def outdated() -> dict[Path, str | None]:
    """Modules that are not what they should be, with what they should be (None: there should be none)."""
    there: dict[str, str | None] = {path.name: path.read_text() for path in TARGET.glob("*.py")}
    wanted = {path.name: path.read_text() for path in SOURCE.glob("*.py")}
    names = (there.keys() | wanted.keys()) - BY_HAND
    right = {name: derive(wanted[name], name) if name in wanted else None for name in names}
    return {TARGET / name: text for name, text in sorted(right.items()) if text != there.get(name)}


def main() -> int:
    changes = outdated()
    if "--check" in sys.argv[1:]:
        for path in changes:
            print(f"{path.relative_to(TOP)} is not up to date: run 'make client'", file=sys.stderr)
        return 1 if changes else 0
    for path, text in changes.items():
        path.unlink() if text is None else path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
