"""The codec against everything a peer may send: it decodes, waits for more, or raises `WireError`."""

from __future__ import annotations

import math
import random
import struct
import tracemalloc

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rota.errors import WireError
from rota.wire import codec, messages
from tests.dose import dose, half
from tests.wire.strategies import ANY, TAGGED, comparable, messages_of, of


def framed(payload: bytes) -> bytes:
    return len(payload).to_bytes(4, "big") + payload


def packed(value: object) -> bytes:
    return msgspec.msgpack.encode(value)


def reader(max_frame: int = codec.MAX_FRAME) -> codec.Reader[messages.Message]:
    return codec.Reader(ANY, max_frame=max_frame)


# ------------------------------------------------------------------ round trips


@pytest.mark.parametrize("kind", TAGGED, ids=lambda kind: kind.__name__)
@dose(half(30))
@given(data=st.data())
def test_every_message_comes_back_as_it_was(kind: type[messages.Message], data: st.DataObject) -> None:
    message = data.draw(of(kind))
    [back] = reader().feed(codec.frame(message))
    assert comparable(back) == comparable(message)


def test_every_tagged_message_is_in_one_of_the_unions() -> None:
    tagged = {
        cls
        for cls in messages.Message.__subclasses__()
        if cls.__struct_config__.tag not in (None, cls.__name__) and cls.__module__.startswith("rota.")
    }
    assert tagged == set(TAGGED)


def test_tags_are_unique_and_stable() -> None:
    tags = [cls.__struct_config__.tag for cls in TAGGED]
    assert len(set(tags)) == len(tags)
    assert None not in tags


@given(st.lists(messages_of(), max_size=6), st.lists(st.integers(min_value=1, max_value=40)))
def test_pieces_of_any_length_give_the_same_messages(sent: list[messages.Message], cuts: list[int]) -> None:
    stream = b"".join(map(codec.frame, sent))
    there = reader()
    found, at = [], 0
    for size in [*cuts, len(stream)]:
        found += there.feed(stream[at : at + size])
        at += size
    assert [comparable(one) for one in found] == [comparable(one) for one in sent]
    assert there.pending == 0


def test_a_body_outlives_the_buffer_it_came_in() -> None:
    there = codec.Reader[messages.Reply](messages.ToClient)
    frames = [codec.frame(messages.Reply(n, codec.body(["x" * 100, n]))) for n in range(50)]
    found = there.feed(frames[0] + frames[1][:7])
    for previous, following in zip(frames[1:], [*frames[2:], b""], strict=True):
        found += there.feed(previous[7:] + following[:7])
    assert [msgspec.msgpack.decode(one.body)[1] for one in found] == list(range(50))


@given(messages_of())
def test_fields_added_by_a_newer_version_are_ignored(message: messages.Message) -> None:
    fields = msgspec.msgpack.decode(codec.frame(message)[4:])
    extended = [*fields, "a new field", {"of": ["any", "shape"]}]
    [back] = reader().feed(framed(packed(extended)))
    assert comparable(back) == comparable(message)


@given(messages_of(messages.Add, messages.Report, messages.Hello, messages.Work))
def test_fields_unknown_to_an_older_version_get_their_defaults(message: messages.Message) -> None:
    required = sum(default is msgspec.NODEFAULT for default in _defaults(type(message)))
    fields = msgspec.msgpack.decode(codec.frame(message)[4:])[: 1 + required]
    [back] = reader().feed(framed(packed(fields)))
    assert type(back) is type(message)


def _defaults(kind: type[messages.Message]) -> list[object]:
    return [msgspec.NODEFAULT if field.required else field.default for field in msgspec.structs.fields(kind)]


# ------------------------------------------------------------------ hostile bytes


