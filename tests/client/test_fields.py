"""Fields of jobs in JSON and as flags: what they mean, what contradicts what, what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from rota.client.batches import UploadBatch
from rota.client.fields.fields import Wanted
from rota.client.intake import from_objects
from rota.errors import BadInput
from rota.wire.messages import NewAfter, NewSpec, NewUse

BASE = Wanted(cwd="/work", mem=1 << 30)


def flags(**fields: Any) -> Wanted:
    return BASE.changed(fields, text=True)


def spec(base: Wanted = BASE, **fields: Any) -> NewSpec:
    (found,) = _batch(base, **fields).specs
    return found


def _batch(base: Wanted = BASE, **fields: Any) -> UploadBatch:
    (batch,) = list(from_objects([{"cmd": "x", **fields}], base))
    return batch


def refused_flag(**fields: Any) -> str:
    with pytest.raises(BadInput) as refused:
        flags(**fields)
    return str(refused.value)


def refused(**fields: Any) -> str:
    with pytest.raises(BadInput) as error:
        spec(**fields)
    assert error.value.message.startswith("entry 1: field")
    return str(error.value)


# ------------------------------------------------------------------ dependencies


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("@g", [("g", 1)]),
        ("@a,@b", [("a", 1), ("b", 1)]),
        ("afterany:@g", [("g", 2)]),
        ("afternotok:@g:12", [("g", 3), (12, 3)]),
        (["@a-1", 7, "afterany:@a-1"], [("a-1", 1), (7, 1), ("a-1", 2)]),
        ("@g,@g", [("g", 1)]),
        ("@12", [("12", 1)]),
        ("@online:12", [("online", 1), (12, 1)]),
        ("@größe.x y", [("größe.x y", 1)]),
    ],
)
def test_a_job_may_wait_for_dependency_groups(value: object, expected: list[tuple[int | str, int]]) -> None:
    assert _batch(after=value).after == [NewAfter(0, parent, condition) for parent, condition in expected]


def test_a_job_is_in_dependency_groups() -> None:
    assert spec(dep_groups=["a", "b", "a"]).dep_groups == ("a", "b")
    assert spec(dep_groups="a,b").dep_groups == ("a", "b")
    assert flags(dep_groups=("a", "b,c")).dep_groups == ("a", "b", "c")
    assert spec(flags(dep_groups=("a",)), dep_groups=["b"]).dep_groups == ("b",)
    assert spec(flags(dep_groups=("a",)), dep_groups=[]).dep_groups == ()


@pytest.mark.parametrize("name", ["@a", "a:b", "", " a", "a\n", "x" * 256, 5, None, ["a"]])
def test_a_dependency_group_needs_a_name_that_can_be_written_in_after(name: object) -> None:
    assert "field 'dep_groups'" in refused(dep_groups=[name])


def test_live_and_empty_groups() -> None:
    assert spec().live
    assert not spec().allow_empty_group
    assert not spec(live=False).live
    assert not spec(flags(live=False)).live
    assert spec(flags(live=False), live=True).live
    assert spec(allow_empty_group=True).allow_empty_group
    assert "field 'live': must be true or false" in refused(live="no")


def test_a_line_may_not_wait_for_the_group_that_the_flags_put_it_in() -> None:
    with pytest.raises(BadInput, match="field 'after': it would wait for its own group 'g'"):
        spec(flags(dep_groups=("g",)), after="12,afterany:@g")
    assert "--after: it would wait for its own group" in refused_flag(after=("@g",), dep_groups=("g",))


# ------------------------------------------------------------------ limits


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("blast", [NewUse("blast")]),
        ("blast:2", [NewUse("blast", 2)]),
        ("blast!", [NewUse("blast", None, True)]),
        ("blast:2!", [NewUse("blast", 2, True)]),
        ("a, b:1000000", [NewUse("a"), NewUse("b", 1_000_000)]),
        (["a", "b:3"], [NewUse("a"), NewUse("b", 3)]),
        ([], []),
    ],
)
def test_limits(value: object, expected: list[NewUse]) -> None:
    assert spec(limits=value).limits == tuple(expected)


def test_limits_of_a_line_replace_those_of_the_flags() -> None:
    base = flags(limits=("a:2", "b"))
    assert spec(base).limits == (NewUse("a", 2), NewUse("b"))
    assert spec(base, limits=["c"]).limits == (NewUse("c"),)
    assert flags(limits=("none",)).limits == ()


@pytest.mark.parametrize(
    "value",
    ["", "a b", "a:", "a:0", "a:-1", "a:x", "a:1000001", "a:1.5", "!", ":3", "a!!", "a!:2", "ä", "x" * 65, "a,,b",
     "a:1:2", [5], [["a"]], 5, None, True, {"a": 1}, "none"],
)  # fmt: skip
def test_what_is_no_use_of_a_limit(value: object) -> None:
    assert "field 'limits': " in refused(limits=value)


def test_the_same_limit_twice_is_a_mistake() -> None:
    assert "field 'limits': names 'a' twice" in refused(limits=["a", "b", "a:2"])
    assert "--limit: names 'a' twice" in refused_flag(limits=("a", "a!"))


# ------------------------------------------------------------------ learning


def test_learning() -> None:
    found = spec(learn="align", override="always")
    assert (found.learn, found.override) == ("align", "always")
    assert spec(flags(learn="a"), learn="").learn == ""
    assert "field 'override': 'maybe' is not one of its values; give no, higher or always" in refused(
        override="maybe"
    )
    assert "field 'learn'" in refused(learn="a\nb")
    assert "field 'learn'" in refused(learn=".")
    assert "field 'learn'" in refused(learn="..")


def test_what_the_user_gave_is_told_in_a_fixed_order() -> None:
    assert spec().given == ()
    assert spec(time="2h", mem="1G").given == ("mem", "time")
    assert spec(flags(time="1h"), disk="1G").given == ("disk", "time")
    assert spec(cpus=2).given == ()


def test_input_sizes() -> None:
    assert _batch(input_bytes=5000).inputs == [(0, 5000)]
    assert _batch(input_bytes=0).inputs == [(0, 0)]
    assert _batch(input_bytes="4G").inputs == [(0, 4 << 30)]
    assert _batch().inputs == []
    assert "field 'input_bytes'" in refused(input_bytes=-1)
    assert "field 'input_bytes'" in refused(input_bytes=1.5)
    assert "field 'input_bytes'" in refused(input_bytes=1 << 60)
    assert "field 'input_bytes'" in refused(input_bytes=True)
    assert _batch(flags(input_bytes="5000")).inputs == [(0, 5000)]
    assert "--input-bytes" in refused_flag(input_bytes="-5")
    assert "fields 'input_bytes' and 'input_file' contradict" in refused(input_bytes=1, input_file="/etc/passwd")
    assert _batch(flags(input_file="/nonexistent"), input_bytes=7).inputs == [(0, 7)]


# ------------------------------------------------------------------ behaviours and output


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (["run: echo $ROTA_OUTCOME", "remove"], ("run: echo $ROTA_OUTCOME", "remove")),
        ([{"run": "a\nb"}, {"remove": True}], ("run: a\nb", "remove")),
        ("run:make clean", ("run: make clean",)),
        ({"run": " x "}, ("run: x",)),
        (["run: a, b"], ("run: a, b",)),
        ([], ()),
    ],
)
@pytest.mark.parametrize("name", ["on_success", "on_failure", "on_exit"])
def test_behaviours(name: str, value: object, expected: tuple[str, ...]) -> None:
    assert getattr(spec(**{name: value}), name) == expected


@pytest.mark.parametrize(
    "value",
    ["echo hi", "run:", "run:  ", "", "Remove", {"run": 5}, {"run": "a", "remove": True}, {}, {"cleanup": False},
     {"remove": 1}, {"kill": True}, [["remove"]], [None], 5, None, True, "run: a\0b", ["none"]],
)  # fmt: skip
def test_what_is_no_behaviour(value: object) -> None:
    assert "field 'on_exit': " in refused(on_exit=value)


def test_behaviours_as_flags() -> None:
    base = flags(on_exit=("run: a", "remove"), on_failure=("none",))
    assert (base.on_exit, base.on_failure) == (("run: a", "remove"), ())
    assert spec(base, on_exit=["run: b"]).on_exit == ("run: b",)
    assert "--on-success: 'echo hi' is not a behaviour; write 'run: CMD'" in refused_flag(on_success=("echo hi",))


def test_only_a_scratch_directory_is_cleaned_up() -> None:
    assert spec(on_exit=["cleanup"], scratch=True).on_exit == ("cleanup",)
    assert spec(flags(scratch=True), on_exit=[{"cleanup": True}]).on_exit == ("cleanup",)
    message = refused(on_failure=["run: a", "cleanup"])
    assert (
        "field 'on_failure': 'cleanup' is only for jobs with a scratch directory; add \"scratch\": true" in message
    )
    assert "--on-exit: 'cleanup' is only for jobs with a scratch directory; add --scratch" in refused_flag(
        on_exit=("cleanup",)
    )
    with pytest.raises(BadInput, match="field 'on_exit'"):
        spec(flags(scratch=True, on_exit=("cleanup",)), scratch=False)


@pytest.mark.parametrize("value", ["out.txt", "logs/%j.out", "%A_%a.%x.%u.%N", "100%%", "/abs/%%%j", "a b"])
def test_patterns_of_files(value: str) -> None:
    found = spec(stdout=value, stderr=value)
    assert (found.stdout, found.stderr) == (value, value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("%q", "'%q' means nothing; use %j %A %a %x %u %N, or %% for a percent sign"),
        ("a%", "ends with '%'"),
        ("%%%", "ends with '%'"),
        ("%5j", "'%5' means nothing"),
        ("%\n", "'%\\n' means nothing"),
        ("", "is empty"),
        ("dir/", "is a directory"),
        ("a\0", "NUL"),
        ("x" * 5000, "longer"),
        (5, "must be a text"),
    ],
)
def test_what_is_no_pattern_of_a_file(value: object, expected: str) -> None:
    message = refused(stdout=value)
    assert "field 'stdout'" in message
    assert expected in message


# ------------------------------------------------------------------ what takes back a default


def test_none_takes_a_limit_on_the_time_back() -> None:
    base = flags(walltime="2h", no_retry_over="1h")
    found = spec(base, walltime=None, no_retry_over="none")
    assert (found.walltime_s, found.no_retry_over_s) == (None, None)
    assert flags(walltime="none").walltime is None


def test_a_throttle_alone_picks_no_elements() -> None:
    assert "--array: '%5' picks no elements; write it like 1-100%5" in refused_flag(array="%5")
