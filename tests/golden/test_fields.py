"""Fields of jobs mean what they always meant, on the wire, in the store, in views and to `modify`; identity keys
and the words of refusals are the same. A changed key would run every complete job of every file again."""

from __future__ import annotations

import base64
import json
import lzma
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from tests.golden import field_corpus
from tests.golden.kept import moved

_KNOWN = json.loads(lzma.decompress(field_corpus.FILE.read_bytes()))
#: What is encoded as an array, whose new fields come last.
_PACKED = ("new", "rest", "run")
#: What `modify` refused once, as the refusals call it.
_CHANGEABLE_SINCE = ("'cwd'", "'env'", "'after'", "'cmd'", "--cwd", "--env", "--after", "--cmd")
#: The fields that a later version was to have and has by now.
_KNOWN_SINCE = {"pool", "call"}
#: A job that has not run was said to be in the pool `local`, which nobody knew yet.
_UNKNOWN_UNTIL_IT_RUNS = "view.pool was 'local', and is ''"
#: What is encoded as JSON.
_TEXTS = ("stored", "view")


def _different(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    if old.keys() != new.keys():
        yield f"had {sorted(old)}, has {sorted(new)}"
        return
    for part, value in old.items():
        if part in _PACKED:
            before, now = (msgspec.msgpack.decode(base64.b64decode(each[part])) for each in (old, new))
            yield from moved(before, now, part)
        elif part in _TEXTS:
            before, now = (json.loads(each[part]) for each in (old, new))
            yield from moved(before, now, part)
            if list(before) != [name for name in now if name in before]:
                yield f"{part}: {list(now)} is another order than {list(before)}"
        elif part == "modify" and _refused_then(value):
            continue
        elif _without_list(value) != _without_list(new[part]):
            yield f"{part} was {value!r}, and is {new[part]!r}"


def _refused_then(told: dict[str, Any]) -> bool:
    """Was it about what `modify` can change by now?"""
    words = str(told.get("error", ""))
    return " cannot be modified" in words and any(name in words for name in _CHANGEABLE_SINCE)


def _without_list(value: Any) -> Any:
    """Without the lists of all fields, and of all reasons for a retry, in hints: they may grow."""
    if isinstance(value, dict):
        return {name: _without_list(one) for name, one in value.items()}
    return (
        [word for word in value if not str(word).startswith(("the fields are ", "use exit, signal, "))]
        if isinstance(value, list)
        else value
    )


@pytest.mark.parametrize("start", range(0, len(_KNOWN["cases"]), 100))
def test_a_job_becomes_what_it_always_became(start: int) -> None:
    for case in _KNOWN["cases"][start : start + 100]:
        if not _KNOWN_SINCE.isdisjoint(case["fields"]):
            continue
        now = json.loads(json.dumps(field_corpus.outcome(case)))
        found = [each for each in _different(case["is"], now) if each != _UNKNOWN_UNTIL_IT_RUNS]
        assert found == [], case["fields"]


def test_the_corpus_has_every_field_and_hundreds_of_accepted_jobs() -> None:
    accepted = [case for case in _KNOWN["cases"] if "view" in case["is"]]
    assert len(accepted) > 450
    named = {name for case in accepted for name in case["fields"]}
    assert named >= field_corpus.VALUES.keys() - {"job_keys", "walltme", "call", "pool", "dry_run", "zzz"}


def test_lines_of_wr_become_what_they_always_became() -> None:
    assert [entry["line"] for entry in _KNOWN["wr"]] == field_corpus.WR
    now = field_corpus.wr()
    for entry, one in zip(_KNOWN["wr"], now, strict=True):
        assert entry["is"] == one, entry["line"]
