"""The check of `rota doctor` that the programs of pools can be run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rota.home import Home


def findings(home: Home) -> Iterator[tuple[str, str, str]]:
    """For each pool: the severity, the finding, and what to do."""
    from rota.config import load
    from rota.errors import RotaError

    try:
        pools = load(home).settings.pools
    except RotaError:
        return  # said by the check of the configuration
    for name, pool in pools.items():
        programs = {key: value[0] for key, value in pool.extra.items() if isinstance(value, tuple) and value}
        # One finding for a program of several keys, under the first.
        bad = {program: key for key, program in reversed(programs.items()) if not _can_be_run(program)}
        for program, key in bad.items():
            yield "bad", f"{name}: {program} is no program that can be run ({key})", f"see [pools.{name}]"
        if programs and not bad:
            yield "good", f"{name}: its programs can be run", ""


def _can_be_run(program: str) -> bool:
    return os.path.isfile(program) and os.access(program, os.X_OK)
