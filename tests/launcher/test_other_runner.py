"""The runner dies, and another takes its launcher: nothing is lost, and what must end does without a runner."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rota.launcher import journal
from rota.launcher.base import Captured, OnTerminal
from rota.launcher.client.conversation import Fenced
from rota.launcher.client.processes import CannotAttach, attach
from rota.launcher.spool import OUT
from tests.launcher.desk import Desk, OtherRunner, gone, wait_until

_KEY = (1, 1, 1)
Tell = Callable[[str], None]


@pytest.fixture
def successor(place: Path) -> Iterator[Callable[[], Desk]]:
    """Makes the next runner, and ends everything in the end."""
    made: list[Desk] = []

    def make() -> Desk:
        made.append(Desk.again(place, 2 + len(made)))
        return made[-1]

    yield make
    pids = [desk.launcher.pid for desk in made]
    for desk in made:
        desk.end()
    wait_until(lambda: all(gone(pid) for pid in pids))


def test_output_exit_code_and_note_outlive_a_runner_killed_in_mid_output(
    place: Path, successor: Callable[[], Desk]
) -> None:
    def runner(tell: Tell) -> None:
        desk = Desk.begin(place, keep=64 << 20)
        pipes = desk.pipes()
        desk.launcher.note(_KEY, b"what the next one needs")
        desk.launcher.flush()
        desk.start("seq 1 300000; echo end >&2; exit 7", stdio=Captured(pipes))
        desk.listen(lambda: len(desk.output[pipes.out]) > 100_000)

    first = OtherRunner(runner)
    assert first.says() == "done"
    first.kill()
    wait_until(lambda: bool(journal.read(str(place)).tasks[_KEY].exits))
    desk = successor()
    task = desk.adopted[_KEY]
    assert task.note == b"what the next one needs"
    assert [process.status for process in task.processes] == [7 << 8]
    assert task.processes[0].spent.ru_maxrss > 0
    assert abs(time.time() - task.processes[0].ended_at) < 300
    assert task.pipes is not None
    assert task.pipes.restore(OUT) == (b"", 0)
    desk.read(task.pipes.out)
    desk.read(task.pipes.err)
    assert desk.output[task.pipes.out] == b"".join(b"%d\n" % n for n in range(1, 300_001))
    assert desk.output[task.pipes.err] == b"end\n"
    desk.launcher.release(_KEY)
    desk.launcher.flush()


def test_a_running_job_goes_on_and_its_successor_sees_the_end(place: Path, successor: Callable[[], Desk]) -> None:
    go_on = place.parent / "go-on"

    def runner(tell: Tell) -> None:
        desk = Desk.begin(place)
        desk.start(f"echo one; until [ -e {go_on} ]; do sleep 0.02; done; echo two; exit 9")
        desk.listen(lambda: any(desk.output.values()))

    first = OtherRunner(runner)
    assert first.says() == "done"
    first.kill()
    desk = successor()
    (process,) = desk.adopted[_KEY].processes
    assert process.status is None
    pipes = desk.adopted[_KEY].pipes
    assert pipes is not None
    desk.read(pipes.out)
    go_on.touch()
    assert desk.outcome(process.pid) == 9
    desk.read(pipes.out)
    assert desk.output[pipes.out] == b"one\ntwo\n"
    assert desk.run("echo more", (2, 1, 2)) == (0, b"more\n", b"")


def test_without_a_runner_head_and_tail_are_kept_and_the_job_does_not_wait(
    place: Path, successor: Callable[[], Desk]
) -> None:
    def runner(tell: Tell) -> None:
        Desk.begin(place, keep=100_000).start(f"until [ -e {place}/../go-on ]; do sleep 0.02; done; seq 1 500000")

    first = OtherRunner(runner)
    assert first.says() == "done"
    first.kill()
    (place.parent / "go-on").touch()
    wait_until(lambda: bool(journal.read(str(place)).tasks[_KEY].exits))
    desk = successor()
    pipes = desk.adopted[_KEY].pipes
    assert pipes is not None
    whole = b"".join(b"%d\n" % n for n in range(1, 500_001))
    head, at = pipes.restore(OUT)
    assert head == whole[:50_000]
    assert at == len(whole) - 50_000
    desk.read(pipes.out)
    assert desk.output[pipes.out] == whole[at:]


def test_a_terminal_outlives_its_runner(place: Path, successor: Callable[[], Desk]) -> None:
    def runner(tell: Tell) -> None:
        Desk.begin(place).start("read line; echo got $line", stdio=OnTerminal(24, 80))

    first = OtherRunner(runner)
    assert first.says() == "done"
    first.kill()
    desk = successor()
    task = desk.adopted[_KEY]
    ((terminal,),) = task.fds
    os.write(terminal, b"it\n")
    assert desk.outcome(task.processes[0].pid) == 0
    seen = b""
    with contextlib.suppress(OSError):  # the end: no program has it open any more
        while piece := os.read(terminal, 1000):
            seen += piece
    assert b"got it" in seen
    os.close(terminal)


def test_walltime_and_grace_are_enforced_without_a_runner(place: Path, successor: Callable[[], Desk]) -> None:
    left = place.parent / "left"

    def runner(tell: Tell) -> None:
        desk = Desk.begin(place)
        # A child in its own session that ignores TERM, and a daemon whose ancestors are gone.
        text = "trap '' TERM; setsid sh -c 'trap \"\" TERM; sleep 1000' & (setsid sleep 1000 &) ; exec sleep 1001"
        tell(str(desk.start(text, key=_KEY).pid))
        tell(str(desk.start("sleep 1000", key=(2, 1, 2)).pid))
        desk.launcher.limits(_KEY, end_at=time.monotonic() + 0.2, kill_grace_s=0.2)
        desk.launcher.limits((2, 1, 2), end_at=None, kill_grace_s=0.2)
        desk.launcher.flush()
        left.write_text("")

    first = OtherRunner(runner)
    ended, other = int(first.says()), int(first.says())
    assert first.says() == "done"
    assert not gone(ended)
    first.kill()
    wait_until(lambda: bool(journal.read(str(place)).tasks[_KEY].exits))
    desk = successor()
    task = desk.adopted[_KEY]
    assert task.ended_for == "walltime"
    assert task.processes[0].status == signal.SIGKILL
    assert desk.adopted[2, 1, 2].ended_for == ""
    assert not gone(other)
    desk.listen(lambda: desk.launcher.children() == 1)


def test_everything_is_ended_when_no_runner_comes(place: Path) -> None:
    def runner(tell: Tell) -> None:
        desk = Desk.begin(place, orphan_after_s=0.3, grace_s=0.2)
        tell(str(desk.launcher.pid))
        tell(str(desk.start("sleep 1000", key=_KEY).pid))
        tell(str(desk.start("trap '' TERM; sleep 1000 & wait; wait", key=(2, 1, 2)).pid))

    first = OtherRunner(runner)
    pids = [int(first.says()) for _ in range(3)]
    assert first.says() == "done"
    assert not any(gone(pid) for pid in pids)
    first.kill()
    wait_until(lambda: all(gone(pid) for pid in pids))
    assert not (place / "socket").exists()
    exits = {key: list(task.exits.values()) for key, task in journal.read(str(place)).tasks.items()}
    assert exits == {_KEY: [signal.SIGTERM], (2, 1, 2): [signal.SIGKILL]}
    with pytest.raises(CannotAttach):
        attach(str(place), 2)


def test_a_launcher_that_holds_nothing_goes_with_its_runner(place: Path) -> None:
    def runner(tell: Tell) -> None:
        desk = Desk.begin(place)
        tell(str(desk.launcher.pid))
        desk.run("true")
        desk.launcher.release(_KEY)
        desk.launcher.flush()

    first = OtherRunner(runner)
    pid = int(first.says())
    assert first.says() == "done"
    first.kill()
    wait_until(lambda: gone(pid) and not place.exists())


def test_a_higher_epoch_takes_over_and_the_runner_before_is_fenced(place: Path, desk: Desk) -> None:
    pid = desk.start("sleep 1000").pid
    for epoch in (0, 1):
        with pytest.raises(CannotAttach, match="epoch"):
            attach(str(place), epoch)
    assert desk.run("echo still", (2, 1, 2))[1] == b"still\n"
    second = Desk.again(place, 5)
    with pytest.raises(Fenced):
        desk.listen(lambda: False)
    for _ in range(2):
        with pytest.raises(Fenced):
            desk.start("true", key=(3, 1, 3))
    with pytest.raises(CannotAttach, match="epoch"):
        attach(str(place), 5)
    second.launcher.signal(pid, signal.SIGTERM)
    assert second.outcome(pid) == -signal.SIGTERM
    second.end()
