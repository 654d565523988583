"""What jobs print, over HTTP: parts, tails, raw bytes, and live."""

from __future__ import annotations

import base64
import json

import pytest

from rota.api.routes.outputs import Pen
from rota.wire.messages import Chunk
from tests.api.conftest import Site

_TEXT = "aé日🚀z\n"


def _finished(site: Site, command: str, **fields: object) -> str:
    (id,) = site.add(command, retries=0, **fields)
    site.rota.ok("wait", str(id))
    return f"/api/v1/jobs/{id}/output"


def _told(event: bytes) -> tuple[int, int, str]:
    data = json.loads(event.partition(b"data: ")[2])
    return data["offset"], data["next"], data["text"]


def test_a_tail_begins_and_ends_between_characters_wherever_it_is_cut(site: Site) -> None:
    path = _finished(site, f"printf '{_TEXT * 3}'")
    whole = (_TEXT * 3).encode()
    for tail in range(4, len(whole) + 1):
        found = site.user.get(f"{path}?tail={tail}").json
        assert found["text"].encode() == whole[found["offset"] :], "nothing but whole characters"
        assert len(whole) - tail <= found["offset"] < len(whole) - tail + 4
        before = site.user.get(f"{path}?tail={len(whole)}&before={found['offset']}").json
        assert ((before["text"] or "") + found["text"]).encode() == whole, "earlier parts join without a gap"


def test_parts_read_one_after_another_are_the_whole(site: Site) -> None:
    path = _finished(site, f"printf '{_TEXT * 3}'")
    offset, read = 0, b""
    while True:
        part = site.user.get(f"{path}?offset={offset}&limit=3").json
        read += part["text"].encode() if part["data"] is None else base64.b64decode(part["data"])
        offset = part["next"]
        if part["done"]:
            break
    assert read == (_TEXT * 3).encode()


def test_what_is_not_text_comes_byte_for_byte(site: Site) -> None:
    path = _finished(site, r"printf 'a\377\376b\200'")
    part = site.user.get(path).json
    assert (part["text"], base64.b64decode(part["data"])) == (None, b"a\xff\xfeb\x80")
    assert site.user.get(f"{path}/raw").body == b"a\xff\xfeb\x80"


def test_raw_output_is_all_of_it_however_long(site: Site) -> None:
    path = _finished(site, "yes 0123456789 | head -c 3000000")
    assert site.user.get(f"{path}/raw").body == (b"0123456789\n" * 272728)[:3000000]
    assert site.user.get(f"{path}/raw?offset=2999995&limit=3").body == (b"0123456789\n" * 272728)[2999995:2999998]


def test_what_is_missing_is_marked_at_its_place_also_within_a_character(site: Site) -> None:
    # 16 MiB are kept: the cut is within a character of two bytes, in an odd place of the line.
    path = _finished(site, "python3 -c \"print('x' + 'é' * (9 << 20))\"")
    whole = ("x" + "é" * (9 << 20) + "\n").encode()
    half, left_out = 8 << 20, len(whole) - (16 << 20)
    why = "not kept; to keep more, raise the setting keep_output"
    line = f"[rota: {left_out} bytes are missing here: {why}]\n"
    part = site.user.get(f"{path}?offset={half - 9}&limit=20").json
    before, _, behind = part["text"].partition(line)
    assert (before, behind.strip("\ufffd")) == ("éééé\ufffd\n", "é" * 5)
    assert part["missing"] == [{"offset": half, "bytes": left_out, "code": "not_kept", "message": why}]
    assert (part["offset"], part["next"]) == (half - 9, half + 11)
    tail = site.user.get(f"{path}?tail=1048576&before={half + 100}").json
    assert line in tail["text"]
    assert tail["next"] == half + 99, "it ends with a whole character"
    bare = site.user.get(f"{path}?offset={half - 9}&limit=20&marks=false").json
    assert line not in (bare["text"] or "")
    raw = site.user.get(f"{path}/raw").body
    assert raw == whole[:half] + b"\n" + line.encode() + whole[-half:]
    assert site.user.get(f"{path}/raw?marks=false").body == whole[:half] + whole[-half:]


