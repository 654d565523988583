"""A deployment of four cores, whatever the machine has, whose jobs hold them until they are ended."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.deployment import wait_until
from tests.system.queueing import Queue


class Site(Queue):
    def holds(self, *options: str) -> int:
        """A job that runs until it is killed."""
        job = self.waits(*options)
        self.until("running", job)
        return job

    def waits(self, *options: str) -> int:
        return self.add(*options, "--", "sleep", "1000")

    def only_reason(self, job: int) -> dict[str, Any]:
        """The reason for which a job waits, once it has been planned."""
        wait_until(
            lambda: all("about to be" not in each["message"] for each in self.why(job)["reasons"]),
            "it was planned",
        )
        (reason,) = self.why(job)["reasons"]
        assert isinstance(reason, dict)
        return reason

    def reset(self) -> None:
        self.clear()


def moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


@contextlib.contextmanager
def site_of(top: Path, **settings: str) -> Iterator[Site]:
    made = Site(top, cores="4", mem="16G", **settings)
    try:
        made.start()
        wait_until(lambda: made.json("manager", "status")["runners"], "the runner is connected")
        yield made
    finally:
        made.close()
