"""What the launcher has told and the runner has not asked for yet makes its descriptor readable again."""

from __future__ import annotations

import select

from rota.launcher import journal
from tests.deployment import wait_until
from tests.launcher.desk import Desk


def _readable(desk: Desk) -> bool:
    return bool(select.select([desk.launcher.fd], [], [], 0.0)[0])


def test_an_end_that_was_received_with_output_is_told_until_it_is_reaped(desk: Desk) -> None:
    """Output is collected in between, when the end of another process is handled."""
    pid = desk.start("exit 3").pid
    directory = desk.launcher.directory
    wait_until(lambda: any(task.exits for task in journal.read(directory).tasks.values()), "it has ended")
    wait_until(lambda: desk.launcher.receive() is not None and desk.launcher.queued, "its end was received")
    desk.launcher.receive()
    assert _readable(desk)
    over = desk.launcher.reap()
    assert over is not None
    assert over[0] == pid
    desk.launcher.receive()
    assert not _readable(desk)
