"""Live output on its way: each reader at its own pace, ends behind all that was printed, nobody left waiting."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from rota.core.states import State
from rota.manager.watch.tails import OutputTails
from rota.manager.watch.watcher import Watcher
from rota.manager.watch.watches import Watches
from rota.wire import codec
from rota.wire import messages as m

RUNNER = "r"


class FakePeer:
    """Remembers what it was sent."""

    def __init__(self, id: int, *, tails: bool = True) -> None:
        self.id = id
        self.tails = tails
        self.user = "me"
        self.unsent = 0
        self.attaching: set[str] = set()
        self.sent: list[Any] = []

    def send(self, message: m.Message) -> None:
        self.sent.append(message)

    def take(self) -> list[Any]:
        taken, self.sent = self.sent, []
        return taken


class Bench:
    """Watches and tails without a manager; a runner, and one who watches job 1."""

    def __init__(self, *, tails: bool = True, attach: bool = True, follow: bool = True) -> None:
        self.runner = FakePeer(1, tails=tails)
        self.reader = FakePeer(2)
        job = SimpleNamespace(spec=SimpleNamespace(user="me"))
        world: Any = SimpleNamespace(runners={}, jobs={1: job})
        peers: Any = {2: self.reader}
        peer_of: Any = {RUNNER: self.runner}.get
        loop: Any = SimpleNamespace(call_later=lambda _s, tell: self.later.append(tell), time=lambda: 0.0)
        self.later: list[Any] = []
        self.tails = OutputTails(world, peers, peer_of=peer_of)
        self.watches = Watches(world, peers, self.tails, loop=loop)
        self.watcher = Watcher(
            [1], fresh={1}, outputs=True, follow=follow, read=lambda *_: b"kept", window=1 << 20, attach=attach
        )

    def watch(self) -> None:
        self.watches.open(self.reader, 7, self.watcher)  # type: ignore[arg-type]

    def end(self) -> None:
        self.watches.report_end((2, 7), 1, state=State.COMPLETE, attempt=1, cmd="x", outcome=None, reason=("", ""))

    def told(self) -> list[str]:
        """What the reader hears: pieces, ends, and the final answer."""
        later, self.later = self.later, []
        for tell in later:
            tell()
        heard: list[str] = []
        for message in self.reader.take():
            if isinstance(message, m.Reply):
                heard.append("reply")
                continue
            progress = codec._decoder(m.Progress).decode(message.body)
            heard += [chunk.data.decode() for chunk in progress.chunks]
            heard += [f"end {ended.live_out}" for ended in progress.ended]
        return heard


def test_an_end_is_told_behind_all_that_was_printed() -> None:
    bench = Bench()
    bench.watch()
    bench.watches.started(1, 1, RUNNER)
    (tail,) = bench.runner.take()
    assert (tail.job, tail.attempt, tail.on, tail.hold, tail.window > 0) == (1, 1, True, True, True)
    bench.end()
    assert bench.told() == []
    bench.watches.printed(RUNNER, m.Live([m.Chunk(1, 1, 1, 0, b"late")], tail.tail))
    assert bench.told() == ["late"]
    bench.tails.ended(RUNNER, m.LiveEnd(1, 1, tail.tail, 4, 0))
    assert bench.told() == ["end -1", "reply"]  # without an outcome nothing is known of its output


def test_only_the_runner_of_a_tail_can_speak_in_it() -> None:
    bench = Bench()
    bench.watch()
    bench.watches.started(1, 1, RUNNER)
    (tail,) = bench.runner.take()
    bench.watches.printed("another", m.Live([m.Chunk(1, 1, 1, 0, b"forged")], tail.tail))
    bench.watches.printed(RUNNER, m.Live([m.Chunk(2, 1, 1, 0, b"of another job")], tail.tail))
    bench.watches.printed(RUNNER, m.Live([m.Chunk(1, 1, 1, 0, b"to everybody")]))
    bench.tails.ended("another", m.LiveEnd(1, 1, tail.tail, 0, 0))
    assert bench.told() == []
    bench.end()
    assert bench.told() == []


def test_what_was_taken_moves_the_window_of_its_runner() -> None:
    bench = Bench()
    bench.watch()
    bench.watches.started(1, 1, RUNNER)
    (tail,) = bench.runner.take()
    bench.tails.taken(bench.reader, m.Taken(7, 1, 1, 100, 20))  # type: ignore[arg-type]
    bench.tails.taken(bench.reader, m.Taken(8, 1, 1, 100, 20))  # type: ignore[arg-type]
    assert bench.runner.take() == [m.Took(1, 1, tail.tail, 100, 20, tail.window)]


def test_the_next_attempt_waits_for_the_output_of_the_one_before() -> None:
    bench = Bench()
    bench.watch()
    bench.watches.started(1, 1, RUNNER)
    bench.watches.started(1, 2, RUNNER)
    first, second = bench.runner.take()
    assert (first.window > 0, second.window) == (True, 0)
    bench.tails.ended(RUNNER, m.LiveEnd(1, 1, first.tail, 0, 0))
    assert bench.runner.take() == [m.Took(1, 2, second.tail, 0, 0, first.window)]


def test_nobody_waits_for_a_reader_that_has_gone_or_a_runner_that_is_lost() -> None:
    bench = Bench()
    bench.watch()
    bench.watches.started(1, 1, RUNNER)
    (tail,) = bench.runner.take()
    bench.watches.close(bench.reader, 7)  # type: ignore[arg-type]
    assert bench.runner.take() == [m.Tail(1, 1, on=False, tail=tail.tail)]
    bench = Bench()
    bench.watch()
    bench.watches.started(1, 1, RUNNER)
    bench.end()
    bench.tails.gone(RUNNER)
    assert bench.told() == ["end -1", "reply"]


def test_a_runner_that_asks_is_always_answered() -> None:
    asked = m.Full(1, 1)
    attached = Bench(follow=False)
    attached.watch()
    attached.tails.asked(RUNNER, asked)
    assert [message.hold for message in attached.runner.take()] == [True]
    follows = Bench(attach=False)
    follows.watch()
    follows.tails.asked(RUNNER, asked)
    assert follows.runner.take() == [m.Tail(1, 1, on=False)]
    # Somebody is about to attach: the answer comes when that is done, or will never be.
    comes, leaves = Bench(follow=False), Bench(follow=False)
    for bench in (comes, leaves):
        bench.reader.attaching.add("s")
        bench.tails.asked(RUNNER, asked)
        assert bench.runner.take() == []
    comes.watch()
    comes.reader.attaching.clear()
    comes.tails.expected()
    assert [message.hold for message in comes.runner.take()] == [True]
    leaves.watches.close(leaves.reader)  # type: ignore[arg-type]
    assert leaves.runner.take() == [m.Tail(1, 1, on=False)]


def test_what_a_runner_held_is_given_to_who_comes_back() -> None:
    bench = Bench(follow=False)
    bench.tails.asked(RUNNER, m.Full(1, 1, held=True))
    assert bench.runner.take() == []
    bench.watch()
    assert [message.hold for message in bench.runner.take()] == [True]


def test_a_runner_of_the_release_before_is_followed_as_it_was() -> None:
    bench = Bench(tails=False)
    bench.watch()
    bench.watches.started(1, 1, RUNNER)
    assert [(message.job, message.on) for message in bench.runner.take()] == [(1, True)]
    bench.watches.printed(RUNNER, m.Live([m.Chunk(1, 1, 1, 0, b"text")]))
    bench.tails.taken(bench.reader, m.Taken(7, 1, 1, 4, 0))  # type: ignore[arg-type]
    assert bench.runner.take() == []  # it would not understand
    bench.end()
    assert bench.told() == ["text"]
    bench.tails.ended(RUNNER, m.LiveEnd(1, 1))
    assert bench.told() == ["end -1", "reply"]
