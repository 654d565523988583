"""Fields by which a job asks the planner: requests, expressions, types, queues and moments."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from rota.client.batches import UploadBatch
from rota.client.fields.fields import Wanted
from rota.client.fields.modification import spec_change
from rota.client.intake import from_objects
from rota.core.fields.moments import coming, parse_moment
from rota.errors import BadInput
from rota.plan.size import CORE
from rota.time_zones import local_seconds
from rota.wire.messages import NewSpec

BASE = Wanted(cwd="/work", mem=1 << 30)
#: Monday, 16 November 2026, 07:00:00.25 UTC.
NOW = datetime(2026, 11, 16, 7, tzinfo=UTC).timestamp() + 0.25


@pytest.fixture
def in_paris(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Europe/Paris")
        time.tzset()
        yield
    time.tzset()


def flags(base: Wanted = BASE, **fields: Any) -> Wanted:
    return base.changed(fields, text=True)


def spec(base: Wanted = BASE, **fields: Any) -> NewSpec:
    batch: UploadBatch
    (batch,) = from_objects([{"cmd": "x", **fields}], base)
    (found,) = batch.specs
    return found


def refused(**fields: Any) -> str:
    with pytest.raises(BadInput) as error:
        spec(**fields)
    assert error.value.message.startswith("entry 1: field")
    assert error.value.hint
    return str(error.value)


def refused_flags(**fields: Any) -> str:
    with pytest.raises(BadInput) as error:
        flags(**fields)
    return str(error.value)


# ------------------------------------------------------------------ requests


def test_a_request_is_kept_as_it_was_given() -> None:
    text = "{gpu='YES'}/switch=1/nodes=4/core=2,walltime=2h"
    assert spec(request=text).request == (text,)
    assert spec(request=[" nodes=2 ", "core=4,walltime=2m"]).request == ("nodes=2", "core=4,walltime=2m")
    assert flags(request=("nodes=2", "core=8")).request == ("nodes=2", "core=8")


def test_no_request_is_said_in_one_word() -> None:
    base = flags(request=("nodes=2",))
    assert spec(base).request == ("nodes=2",)
    assert (
        spec(base, request=None).request
        == spec(base, request=[]).request
        == spec(base, request="none").request
        == ()
    )
    assert flags(base, request=("none",)).request == ()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("", "field 'request': "),
        ("nodes", "field 'request': "),
        ("nodes=2,walltime=", "field 'request': "),
        (["nodes=2", "core=x"], "field 'request': alternative 2: "),
        (5, "field 'request': must be a text or a list of texts, not a number"),
        ([5], "field 'request': must be a text, not a number"),
        ("core=1+" * 1000 + "core=1", "field 'request': is longer than 4096 bytes"),
        (["core=1"] * 33, "field 'request': has more than 32 alternatives"),
        ("core=1\0", "field 'request': contains a NUL byte"),
    ],
)
def test_a_request_that_cannot_be_read_is_refused(value: object, expected: str) -> None:
    with pytest.raises(BadInput) as error:
        spec(request=value)
    assert expected in str(error.value)


@pytest.mark.parametrize("name", ["cpus", "gpus"])
def test_a_request_contradicts_a_size_that_is_given_with_it(name: str) -> None:
    assert f"fields 'request' and '{name}' contradict each other" in _contradiction(name)
    assert f"--request and --{name} contradict each other" in refused_flags(request=("core=2",), **{name: "2"})
    with pytest.raises(BadInput, match="contradict"):
        spec_change({"request": "core=2", name: 1})


def _contradiction(name: str) -> str:
    with pytest.raises(BadInput) as error:
        BASE.changed({"request": "core=2", name: 2})
    return str(error.value)


def test_a_line_that_says_what_it_takes_takes_nothing_of_that_from_the_defaults() -> None:
    asks = spec(flags(cpus="4", gpus="1"), request="nodes=2")
    assert (asks.size.cpus, asks.size.gpus, asks.request) == (CORE, 0, ("nodes=2",))
    simple = spec(flags(request=("nodes=2",)), cpus=4)
    assert (simple.size.cpus, simple.request) == (4 * CORE, ())


def test_memory_disk_time_and_walltime_go_with_a_request() -> None:
    asks = spec(request="nodes=2", mem="4G", disk="1G", time="2h", walltime="3h")
    assert (asks.size.mem, asks.size.disk, asks.size.time_s, asks.walltime_s) == (
        4 << 30,
        1 << 30,
        7200.0,
        10800.0,
    )
    assert spec(request="nodes=2,walltime=1h", walltime="3h").request == ("nodes=2,walltime=1h",)


# ------------------------------------------------------------------ expressions


def test_an_expression_is_kept_as_it_was_given_with_or_without_a_request() -> None:
    assert spec(where=" gpu = 'YES' and mem >= 64 ").where == "gpu = 'YES' and mem >= 64"
    assert spec(where="gpu='YES'", cpus=2).size.cpus == 2 * CORE
    base = flags(where="gpu='YES'")
    assert spec(base, where=None).where == spec(base, where="").where == spec(base, where="none").where == ""


@pytest.mark.parametrize("value", ["gpu=", "and", "gpu='YES", "a = 1 or", 5, ["a=1"], "x" * 5000])
def test_an_expression_that_cannot_be_read_is_refused(value: object) -> None:
    with pytest.raises(BadInput) as error:
        spec(where=value)
    assert "field 'where': " in str(error.value)


# ------------------------------------------------------------------ types


def test_types_come_in_one_order_however_they_are_given() -> None:
    assert spec(type="besteffort").types == ("besteffort",)
    assert spec(type=["timesharing=user,*", "idempotent"]).types == ("idempotent", "timesharing=user,*")
    assert (
        flags(type=("timesharing=*,name,idempotent", "inner=12")).type
        == spec(type=["inner=12", "idempotent", "timesharing=*,name"]).types
    )
    assert spec(flags(type=("besteffort",)), type=None).types == ()
    assert flags(type=("none",)).type == ()


def test_times_in_types_are_stored_as_unix_seconds() -> None:
    words = ["deadline=2999-01-01T00:00Z".replace("2999", "2099"), "postpone=@4000000000", "expire=@4000000001"]
    assert spec(type=words).types == ("deadline=4070908800", "postpone=4000000000", "expire=4000000001")
    before = time.time()
    (word,) = spec(type="deadline=now+2h").types
    name, _, at = word.partition("=")
    assert name == "deadline"
    assert before + 7200 <= float(at) <= time.time() + 7201


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("bestefort", "did you mean 'besteffort'?"),
        ("", "a type is empty"),
        ("inner", "type 'inner' needs a value"),
        ("noop=1", "type 'noop' takes no value"),
        (["deploy", "noop"], "exclude each other"),
        (["inner=1", "inner=2"], "given twice"),
        ("timesharing=me,*", "is not understood"),
        ("deadline=soon", "type 'deadline': 'soon' is not a time"),
        ("deadline=@1700000000", "type 'deadline': the time is in the past"),
        ("expire=2020-01-01", "type 'expire': the time is in the past"),
        (7, "must be a text or a list of texts"),
        ([None], "must be a text, not null"),
        (["noop"] * 40, "more than 32 types"),
    ],
)
def test_a_type_that_is_none_is_refused(value: object, expected: str) -> None:
    message = refused(type=value) if value not in ([None],) else _refused_type(value)
    assert "field 'type': " in message
    assert expected in message


def _refused_type(value: object) -> str:
    with pytest.raises(BadInput) as error:
        spec(type=value)
    return str(error.value)


# ------------------------------------------------------------------ reservations


@pytest.mark.usefixtures("in_paris")
@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2026-11-16T09:30", 1.5 * 3600 - 0.25),
        (" 2026-11-16 09:30:15.5 ", 1.5 * 3600 + 15.25),
        ("2026-11-16T09:30Z", 2.5 * 3600 - 0.25),
        ("2026-11-16T09:30+09:00", -6.5 * 3600 - 0.25),
        ("2026-11-17", 16 * 3600 - 0.25),
        ("2027-07-01T00:00", datetime(2027, 6, 30, 22, tzinfo=UTC).timestamp() - NOW),
        ("now", 0.75),
        ("now+10m", 600.75),
        ("+10m", 600.75),
        ("NOW + 1h30m", 5400.75),
        ("@1800000000", 1_800_000_000 - NOW),
        ("@1800000000.5", 1_800_000_000.5 - NOW),
    ],
)
def test_a_moment_may_be_written_in_several_ways(text: str, seconds: float) -> None:
    assert parse_moment(text, now=NOW, local=local_seconds) == pytest.approx(NOW + seconds, abs=1e-6)


@pytest.mark.usefixtures("in_paris")
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("", "'' is not a time"),
        ("soon", "'soon' is not a time; write it like 2026-11-16T08:00, now+10m or @1700000000"),
        ("1700000000", "'1700000000' is only a number; write @1700000000"),
        ("20261116", "only a number"),
        ("+90", "'90' has no unit"),
        ("now-10m", "is in the past"),
        ("10:30", "is not a time"),
        ("2026-02-30", "is not a time"),
        ("2027-03-28T02:30", "does not exist here"),
        ("2026-11-16T07:59:59", "is in the past"),
        ("@0", "is in the past"),
        ("0001-01-01", "is"),
        ("9999-12-31T23:59:59", "is out of range"),
        ("2127-01-01", "more than 100 years away"),
        ("@999999999999", "more than 100 years away"),
        (1_800_000_000, "must be a text, not a number"),
        (True, "must be a text"),
        (["now"], "must be a text, not a list"),
        ("n\u0661w", "is not a time"),
    ],
)
def test_a_moment_that_is_none_or_over_is_refused(value: object, expected: str) -> None:
    with pytest.raises(BadInput) as error:
        coming(value, now=NOW, local=local_seconds)
    assert expected in str(error.value)
    assert error.value.hint


@pytest.mark.usefixtures("in_paris")
def test_a_time_without_a_zone_means_what_the_caller_says() -> None:
    tokyo = ZoneInfo("Asia/Tokyo")
    at = parse_moment("2026-11-16T17:30", now=NOW, local=lambda date: date.replace(tzinfo=tokyo).timestamp())
    assert at == datetime(2026, 11, 16, 8, 30, tzinfo=UTC).timestamp()


def test_the_second_that_has_begun_is_not_over() -> None:
    assert coming("2026-11-16T07:00:00Z", now=NOW, local=local_seconds) == NOW - 0.25


def test_a_reservation_is_sent_in_unix_seconds_and_a_line_may_take_it_back() -> None:
    assert spec(at="@4000000000").at == 4_000_000_000.0
    assert spec(flags(at="@4000000000"), at=None).at is None
    assert "field 'at': '@1700000000' is in the past" in refused(at="@1700000000")
    assert "--at: " in refused_flags(at="yesterday")


@pytest.mark.parametrize("word", ["besteffort", "inner=12", "deadline=@4000000000", "postpone=@4000000001"])
def test_some_types_are_never_reservations(word: str) -> None:
    assert "field 'at': " in refused(at="@4000000000", type=word)
    assert "--at: " in refused_flags(at="@4000000000", type=(word,))
    with pytest.raises(BadInput, match="field 'at'"):
        spec(flags(at="@4000000000"), type=word)


# ------------------------------------------------------------------ queues and projects


def test_a_queue_is_a_name_that_the_manager_knows() -> None:
    asks = spec(queue="besteffort", project="dark matter")
    assert (asks.queue, asks.project) == ("besteffort", "dark matter")
    assert spec().queue == "", "the site decides"
    for name in ("", "a b", "a,b", "x" * 65, "grün"):
        assert "field 'queue': " in refused(queue=name)


def test_a_change_carries_them_but_never_a_reservation() -> None:
    change = spec_change({"request": "nodes=1", "where": "gpu=yes", "type": "noop", "queue": "admin"})
    assert (change.request, change.where, change.types, change.queue) == (
        ("nodes=1",),
        "gpu=yes",
        ("noop",),
        "admin",
    )
    assert spec_change({"request": ("none",), "cpus": "2"}, text=True).request == ()
    with pytest.raises(BadInput, match="cannot be modified: a reservation is granted"):
        spec_change({"at": "now+1h"})
