"""What a configuration may say, and what happens when its file changes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.errors import BadInput, BadTables
from rota.populate.config.configuration import Bin, PlainQuery, Queue
from rota.populate.config.file import ConfigurationFile
from rota.populate.config.reader import from_bytes

EXAMPLE = """
manager: {target_cycle_time: 30, api.run: false, api.port: 5056, api.host: 127.0.0.2}
database: {host: db, port: 3306, user: me, use_tls: false}
transport: rota
queues: {high-mem: {priority: 200, limit: 2}}
tables:
  ephys.acquisition.Recording: {ttl: 1h, job_timeout: 2h, serial: 10, parallel: 4, queue: default}
  ephys.ephys.LFP:
    ttl: 24h
    job_timeout: 6h
    queue: high
    bins:
      - {where: "hours <= 1", queue: default, tokens: {bigmem: 1}}
      - {where: "hours <= 3", tokens: {bigmem: 3}}
      - {queue: gigantic}
    python: /envs/ephys/bin/python
    on_timeout: release
  thumbs.make:
    ttl: 1m
    job_timeout: 1m
    sql: {connect: thumbs.connect, keys: SELECT a FROM t;, key: a, target: thumbs}
"""


def test_all_that_a_configuration_may_say_is_read() -> None:
    found = from_bytes(EXAMPLE.encode(), source="tables.yaml")
    assert (found.manager.target_cycle_s, found.manager.api_run, found.manager.api_port) == (30.0, False, 5056)
    assert found.database == {"host": "db", "port": 3306, "user": "me", "use_tls": False}
    assert found.queues == {"high-mem": Queue(priority=200, limit=2)}
    recording, lfp, thumbs = found.tables
    assert (recording.ttl_s, recording.job_timeout_s, recording.serial, recording.parallel) == (3600, 7200, 10, 4)
    assert recording.bins == (Bin(),)
    assert lfp.bins == (
        Bin(where="hours <= 1", queue="default", tokens=(("bigmem", 1),)),
        Bin(where="hours <= 3", queue="high", tokens=(("bigmem", 3),)),
        Bin(queue="gigantic"),
    )
    assert (lfp.python, lfp.on_timeout, lfp.attempts) == ("/envs/ephys/bin/python", "release", 3)
    assert thumbs.sql == PlainQuery(connect="thumbs.connect", keys="SELECT a FROM t", key=("a",), target="thumbs")


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("tables: {}", (1, 1), "has no table"),
        ("transport: rq", (1, 1), "is missing"),
        ("tables:\n  a.B: {ttl: 1h}", (2, 3), "'tables.a.B.job_timeout'|job_timeout"),
        ("tables:\n  a.B: {ttl: 1h, job_timeout: 2h, serail: 1}", (2, 35), "did you mean 'serial'"),
        ("tables:\n  a.B: {ttl: 1, job_timeout: 2h}", (2, 9), "has no unit"),
        ("tables:\n  a.B: {ttl: 0s, job_timeout: 2h}", (2, 9), "at least 1s"),
        ("tables:\n  a.B: {ttl: 1h, job_timeout: 2h, serial: 0}", (2, 35), "must be from 1"),
        ("tables:\n  B: {ttl: 1h, job_timeout: 2h}", (2, 3), "is not a dotted name"),
        (
            "tables:\n  a.B: {ttl: 1h, job_timeout: 2h, bins: [{queue: a}, {queue: b}]}",
            (2, 42),
            "has no condition",
        ),
        ("tables:\n  a.B: {ttl: 1h, job_timeout: 2h, on_timeout: retry}", (2, 35), "must be error or release"),
        ("transport: rq\ntables:\n  a.B: {ttl: 1h, job_timeout: 2h}", (1, 1), "redis"),
        ("transport: kafka\ntables:\n  a.B: {ttl: 1h, job_timeout: 2h}", (1, 1), "must be rota or rq"),
        ("manager: {api.port: 0}\ntables:\n  a.B: {ttl: 1h, job_timeout: 2h}", (1, 11), "from 1 to 65535"),
        ("tables:\n  a.B: {ttl: 1h, job_timeout: 2h, python: 3}", (2, 35), "must be a text"),
        ("tables:\n  a.B: {ttl: 1h, ttl: 2h}", (2, 18), "given twice"),
        ("tables: [", (1, 10), "not YAML"),
    ],
)
def test_what_is_wrong_is_said_with_file_line_column_and_field(
    text: str, place: tuple[int, int], said: str
) -> None:
    with pytest.raises(BadInput, match=said) as error:
        from_bytes(text.encode(), source="tables.yaml")
    assert (error.value.line, error.value.column) == place
    assert error.value.message.startswith(f"tables.yaml line {place[0]}, column {place[1]}: ")


def test_tokens_are_refused_with_rq() -> None:
    text = "transport: rq\nredis: {url: 'redis://a'}\ntables:\n  a.B: {ttl: 1h, job_timeout: 2h, tokens: {big: 1}}"
    with pytest.raises(BadTables, match="cannot be kept with rq") as error:
        from_bytes(text.encode(), source="t")
    assert (error.value.line, error.value.field) == (4, "tokens")


@given(st.text(alphabet="{}[]:,-#&*!|>'\"ab.\n 1", max_size=60))
def test_whatever_is_written_is_a_configuration_or_an_error_of_the_user(text: str) -> None:
    try:
        from_bytes(f"tables:\n  a.B: {text}".encode(), source="t")
    except BadInput as error:
        assert error.hint or error.text


def written(path: Path, text: str) -> None:
    """As editors do it: a new file in the place of the old one."""
    new = path.with_suffix(".new")
    new.write_text(text)
    os.replace(new, path)


def test_a_changed_file_is_read_again_and_a_bad_one_is_refused_while_the_old_one_stays(tmp_path: Path) -> None:
    path = tmp_path / "tables.yaml"
    one = "tables: {a.B: {ttl: 1h, job_timeout: 2h}}"
    written(path, one)
    file = ConfigurationFile(str(path))
    assert not file.reload()
    written(path, one.replace("2h", "3h"))
    assert file.reload()
    assert file.current.tables[0].job_timeout_s == 3 * 3600
    written(path, "tables: {a.B: {ttl: never}}")
    assert not file.reload()
    assert file.error is not None
    assert file.current.tables[0].job_timeout_s == 3 * 3600
    path.unlink()
    assert not file.reload()
    assert "cannot be read" in str(file.error)
    written(path, one)
    assert file.reload()
    assert file.error is None
    written(path, f"{one} # the same")
    assert not file.reload()
