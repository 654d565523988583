"""Commands that put nodes to sleep and wake them: how they are run, and how many at once."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import Any

from rota.core.events import PowerCommandEnded
from rota.manager.host.energy import AT_ONCE, Energy, run_command
from rota.settings import Settings
from tests.deployment import is_alive, wait_until


def test_a_command_that_succeeds_has_no_error() -> None:
    assert run_command(["true", "n1"], 30.0) == ""


def test_a_command_that_fails_says_how_and_what_it_printed() -> None:
    error = run_command(["sh", "-c", "echo no route to $0 >&2; exit 3", "n1"], 30.0)
    assert error == "sh ended with 3: no route to n1"


def test_a_command_that_is_not_there_is_an_error() -> None:
    assert "No such file" in run_command(["/nonexistent/wake", "n1"], 30.0)


def test_a_command_that_takes_too_long_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    error = run_command(["sh", "-c", f"sleep 1000 & echo $! > {pid}; wait", "n1"], 0.5)
    assert "longer than 0.5 s" in error
    wait_until(lambda: not is_alive(int(pid.read_text())), "what it started is gone")


def test_what_a_command_leaves_running_does_not_keep_it(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    assert run_command(["sh", "-c", f"sleep 1000 & echo $! > {pid}", "n1"], 30.0) == ""
    os.kill(int(pid.read_text()), 9)


def run_all(settings: Settings, *asked: tuple[str, bool]) -> list[PowerCommandEnded]:
    """What is told when commands were asked for, in this order, of a manager that is only this."""

    async def main() -> list[PowerCommandEnded]:
        told: list[PowerCommandEnded] = []
        happened: Any = told.append
        energy = Energy(settings, happened=happened)
        for host, wake in asked:
            energy.run([host], wake=wake)
        deadline = time.monotonic() + 60
        while len(told) < len(asked) and time.monotonic() < deadline:
            await asyncio.sleep(0.01)
        return told

    return asyncio.run(main())


def test_commands_of_one_node_run_one_after_the_other_in_order(tmp_path: Path) -> None:
    log = tmp_path / "log"
    script = tmp_path / "script"
    script.write_text(f'#!/bin/sh\necho "begin $1 $2" >> {log}\nsleep 0.1\necho "end $1 $2" >> {log}\n')
    script.chmod(0o700)
    settings = Settings(sleep_cmd=f"{script} sleep", wake_cmd=f"{script} wake")
    run_all(settings, ("n1", False), ("n1", True), ("n2", False))
    lines = [line for line in log.read_text().splitlines() if line.endswith("n1")]
    assert lines == ["begin sleep n1", "end sleep n1", "begin wake n1", "end wake n1"]


def test_no_more_than_so_many_run_at_once(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text(f'#!/bin/sh\nmkdir {tmp_path}/run-$1\nls -d {tmp_path}/run-* | wc -l > {tmp_path}/seen-$1\n'
                      f'sleep 0.2\nrmdir {tmp_path}/run-$1\n')  # fmt: skip
    script.chmod(0o700)
    nodes = [f"n{number}" for number in range(3 * AT_ONCE)]
    told = run_all(Settings(sleep_cmd="true", wake_cmd=str(script)), *((node, True) for node in nodes))
    assert {(each.host, each.wake, each.error) for each in told} == {(node, True, "") for node in nodes}
    seen = [int((tmp_path / f"seen-{node}").read_text()) for node in nodes]
    assert max(seen) <= AT_ONCE


def test_a_name_that_looks_like_an_option_is_given_to_no_command() -> None:
    (told,) = run_all(Settings(sleep_cmd="true", wake_cmd="true"), ("-rf", True))
    assert told.error