@given(st.binary(max_size=300), st.lists(st.integers(min_value=1, max_value=20)))
@example(b"\x00\x00\x00\x00", [])
@example(b"\xff" * 64, [])
@example(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", [3])
@example(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", [])
def test_random_bytes_are_refused_or_waited_for(noise: bytes, cuts: list[int]) -> None:
    there, at = reader(codec.MAX_HELLO), 0
    try:
        for size in [*cuts, len(noise)]:
            there.feed(noise[at : at + size])
            at += size
            assert there.pending <= codec.MAX_HELLO + 4
    except WireError:
        pass


@given(st.binary(max_size=120))
def test_random_payloads_in_a_good_frame_are_messages_or_refused(payload: bytes) -> None:
    try:
        found = reader().feed(framed(payload))
    except WireError:
        return
    assert len(found) == 1


@given(messages_of(), st.data())
def test_one_changed_byte_never_raises_anything_else(message: messages.Message, data: st.DataObject) -> None:
    whole = bytearray(codec.frame(message))
    at = data.draw(st.integers(min_value=4, max_value=len(whole) - 1))
    whole[at] ^= data.draw(st.integers(min_value=1, max_value=255))
    try:
        reader().feed(bytes(whole))
    except WireError:
        pass


@given(messages_of(), st.data())
def test_a_truncated_frame_waits(message: messages.Message, data: st.DataObject) -> None:
    whole = codec.frame(message)
    there = reader()
    cut = data.draw(st.integers(min_value=0, max_value=len(whole) - 1))
    assert there.feed(whole[:cut]) == []
    assert there.pending == cut
    [back] = there.feed(whole[cut:])
    assert comparable(back) == comparable(message)


@given(messages_of(), st.data())
def test_a_payload_that_ends_early_is_refused(message: messages.Message, data: st.DataObject) -> None:
    payload = codec.frame(message)[4:]
    cut = data.draw(st.integers(min_value=0, max_value=len(payload) - 1))
    with pytest.raises(WireError):
        reader().feed(framed(payload[:cut]))


@pytest.mark.parametrize("size", [codec.MAX_HELLO + 1, 2**31, 2**32 - 1])
def test_a_length_beyond_the_allowed_is_refused_before_anything_is_kept(size: int) -> None:
    with pytest.raises(WireError, match="allowed"):
        reader(codec.MAX_HELLO).feed(size.to_bytes(4, "big"))


def test_the_largest_allowed_length_waits_and_keeps_only_what_came() -> None:
    there = reader()
    tracemalloc.start()
    try:
        assert there.feed(codec.MAX_FRAME.to_bytes(4, "big") + b"x" * 1000) == []
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "bomb",
    [
        pytest.param(b"\xdd\xff\xff\xff\xff", id="array of 4G entries"),
        pytest.param(b"\xdf\xff\xff\xff\xff", id="map of 4G entries"),
        pytest.param(b"\xdb\xff\xff\xff\xff", id="text of 4 GiB"),
        pytest.param(b"\xc6\xff\xff\xff\xff", id="bytes of 4 GiB"),
        pytest.param(b"\x93\xa3add\x01\xdd\xff\xff\xff\xff", id="inside a message"),
        pytest.param(b"\x95\xa3add\x01\xa1s\x00\xdd\x7f\xff\xff\xff\xc0", id="a list of commands"),
        pytest.param(b"\x94\xa7control\x01\xa1v\xdf\x7f\xff\xff\xff", id="a map of arguments"),
    ],
)
def test_a_small_payload_that_announces_much_costs_little(bomb: bytes) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(WireError):
            reader().feed(framed(bomb))
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("depth", [1_000, 10_000, 1_000_000])
@pytest.mark.parametrize("opening", [b"\x91", b"\x81\xa1k", b"\x92\x01"], ids=["lists", "maps", "pairs"])
def test_deep_nesting_is_refused(opening: bytes, depth: int) -> None:
    nest = opening * depth + b"\xc0"
    with pytest.raises(WireError):
        reader().feed(framed(nest))
    # As an unknown trailing field, which is skipped rather than decoded, and as a body.
    for head in (b"\x94\xa4show\x01\x02", b"\x93\xa5reply\x01"):
        try:
            reader().feed(framed(head + nest))
        except WireError:
            pass


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(packed(["nosuch", 1]), id="unknown tag"),
        pytest.param(packed([]), id="no tag"),
        pytest.param(packed([7, 1]), id="tag is a number"),
        pytest.param(packed({"type": "show"}), id="a map"),
        pytest.param(packed("show"), id="text"),
        pytest.param(packed(None), id="nothing"),
        pytest.param(packed(["show"]), id="fields missing"),
        pytest.param(packed(["show", "1", 2]), id="text for a number"),
        pytest.param(packed(["show", 1.5, 2]), id="a fraction for a number"),
        pytest.param(packed(["show", True, 2]), id="a truth value for a number"),
        pytest.param(packed(["show", math.nan, 2]), id="NaN for a number"),
        pytest.param(packed(["show", math.inf, 2]), id="infinity for a number"),
        pytest.param(packed(["show", 1, None]), id="nothing for a number"),
        pytest.param(b"\x93\xa4show\x01\xc7\x0b\x01" + b"9" * 11, id="an extension for a number"),
        pytest.param(packed(["act", 1, "kill", "all"]), id="text for a list"),
        pytest.param(packed(["act", 1, "kill", [1]]), id="a list of numbers for one of text"),
        pytest.param(packed(["control", 1, "stop", {"kill": 1}]), id="a map with a number"),
        pytest.param(b"\x94\xa3act\x01\xa3\xed\xb2\x80\x90", id="lone surrogate"),
        pytest.param(b"\x94\xa3act\x01\xa2\xc3\x28\x90", id="text that is not UTF-8"),
        pytest.param(packed(["show", 1, 2]) + b"\x00", id="something after the message"),
        pytest.param(b"", id="empty"),
        pytest.param(b"\xc1", id="the byte that msgpack never uses"),
    ],
)
def test_what_is_not_a_message_is_refused(payload: bytes) -> None:
    with pytest.raises(WireError):
        reader().feed(framed(payload))


