"""Loads the named statements in `sql` and the numbered migrations beside them."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Final

_SQL: Final = files("rota.store.sqlite") / "sql"


@cache
def statements() -> dict[str, str]:
    """Name → SQL text. Each statement begins with `-- name: …` and a line that describes it."""
    return _named("statements.sql")


@cache
def contradictions() -> dict[str, str]:
    """Description of an inconsistency → the query that finds it; a sound database yields no rows."""
    return _named("contradictions.sql")


def _named(file: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in (_SQL / file).read_text("utf-8").split("-- name: ")[1:]:
        name, _, body = part.partition("\n")
        lines = [line for line in body.splitlines() if not line.startswith("--")]
        found[name.strip()] = "\n".join(lines).strip().rstrip(";")
    return found


@cache
def migrations() -> dict[int, str]:
    """Schema version → script that leads there from the version before."""
    scripts = (entry for entry in _SQL.iterdir() if entry.name[:4].isdigit())
    return {int(entry.name[:4]): entry.read_text("utf-8") for entry in scripts}
