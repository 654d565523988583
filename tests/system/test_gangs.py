"""Gangs with a real manager and real processes."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.deployment import wait_until
from tests.system.queueing import Queue, queue_of

ROTA = Path(sys.executable).with_name("rota")


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[Queue]:
    with queue_of(tmp_path, cores="2") as made:
        yield made


def member(name: str, cmd: str, **fields: Any) -> dict[str, Any]:
    shared = {"gang": "g", "gang_share": True, "cpus": 1, "mem": "20M", "retries": 0}
    return {"cmd": cmd, "name": name, **shared, **fields}


def test_members_see_each_other_and_meet(queue: Queue) -> None:
    look = 'echo "$ROTA_GANG" > {0}; echo "$ROTA_GANG_HOSTS" >> {0}; {1} gang wait here --timeout 5m'
    ids = queue.add_lines(member("web", look.format("a", ROTA)), member("db", look.format("b", ROTA)))
    queue.until("complete", *ids)
    name, *lines = (queue.work / "a").read_text().splitlines()
    assert name == "g"
    assert [line.partition("=")[0] for line in lines] == ["web", "db"]
    assert (queue.work / "a").read_text() == (queue.work / "b").read_text()
    view = queue.json("gang", "show", "g")
    assert view.keys() == {"gang", "state", "members", "missing", "reserved_at"}
    assert (view["gang"], view["state"]) == ("g", "complete")
    assert [each["name"] for each in view["members"]] == ["web", "db"]
    assert all(each["hosts"] for each in view["members"])


def test_waiting_ends_with_1_when_a_member_ended_and_with_6_in_time(queue: Queue) -> None:
    late = f"{ROTA} gang wait p --timeout 1s; echo $? > timed; {ROTA} gang wait p; echo $? > ended"
    one, two = queue.add_lines(
        member("a", late, on_member_failure="keep"),
        member("b", queue.waits_for("b"), on_member_failure="keep"),
    )
    wait_until(lambda: (queue.work / "timed").exists(), f"its time is over{queue.logs()}")
    queue.open("b")
    queue.until("complete", one, two)
    assert (queue.work / "timed").read_text().strip() == "6"
    assert (queue.work / "ended").read_text().strip() == "1"


def test_a_failed_member_ends_the_others(queue: Queue) -> None:
    ids = queue.add_lines(member("a", "sleep 1000"), member("b", f"{queue.waits_for('b')}; exit 3"))
    queue.until("running", *ids)
    queue.open("b")
    queue.until("failed", *ids)
    assert queue.shown(ids[0])["reason"]["code"] == "gang"


@pytest.mark.parametrize("delay_s", [0.0, 0.02, 0.1])
def test_a_gang_is_whole_or_nothing_after_the_manager_was_killed(queue: Queue, delay_s: float) -> None:
    blocker = queue.put(queue.waits_for("go"), cpus=2)
    queue.until("running", blocker)
    ids = queue.add_lines(member("a", "echo a >> ran"), member("b", "echo b >> ran"))
    queue.open("go")
    wait_until(lambda: queue.state(blocker) == "complete", "the gang is about to be placed")
    time.sleep(delay_s)  # somewhere in the middle of placing it
    os.kill(queue.manager_pid(), signal.SIGKILL)
    queue.start()
    wait_until(lambda: set(queue.states_of(*ids)) <= {"complete", "failed"}, f"both end{queue.logs()}")
    assert len(set(queue.states_of(*ids))) == 1
    assert len(queue.ran()) <= 2


def test_a_gang_that_is_added_in_two_calls_is_refused(queue: Queue) -> None:
    queue.add_lines(member("a", queue.waits_for("x")))
    done = queue.rota("add", "--gang", "g", "--", "true")
    assert done.returncode == 2
    assert "one call" in done.stderr
    assert len(queue.states()) == 1
