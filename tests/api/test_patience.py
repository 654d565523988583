"""Who is slow, or many, is cut off and keeps nobody else waiting."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import select
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any
from unittest.mock import Mock

import pytest

from rota.api import http_connection, rate_limits, serve
from rota.api.http_connection import HttpConnection
from rota.api.operations import EVENTS, ApiRequest, OperationTable
from rota.api.problems import TooMany
from rota.api.rate_limits import RateLimits
from tests.api.client import TIMEOUT_S, Http
from tests.api.inside import USER, Inside, serving
from tests.deployment import wait_until

_SHORT_S = 0.2
_LARGE = 64 << 20
_heard: list[Any] = []
_go = threading.Event()
table = OperationTable("test")


@table.post("/quickly", "quickly", body=dict[str, Any], answer=dict[str, Any], patience_s=_SHORT_S)
async def quickly(request: ApiRequest) -> Any:
    """Say it again, if it was said quickly."""
    _heard.append(request.body)
    return request.body


@table.post("/echo", "echo", body=dict[str, Any], answer=dict[str, Any])
async def echo(request: ApiRequest) -> Any:
    """Say it again."""
    _heard.append(request.body)
    return request.body


@table.post("/keep", "keep", body=dict[str, Any], answer=dict[str, Any])
async def keep(request: ApiRequest) -> Any:
    """Take it, and take time over it."""
    _heard.append("kept")
    while not _go.is_set():
        await asyncio.sleep(0.01)
    return {}


@table.get("/hello", "hello", answer=str)
async def hello(request: ApiRequest) -> str:
    """Say hello."""
    return "hello"


@table.get("/large", "large", answer=str)
async def large(request: ApiRequest) -> str:
    """More than fits into the buffers of a connection."""
    return "x" * _LARGE


@table.get("/ticks", "ticks", kind=EVENTS)
async def ticks(request: ApiRequest) -> AsyncIterator[bytes]:
    """A stream that goes on."""

    async def told() -> AsyncIterator[bytes]:
        with request.services.limits.stream(request.credential.token):
            while True:
                yield b"event: tick\ndata: 1\n\n"
                await asyncio.sleep(0.02)

    return told()


@table.get("/flood", "flood", kind=EVENTS)
async def flood(request: ApiRequest) -> AsyncIterator[bytes]:
    """A stream that has more and more to tell."""

    async def told() -> AsyncIterator[bytes]:
        with request.services.limits.stream(request.credential.token):
            while True:
                yield b": %b\n\n" % (b"x" * 100_000)
                await asyncio.sleep(0)

    return told()


@pytest.fixture
def inside(tmp_path) -> Iterator[Inside]:
    _heard.clear()
    _go.clear()
    with serving(tmp_path, table.operations) as made:
        yield made


def _head(caller: Http, line: str, **headers: Any) -> bytes:
    lines = [f"{line} HTTP/1.1", f"Host: localhost:{caller.port}"]
    if caller.token:
        lines.append(f"Authorization: Bearer {caller.token}")
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode()


def _drip(raw: socket.socket, drop: bytes) -> bytes:
    """Send a little again and again until the other side hangs up; what it said."""
    said = b""
    with contextlib.suppress(ConnectionError):
        while True:
            if select.select([raw], [], [], 0.02)[0]:
                part = raw.recv(1 << 16)
                if not part:
                    return said
                said += part
            with contextlib.suppress(ConnectionError):  # what it said before is still to be read
                raw.sendall(drop)
    return said


def test_a_body_that_comes_byte_by_byte_is_not_waited_for(inside):
    with inside.user.socket() as raw:
        raw.sendall(
            _head(inside.user, "POST /api/v1/quickly", Content_Type="application/json", Content_Length=100_000)
        )
        said = _drip(raw, b" ")
    assert said.startswith(b"HTTP/1.1 504 ")
    assert b"connection: close" in said
    assert _heard == []
    assert inside.user.post("/api/v1/echo", {"a": 1}).json == {"a": 1}


def test_a_body_in_tiny_chunks_is_not_waited_for(inside):
    with inside.user.socket() as raw:
        more = {"Content_Type": "application/json", "Transfer_Encoding": "chunked"}
        raw.sendall(_head(inside.user, "POST /api/v1/quickly", **more))
        assert _drip(raw, b"1\r\n \r\n").startswith(b"HTTP/1.1 504 ")
    assert _heard == []


def test_the_rest_of_a_body_that_was_refused_is_not_waited_for(inside, monkeypatch):
    monkeypatch.setattr(http_connection, "_HEAD_S", _SHORT_S)
    stranger = inside.nobody.as_("rota_user_" + "X" * 43)
    with stranger.socket() as raw:
        raw.sendall(_head(stranger, "POST /api/v1/echo", Content_Type="application/json", Content_Length=100_000))
        assert _drip(raw, b" ").startswith(b"HTTP/1.1 401 ")


@pytest.mark.parametrize("begin", [b"", b"G", b"GET / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\nHost: x\r\nX-A"])
def test_a_head_that_never_ends_is_not_waited_for(inside, begin, monkeypatch):
    monkeypatch.setattr(http_connection, "_HEAD_S", _SHORT_S)
    monkeypatch.setattr(serve, "_FIRST_BYTE_S", _SHORT_S)
    with inside.nobody.socket() as raw:
        raw.sendall(begin)
        assert (_drip(raw, b"A") if begin else raw.recv(64)) == b""


def test_a_second_request_that_never_ends_is_not_waited_for(inside, monkeypatch):
    monkeypatch.setattr(http_connection, "_HEAD_S", _SHORT_S)
    with inside.user.socket() as raw:
        raw.sendall(_head(inside.user, "GET /api/v1/hello") + b"GET /api")
        said = _drip(raw, b"A")
    assert said.startswith(b"HTTP/1.1 200 ")
    assert said.count(b"HTTP/1.1") == 1


def test_who_does_not_read_the_answer_is_cut_off(inside, monkeypatch):
    monkeypatch.setattr(http_connection, "_UNREAD_S", _SHORT_S)
    with inside.user.socket() as raw:
        raw.sendall(_head(inside.user, "GET /api/v1/large"))
        assert raw.recv(64).startswith(b"HTTP/1.1 200 ")
        wait_until(lambda: not inside.connections(), "the place is free again")


def test_who_reads_slowly_is_waited_for_as_long_as_anything_is_read():
    loop, transport = Mock(), Mock()
    slow = HttpConnection.__new__(HttpConnection)
    slow.loop, slow.transport, slow.flow = loop, transport, Mock()
    transport.get_write_buffer_size.return_value = 1000
    slow.pause_writing()
    for left in (999, 500, 499):
        _after, look, before = loop.call_later.call_args.args
        transport.get_write_buffer_size.return_value = left
        look(before)
    transport.abort.assert_not_called()
    _after, look, before = loop.call_later.call_args.args
    look(before)
    transport.abort.assert_called_once()


def test_who_does_not_read_a_stream_is_cut_off(inside, monkeypatch):
    monkeypatch.setattr(http_connection, "_UNREAD_S", _SHORT_S)
    with inside.user.socket() as raw:
        raw.sendall(_head(inside.user, "GET /api/v1/flood"))
        assert raw.recv(64).startswith(b"HTTP/1.1 200 ")
        wait_until(lambda: not inside.connections(), "the place is free again")
    wait_until(lambda: not inside.gateway.services.limits.streams, "the stream has ended")


def test_half_open_connections_take_nobodys_place(inside, monkeypatch):
    monkeypatch.setattr(serve, "_CONNECTIONS", 8)
    monkeypatch.setattr(serve, "_FIRST_BYTE_S", TIMEOUT_S)  # only being many makes them go
    monkeypatch.setattr(http_connection, "_HEAD_S", TIMEOUT_S)
    beginnings = (b"", b"G", b"GET / HTTP/1.1\r\n", _head(inside.user, "POST /api/v1/keep", Content_Length=10))
    with inside.user.events(path="/api/v1/ticks") as stream, contextlib.ExitStack() as stack:
        stream.wait(lambda events: events, "the stream is open")
        for number in range(40):
            raw = stack.enter_context(inside.nobody.socket())
            raw.sendall(beginnings[number % len(beginnings)])
        for _ in range(20):
            assert inside.user.get("/api/v1/hello").json == "hello"
        told = len(stream.events)
        stream.wait(lambda events: len(events) > told, "who is being answered stays")


def test_when_all_are_being_answered_the_next_one_is_sent_away_and_nobody_is_cut_off(inside, monkeypatch):
    monkeypatch.setattr(serve, "_CONNECTIONS", 3)
    with contextlib.ExitStack() as stack:
        streams = [stack.enter_context(inside.user.events(path="/api/v1/ticks")) for _ in range(3)]
        for each in streams:
            each.wait(lambda events: events, "the stream is open")
        with inside.user.socket() as raw, contextlib.suppress(ConnectionError):
            raw.sendall(_head(inside.user, "GET /api/v1/hello"))
            assert raw.recv(64) == b""
        for each in streams:
            told = len(each.events)
            each.wait(lambda events, told=told: len(events) > told, "the stream goes on")


def test_who_reads_nothing_takes_nobodys_place(inside, monkeypatch):
    monkeypatch.setattr(serve, "_CONNECTIONS", 6)
    monkeypatch.setattr(http_connection, "_UNREAD_S", 100 * TIMEOUT_S)  # only being many makes them go
    monkeypatch.setattr(http_connection, "_UNREAD_FULL_S", _SHORT_S)
    asked = _head(inside.user, "GET /api/v1/large") * 3
    with inside.user.events(path="/api/v1/ticks") as stream, contextlib.ExitStack() as stack:
        stream.wait(lambda events: events, "the stream is open")
        for number in range(5):
            raw = stack.enter_context(inside.user.socket())
            raw.sendall(asked)
            assert raw.recv(64).startswith(b"HTTP/1.1 200 "), number

        def served() -> bool:
            with contextlib.suppress(OSError, http.client.HTTPException):
                return bool(inside.user.get("/api/v1/hello").json == "hello")
            return False

        wait_until(served, "somebody else gets in")
        told = len(stream.events)
        stream.wait(lambda events: len(events) > told, "who reads what is said stays")


def test_of_those_who_do_not_read_the_one_that_has_read_least_lately_goes_first():
    loop = Mock()
    loop.time.return_value = 100.0
    doors = []
    for _ in range(2):
        each = HttpConnection.__new__(HttpConnection)
        each.loop, each.transport, each.flow = loop, Mock(), Mock()
        each.transport.get_write_buffer_size.return_value = 1000
        each.pause_writing()
        doors.append(each)
    stuck, slow = doors
    assert (stuck.waited_for(), slow.waited_for()) == (None, None)  # a moment is granted to everybody
    loop.time.return_value += http_connection._UNREAD_FULL_S
    slow.transport.get_write_buffer_size.return_value = 999
    assert (stuck.waited_for(), slow.waited_for()) == (100.0, 100.0 + http_connection._UNREAD_FULL_S)


def test_when_the_process_ends_who_still_waits_is_told_so_in_json(tmp_path):
    _heard.clear()
    _go.clear()
    answers: list[Any] = []
    with serving(tmp_path, table.operations) as made:
        asking = threading.Thread(target=lambda: answers.append(made.user.post("/api/v1/keep", {})))
        asking.start()
        wait_until(lambda: _heard == ["kept"], "the request is being handled")
    asking.join(TIMEOUT_S)
    assert [(each.status, each.code) for each in answers] == [(503, "no_manager")]


# ------------------------------------------------------------------ how much


def test_who_asks_too_often_is_told_when_to_come_back_and_others_are_not(inside, monkeypatch):
    monkeypatch.setattr(rate_limits, "_BURST", 20.0)
    now = [0.0]
    inside.gateway.services.limits = RateLimits(clock=lambda: now[0])
    statuses = []
    answer = None
    with contextlib.closing(inside.user._connect()) as connection:
        for _ in range(21):
            headers = {"Host": f"localhost:{inside.user.port}", "Authorization": f"Bearer {USER}"}
            connection.request("GET", "/api/v1/hello", headers=headers)
            answer = connection.getresponse()
            answer.read()
            statuses.append(answer.status)
    assert statuses == [200] * 20 + [429]
    assert answer is not None
    assert int(answer.headers["Retry-After"]) >= 1
    assert inside.admin.get("/api/v1/hello").status == 200
    now[0] += int(answer.headers["Retry-After"])
    assert inside.user.get("/api/v1/hello").status == 200


def test_who_guesses_tokens_is_told_to_wait_and_who_was_here_before_is_not(inside, monkeypatch):
    monkeypatch.setattr(rate_limits, "_WRONG_BURST", 5.0)
    inside.gateway.services.limits = RateLimits(clock=lambda: 0.0)
    assert inside.user.post("/api/v1/echo", {}).status == 200
    wrong = [inside.nobody.as_(f"rota_user_{number:043d}").post("/api/v1/echo", {}) for number in range(8)]
    assert [each.status for each in wrong] == [401] * 5 + [429] * 3
    assert inside.user.post("/api/v1/echo", {}).status == 200


def test_the_rate_over_a_while_is_what_it_is_set_to():
    now = [0.0]
    found = RateLimits(clock=lambda: now[0])
    taken = 0
    for step in range(1, 10_001):
        now[0] = step / 1000
        with contextlib.suppress(TooMany):
            found.ask("me")
            taken += 1
    assert taken == pytest.approx(rate_limits._BURST + 10 * rate_limits._RATE, abs=2)


def test_callers_who_come_once_are_forgotten_and_keep_nobody_out():
    found = RateLimits(clock=lambda: 0.0)
    for number in range(3 * rate_limits._MOST_BUCKETS):
        found.ask(str(number))
        found.failed(str(number), code=False)
    assert len(found._asked) == len(found._wrong) == rate_limits._MOST_BUCKETS


def test_streams_are_counted_for_each_and_for_all():
    found = RateLimits()
    with contextlib.ExitStack() as stack:
        for number in range(rate_limits._STREAMS):
            stack.enter_context(found.stream(str(number // rate_limits._STREAMS_EACH)))
        assert found.streams == rate_limits._STREAMS
        with pytest.raises(TooMany), found.stream("another"):
            pass
    assert found.streams == 0
    with contextlib.ExitStack() as stack:
        for _ in range(rate_limits._STREAMS_EACH):
            stack.enter_context(found.stream("me"))
        with pytest.raises(TooMany), found.stream("me"):
            pass
        stack.enter_context(found.stream("you"))


def test_bodies_of_all_together_have_a_limit(inside, monkeypatch):
    monkeypatch.setattr(rate_limits, "_BODIES", 1000)
    body = {"text": "x" * 700}
    first = threading.Thread(target=lambda: inside.user.post("/api/v1/keep", body))
    first.start()
    try:
        wait_until(lambda: _heard == ["kept"], "the first body is being handled")
        answer = inside.admin.post("/api/v1/echo", body)
        assert (answer.status, answer.code) == (429, "too_many")
        assert int(answer.headers["retry-after"]) >= 1
    finally:
        _go.set()
        first.join(TIMEOUT_S)
    wait_until(lambda: inside.admin.post("/api/v1/echo", body).status == 200, "there is room again")
    assert inside.gateway.services.limits.bodies == 0
