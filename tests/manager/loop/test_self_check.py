"""The manager checks itself in steps, once for all who ask at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any
from unittest.mock import Mock

import pytest

from rota.manager.loop import self_check
from rota.manager.loop.self_check import SelfCheck


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What happened: parts of checks, and other work of the loop."""
    done: list[str] = []

    def check_each(_world: Any) -> Iterator[list[str]]:
        for number in range(3):
            done.append("part")
            yield [f"broken {number}"]

    monkeypatch.setattr(self_check, "check_each", check_each)
    return done


def test_others_get_their_turn_between_the_parts(steps):
    async def other() -> None:
        for _ in range(8):
            steps.append("other")
            await asyncio.sleep(0)

    async def run() -> None:
        found, _none = await asyncio.gather(SelfCheck(Mock(live=1)).result(), other())
        assert found == ["broken 0", "broken 1", "broken 2"]

    asyncio.run(run())
    first, last = steps.index("part"), len(steps) - steps[::-1].index("part")
    assert steps[first:last].count("other") >= 2


def test_those_who_ask_together_share_one_check_and_the_next_one_gets_a_new_one(steps):
    async def run() -> None:
        made = SelfCheck(Mock(live=1))
        answers = await asyncio.gather(*(made.result() for _ in range(8)))
        assert all(each == answers[0] for each in answers)
        assert steps == ["part"] * 3
        await made.result()

    asyncio.run(run())
    assert steps == ["part"] * 6


def test_who_leaves_ends_the_check_for_nobody_else(steps):
    async def run() -> None:
        made = SelfCheck(Mock(live=1))
        leaving, staying = (asyncio.ensure_future(made.result()) for _ in range(2))
        await asyncio.sleep(0)
        leaving.cancel()
        assert len(await staying) == 3

    asyncio.run(run())


def test_a_large_queue_is_not_checked(steps):
    assert asyncio.run(SelfCheck(Mock(live=self_check.CHECK_UP_TO_JOBS + 1)).result()) == []
    assert steps == []
