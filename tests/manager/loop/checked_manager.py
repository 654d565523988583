"""A manager whose store writes down every call from the thread of the loop, once it listens.

Run as `python checked_manager.py HOME FILE`.
"""

from __future__ import annotations

import sys
import threading
import traceback
from pathlib import Path
from typing import Any

from rota.manager.loop import startup

#: The store is closed when the loop is over.
ALLOWED = {"close"}


class Checked:
    """Passes every call on to a store."""

    listening = False
    elsewhere = 0  #: calls from other threads

    def __init__(self, store: Any, file: Path) -> None:
        self._store = store
        self._file = file

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if name in ALLOWED:
            return found

        def call(*args: Any, **named: Any) -> Any:
            if Checked.listening and threading.current_thread() is threading.main_thread():
                with self._file.open("a") as out:
                    out.write(f"{name}\n{''.join(traceback.format_stack(limit=6))}\n")
            else:
                Checked.elsewhere += 1
            return found(*args, **named)

        return call


def main(home: str, file: str) -> int:
    opened, ready = startup.open_store, startup._Ready.ok

    def listening(self: Any, pid: int, path: str) -> None:
        Checked.listening = True
        ready(self, pid, path)

    startup.open_store = lambda *args, **named: Checked(opened(*args, **named), Path(file))  # type: ignore[assignment]
    startup._Ready.ok = listening  # type: ignore[method-assign]
    status = startup.main(["--home", home])
    Path(f"{file}.elsewhere").write_text(f"{Checked.elsewhere}")
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
