"""Writes the golden files of a release. Run by `make` beside it, with the program of that release."""

from __future__ import annotations

import json
import lzma
import os
import tempfile
from pathlib import Path

from tests.golden import formats
from tests.golden.homes import HOMES
from tests.golden.scene import scene
from tests.golden.session import play


def main(out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="golden.", dir="/tmp") as made:
        top = Path(made)
        tap = top / "tap"
        tap.mkdir()
        os.environ["GOLDEN_TAP"] = str(tap)
        with scene(top, "session", http="on") as rota:
            told = play(rota.rota, str(rota.work))
        (out / "session.json.xz").write_bytes(lzma.compress(json.dumps(told, indent=0).encode(), preset=9))
        for make in HOMES.values():
            make(top, out)
            print(make.__doc__, flush=True)
        formats.write(out, [path.read_bytes() for path in sorted(tap.iterdir())])


if __name__ == "__main__":
    import sys

    main(Path(sys.argv[1]))
