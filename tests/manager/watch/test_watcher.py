"""A watcher tells each end once, counts what is left, and knows when all is over."""

from __future__ import annotations

from rota.core.jobs.outcome import Outcome
from rota.core.states import State
from rota.core.world import World
from rota.manager.watch.watcher import Watcher
from rota.plan.dispatch.planning import Planning
from rota.wire import messages as m

_FILE = b"0123456789abcdef"


def _read(outcome: Outcome, stream: int, offset: int, length: int) -> bytes:
    begin = outcome.offset + (0 if stream == 1 else outcome.out_len) + offset
    return _FILE[begin : begin + length]


def _watcher(ids: list[int], *, follow: bool = False) -> Watcher:
    return Watcher(ids, fresh=None, outputs=True, follow=follow, read=_read)


def _end(watcher: Watcher, job: int, state: State = State.COMPLETE, outcome: Outcome | None = None) -> None:
    outcome = outcome or Outcome(exit_code=0 if state is State.COMPLETE else 3)
    watcher.settled(job, state=state, attempt=1, cmd="true", outcome=outcome, reason=("", ""))


def _progress(watcher: Watcher, now: float = 1.0) -> m.Progress | None:
    return watcher.take_progress(World(Planning()), now)


def test_each_end_is_told_once_and_strangers_are_ignored() -> None:
    watcher = _watcher([5, 7])
    for job in (4, 5, 5, 6, 8):
        _end(watcher, job)
    told = _progress(watcher)
    assert told is not None
    assert [each.job for each in told.ended] == [5]
    assert told.counts == {"complete": 1, "ready": 1}
    assert _progress(watcher) is None
    assert watcher.pending == 1


def test_the_result_counts_states_and_names_failures() -> None:
    watcher = _watcher([1, 2, 3])
    _end(watcher, 1)
    _end(watcher, 2, State.FAILED)
    _end(watcher, 3, State.BLOCKED)
    assert watcher.pending == 0
    result = watcher.result()
    assert (result.counts, result.failed) == ({"complete": 1, "failed": 1, "blocked": 1}, [2])
    assert result.single is None


def test_a_single_job_gives_its_own_status() -> None:
    for outcome, status in ((Outcome(exit_code=7), 7), (Outcome(signal=9), 137), (None, 1)):
        watcher = _watcher([9])
        watcher.settled(9, state=State.FAILED, attempt=1, cmd="x", outcome=outcome, reason=("", ""))
        assert watcher.result().single == status


def test_a_job_that_is_opened_again_is_waited_for_again() -> None:
    watcher = _watcher([1])
    _end(watcher, 1, State.FAILED)
    watcher.reopened(1)
    assert watcher.pending == 1
    _end(watcher, 1)
    assert (watcher.pending, watcher.result().failed) == (0, [])


def test_output_comes_with_the_end() -> None:
    watcher = _watcher([1])
    _end(watcher, 1, outcome=Outcome(0, segment="s", offset=2, out_len=3, err_len=2, out_total=3, err_total=2))
    told = _progress(watcher)
    assert told is not None
    assert (told.ended[0].out, told.ended[0].err) == (b"234", b"56")


def test_what_was_seen_live_is_not_told_again() -> None:
    watcher = _watcher([1], follow=True)
    watcher.printed(m.Chunk(1, 1, 1, 0, b"23"))
    watcher.printed(m.Chunk(1, 1, 1, 0, b"23"))  # repeated from the start for somebody else
    told = _progress(watcher)
    assert told is not None
    assert [chunk.data for chunk in told.chunks] == [b"23"]
    _end(watcher, 1, outcome=Outcome(0, segment="s", offset=2, out_len=3, out_total=3))
    told = _progress(watcher)
    assert told is not None
    assert told.ended[0].out == b"4"


def test_of_output_beyond_what_is_kept_the_tail_follows_what_was_seen_live() -> None:
    watcher = _watcher([1], follow=True)
    watcher.printed(m.Chunk(1, 1, 1, 0, b"x" * 90))
    # 100 bytes were written, head and tail of 8 bytes each are kept: the last 8 end the stream.
    _end(watcher, 1, outcome=Outcome(0, segment="s", offset=0, out_len=16, out_total=100))
    told = _progress(watcher)
    assert told is not None
    assert told.ended[0].out == b"89abcdef"
