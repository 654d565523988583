"""Answers the manager's questions about the tables of one interpreter, one line of JSON each, until it hangs up.

What tables print while they are imported goes to the standard error: the pipes to the manager are private.
"""

from __future__ import annotations

import json
import os
import traceback
from typing import Any

from . import datajoint_table, faults
from .keys import key_of, plain
from .ledger import Bin, Ledger, Unusable
from .tables import ledger_of


class Desk:
    """The tables that were opened, by name."""

    def __init__(self) -> None:
        self.ledgers: dict[str, Ledger] = {}

    def answer(self, asked: dict[str, Any]) -> Any:
        return getattr(self, f"do_{asked['op']}")(asked)

    def do_configure(self, asked: dict[str, Any]) -> None:
        datajoint_table.configure(asked["settings"])

    def do_open(self, asked: dict[str, Any]) -> list[str]:
        """Import the table; what a user should know about it."""
        spec = asked["table"]
        name = spec["name"]
        self.ledgers.pop(name, None)
        ledger = ledger_of(spec)
        warnings = ledger.warnings() if asked.get("check", True) else []
        self.ledgers[name] = ledger
        return warnings

    def do_look(self, asked: dict[str, Any]) -> dict[str, Any]:
        bins = [Bin(each["where"], each["quota"]) for each in asked["bins"]]
        look = self.ledgers[asked["name"]].look(bins)
        counts = {name: getattr(look, name) for name in "done todo queued running errors unbinned batches".split()}
        return {**counts, "free": [[plain(key) for key in keys] for keys in look.free]}

    def do_claim(self, asked: dict[str, Any]) -> dict[str, Any]:
        batches = {token: [key_of(key) for key in keys] for token, keys in asked["batches"].items()}
        got = self.ledgers[asked["name"]].claim(batches, asked["lease_s"])
        return {token: [plain(key) for key in keys] for token, keys in got.items()}

    def do_release(self, asked: dict[str, Any]) -> tuple[int, int]:
        return self.ledgers[asked["name"]].release(asked["token"], asked["on_lost"], asked["why"])

    def do_lock(self, asked: dict[str, Any]) -> bool:
        return next(iter(self.ledgers.values())).lock(asked["lock"])

    def do_migrate(self, asked: dict[str, Any]) -> list[str]:
        return self.ledgers[asked["name"]].migrate()


def main() -> None:
    # Nothing that tables print or read must come between us and the manager.
    questions = os.fdopen(os.dup(0), "r", encoding="utf-8")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    desk = Desk()
    for line in questions:
        answers.write(json.dumps(_answered(desk, json.loads(line))) + "\n")
        answers.flush()


def _answered(desk: Desk, asked: dict[str, Any]) -> dict[str, Any]:
    try:
        return {"ok": desk.answer(asked)}
    except (KeyboardInterrupt, SystemExit, Exception) as error:
        return {"error": _described(error)}


def _described(error: BaseException) -> dict[str, Any]:
    kind = "table" if isinstance(error, Unusable) else "import" if isinstance(error, ImportError) else "error"
    if faults.kind_of(error) == faults.TRANSIENT:
        kind = "database"
    module = getattr(error, "name", None) or ""
    text = str(error) if isinstance(error, Unusable) else f"{type(error).__name__}: {error}"
    return {"kind": kind, "text": text, "module": module, "stack": traceback.format_exc()}


if __name__ == "__main__":
    main()