def test_output_that_is_gone_is_told(site: Site) -> None:
    path = _finished(site, "printf 'here it was'")
    (segment,) = (each for each in (site.rota.home / "output").iterdir() if b"here it was" in each.read_bytes())
    away = segment.rename(segment.with_suffix(".away"))
    try:
        for asked in ("?tail=100", "?offset=0", ""):
            part = site.user.get(path + asked).json
            assert [(each["bytes"], each["code"]) for each in part["missing"]] == [(11, "gone")]
            assert part["text"].startswith("[rota: 11 bytes are missing here: ")
        assert site.user.get(f"{path}/raw").body.startswith(b"[rota: 11 bytes are missing here: ")
        (attempt,) = site.user.get(path.removesuffix("/output")).json["attempts"]
        assert (attempt["out_bytes"], attempt["output_missing"]["code"]) == (11, "gone")
    finally:
        away.rename(segment)


@pytest.mark.parametrize("more", ["?offset=100", "?tail=5&before=0", "?offset=3&tail=0"])
def test_there_is_nothing_behind_the_end_and_before_the_start(site: Site, more: str) -> None:
    found = site.user.get(_finished(site, "printf abc") + more).json
    assert found["text"] == ""
    assert found["next"] == found["offset"] <= 3


def test_what_does_not_exist_is_not_found_and_what_makes_no_sense_is_refused(site: Site) -> None:
    path = _finished(site, "true")
    for unknown in (f"{path}?attempt=7", f"{path}/raw?attempt=7", "/api/v1/jobs/99999999/output",
                    "/api/v1/jobs/99999999/output/raw", "/api/v1/jobs/99999999/output/live"):  # fmt: skip
        assert site.user.get(unknown).status == 404, unknown
    assert site.user.get(f"{path}?before=3").status == 400


def test_a_running_job_is_told_live_and_who_comes_back_gets_only_the_rest(site: Site) -> None:
    (id,) = site.add(
        "printf 'one\\n'; printf 'oops\\n' >&2; until [ -e go-on ]; do sleep 0.05; done; printf 'two\\n'"
    )
    path = f"/api/v1/jobs/{id}/output/live"
    with site.user.events(path=path) as first:
        first.wait(lambda seen: {data["text"] for _n, _i, data in seen} == {"one\n", "oops\n"}, "both streams")
        assert first.last == "1-4-5", "how far each stream was told"
        with site.user.events(path=path, last=first.last) as again:
            (site.rota.work / "go-on").touch()
            for stream in (first, again):
                stream.wait(lambda seen: seen and seen[-1][0] == "end", "the end of the job")
            assert [data["text"] for name, _i, data in again.events if name == "chunk"] == ["two\n"]
        told = [data["text"] for _n, _i, data in first.events if data.get("stream") == "out"]
        assert "".join(told) == "one\ntwo\n"


def test_live_pieces_that_cut_characters_are_told_as_whole_ones() -> None:
    data, pen = _TEXT.encode(), Pen()
    events = [pen.write(Chunk(1, 1, 1, at, data[at : at + 1])) for at in range(len(data))]
    told = [_told(event) for event in events if event]
    assert "".join(text for _o, _n, text in told) == _TEXT
    assert [begin for begin, _e, _t in told] == [0, *(end for _b, end, _t in told[:-1])], "without a gap"


def test_live_pieces_that_come_again_are_told_once() -> None:
    pen = Pen()
    pen.write(Chunk(1, 1, 1, 0, b"abc"))
    assert pen.write(Chunk(1, 1, 1, 0, b"abc")) == b""
    assert _told(pen.write(Chunk(1, 1, 1, 0, b"abcde"))) == (3, 5, "de")


def test_a_gap_in_live_output_is_told_where_it_is_and_how_large() -> None:
    pen = Pen()
    pen.write(Chunk(1, 1, 1, 0, "aé".encode()[:2]))
    event = pen.write(Chunk(1, 1, 1, 100, b"tail"))
    assert _told(event) == (100, 104, "tail")
    assert b'"missing":99' in event
    assert b"missing" not in pen.write(Chunk(1, 1, 1, 104, b"more"))
    last = pen.end(1, 1, 200)
    assert _told(last) == (200, 200, "")
    assert b'"missing":92' in last
    assert pen.end(1, 1, 200) == b""


def test_a_new_attempt_begins_anew() -> None:
    pen = Pen("1-500-20")
    assert _told(pen.write(Chunk(1, 2, 1, 0, b"again"))) == (0, 5, "again")
    assert pen.write(Chunk(1, 2, 2, 0, b"x")).startswith(b"id: 2-5-1\n")


@pytest.mark.parametrize("junk", ["", "x", "1-2", "-1-2-3", "1-2-3-4", "9" * 60])
def test_an_id_that_is_none_of_ours_means_from_the_start(junk: str) -> None:
    assert _told(Pen(junk).write(Chunk(1, 1, 1, 0, b"abc"))) == (0, 3, "abc")
