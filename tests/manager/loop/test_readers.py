"""Questions that are asked beside the loop: answers, errors, and the end."""

from __future__ import annotations

import asyncio
import threading

import pytest

from rota.manager.loop.readers import Readers


def test_a_question_is_asked_in_another_thread_and_answered_on_the_loop() -> None:
    async def ask() -> int:
        readers = Readers()
        try:
            return await readers.read(threading.get_ident)
        finally:
            readers.close()

    assert asyncio.run(ask()) != threading.get_ident()


def test_an_error_comes_to_the_caller_and_the_next_question_is_answered() -> None:
    async def ask() -> str:
        readers = Readers()
        try:
            for _ in range(3):
                with pytest.raises(ZeroDivisionError):
                    await readers.read(lambda: 1 // 0)
            readers.submit(lambda: 1 // 0)  # nothing waits for it
            return await readers.read(lambda: "here")
        finally:
            readers.close()

    assert asyncio.run(ask()) == "here"


def test_a_long_question_does_not_keep_others_waiting() -> None:
    async def ask() -> tuple[str, str]:
        readers = Readers()
        go_on = threading.Event()
        try:
            long = asyncio.ensure_future(readers.read(lambda: "long" if go_on.wait(60) else "never"))
            await asyncio.sleep(0)
            short = await readers.read(lambda: "short")
            go_on.set()
            return short, await long
        finally:
            readers.close()

    assert asyncio.run(ask()) == ("short", "long")


def test_an_answer_that_nothing_waits_for_any_more_is_dropped() -> None:
    async def ask() -> str:
        readers = Readers()
        go_on = threading.Event()
        try:
            left = asyncio.ensure_future(readers.read(lambda: go_on.wait(60)))
            await asyncio.sleep(0)
            left.cancel()
            go_on.set()
            return await readers.read(lambda: "next")
        finally:
            readers.close()

    assert asyncio.run(ask()) == "next"


def test_closing_drops_what_has_not_begun_and_ends_the_threads() -> None:
    asked: list[str] = []

    async def ask() -> None:
        readers = Readers()
        go_on = threading.Event()
        for _ in range(2):  # both threads are busy
            readers.submit(lambda: go_on.wait(60))
        readers.submit(lambda: asked.append("late"))
        readers.close()
        go_on.set()

    asyncio.run(ask())
    for thread in threading.enumerate():
        if thread.name.startswith("reader"):
            thread.join(60)
            assert not thread.is_alive()
    assert asked == []
