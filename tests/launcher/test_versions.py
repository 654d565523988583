"""A runner of a new release attaches a launcher of the last one: each says which versions it speaks."""

from __future__ import annotations

import base64
import lzma
import typing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rota.launcher import blocks, journal
from rota.launcher import messages as m
from rota.launcher.client.processes import OtherVersion, attach
from rota.runner.launch.notes import decode as decode_note
from tests.golden.samples import plain
from tests.launcher.desk import Desk

_GOLDEN = Path(__file__).parents[1] / "golden" / "launcher-1.json.xz"


def test_a_newer_runner_speaks_the_version_of_the_launcher(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk, go_on = Desk.begin(place), place.parent / "go-on"
    pid = desk.start(f"until [ -e {go_on} ]; do sleep 0.02; done; exit 4", key=(1, 1, 1)).pid
    monkeypatch.setattr(m, "VERSION", 2)
    monkeypatch.setattr(m, "SPOKEN", (1, 2))
    newer = Desk.again(place, 2)
    assert newer.launcher.version == 1
    go_on.touch()
    assert newer.outcome(pid) == 4
    newer.end()


def test_a_launcher_of_an_unknown_version_is_not_asked(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk.begin(place)
    monkeypatch.setattr(m, "VERSION", 3)
    monkeypatch.setattr(m, "SPOKEN", (2, 3))
    with pytest.raises(OtherVersion, match="speaks version 1, and this release only 2, 3"):
        attach(str(place), 2)
    assert desk.run("echo unharmed", (9, 1, 9)) == (0, b"unharmed\n", b"")
    desk.end()


# ------------------------------------------------------------------ what version 1 is


def _golden(name: str) -> list[dict[str, Any]]:
    return list(msgspec.json.decode(lzma.decompress(_GOLDEN.read_bytes()))[name])


def _contains(today: Any, then: Any) -> bool:
    """Is all of what was said then understood today? There may be more."""
    if isinstance(then, dict):
        return all(name in today and _contains(today[name], value) for name, value in then.items())
    if isinstance(then, list):
        return len(today) == len(then) and all(map(_contains, today, then))
    return bool(today == then)


@pytest.mark.parametrize("side", ["agent", "launcher"])
def test_messages_of_version_1_are_read_and_written_as_ever(side: str) -> None:
    decode = m.decode_from_agent if side == "agent" else m.decode_from_launcher
    known = {kind.__name__: kind for kind in typing.get_args(m.FromAgent if side == "agent" else m.FromLauncher)}
    kept = _golden(side)
    assert {each["value"]["is"] for each in kept} <= known.keys()
    for each in kept:
        body = base64.b64decode(each["data"])
        message = decode(body)
        assert _contains(plain(message), each["value"])
        written, was = msgspec.msgpack.decode(msgspec.msgpack.encode(message)), msgspec.msgpack.decode(body)
        assert written[: len(was)] == was  # one of that version leaves out what it does not know


def test_a_journal_of_version_1_is_read() -> None:
    for each in _golden("journal"):
        (record,), whole = blocks.unpack(base64.b64decode(each["data"]), journal._decode)
        assert whole
        assert _contains(plain(record), each["value"])


def test_notes_of_version_1_are_read() -> None:
    for each in _golden("notes"):
        assert _contains(plain(decode_note(base64.b64decode(each["data"]))), each["value"])
