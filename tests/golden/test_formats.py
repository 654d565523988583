"""Bytes and texts of earlier releases mean what they meant: messages, answers, journals, stored values, keys."""

from __future__ import annotations

import base64
from typing import Any

import msgspec
import pytest

from rota.core.submit.identity import key_maker
from rota.runner.report import journal
from rota.wire import codec
from tests.golden import formats
from tests.golden.kept import RELEASES, golden, lacking, moved
from tests.golden.names import BODIES, STORED
from tests.golden.samples import plain
from tests.wire.strategies import ANY

pytestmark = pytest.mark.parametrize("release", RELEASES)


def _name(kind: str) -> str:
    """0.1.0 names the module of a class, too, which is nobody's business."""
    return kind.rpartition(":")[2]


def test_frames_of_every_message_decode_to_the_same_values(release: str) -> None:
    entries = golden(release, "frames")
    assert {"Add", "Hello", "Report", "Settle", "Work"} <= {entry["kind"] for entry in entries}
    for entry in entries:
        (message,) = codec.Reader[Any](ANY).feed(base64.b64decode(entry["frame"]))
        assert list(lacking(entry["value"], plain(message), entry["kind"])) == []


def test_todays_frames_begin_as_the_release_expects_them(release: str) -> None:
    for entry in golden(release, "frames"):
        data = base64.b64decode(entry["frame"])
        (message,) = codec.Reader[Any](ANY).feed(data)
        old, new = (msgspec.msgpack.decode(frame[4:]) for frame in (data, codec.frame(message)))
        assert list(moved(old, new, entry["kind"])) == []


def test_frames_were_recorded_between_real_processes(release: str) -> None:
    recorded = {entry["kind"] for entry in golden(release, "frames") if entry.get("recorded")}
    assert recorded >= {"Hello", "Welcome", "Join", "Rules", "Work", "Report", "Ack", "Settle", "Add", "Reply"}


def test_answers_decode_to_the_same_values(release: str) -> None:
    for entry in golden(release, "answers"):
        value = msgspec.msgpack.decode(base64.b64decode(entry["body"]), type=BODIES[_name(entry["kind"])])
        assert list(lacking(entry["value"], plain(value), entry["kind"])) == []


def test_stored_specifications_and_columns_load_with_the_same_values(release: str) -> None:
    entries = golden(release, "columns")
    assert {_name(entry["kind"]) for entry in entries} >= set(STORED)
    for entry in entries:
        value = msgspec.json.decode(entry["text"], type=STORED[_name(entry["kind"])])
        assert list(lacking(entry["value"], plain(value), entry["kind"])) == []
        again = msgspec.json.decode(msgspec.json.encode(value))
        assert list(moved(msgspec.json.decode(entry["text"]), again, entry["kind"])) == []


def test_blocks_of_journals_are_read_whole(release: str) -> None:
    for entry in golden(release, "journals"):
        (record,), whole = journal.unpack(base64.b64decode(entry["block"]))
        assert whole
        assert list(lacking(entry["value"], plain(record), entry["kind"])) == []


def test_identity_keys_are_the_same(release: str) -> None:
    entries = golden(release, "keys")
    assert len(entries) > 500
    for entry in entries:
        make = key_maker(user=entry["user"], cwd=entry["cwd"])
        assert [make(entry["cmd"], n, index) for n, index in formats.PLACES] == entry["keys"]
