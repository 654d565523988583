"""Everything with a form in bytes or text, as the release that runs this writes it: messages, answers, records of
journals, stored values, identity keys, the description of the HTTP API."""

from __future__ import annotations

import base64
import json
import typing
from pathlib import Path
from typing import Any

import msgspec

from tests.golden.names import BODIES, MESSAGES, RECORDS, STORED, name_of
from tests.golden.samples import plain, samples

#: What identity keys are made of.
USERS = ("ann", "bob", "ü", "root")
DIRECTORIES = (None, "", "/", "/home/ann", "/home/ann/", "/tmp/a b", "/ü", "/raw-\udcff")
COMMANDS: tuple[Any, ...] = (
    "true", "", " true", "true ", "echo a\necho b", "echo 'ü'", "l0", "a1", "s0\0", ["true"], [], [""],
    ["echo", "a b"], ["echo", "a", "b"], ["echo", "", "b"], ["echo\0a"], "echo " + "x" * 5000,
)  # fmt: skip
PLACES = ((0, None), (1, None), (17, None), (0, 0), (0, 1), (2, 1), (0, 1_000_000))


def frames(tapped: list[bytes]) -> list[dict[str, Any]]:
    """Samples of every message, and those among recorded bytes that have a form of their own."""
    from rota.wire import codec

    found = []
    for name, kind in MESSAGES.items():
        for message in samples(kind):
            data = codec.frame(message)
            found.append({"kind": name, "frame": _text(data), "value": plain(message)})
    accepts = typing.Union[tuple(MESSAGES.values())]  # noqa: UP007 - not known before
    seen: dict[str, set[str]] = {}
    for message in (one for data in tapped for one in codec.Reader[Any](accepts).feed(data)):
        value, name = plain(message), name_of(type(message))
        form = json.dumps(_form(value))
        if form not in seen.setdefault(name, set()) and len(seen[name]) < 5:
            seen[name].add(form)
            found.append({"kind": name, "frame": _text(codec.frame(message)), "value": value, "recorded": True})
    return found


def _form(value: Any) -> Any:
    """What a value looks like, without what it says."""
    if isinstance(value, dict):
        return {key: _form(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_form(one) for one in value[:1]]
    return type(value).__name__


def answers() -> list[dict[str, Any]]:
    return [
        {"kind": name, "body": _text(msgspec.msgpack.encode(value)), "value": plain(value)}
        for name, kind in BODIES.items()
        for value in samples(kind)
    ]


def columns() -> list[dict[str, Any]]:
    return [
        {"kind": name, "text": msgspec.json.encode(value).decode(), "value": plain(value)}
        for name, kind in STORED.items()
        for value in samples(kind)
    ]


def journals() -> list[dict[str, Any]]:
    """Blocks of a runner's journal, one for each record."""
    from rota.runner.report import journal

    return [
        {"kind": name, "block": _text(journal.pack([value])), "value": plain(value)}
        for name, kind in RECORDS.items()
        for value in samples(kind)
    ]


def keys() -> list[dict[str, Any]]:
    from rota.core.submit.identity import key_maker

    found = []
    for user in USERS:
        for cwd in DIRECTORIES:
            make = key_maker(user=user, cwd=cwd)
            for cmd in COMMANDS:
                made = [make(cmd, n, index) for n, index in PLACES]
                found.append({"user": user, "cwd": cwd, "cmd": cmd, "keys": made})
    return found


def openapi() -> Any:
    from rota.api.routes import OPERATIONS
    from rota.api.schema import document

    return msgspec.json.decode(document(OPERATIONS))


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def write(out: Path, tapped: list[bytes]) -> None:
    import lzma

    made = {
        "frames": frames(tapped), "answers": answers(), "columns": columns(), "journals": journals(),
        "keys": keys(), "openapi": openapi(),
    }  # fmt: skip
    for name, value in made.items():
        (out / f"{name}.json.xz").write_bytes(lzma.compress(json.dumps(value, indent=0).encode(), preset=9))
