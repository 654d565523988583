"""A real manager that meets bugs: it drops what it was deciding, starts anew in the same process, and goes on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deployment import Deployment, deployment, is_alive, wait_until

pytestmark = pytest.mark.cold

_BUGS = Path(__file__).with_name("bugs")


class Buggy:
    """A deployment whose manager meets the bugs that it is told to."""

    def __init__(self, rota: Deployment, file: Path) -> None:
        self.rota = rota
        self._file = file
        rota.env |= {"PYTHONPATH": str(_BUGS), "ROTA_TEST_BUGS": str(file)}

    def meets(self, *bugs: str) -> None:
        self._file.write_text("".join(f"{bug}\n" for bug in bugs))

    @property
    def left(self) -> list[str]:
        """The bugs that were not met yet."""
        return self._file.read_text().splitlines()

    def generation(self) -> int:
        with self.rota.client() as client:
            return client.manager_status().generation


@pytest.fixture
def buggy(tmp_path: Path) -> Iterator[Buggy]:
    with deployment(tmp_path) as made:
        yield Buggy(made, tmp_path / "bugs.txt")


def test_a_bug_in_a_request_costs_a_new_generation_and_nothing_else(buggy: Buggy) -> None:
    rota = buggy.rota
    rota.start()
    pid, runner = rota.manager_pid(), wait_until(rota.runner_pids, "a runner")
    gate = rota.work / "gate"
    long = rota.json("add", "--", "sh", "-c", f"until [ -e {gate} ]; do sleep 0.05; done")["added"][0]
    wait_until(lambda: rota.state(long) == "running", "it runs")
    for generation, bug in enumerate(["JobsHeld before", "JobsHeld after", "ChunkArrived after"], 2):
        buggy.meets(bug)
        if bug.startswith("JobsHeld"):
            rota.ok("hold", str(rota.json("add", "--after", str(long), "--", "echo", bug)["added"][0]))
        else:
            rota.ok("add", "--after", str(long), "--", "true")
        assert buggy.left == []
        assert buggy.generation() == generation, rota.logs()
    assert rota.manager_pid() == pid
    assert is_alive(pid)
    assert rota.runner_pids() == runner
    assert rota.state(long) == "running"
    gate.touch()
    wait_until(lambda: rota.state(long) == "complete", "it completes")
    assert len(rota.states()) == 4
