"""Leases that a launcher process holds ahead: started by itself after a quiet end, and never otherwise."""

from __future__ import annotations

import itertools
import os
import signal
import time
from pathlib import Path

import pytest

from rota.launcher import journal
from rota.launcher.base import Captured, Decided, Key
from rota.launcher.client.spooled import SpoolReader
from rota.launcher.variables import Variables
from tests.launcher.desk import Desk, OtherRunner, alone, gone, wait_until

_ONE, _TWO, _THREE = (1, 1, 1), (2, 1, 2), (3, 1, 3)
_PATH = b"/usr/bin:/bin"
_HOUR = 3600.0


class Seat:
    """One pair of pipes, and what became of the leases that were held for it."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.pipes: SpoolReader = desk.pipes()
        self.fates: dict[Key, Decided] = {}
        self.pids: dict[Key, int] = {}

    def start(self, text: str, key: Key) -> int:
        self.pids[key] = self.desk.start(text, key=key, stdio=Captured(self.pipes)).pid
        return self.pids[key]

    def hold(self, text: str, key: Key, *, after: Key, lasts_s: float = _HOUR, cwd: bytes = b"/tmp") -> None:
        launcher = self.desk.launcher
        variables = Variables([b"PATH=" + _PATH, b"ROTA_LEASE=%d" % key[2]], _PATH)
        until = time.monotonic() + lasts_s
        launcher.hold(key, text.encode(), variables, cwd, self.pipes, (), after=after, note=b"note", until=until)
        launcher.flush()

    def hear(self) -> None:
        for fate in self.desk.launcher.decided():
            assert fate.key not in self.fates, "its fate was told twice"
            self.fates[fate.key] = fate
            if fate.begun is not None:
                self.pids[fate.key] = fate.begun.pid

    def fate(self, key: Key) -> str:
        def told() -> bool:
            self.hear()
            return key in self.fates

        self.desk.listen(told)
        found = self.fates[key]
        return "begun" if found.begun is not None else "dropped" if found.doubt is None else "in doubt"

    def outcome(self, key: Key) -> int:
        return self.desk.outcome(self.pids[key])


@pytest.fixture
def seat(shared_desk: Desk) -> Seat:
    return Seat(shared_desk)


def free(seat: Seat, *keys: Key) -> None:
    for key in keys:
        seat.desk.launcher.release(key)
    seat.desk.launcher.children()


# -------------------------------------------------------------- when they are started


def test_one_follows_the_other_and_their_output_and_ends_are_told_apart(seat: Seat) -> None:
    seat.start("read x < /dev/null; sleep 0.2", _ONE)
    seat.hold("exit 0", _TWO, after=_ONE)
    seat.hold("echo three; exit 3", _THREE, after=_TWO)
    assert [seat.fate(_TWO), seat.fate(_THREE)] == ["begun", "begun"]
    assert [seat.outcome(_ONE), seat.outcome(_TWO), seat.outcome(_THREE)] == [0, 0, 3]
    seat.desk.read(seat.pipes.out)
    assert bytes(seat.desk.output[seat.pipes.out]) == b"three\n"
    free(seat, _ONE, _TWO, _THREE)


def test_one_that_is_handed_over_after_a_quiet_end_is_started_at_once_and_only_one(seat: Seat) -> None:
    seat.start("true", _ONE)
    assert seat.outcome(_ONE) == 0
    seat.hold("sleep 0.1", _TWO, after=_ONE)
    seat.hold("true", _THREE, after=_ONE)
    assert [seat.fate(_TWO), seat.fate(_THREE)] == ["begun", "dropped"]
    assert seat.outcome(_TWO) == 0
    free(seat, _ONE, _TWO)


@pytest.mark.parametrize(
    "text", ["exit 1", "echo x", "echo x >&2", "kill -9 $$", "(trap '' HUP; exec setsid sleep 0.5) & exit 0"]
)
def test_after_any_other_end_nothing_is_started(seat: Seat, text: str, tmp_path: Path) -> None:
    seat.start(f"sleep 0.1; {text}", _ONE)
    seat.hold(f"touch {tmp_path}/two", _TWO, after=_ONE)
    seat.hold(f"touch {tmp_path}/three", _THREE, after=_TWO)
    assert [seat.fate(_TWO), seat.fate(_THREE)] == ["dropped", "dropped"]
    seat.desk.listen(lambda: not seat.desk.launcher.children())
    assert not list(tmp_path.iterdir())
    free(seat, _ONE)


def test_a_lease_that_is_limited_or_fenced_is_left_to_the_agent(seat: Seat) -> None:
    seat.start("sleep 0.2", _ONE)
    seat.desk.launcher.limits(_ONE, end_at=time.monotonic() + _HOUR, kill_grace_s=1.0)
    seat.hold("true", _TWO, after=_ONE)
    assert seat.fate(_TWO) == "dropped"
    free(seat, _ONE)


def test_what_cannot_be_started_or_follows_nothing_is_dropped(seat: Seat) -> None:
    seat.start("sleep 0.1", _ONE)
    seat.hold("true", _TWO, after=_ONE, cwd=b"/nowhere")
    seat.hold("true", _THREE, after=(9, 9, 9))
    assert [seat.fate(_TWO), seat.fate(_THREE)] == ["dropped", "dropped"]
    free(seat, _ONE)


def test_past_its_expiry_a_lease_is_not_started(seat: Seat, tmp_path: Path) -> None:
    seat.start("sleep 0.2", _ONE)
    seat.hold(f"touch {tmp_path}/two", _TWO, after=_ONE, lasts_s=0.0)
    assert seat.fate(_TWO) == "dropped"
    assert not list(tmp_path.iterdir())
    free(seat, _ONE)


# -------------------------------------------------------------- taking back


def test_after_a_withdrawal_neither_it_nor_what_follows_is_started(seat: Seat, tmp_path: Path) -> None:
    seat.start("sleep 0.3", _ONE)
    seat.hold(f"touch {tmp_path}/two", _TWO, after=_ONE)
    seat.hold(f"touch {tmp_path}/three", _THREE, after=_TWO)
    assert seat.desk.launcher.withdraw(_TWO)
    assert seat.fate(_THREE) == "dropped"
    assert seat.outcome(_ONE) == 0
    assert seat.desk.launcher.children() == 0
    assert not list(tmp_path.iterdir())
    assert _TWO not in seat.fates
    free(seat, _ONE)


def test_what_has_begun_cannot_be_withdrawn_and_its_start_is_told(seat: Seat) -> None:
    seat.start("true", _ONE)
    assert seat.outcome(_ONE) == 0
    seat.hold("sleep 0.1", _TWO, after=_ONE)
    assert not seat.desk.launcher.withdraw(_TWO)
    assert seat.fate(_TWO) == "begun"
    assert seat.outcome(_TWO) == 0
    assert not seat.desk.launcher.withdraw(_TWO)
    free(seat, _ONE, _TWO)


# -------------------------------------------------------------- one of the two dies


def test_without_an_agent_nothing_that_is_held_is_started(place: Path, tmp_path: Path) -> None:
    go = tmp_path / "go"

    def run(tell: object) -> None:
        mine = Seat(Desk.begin(place))
        mine.start(f"while [ ! -e {go} ]; do sleep 0.01; done", _ONE)
        mine.hold(f"touch {tmp_path}/two", _TWO, after=_ONE)
        mine.desk.launcher.children()  # it has it

    other = OtherRunner(run)
    assert other.says() == "done"
    other.kill()
    go.touch()
    desk = Desk.again(place, 2)
    try:
        assert list(desk.adopted) == [_ONE]
        (one,) = desk.adopted[_ONE].processes
        if one.status is None:
            assert desk.outcome(one.pid) == 0
        assert list(journal.read(str(place)).tasks) == [_ONE]
        assert list(tmp_path.iterdir()) == [go]
    finally:
        desk.end()


def test_what_was_started_ahead_is_told_with_its_note_to_the_next_agent(place: Path, tmp_path: Path) -> None:
    def run(tell: object) -> None:
        mine = Seat(Desk.begin(place))
        mine.start("true", _ONE)
        mine.hold("sleep 600", _TWO, after=_ONE)
        assert mine.fate(_TWO) == "begun"

    other = OtherRunner(run)
    assert other.says() == "done"
    other.kill()
    desk = Desk.again(place, 2)
    try:
        assert desk.adopted[_TWO].note == b"note"
        assert [process.status for process in desk.adopted[_TWO].processes] == [None]
    finally:
        desk.end()


@alone
def test_a_launcher_killed_at_any_moment_leaves_no_held_lease_in_doubt_or_started_twice(
    first: Desk, place: Path
) -> None:
    witness = place.parent / "witness"
    for number in range(12):
        desk = first if not number else Desk.begin(place.parent / f"launcher-{number + 1}")
        mine = Seat(desk)
        keys = [(number * 100 + each + 1, 1, number * 100 + each + 1) for each in range(30)]
        mine.start(f"echo {keys[0][0]} >> {witness}", keys[0])
        for before, key in itertools.pairwise(keys):
            mine.hold(f"echo {key[0]} >> {witness}", key, after=before)
        time.sleep(0.004 * number)
        os.kill(desk.launcher.pid, signal.SIGKILL)
        fates = {key: mine.fate(key) for key in keys[1:]}
        begun = [keys[0], *(key for key in keys[1:] if fates[key] == "begun")]
        doubts = [key for key in keys if fates.get(key) == "in doubt"]
        assert not doubts, fates
        for key in begun:
            assert mine.outcome(key) == 0
        seen = [line for line in witness.read_text().split() if int(line) // 100 == number]
        assert sorted(map(int, seen)) == [key[0] for key in begun], fates
        desk.end()


@alone
def test_what_a_launcher_leaves_is_not_reaped_as_that_of_an_earlier_one(first: Desk, place: Path) -> None:
    long = first.start("sleep 600")
    os.kill(first.launcher.pid, signal.SIGKILL)
    first.listen(lambda: first.launcher.dead)
    second = Desk.begin(place.parent / "launcher-2")
    short = second.start("sleep 0.3; exit 3", key=_TWO)
    os.kill(second.launcher.pid, signal.SIGKILL)
    wait_until(lambda: gone(short.pid))
    first.take_in()  # it knows nothing of the other one
    assert short.pid not in first.ended
    assert second.outcome(short.pid) == 3
    first.launcher.signal(long.pid, signal.SIGKILL)
    assert first.outcome(long.pid) == -signal.SIGKILL
    second.end()