@pytest.mark.parametrize("number", [2**63 - 1, 2**63, 2**64 - 1, -(2**63)])
def test_the_largest_numbers_pass(number: int) -> None:
    [back] = reader().feed(codec.frame(messages.Show(1, number)))
    assert back == messages.Show(1, number)


@pytest.mark.parametrize(
    "message",
    [
        messages.Show(1, 2**64),
        messages.Show(-(2**63) - 1, 1),
        messages.Failure(1, "x", "\udc80"),
        messages.Act(1, "kill", ["\ud800"]),
    ],
)
def test_what_cannot_be_sent_is_said_to_the_sender(message: messages.Message) -> None:
    with pytest.raises(WireError, match="cannot be sent"):
        codec.frame(message)


def test_a_message_that_is_too_large_is_not_sent() -> None:
    with pytest.raises(WireError, match="larger"):
        codec.frame(messages.Act(1, "kill", ["x" * (codec.MAX_FRAME + 1)]))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_floats_that_are_no_numbers_reach_the_manager_which_must_refuse_them(value: float) -> None:
    touch = messages.Started(1, 1, 1, 1, value, 1)
    [back] = reader().feed(codec.frame(messages.Report(0, started=[touch])))
    assert isinstance(back, messages.Report)
    assert struct.pack("d", back.started[0].started_at) == struct.pack("d", value)


def test_a_peer_may_send_only_what_its_reader_accepts() -> None:
    for message in (messages.Report(1), messages.Settle("r"), messages.Live([])):
        with pytest.raises(WireError):
            codec.Reader(messages.FromClient).feed(codec.frame(message))
    for request in (messages.Status(1, []), messages.Control(1, "stop")):
        with pytest.raises(WireError):
            codec.Reader(messages.FromRunner).feed(codec.frame(request))


def test_a_slow_sender_of_a_large_frame_costs_linear_time() -> None:
    whole = codec.frame(messages.Act(1, "kill", ["x" * 400_000]))
    there = reader()
    for at in range(len(whole)):
        found = there.feed(whole[at : at + 1])
    assert len(found) == 1


def test_memory_stays_bounded_over_a_long_stream() -> None:
    one = codec.frame(messages.Act(1, "kill", ["x" * 5_000]))
    stream, there, seed = one * 20, reader(), random.Random(1)
    tracemalloc.start()
    try:
        for _ in range(200):
            at = 0
            while at < len(stream):
                size = seed.randrange(1, 20_000)
                there.feed(stream[at : at + size])
                at += size
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
        assert there.pending == 0
    finally:
        tracemalloc.stop()
