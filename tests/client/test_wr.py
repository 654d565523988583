"""wr's input: every form and field becomes what it means here; what has no meaning here is said, not lost."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.client.fields.fields import Wanted
from rota.client.wr.fields import WrPlace
from rota.client.wr.reader import Conversion, WrJob, convert
from rota.errors import BadInput
from rota.units import parse_duration

HERE = WrPlace(cwd="/work")


def read(data: bytes | str, *, place: WrPlace = HERE) -> Conversion:
    raw = data.encode() if isinstance(data, str) else data
    block = 5 if len(raw) < 10_000 else 1 << 16
    blocks = (raw[at : at + block] for at in range(0, len(raw), block))
    return convert(blocks, source="f.wr", place=place)


def one(place: WrPlace = HERE, **fields: Any) -> WrJob:
    (job,) = read(json.dumps({"cmd": "x", **fields}), place=place).jobs
    return job


def fields(**given: Any) -> dict[str, object]:
    return one(**given).fields


def refusal(data: bytes | str) -> str:
    with pytest.raises(BadInput) as refused:
        read(data)
    return str(refused.value)


# ------------------------------------------------------------------ lines


def test_a_command_a_line_a_command_with_json_and_json_alone() -> None:
    found = read('echo a\necho b\t{"priority": 5}\n{"cmd": "echo c", "cpus": 2}').jobs
    assert [(job.line, job.cmd, job.fields) for job in found] == [
        (1, "echo a", {}),
        (2, "echo b", {"priority": 5}),
        (3, "echo c", {"cpus": 2}),
    ]


def test_blank_lines_and_comments_are_skipped_but_counted() -> None:
    assert [job.line for job in read("# wr\n\n  \na\r\n\t\n # b\nc\t\n").jobs] == [4, 7]
    assert [job.cmd for job in read("\ufeffa\r\n\nc\t\n").jobs] == ["a", "c"]


def test_an_empty_input_has_no_jobs() -> None:
    assert read(b"") == Conversion(jobs=[], limits=[], repeated=[])


def test_names_are_taken_in_any_case_and_null_and_nothing_as_not_given() -> None:
    assert fields(Rep_Grp="g", memory="", retries=None, deps=[], env=[]) == {"group": "g"}


def test_the_command_before_the_tab_is_taken() -> None:
    (job,) = read('a\t{"cmd": "b"}').jobs
    assert job.cmd == "a"
    assert "given twice" in job.warnings[0]


def test_equal_commands_are_one_job_as_in_wr() -> None:
    found = read('a\nb\na\na\t{"cwd": "/x"}\na\t{"cwd": "/x", "cwd_matters": true}')
    assert [job.line for job in found.jobs] == [1, 2, 5]
    assert found.repeated == [3, 4]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("a\n\nb\t{", "f.wr line 3: is not valid JSON"),
        ("a\t[1]", "line 1: is not a JSON object"),
        ("{ echo a; }", "line 1: is not valid JSON"),
        ("a\tb\tc", "line 1: has 3 columns"),
        ('\t{"cpus": 1}', "line 1: there is no command before the tab"),
        ('{"cpus": 1}', "field 'cmd': missing"),
        ('{"cmd": ["a"]}', "field 'cmd': must be a text"),
        ('a\t{"cwd_matters": "yes"}', "field 'cwd_matters': must be true or false"),
        ('a\t{"change_home": 1}', "field 'change_home': must be true or false"),
        ('a\t{"disk": "10G"}', "field 'disk': must be a whole number of gigabytes"),
        ('a\t{"disk": -1}', "field 'disk'"),
        ('a\t{"override": 3}', "field 'override': must be 0, 1 or 2"),
        ('a\t{"override": true}', "field 'override'"),
        ('a\t{"time": 5}', "field 'time': must be a text"),
        ('a\t{"env": {"A": "1"}}', "field 'env': must be a list of texts"),
        ('a\t{"env": ["A"]}', "field 'env': 'A' is not NAME=VALUE"),
        ('a\t{"deps": "g"}', "field 'deps': must be a list of texts"),
        ('a\t{"deps": ["@g"]}', "field 'deps': '@g' cannot be a group"),
        ('a\t{"dep_grps": ["@g"]}', "field 'dep_grps': '@g' cannot be a group"),
        ('a\t{"cmd_deps": ["b"]}', "field 'cmd_deps': must be objects"),
        ('a\t{"limit_grps": [""]}', "field 'limit_grps': '' cannot be a limit"),
        ('a\t{"limit_grps": ["2030 < datetime"]}', "'2030 < datetime' is not a date and time"),
        ('a\t{"limit_grps": ["9 < time"]}', "field 'limit_grps': '9 < time' is not a time of day"),
        (
            'a\t{"limit_grps": ["00:00:00 < time < 25:00:00"]}',
            "field 'limit_grps': '00:00:00 < time < 25:00:00' is not a time of day",
        ),
        (
            'a\t{"limit_grps": ["22:00:00 < time < 22:00:00"]}',
            "field 'limit_grps': '22:00:00 < time < 22:00:00' is not a time of day",
        ),
        ('a\t{"limit_grps": ["10:61:00 < time"]}', "field 'limit_grps': '10:61:00 < time' is not a time of day"),
        ('a\t{"on_exit": [{"celebrate": true}]}', "field 'on_exit': there is no behaviour 'celebrate'"),
        ('a\t{"on_exit": "cleanup"}', "field 'on_exit': must be a list of objects"),
        (b"a\nb\0c", "f.wr line 2: contains a NUL byte"),
        (b"a\n\xff", "f.wr line 2: is not valid UTF-8"),
        (b"a\n" + b"x" * (1 << 21), "f.wr line 2: has more than 1048576 bytes"),
    ],
)
def test_a_bad_line_is_named_with_its_field(data: bytes | str, expected: str) -> None:
    assert expected in refusal(data)
    assert ";" in refusal(data)  # and what to do


# ------------------------------------------------------------------ fields


def test_fields_that_are_only_called_otherwise() -> None:
    said = {"rep_grp": "g", "req_grp": "r", "memory": "1.5G", "cpus": 0.5, "priority": 9, "retries": 0}
    assert fields(**said) == {
        "group": "g",
        "learn": "r",
        "mem": "1.5G",
        "cpus": 0.5,
        "priority": 9,
        "retries": 0,
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1h", "1h"), ("90m", "1h30m"), ("1.5h", "1h30m"), ("30m1h", "1h30m"), ("500ms", "0.5s"), (".5s", "0.5s"),
     ("2us", "0.000002s"), ("2\u00b5s", "0.000002s"), ("1ns", "0.000001s"), ("2d", "2d"), ("-1h", "-1h"),
     ("7", "7")],
)  # fmt: skip
def test_times_are_those_of_go(text: str, expected: str) -> None:
    assert fields(time=text)["time"] == expected
    assert fields(no_retry_over_walltime=text)["no_retry_over"] == expected


def test_no_time_at_all_is_not_said() -> None:
    assert fields(time="0s", no_retry_over_walltime="0") == {}


@given(st.integers(0, 10_000), st.integers(0, 59), st.integers(0, 59))
def test_a_time_is_as_long_as_before(hours: int, minutes: int, seconds: int) -> None:
    found = fields(time=f"{hours}h{minutes}m{seconds}s").get("time", "0s")
    assert parse_duration(str(found)) == hours * 3600 + minutes * 60 + seconds


def test_sizes_of_disks_are_gigabytes() -> None:
    assert fields(disk=10) == {"disk": "10G"}
    assert fields(disk=0) == {"disk": "0G"}


def test_override() -> None:
    assert [fields(override=n)["override"] for n in range(3)] == ["no", "higher", "always"]


def test_the_environment() -> None:
    assert fields(env=["A=1", "B=x=y", "C="]) == {"env": {"A": "1", "B": "x=y", "C": ""}}


def test_a_directory_counts_only_where_it_matters() -> None:
    assert fields(cwd="/data") == {}
    assert fields(cwd="/data", cwd_matters=True) == {"scratch": False, "cwd": "/data"}
    assert fields(cwd_matters=True) == {"scratch": False}
    assert fields(cwd="/work", cwd_matters=True) == {"scratch": False, "cwd": "/work"}
    asked = WrPlace(cwd="/work", cwd_matters=True)
    assert one(asked, cwd="/data", cwd_matters=False).fields == {"scratch": False, "cwd": "/data"}


def test_home_follows_a_directory_of_its_own() -> None:
    assert one(change_home=True).cmd == 'export HOME="$PWD"; x'
    assert one(change_home=True, cwd_matters=True).cmd == "x"


def test_behaviours() -> None:
    said = [{"run": "cp a b"}, {"cleanup": True}, {"cleanup_all": True}, {"remove": True}, {"cleanup": False}]
    done = ["run: cp a b", "cleanup", "cleanup", "remove"]
    assert fields(on_failure=said, on_success=said[:1], on_exit=said[1:2]) == {
        "on_failure": done,
        "on_success": ["run: cp a b"],
        "on_exit": ["cleanup"],
    }
    assert fields(on_exit=[{"cleanup": True}], cwd_matters=True) == {"scratch": False, "on_exit": []}


def test_a_directory_that_wr_would_have_kept_is_mentioned() -> None:
    assert "would have kept" in one(on_exit=[{"run": "true"}]).warnings[0]
    assert not one(on_exit=[{"run": "true"}], cwd_matters=True).warnings
    assert not one(on_failure=[{"run": "true"}]).warnings


# ------------------------------------------------------------------ limits


def test_limits_and_the_declarations_of_them() -> None:
    found = read('a\t{"limit_grps": ["x:5", "y"]}\nb\t{"limit_grps": ["x"]}\nc\t{"limit_grps": ["x:0", "x"]}')
    assert [job.fields["limits"] for job in found.jobs] == [["x", "y:any"], ["x:any"], ["x"]]
    assert found.limits == ["x:0"]


def test_a_limit_that_is_unlimited_is_declared_so() -> None:
    found = read('a\t{"limit_grps": ["x:-1"]}')
    assert found.limits == ["x:any"]
    assert found.jobs[0].fields["limits"] == ["x"]
    assert not found.jobs[0].warnings


@pytest.mark.parametrize(
    ("word", "declared"),
    [
        ("17:00:00 < time < 20:00:00", "time_1700_2000@17:00-20:00"),
        ("22:30:00<time", "time_2230_0000@22:30-00:00"),
        ("time < 08:00:00", "time_0000_0800@00:00-08:00"),
        ("17:00:30 < time < 20:00:05", "time_170030_200005@17:00:30-20:00:05"),
        ("time < 09:00:30", "time_0000_090030@00:00-09:00:30"),
    ],
)
def test_a_time_of_day_is_a_limit_with_a_window(word: str, declared: str) -> None:
    found = read(json.dumps({"cmd": "a", "limit_grps": [word]}))
    assert found.limits == [declared]
    assert found.jobs[0].fields["limits"] == [declared.partition("@")[0]]


def test_a_window_of_a_whole_day_is_none() -> None:
    assert fields(limit_grps=["00:00:00 < time"]) == {}


@pytest.mark.parametrize(
    ("words", "types"),
    [
        (["2030-07-01 12:00:00 < datetime"], ["postpone=2030-07-01T12:00:00"]),
        (["datetime<2030-07-01 12:00:30"], ["expire=2030-07-01T12:00:30"]),
        (
            ["2030-07-01 12:00:00 < datetime < 2031-01-02 03:04:05"],
            ["postpone=2030-07-01T12:00:00", "expire=2031-01-02T03:04:05"],
        ),
        (
            ["2030-01-01 00:00:00 < datetime", "2031-01-01 00:00:00 < datetime", "datetime < 2040-01-01 00:00:00",
             "2020-01-01 00:00:00 < datetime < 2035-01-01 00:00:00"],
            ["postpone=2031-01-01T00:00:00", "expire=2035-01-01T00:00:00"],
        ),
    ],
)  # fmt: skip
def test_dates_say_from_when_on_and_until_when_a_job_may_start(words: list[str], types: list[str]) -> None:
    job = one(limit_grps=words)
    assert job.fields == {"type": types}
    assert not job.warnings


# ------------------------------------------------------------------ dependencies


def test_groups_that_others_wait_for() -> None:
    first, second = read('a\t{"dep_grps": ["g", "g", "h"]}\nb\t{"deps": ["g", "i"]}').jobs
    assert first.fields == {"dep_groups": ["g", "h"]}
    assert second.fields == {"after": ["@g", "@i"]}


def test_commas_of_groups_are_theirs() -> None:
    first, second = read('a\t{"dep_grps": ["g,h"], "rep_grp": "r,s"}\nb\t{"deps": ["g,h"]}').jobs
    assert first.fields == {"dep_groups": ["g\\,h"], "group": "r,s"}
    assert second.fields == {"after": ["@g\\,h"]}
    base = Wanted(cwd="/", mem=0)
    assert base.changed(first.fields).dep_groups == ("g,h",)
    assert base.changed(first.fields).group == "r,s"
    assert base.changed(second.fields).after == ((1, False, "g,h"),)


def test_the_same_command_in_another_report_group_is_one_job_in_both() -> None:
    said = 'a\t{"rep_grp": "one"}\na\t{"rep_grp": "two"}\na\t{"rep_grp": "one"}\na\t{"rep_grp": "two"}\n'
    found = read(said)
    assert [job.fields for job in found.jobs] == [{"group": ["one", "two"]}]
    assert found.repeated == [3, 4]


def test_a_group_may_get_its_first_member_below() -> None:
    first, _ = read('b\t{"deps": ["g"]}\na\t{"dep_grps": ["g"]}').jobs
    assert first.fields == {"after": ["@g"], "allow_empty_group": True}


def test_a_command_may_be_waited_for_from_above_and_below() -> None:
    found = read(
        '{"cmd": "last", "cmd_deps": [{"cmd": "a", "cwd": ""}, {"cmd": "b", "cwd": "/d"}, {"cmd": "a"}]}\n'
        "\n"
        '{"cmd": "a", "change_home": true}\n'
        '{"cmd": "b", "cwd": "/d", "cwd_matters": true, "cmd_deps": [{"Essence": {"Cmd": "a"}}]}\n'
    )
    assert [job.parents for job in found.jobs] == [(3, 4), (), (3,)]
    assert [job.fields_with().get("after") for job in found.jobs] == [["line:3", "line:4"], None, ["line:3"]]
    assert found.jobs[0].fields_with({3: 2, 4: 3})["after"] == ["line:2", "line:3"]
    assert not any(job.warnings for job in found.jobs)


def test_a_command_of_an_earlier_file_is_waited_for_by_its_name() -> None:
    deps = [{"cmd": "old", "cwd": ""}, {"cmd": "older", "cwd": "/d"}, {"cmd": "old"}]
    (job,) = read(json.dumps({"cmd": "a", "deps": ["g"], "cmd_deps": deps})).jobs
    assert job.fields_with()["after"] == ["@g", {"cmd": "old"}, {"cmd": "older", "cwd": "/d"}]
    assert not job.warnings


def test_a_command_that_is_not_there_is_not_waited_for_where_that_is_wanted() -> None:
    said = b'a\t{"cmd_deps": [{"cmd": "old", "cwd": ""}]}'
    (job,) = convert([said], source="f.wr", place=HERE, waits=False).jobs
    assert job.fields_with() == {}
    assert job.warnings == ("field 'cmd_deps': 'old' is not in this input, so it is not waited for",)


# ------------------------------------------------------------------ what Rota has not


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cloud_os", "Ubuntu"), ("cloud_username", "u"), ("cloud_ram", 2048), ("cloud_flavor", "m1"),
        ("cloud_script", "s.sh"), ("cloud_config_files", "f"), ("cloud_shared", True), ("mounts", [{}]),
        ("monitor_docker", "?"), ("bsub_mode", "production"), ("queue", "long"), ("queues_avoid", "gpu"),
        ("misc", "-R avx"), ("group", "staff"), ("modules", ["R"]), ("container_mounts", "/a"), ("rtries", 3),
    ],
)  # fmt: skip
def test_a_field_without_an_equivalent_is_left_out_and_named(name: str, value: Any) -> None:
    job = one(**{name: value})
    assert job.fields == {}
    assert len(job.warnings) == 1
    assert [lost for lost, _message in job.lost] == [name]
    assert job.warnings[0].startswith(f"field '{name}': ")
    assert "left out" in job.warnings[0]


def test_what_is_switched_off_is_not_missed() -> None:
    assert not one(cloud_shared=False, mounts=[], queue="").warnings


def test_a_container_becomes_part_of_the_command() -> None:
    job = one(with_docker="alpine:3", container_mounts="/in:/data,/b", env=["A=1"], cmd="echo 'it is'")
    assert job.cmd == (
        """printf '%s\\n' 'echo '"'"'it is'"'"'' | docker run --rm -i --volume "$PWD:$PWD" --workdir "$PWD" """
        "--volume /in:/data --volume /b:/b --env A alpine:3 /bin/sh"
    )
    assert one(with_singularity="my image.sif").cmd == (
        """printf '%s\\n' x | singularity shell --pwd "$PWD" --bind "$PWD" 'my image.sif'"""
    )
    assert one(with_docker="a", with_singularity="b").cmd.endswith("a /bin/sh")


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        read(data)
    except BadInput as error:
        assert str(error).startswith("f.wr line ")


_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
_NAMES = st.sampled_from(
    ["cmd", "cwd", "cwd_matters", "change_home", "rep_grp", "req_grp", "memory", "time", "override", "cpus",
     "disk", "queue", "priority", "retries", "no_retry_over_walltime", "dep_grps", "deps", "cmd_deps",
     "limit_grps", "env", "on_exit", "on_failure", "mounts", "with_docker",
     "container_mounts", "cloud_os", "else"],
)  # fmt: skip


@given(st.dictionaries(_NAMES, _VALUES, max_size=6))
def test_any_object_is_read_or_refused_with_its_field(said: dict[str, Any]) -> None:
    try:
        read(json.dumps(said))
    except BadInput as error:
        assert str(error).startswith("f.wr line 1: field '")
