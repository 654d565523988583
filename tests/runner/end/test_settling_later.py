"""A dead runner that cannot be settled when its successor starts is settled as soon as it can be."""

from __future__ import annotations

import os
import signal

from tests.deployment import is_alive
from tests.runner.manager import FakeManager


def test_a_dead_runner_is_settled_once_its_journal_can_be_read(manager: FakeManager) -> None:
    process = manager.begin()
    spec = manager.spec()
    manager.work([manager.grant(1, "exec sleep 600", spec)], spec)
    (started,) = manager.until(lambda: manager.started)
    process.send_signal(signal.SIGKILL)
    process.wait()
    manager.hang_up()
    dead = manager.joins[0].runner
    directory = manager.runners / dead
    (directory / "journal").rename(directory / "aside")
    (directory / "journal").symlink_to("journal")  # it cannot be read, which does not mean that it is empty
    manager.rules["touch_s"] = 0.05
    manager.begin()
    assert manager.settles == []
    (done,) = manager.run("true")
    assert done.outcome.exit_code == 0, "meanwhile it works"
    assert is_alive(started.pid), "nobody knows yet whose it is"
    (directory / "aside").replace(directory / "journal")
    (settle,) = manager.until(lambda: manager.settles)
    assert [(each.job, each.outcome.reason) for each in settle.ended] == [(1, "lost")]
    manager.until(lambda: dead not in os.listdir(manager.runners))
    assert not is_alive(started.pid)
