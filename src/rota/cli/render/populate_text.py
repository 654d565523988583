"""What a manager of tables does, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.cli.render.printing import print_err, print_out
from rota.cli.render.text import harmless, table
from rota.units import about_duration

if TYPE_CHECKING:
    from rota.populate.loop.status import Status


def print_status(status: Status) -> None:
    """Tables, queues and workers; troubles of tables go to the standard error."""
    rows = []
    for name, each in status.tables.items():
        took = "-" if each.took_s is None else about_duration(each.took_s)
        counts = [str(n) for n in (each.done, each.todo, each.queued, each.running, each.errors)]
        rows.append([harmless(name), *counts, took])
    print_out(table(["TABLE", "DONE", "TODO", "QUEUED", "RUNNING", "ERRORS", "TOOK"], rows, right="lrrrrrr"))
    if status.queues:
        queues = [
            [harmless(name), str(each.batches), str(each.keys), str(each.workers)]
            for name, each in sorted(status.queues.items())
        ]
        print_out(table(["QUEUE", "BATCHES", "KEYS", "WORKERS"], queues, right="lrrr"))
    if status.workers:
        workers = [
            [harmless(each.name), harmless(",".join(each.queues)), each.state, harmless(each.table or "-"),
             "-" if each.for_s is None else about_duration(each.for_s)]
            for each in status.workers
        ]  # fmt: skip
        print_out(table(["WORKER", "QUEUES", "STATE", "TABLE", "FOR"], workers, right="llllr"))
    for name, each in status.tables.items():
        if each.error is not None:
            print_err(f"{name}: {each.error}")
