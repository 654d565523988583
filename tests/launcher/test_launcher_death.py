"""The launcher is killed, and the runner that started it goes on: exit codes and output stay exact."""

from __future__ import annotations

import contextlib
import os
import select
import signal
from functools import partial
from pathlib import Path

import pytest

from rota.launcher.base import Captured, Discarded, Refused
from rota.launcher.client import conversation
from rota.runner.launch import fleet
from rota.runner.task_table import TaskTable
from tests.launcher.desk import Desk, alone, gone, wait_until


def _kill(desk: Desk) -> None:
    os.kill(desk.launcher.pid, signal.SIGKILL)


def _childless(desk: Desk) -> bool:
    return desk.launcher.children() == 0


@alone
def test_exit_codes_and_output_of_what_ran_are_exact(desk: Desk, place: Path) -> None:
    go_on = place.parent / "go-on"
    pipes = [desk.pipes() for _ in range(3)]
    text = f"echo one; until [ -e {go_on} ]; do sleep 0.02; done; seq 1 200000; exit "
    pids = [desk.start(text + str(n), key=(n, 1, n), stdio=Captured(pipes[n])).pid for n in range(3)]
    desk.listen(lambda: all(desk.output[each.out] for each in pipes))
    _kill(desk)
    go_on.touch()
    assert [desk.outcome(pid) for pid in pids] == [0, 1, 2]
    whole = b"one\n" + b"".join(b"%d\n" % n for n in range(1, 200_001))
    for each in pipes:
        desk.read(each.out)
        assert desk.output[each.out] == whole
    assert desk.launcher.dead
    assert not desk.launcher.lasting
    assert desk.launcher.children() == 0
    for pid in pids:
        assert desk.ended[pid][2].ru_maxrss > 0


@alone
def test_killed_in_mid_output_no_byte_is_lost_or_doubled(desk: Desk, place: Path) -> None:
    pipes = [desk.pipes() for _ in range(2)]
    pids = [desk.start("seq 1 400000; exit 3", key=(n, 1, n), stdio=Captured(pipes[n])).pid for n in range(2)]
    desk.listen(lambda: any(len(desk.output[each.out]) > 300_000 for each in pipes))
    _kill(desk)
    assert [desk.outcome(pid) for pid in pids] == [3, 3]
    whole = b"".join(b"%d\n" % n for n in range(1, 400_001))
    for each in pipes:
        desk.read(each.out)
        assert desk.output[each.out] == whole


@alone
def test_killed_at_any_moment_of_short_jobs_each_ran_once_and_has_its_exit_code(first: Desk, place: Path) -> None:
    first.end()
    witness = place.parent / "witness"
    n = 0
    for life in range(6):
        desk = Desk.begin(place.with_name(f"life-{life}"))
        started: dict[int, int] = {}
        killer = os.fork()
        if not killer:
            os.execvp("sh", ["sh", "-c", f"sleep 0.0{life * 2 + 1}; kill -9 {desk.launcher.pid}"])
        pipes = Captured(desk.pipes())
        while not desk.launcher.dead:
            n += 1
            try:
                started[desk.start(f"echo {n} >> {witness}; exit {n % 100}", key=(n, 1, n), stdio=pipes).pid] = n
            except Refused:
                n -= 1
            desk.take_in()
        with contextlib.suppress(ChildProcessError):  # the runner reaps what it does not know too
            os.waitpid(killer, 0)
        desk.listen(partial(_childless, desk))
        codes = {started[pid]: os.waitstatus_to_exitcode(desk.ended[pid][1]) for pid in started}
        assert codes == {each: each % 100 for each in started.values()}
        desk.end()
    ran = [int(line) for line in witness.read_text().split()]
    assert sorted(ran) == list(range(1, n + 1))


@alone
def test_what_ran_can_be_signalled_and_followed_by_behaviours_but_nothing_new_starts(
    desk: Desk, place: Path
) -> None:
    pipes = desk.pipes()
    pid = desk.start("echo begun; exec sleep 1000", stdio=Captured(pipes)).pid
    stray = desk.start("setsid sleep 1000 & exit 0", key=(2, 1, 2)).pid
    desk.listen(lambda: bool(desk.output[pipes.out]) and stray in desk.ended)
    _kill(desk)
    assert desk.launcher.children() == 2
    with pytest.raises(Refused):
        desk.start("true", key=(3, 1, 3), stdio=Discarded())
    desk.launcher.signal(pid, signal.SIGTERM)
    assert desk.outcome(pid) == -signal.SIGTERM
    desk.output[pipes.out].clear()
    behaviour = desk.start("echo after; exit 4", kind="behaviour", stdio=Captured(pipes)).pid
    assert desk.outcome(behaviour) == 4
    desk.read(pipes.out)
    assert desk.output[pipes.out] == b"after\n"
    assert desk.launcher.children() == 1
    for child in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
        os.kill(int(child), signal.SIGKILL)
    desk.listen(lambda: desk.launcher.children() == 0)
    assert gone(stray)


@alone
def test_a_launcher_that_does_not_answer_is_killed(desk: Desk, place: Path) -> None:
    vars(conversation)["LIMIT_S"] = 0.3  # this process ends with the test
    pid = desk.start("sleep 1000").pid
    os.kill(desk.launcher.pid, signal.SIGSTOP)
    assert desk.launcher.children() == 1
    assert desk.launcher.dead
    assert gone(desk.launcher.pid)
    desk.launcher.signal(pid, signal.SIGKILL)
    assert desk.outcome(pid) == -9


@alone
def test_a_launcher_that_is_stopped_while_nothing_is_asked_of_it_is_noticed(desk: Desk, place: Path) -> None:
    vars(conversation)["LIMIT_S"] = 0.3  # this process ends with the test
    vars(fleet)["_ASK_EVERY_S"] = 0.1
    launchers = fleet.Fleet(select.epoll(), str(place.parent), 2, tasks=TaskTable())
    launchers.adopt(desk.launcher)
    pid = desk.start("sleep 1000").pid
    os.kill(desk.launcher.pid, signal.SIGSTOP)

    def noticed() -> bool:
        launchers.look()
        return desk.launcher.dead

    wait_until(noticed)
    assert gone(desk.launcher.pid)
    desk.launcher.signal(pid, signal.SIGKILL)
    assert desk.outcome(pid) == -9
    launchers.end()


@alone
def test_what_follows_a_job_gets_new_pipes_and_runs_without_the_launcher(desk: Desk, place: Path) -> None:
    go_on = place.parent / "go-on"
    before = desk.pipes()
    job = desk.start(f"until [ -e {go_on} ]; do sleep 0.02; done", stdio=Captured(before)).pid
    _kill(desk)
    go_on.touch()
    assert desk.outcome(job) == 0
    fresh = desk.pipes()
    assert fresh.out != before.out
    after = desk.start("echo after; exit 2", stdio=Captured(fresh), kind="behaviour").pid
    assert desk.outcome(after) == 2
    desk.read(fresh.out)
    assert desk.output[fresh.out] == b"after\n"
    fresh.close()
    assert _childless(desk)
