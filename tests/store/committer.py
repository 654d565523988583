"""Run by the fault tests: commits batches to a home and says on stdout which are acknowledged.

    committer.py HOME FIRST BATCHES

Batch k adds ten jobs, leases and ends five of them, and sets the fact `batch` to k.
"""

from __future__ import annotations

import sys
from pathlib import Path

from rows import SPEC, an_add, attempt_row, end_row, state_row

from rota.core.changes import Changes
from rota.core.rows import SpecRow
from rota.core.states import State
from rota.errors import StoreFailed, StoreFull
from rota.store.sqlite.store import SqliteStore

SIZE = 10


def batch(k: int) -> Changes:
    ids = range(k * SIZE + 1, (k + 1) * SIZE + 1)
    made = an_add(*ids, submission=f"s{k}")
    made.attempts = [attempt_row(n) for n in ids[:5]]
    made.ends = [end_row(n) for n in ids[:5]]
    made.job_states = {n: state_row(n, State.COMPLETE, attempt=1) for n in ids[:5]}
    made.tally = {("default", int(State.COMPLETE)): 5}
    made.meta = {"batch": str(k)}
    if k == 0:
        made.specs = [SpecRow(1, SPEC)]
    return made


def main() -> None:
    home, first, batches = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    store = SqliteStore(home, reserve=0)
    store.load()
    for k in range(first, first + batches):
        try:
            store.commit(batch(k))
        except (StoreFailed, StoreFull) as error:
            print(error.code, flush=True)
            sys.exit(9)
        print(k, flush=True)
    store.close()


if __name__ == "__main__":
    main()
