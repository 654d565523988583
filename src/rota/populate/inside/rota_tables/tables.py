"""From what the configuration says about a table to its ledger."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

from . import datajoint_table
from .datajoint0 import DataJoint0
from .datajoint2 import DataJoint2
from .ledger import Ledger, Policy, Unusable
from .plain_sql import PlainSql


def ledger_of(spec: dict[str, Any]) -> Ledger:
    """Raises `Unusable`, and whatever the import raises."""
    here = spec.get("directory") or os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    policy = Policy(spec.get("on_timeout", "error"), spec.get("attempts", 3))
    found = imported(spec["name"])
    if spec.get("sql"):
        return PlainSql(found, imported(spec["sql"]["connect"]), sql=spec["sql"], policy=policy)
    if not datajoint_table.is_table(found):
        raise Unusable(f"{spec['name']} is not a table that DataJoint populates; for a query, give sql")
    bins = bool(spec.get("bins"))
    if hasattr(found, "_job_key"):
        return DataJoint0(found, bins=bins, policy=policy, mark=spec.get("mark", "queued"))
    return DataJoint2(found, bins=bins, policy=policy)


def imported(name: str) -> Any:
    """The object of a dotted name. Raises `ImportError`, naming the module or the name that is missing."""
    words = name.split(".")
    for end in range(len(words) - 1, 0, -1):
        module = ".".join(words[:end])
        try:
            found: Any = importlib.import_module(module)
        except ModuleNotFoundError as error:
            # A module that this one needs is missing, which says more than that this one could not be imported.
            if end > 1 and f"{module}.".startswith(f"{error.name}."):
                continue
            raise
        for word in words[end:]:
            if not hasattr(found, word):
                raise ImportError(f"module {module} has no {'.'.join(words[end:])}", name=module)
            found = getattr(found, word)
        return found
    raise ImportError(f"{name} is not the dotted name of something in a module", name=name)
