"""A deployment with its manager, as tests of the queue drive it: commands to act, the Python client to look."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from rota.wire.views import JobView
from tests.deployment import Deployment, add_new, is_alive, wait_until

#: A job in one of these has been sent to a runner and not ended.
LEASED = {"scheduled", "starting", "running", "finishing", "lost"}


class Queue(Deployment):
    """More jobs may run at once than this machine has cores: most of them only wait for a file."""

    def __init__(self, top: Path, **settings: str) -> None:
        super().__init__(top, **{"grace": "1s", "cores": "8", "mem": "64G", **settings})

    def add(self, *words: str, **options: Any) -> int:
        """`rota add WORDS`, which adds one job; its id."""
        (job,) = self.add_all(*words, **options)
        return job

    def add_all(self, *words: str, **options: Any) -> list[int]:
        return [int(word) for word in self.ok("add", "--quiet", *words, **options).split()]

    def add_lines(self, *lines: dict[str, Any] | str, words: tuple[str, ...] = ()) -> list[int]:
        """Jobs as JSON objects, or commands, one a line."""
        texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        return self.add_all(*words, "-", input="\n".join(texts) + "\n")

    def put(self, command: str | list[str], **fields: Any) -> int:
        """The same by the Python client, always as a new job."""
        fields = {"cwd": str(self.work), "env": {"ROTA_HOME": str(self.home)}, **fields}
        with self.client() as client:
            (job,) = add_new(client, [command], **fields)
        return job

    def look(self, job: int) -> JobView:
        with self.client() as client:
            return client.job(job)

    def states_of(self, *jobs: int) -> list[str]:
        with self.client() as client:
            return [client.job(job).state for job in jobs]

    def until(self, state: str, *jobs: int) -> None:
        """Wait until all these jobs are in this state."""
        wait_until(
            lambda: all(each == state for each in self.states_of(*jobs)), f"{jobs} are {state}{self.logs()}"
        )

    def count(self, state: str, *jobs: int) -> int:
        return self.states_of(*jobs).count(state)

    def why(self, job: int) -> Any:
        """`rota why --json`, of which the shape is checked here, once for all."""
        found = self.json("why", str(job))
        assert {"id", "state", "reasons", "expected_start"} <= set(found)
        assert found["id"] == job
        for reason in found["reasons"]:
            assert {"code", "message", "blockers"} <= set(reason)
            assert reason["message"]
            assert all(isinstance(each, int) for each in reason["blockers"])
        return found

    def reason(self, job: int) -> Any:
        """The only reason that there is for a job not to run, once there is a runner."""
        with self.client() as client:
            wait_until(lambda: len(client.why(job).reasons) == 1, "there is one reason")
            (reason,) = client.why(job).reasons
        return msgspec.to_builtins(reason)

    def shown(self, job: int) -> Any:
        """The same as `rota show --json`."""
        return msgspec.to_builtins(self.look(job))

    def limit(self, name: str) -> Any:
        """One limit, as `rota limit --json` shows it."""
        with self.client() as client:
            (found,) = (each for each in client.limits() if each.name == name)
        return msgspec.to_builtins(found)

    def set_limits(self, *texts: str) -> None:
        with self.client() as client:
            for text in texts:
                client.set_limit(text)

    def waits_for(self, gate: str) -> str:
        """A command that runs until `open` is called with this name."""
        return f"until test -e {self.work}/{gate}; do sleep 0.1; done"

    def open(self, gate: str) -> None:
        (self.work / gate).touch()

    def ran(self, name: str = "ran") -> list[str]:
        """The words that jobs have appended to a file."""
        with contextlib.suppress(FileNotFoundError):
            return (self.work / name).read_text().split()
        return []

    def kill_manager(self) -> None:
        pid = self.manager_pid()
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not is_alive(pid), "the manager is dead")

    def kill_runners(self) -> None:
        for pid in self.runner_pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def clear(self) -> None:
        """End everything that runs or waits, so that the next test begins with an idle machine."""
        with self.client() as client:
            client.resume_manager()
            client.kill("all")
            wait_until(lambda: not LEASED & set(client.status().counts), "nothing runs any more")


@contextlib.contextmanager
def queue_of(top: Path, **settings: str) -> Iterator[Queue]:
    """A queue whose manager runs; all of it is gone at the end."""
    made = Queue(top, **settings)
    try:
        made.start()
        yield made
    finally:
        made.close()


def most_at_once(marks: list[str]) -> int:
    """The highest number of `+` that had no `-` yet."""
    level = highest = 0
    for mark in marks:
        level += 1 if mark == "+" else -1
        highest = max(highest, level)
    return highest
