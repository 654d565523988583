"""The event stream loses nothing, merges for the slow, and says so when it cannot know."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest

from rota.api.feed import EventFeed, merge
from rota.wire.views import FeedView

_AT = datetime(2026, 1, 1, tzinfo=UTC)


def _news(*jobs: tuple[int, str, int], **other: Any) -> FeedView:
    made = {"at": _AT, "counts": {}, "groups": {}, "jobs": list(jobs), "many": False, "what": []}
    return FeedView(**(made | other))


def _feed(kept: int = 1000) -> EventFeed:
    feed = EventFeed(None, "", kept=kept)  # type: ignore[arg-type]
    feed.began()
    return feed


async def _next(parts: AsyncIterator[bytes]) -> tuple[str, str, Any]:
    """The next event: name, id, data."""
    while True:
        text = (await asyncio.wait_for(anext(parts), 30)).decode()
        fields = dict(line.split(": ", 1) for line in text.strip().splitlines())
        if "event" in fields:
            return fields["event"], fields["id"], json.loads(fields["data"])


async def _close(*readers: Any) -> None:
    for reader in readers:
        with contextlib.suppress(RuntimeError):
            await reader.aclose()


def _ids(data: Any) -> list[int]:
    return [job[0] for job in data["jobs"]]


def test_who_comes_for_the_first_time_looks_at_everything_then_hears_changes():
    async def run() -> None:
        feed = _feed()
        feed.told(_news((1, "ready", 0)))
        reader = feed.read("")
        assert (await _next(reader))[0] == "reset"
        feed.told(_news((2, "ready", 0)))
        name, _id, data = await _next(reader)
        assert (name, _ids(data)) == ("change", [2])
        await _close(reader)

    asyncio.run(run())


def test_who_was_cut_off_hears_all_that_was_missed_in_one_event():
    async def run() -> None:
        feed = _feed()
        reader = feed.read("")
        _reset, seen, _data = await _next(reader)
        await _close(reader)
        for id in (1, 2, 1):
            feed.told(_news((id, "running", 1)))
        again = feed.read(seen)
        name, _id, data = await _next(again)
        assert (name, sorted(_ids(data))) == ("change", [1, 2])
        await _close(again)

    asyncio.run(run())


def test_who_was_cut_off_for_too_long_looks_at_everything():
    async def run() -> None:
        feed = _feed(kept=3)
        seen = (await _next(feed.read("")))[1]
        for id in range(3):
            feed.told(_news((id, "running", 1)))
        assert (await _next(feed.read(seen)))[0] == "change"
        feed.told(_news((4, "running", 1)))
        assert (await _next(feed.read(seen)))[0] == "reset"

    asyncio.run(run())


def test_a_reader_slower_than_what_is_kept_is_told_to_look_at_everything():
    async def run() -> None:
        feed = _feed(kept=3)
        reader = feed.read("")
        await _next(reader)
        for id in range(10):
            feed.told(_news((id, "running", 1)))
        assert (await _next(reader))[0] == "reset"
        feed.told(_news((11, "running", 1)))
        assert _ids((await _next(reader))[2]) == [11]
        await _close(reader)

    asyncio.run(run())


@pytest.mark.parametrize("last", ["x", "-", "-1", "0000-0", "1", "a-b", "٣-٣", "x-" + "9" * 30, "'\n: 1"])
def test_what_no_stream_ever_said_is_answered_with_everything(last):
    async def run() -> None:
        feed = _feed()
        feed.told(_news((1, "ready", 0)))
        assert (await _next(feed.read(last)))[0] == "reset"
        assert (await _next(feed.read(f"{feed.stream}-2")))[0] == "reset"  # from the future

    asyncio.run(run())


def test_when_the_manager_was_gone_everybody_looks_at_everything():
    async def run() -> None:
        feed = _feed()
        reader = feed.read("")
        first = (await _next(reader))[1]
        feed._lost()
        feed.began()
        name, second, _data = await _next(reader)
        assert name == "reset"
        assert first.partition("-")[0] != second.partition("-")[0]
        assert (await _next(feed.read(first)))[0] == "reset"
        await _close(reader)

    asyncio.run(run())


def test_while_there_is_no_feed_nobody_is_told_that_all_is_well():
    async def run() -> None:
        feed = EventFeed(None, "")  # type: ignore[arg-type]
        reader = feed.read("")
        assert await anext(reader) == b"retry: 1000\n\n"
        waiting = asyncio.ensure_future(_next(reader))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        feed.began()
        assert (await waiting)[0] == "reset"
        await _close(reader)

    asyncio.run(run())


def test_a_reader_whose_credential_is_taken_away_hears_nothing_more():
    async def run() -> None:
        feed = _feed()
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        reader = feed.read("", over)
        await _next(reader)
        waiting = asyncio.ensure_future(anext(reader, None))
        await asyncio.sleep(0)
        over.set_result(None)
        feed.told(_news((1, "ready", 0)))
        assert await asyncio.wait_for(waiting, 30) is None
        assert not feed._readers

    asyncio.run(run())


def test_readers_that_left_are_forgotten():
    async def run() -> None:
        feed = _feed()
        readers = [feed.read("") for _ in range(5)]
        for reader in readers:
            await _next(reader)
        assert len(feed._readers) == 5
        await _close(*readers)
        assert not feed._readers

    asyncio.run(run())


def test_what_is_merged_says_the_last_of_each():
    merged = merge(
        [
            _news((1, "running", 1), (2, "ready", 0), groups={"a": {"ready": 2}, "b": {}}, what=["site"]),
            _news(
                (1, "complete", 1), groups={"a": {"complete": 1}}, counts={"complete": 1}, what=["runners", "site"]
            ),
        ]
    )
    assert sorted(merged.jobs) == [(1, "complete", 1), (2, "ready", 0)]
    assert merged.groups == {"a": {"complete": 1}, "b": {}}
    assert (merged.counts, merged.what, merged.many) == ({"complete": 1}, ["site", "runners"], False)


def test_what_is_merged_stays_small():
    jobs = merge([_news(*[(n, "ready", 0) for n in range(k, k + 400)]) for k in range(0, 4000, 400)])
    assert (jobs.many, jobs.jobs) == (True, [])
    groups = merge([_news(groups={str(n): {} for n in range(k, k + 400)}) for k in range(0, 4000, 400)])
    assert (groups.many, groups.groups) == (True, {})
    assert merge([_news(many=True), _news((1, "ready", 0))]).many
