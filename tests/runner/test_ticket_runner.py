"""The identity of a runner with a ticket: its own directory and key, and the time that it has."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from rota.errors import Denied, EnvironmentFault
from rota.runner.startup import options
from rota.runner.ticket_runner import TicketRunner, moment
from rota.wire import ticket_file
from rota.wire.ticket_file import Ticket

TICKET = Ticket(name="rota-1-a", secret=ticket_file.new_secret(), manager="h:1", authority="")


def start(directory: Path) -> TicketRunner:
    return TicketRunner(TICKET, directory)


def end(runner: TicketRunner) -> None:
    """As the end of its process does."""
    assert runner._lock is not None
    os.close(runner._lock)


def test_the_key_is_private_survives_a_restart_and_differs_between_directories(tmp_path: Path) -> None:
    first = start(tmp_path / "a")
    assert len(first.key) == 64
    assert (first.directory / "key").stat().st_mode & 0o777 == 0o600
    assert first.directory.stat().st_mode & 0o777 == 0o700
    assert (first.directory / "key").read_text() not in first.key
    end(first)
    again, other = start(tmp_path / "a"), start(tmp_path / "b")
    assert again.key == first.key
    assert other.key != first.key
    end(again)
    end(other)


def test_a_directory_has_one_runner_at_a_time(tmp_path: Path) -> None:
    first = start(tmp_path)
    with pytest.raises(EnvironmentFault, match="already"):
        start(tmp_path)
    end(first)


def test_a_directory_that_others_prepared_or_can_use_is_refused(tmp_path: Path) -> None:
    """It may be below /tmp, where all users write."""
    mine = tmp_path / TICKET.name
    mine.mkdir(mode=0o700)
    mine.chmod(0o770)
    with pytest.raises(Denied, match="yours alone"):
        start(tmp_path)
    mine.rmdir()
    (tmp_path / "trap").mkdir(mode=0o700)
    mine.symlink_to(tmp_path / "trap")
    with pytest.raises(Denied, match="yours alone"):
        start(tmp_path)
    assert not list((tmp_path / "trap").iterdir())
    mine.unlink()
    mine.write_text("")
    with pytest.raises(Denied):
        start(tmp_path)


def test_a_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    first = start(tmp_path)
    end(first)
    (first.directory / "key").chmod(0o644)
    with pytest.raises(Denied):
        start(tmp_path)


def test_its_directory_goes_unless_something_in_it_was_not_reported(tmp_path: Path) -> None:
    runner = start(tmp_path)
    journal = Path(runner.root) / "rota-1-a-1-00000000"
    journal.mkdir()
    runner.clean_up()
    assert journal.exists()
    journal.rmdir()
    (runner.directory / "scratch").mkdir()
    (runner.directory / "scratch" / "link").symlink_to(tmp_path)
    runner.clean_up()
    assert not runner.directory.exists()
    assert tmp_path.exists()
    end(runner)


def test_times_are_seconds_from_now_or_since_the_epoch() -> None:
    now = time.monotonic()
    assert 99.0 < moment("100") - now < 160.0
    assert 99.0 - 60.0 < moment(f"@{time.time() + 100.0}") - now < 160.0
    for wrong in ("", "soon", "nan", "inf", "@", "1h", "@inf"):
        with pytest.raises(ValueError, match=r"convert|no time"):
            moment(wrong)


def test_a_runner_is_told_once_how_to_reach_its_manager() -> None:
    assert options(["--ticket", "f", "--dir", "d", "--until", "5", "--linger", "1"])["--ticket"] == "f"
    assert options(["--manager", "h:1", "--ticket", "f", "--dir", "d"])["--manager"] == "h:1"
    for words in (
        ["--ticket", "f"],
        ["--ticket", "f", "--dir", "d", "--pass", "p"],
        ["--socket", "s", "--manager", "h:1", "--ticket", "f", "--dir", "d"],
        ["--socket", "s", "--dir", "d", "--until", "5"],
        ["--socket", "s", "--dir", "d", "--ticket", "f"],
    ):
        with pytest.raises(ValueError, match="usage"):
            options(words)
