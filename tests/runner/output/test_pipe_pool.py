"""Pipes of several launchers: a job never writes to those of another launcher than its own."""

from __future__ import annotations

import os
import select

from rota.launcher.inside import InsideLauncher
from rota.launcher.pipes import HeldPipes
from rota.plan.size import Size
from rota.runner.output.pipe_pool import PipePool
from rota.runner.task import LeaseQueue, Seat


class Unpolled(HeldPipes):
    polled = False


class UnpolledLauncher(InsideLauncher):
    """Pipes of which no poll tells, as those that a launcher reads itself."""

    def output_pipes(self) -> HeldPipes:
        return Unpolled(self._null)


def _seat() -> Seat:
    return Seat(1, LeaseQueue(Size()))


def _descriptors() -> set[str]:
    return set(os.listdir("/proc/self/fd"))


def test_a_seat_gets_pipes_of_the_launcher_that_starts_its_next_job() -> None:
    first, second = InsideLauncher(), InsideLauncher()
    pool, seat = PipePool(select.epoll()), _seat()
    before = _descriptors()
    old = pool.exchange(seat, first)
    assert (old.launcher, seat.pipes) == (first, old)
    new = pool.exchange(seat, second)
    assert (new.launcher, seat.pipes) == (second, new)
    assert set(pool.by_fd.values()) == {new}
    pool.discard(new)
    assert _descriptors() == before


def test_spare_pipes_of_another_launcher_are_closed_and_not_lent() -> None:
    first, second = InsideLauncher(), InsideLauncher()
    pool = PipePool(select.epoll())
    before = _descriptors()
    spare = pool.lend(first)
    pool.give_back(spare)
    assert pool.lend(first) is spare
    pool.give_back(spare)
    fresh = pool.lend(second)
    assert set(pool.by_fd.values()) == {fresh}
    pool.discard(fresh)
    assert _descriptors() == before


def test_a_stream_that_is_not_polled_is_read_again_after_a_pause() -> None:
    polled, unpolled = InsideLauncher(), UnpolledLauncher()
    pool = PipePool(select.epoll())
    for launcher, told in ((polled, False), (unpolled, True)):
        pipes = pool.lend(launcher)
        pool.pause(pipes.out)
        assert pool.paused(pipes)
        assert pool.resume(pipes.out)
        assert (pipes.out in pool.resumed) is told
        pool.discard(pipes)
        assert not pool.resumed
