"""Input for `add` and `run`: every form is understood, every mistake named with its line and field."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rota.client import batches as batching
from rota.client.batches import Most, UploadBatch
from rota.client.fields.fields import LATER, Wanted
from rota.client.intake import from_bytes, from_objects
from rota.core.fields.table import FIELDS
from rota.errors import BadInput
from rota.wire.messages import NewAfter, NewElement, NewUse

BASE = Wanted(cwd="/where", mem=1 << 30)


def read(data: bytes, *, block: int | None = None, base: Wanted = BASE) -> list[UploadBatch]:
    """In blocks that no line fits into, unless it is a very long one."""
    block = block or max(7, len(data) // 1000)
    blocks = (data[at : at + block] for at in range(0, len(data), block))
    return list(from_bytes(blocks, base, source="in.txt"))


def commands(data: bytes, **options: Any) -> list[str | list[str]]:
    return [cmd for batch in read(data, **options) for cmd in batch.cmds]


def refusal(data: bytes) -> str:
    with pytest.raises(BadInput) as refused:
        read(data)
    return str(refused.value)


def test_one_command_a_line() -> None:
    assert commands(b"echo a\necho b") == ["echo a", "echo b"]
    assert commands(b"echo a\r\necho b\r\n") == ["echo a", "echo b"]
    assert commands(b"\xef\xbb\xbfecho a\n") == ["echo a"]


def test_blank_lines_and_comments_are_skipped_but_counted() -> None:
    (batch,) = read(b"# first\n\n  \t\necho a\n   # more\necho b # kept\n")
    assert batch.cmds == ["echo a", "echo b # kept"]
    assert batch.lines == [4, 6]


def test_json_lines_and_a_command_with_json_behind_a_tab() -> None:
    (batch,) = read(b'{"cmd": ["a", "b c"], "cpus": 2}\nplain\ntext here\t{"cpus": 2}\n')
    assert batch.cmds == [["a", "b c"], "plain", "text here"]
    assert batch.spec_of == [0, 1, 0]
    assert [spec.size.cpus for spec in batch.specs] == [200, 100]


def test_one_json_array() -> None:
    assert commands(b'[{"cmd": "a"},\n {"cmd": "b"}]') == ["a", "b"]
    assert commands(b"  [\n]") == []


def test_what_looks_like_json_to_nobody_but_a_parser_is_a_command() -> None:
    lines = ["{ echo a; echo b; }", "[ -f x ] && echo y", "[[ -f x ]]", "awk '{print}' f", "printf 'a\tb'"]
    for line in lines:
        assert commands(line.encode()) == [line]


def test_plain_lines_share_one_specification_and_carry_no_numbers() -> None:
    batches = read(b"true\n" * 25_000, block=1 << 16)
    assert [len(batch.specs) for batch in batches] == [1] + [0] * (len(batches) - 1)
    assert all(batch.spec_of is None and batch.lines is None for batch in batches)
    assert [batch.last for batch in batches] == [False] * (len(batches) - 1) + [True]
    assert sum(len(batch.cmds) for batch in batches) == 25_000
    firsts = [batch.first for batch in batches]
    assert firsts == [sum(len(b.cmds) for b in batches[:n]) for n in range(len(batches))]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'a\nb\n{"cmd": "c", "cpus": -1}', "in.txt line 3: field 'cpus': must be from 0"),
        (b'a\t{"cpu": 1}', "in.txt line 1: field 'cpu': there is no such field; did you mean 'cpus'?"),
        (b'{"cmd": "a", "mem": 500}', "line 1: field 'mem': '500' has no unit; write 500M"),
        (b'{"cmd": "a", "time": "90"}', "field 'time': '90' has no unit"),
        (b'{"cmd": "a", "cpus": true}', "field 'cpus': must be a number"),
        (b'{"cmd": "a", "cpus": 0.001}', "field 'cpus': is finer"),
        (b'{"cmd": "a", "cpus": 1e300}', "field 'cpus'"),
        (b'{"cmd": "a", "cpus": NaN}', "not valid JSON"),
        (b'{"cmd": "a", "priority": 256}', "field 'priority': must be from 0 to 255"),
        (b'{"cmd": "a", "priority": 1.5}', "field 'priority': must be a whole number"),
        (b'{"cmd": "a", "retries": 99999999999999999999999999}', "field 'retries'"),
        (b'{"cmd": "a", "env": {"A": 1}}', "field 'env': 'A' must be a text"),
        (b'{"cmd": "a", "env": {"A=B": "1"}}', "field 'env'"),
        (b'{"cmd": "a", "scratch": 1}', "field 'scratch': must be true or false"),
        (b'{"cmd": "a", "queue": "fast!"}', "field 'queue': 'fast!' cannot be a queue"),
        (b'{"cmd": "a", "after": "@"}', "field 'after': '' cannot be a group"),
        (b'{"cmd": "a", "after": "@a b :3"}', "cannot be a dependency group"),
        (b'{"cmd": "a", "after": "line:@g"}', "field 'after': 'line:@g' is not a dependency"),
        (b'{"cmd": "a", "after": {"a": 1}}', "field 'after': must be ids, not an object"),
        (
            b'{"cmd": "a", "after": "@g", "dep_groups": ["g"]}',
            "field 'after': it would wait for its own group 'g'",
        ),
        (b'a\n{"cmd": "a", "array": "1-"}', "in.txt line 2: field 'array': '1-' (part 1) is not an index"),
        (
            b'{"cmd": "a", "array_file": "/nonexistent/p"}',
            "line 1: field 'array_file': cannot read /nonexistent/p",
        ),
        (b'{"cmd": "a", "input_file": "none.dat"}', "line 1: field 'input_file': cannot read /where/none.dat"),
        (b'{"cmd": "a", "input_file": "/"}', "line 1: field 'input_file': / is a directory"),
        (b'{"cmd": "a", "array": "1-3", "after": "line:1"}', "it would wait for itself"),
        (b'{"cmd": "a", "after": "x"}', "field 'after': 'x' is not a dependency"),
        (b'{"cmd": "a", "after": "0"}', "field 'after'"),
        (b'{"cmd": "a", "after": "1-99999999"}', "field 'after'"),
        (b'{"cmd": "a", "after": "line:"}', "field 'after'"),
        (b'{"cmd": "a", "after": "line:2"}\n#', "line 1: field 'after': line 2 of this input is not a job"),
        (b'{"cmd": "a", "after": "line:1"}', "it would wait for itself"),
        (b'{"cmd": "a", "rerun": true, "once": true}', "contradict"),
        (b'{"cmd": "a", "group": "@a"}', "field 'group'"),
        (b'{"cmd": "a", "group": []}', "field 'group': must be one group, or up to 100"),
        (b'{"cmd": "a", "group": ["a", "b\\\\"]}', "field 'group'"),
        (b'{"cmd": ""}', "field 'cmd': the command is empty"),
        (b'{"cmd": []}', "field 'cmd': the command is empty"),
        (b'{"cmd": ["a", 1]}', "field 'cmd'"),
        (b'{"cmd": "a\\u0000"}', "field 'cmd': contains a NUL"),
        (b'{"cpus": 1}', "field 'cmd': missing"),
        (b'a\t{"cmd": "b"}', "field 'cmd': given twice"),
        (b"{cmd: 1}", "line 1: is not valid JSON"),
        (b'a\t{"cpus": 1', "line 1: is not valid JSON"),
        (b'ok\n\n{"cmd": "x"', "line 3: is not valid JSON"),
        (b"ok\nb\0d", "in.txt line 2: contains a NUL byte"),
        (b"ok\n\xff\xfe", "in.txt line 2: is not valid UTF-8"),
        (b"ok\n" + b"x" * 131_072, "in.txt line 2: has 131072 bytes, at most 131071 are allowed"),
        (b"ok\n" + b"x" * ((1 << 20) + 1), "in.txt line 2: has more than 1048576 bytes"),
        (b'[{"cmd": "a"},\n\n{"cmd": "b", "mem": 1}]', "in.txt line 3 (entry 2): field 'mem'"),
        (b'[{"cmd": "a"}, 5]', "(entry 2): is not a JSON object"),
        (b'[{"cmd": "a"},\n', "is not valid JSON"),
        (b'["a"]', "(entry 1): is not a JSON object"),
    ],
)
def test_a_mistake_is_named_with_its_line_and_field(data: bytes, expected: str) -> None:
    assert expected in refusal(data)


@pytest.mark.parametrize("name", sorted(LATER))
def test_what_is_promised_for_later_is_said_to_come_later(name: str) -> None:
    assert f"field '{name}': not supported by this version yet" in refusal(
        json.dumps({"cmd": "a", name: 1}).encode()
    )


def test_dependencies_on_lines_of_the_same_input_forward_and_backward() -> None:
    (batch,) = read(
        b'{"cmd": "a", "after": "line:3"}\n# no job\n{"cmd": "c", "after": [7, "afterany:line:4"]}\n'
        b'{"cmd": "d", "after": "afternotok:9-10"}'
    )
    assert set(batch.after) == {
        NewAfter(0, 1, 1, True),
        NewAfter(1, 7, 1, False),
        NewAfter(1, 2, 2, True),
        NewAfter(2, 9, 3, False),
        NewAfter(2, 10, 3, False),
    }


def test_a_dependency_travels_with_its_job_even_when_its_parent_comes_chunks_later() -> None:
    lines = [b'{"cmd": "a", "after": "line:30001"}'] + [b"true"] * 30_000
    batches = read(b"\n".join(lines), block=1 << 16)
    assert batches[0].after == [NewAfter(0, 30_000, 1, True)]
    for batch in batches:
        assert all(batch.first <= each.entry < batch.first + len(batch.cmds) for each in batch.after)


def test_lines_override_flags_and_flags_override_defaults() -> None:
    base = BASE.changed({"cpus": "2", "env": ("A=1", "B=2")}, text=True)
    (batch,) = read(b'a\n{"cmd": "b", "cpus": 4, "env": {"B": "3"}}', base=base)
    assert [spec.size.cpus for spec in batch.specs] == [200, 400]
    assert b"A=1" in batch.envs[0].split(b"\0")
    assert {b"A=1", b"B=3"} <= set(batch.envs[1].split(b"\0"))


def test_only_lines_that_say_so_are_run_again() -> None:
    (batch,) = read(b'a\n{"cmd": "b", "rerun": true}\n{"cmd": "c", "allow_unsatisfiable": true}')
    assert (batch.rerun, batch.allowed) == ([1], [2])


def test_python_callers_give_texts_lists_and_mappings() -> None:
    (batch,) = list(from_objects(["a", ["b", "c"], {"cmd": "d", "mem": "2G"}], BASE))
    assert batch.cmds == ["a", ["b", "c"], "d"]
    with pytest.raises(BadInput, match="entry 2: field 'cpus'"):
        list(from_objects(["a", {"cmd": "b", "cpus": "x"}], BASE))


def test_large_environments_do_not_make_large_messages() -> None:
    lines = [json.dumps({"cmd": "a", "env": {"A": f"{n}" + "x" * 100_000}}) for n in range(200)]
    batches = read("\n".join(lines).encode(), block=1 << 20)
    assert len(batches) > 3
    assert all(sum(map(len, batch.envs)) < batching.BATCH_BYTES * 2 for batch in batches)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(
    st.dictionaries(st.sampled_from(["cmd", *FIELDS]) | st.text(max_size=6), JSON, max_size=4), st.integers(0, 3)
)
def test_any_object_is_a_job_or_a_refusal_that_names_the_line(fields: dict[str, object], before: int) -> None:
    data = b"true\n" * before + json.dumps(fields).encode() + b"\n"
    try:
        added = read(data)
        assert sum(len(batch.cmds) - len(batch.elements) for batch in added) in (before, before + 1)
        assert sum(len(batch.cmds) for batch in added) > before
    except BadInput as refused:
        error = refused
    else:
        return
    assert error.message.startswith(f"in.txt line {before + 1}: ")
    assert "\n" not in str(error)


@example(b"\xef\xbb\xbf[\x01")
@given(st.binary(max_size=200) | st.text(alphabet='{}[]"#\t\n\r a:,\\1\0\ufeff', max_size=60).map(str.encode))
def test_any_bytes_are_jobs_or_a_refusal_whatever_the_blocks(data: bytes) -> None:
    results = []
    for block in (1, 5, 1 << 20):
        try:
            results.append([(b.cmds, b.lines, b.spec_of) for b in read(data, block=block)])
        except BadInput as error:
            results.append(error.message)  # type: ignore[arg-type]
    assert results[0] == results[1] == results[2]


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n\r\0\t"), max_size=20), max_size=20))
def test_commands_come_through_unchanged(lines: list[str]) -> None:
    plain = [line for line in lines if line.strip() and line.lstrip()[0] not in "#{[\ufeff"]
    assert commands("\n".join(plain).encode()) == plain


# ------------------------------------------------------------------ arrays


def elements(data: bytes, **options: Any) -> list[tuple[int, int, str | list[str]]]:
    """(array, index, command) of every element."""
    batches = read(data, **options)
    cmds = [cmd for batch in batches for cmd in batch.cmds]
    return [(each.array, each.index, cmds[each.entry]) for batch in batches for each in batch.elements]


def test_an_array_is_one_entry_for_each_of_its_elements() -> None:
    (batch,) = read(b'before\n{"cmd": ["a", "b"], "array": "0-4:2", "cpus": 2}\nafter')
    assert batch.cmds == ["before", ["a", "b"], ["a", "b"], ["a", "b"], "after"]
    assert batch.elements == [NewElement(1, 0, 0), NewElement(2, 0, 2), NewElement(3, 0, 4)]
    assert batch.lines == [1, 2, 2, 2, 3]
    assert batch.spec_of == [0, 1, 1, 1, 0]


def test_with_a_flag_each_plain_line_is_an_array_of_its_own() -> None:
    base = BASE.changed({"array": "7,9"}, text=True)
    assert elements(b"a\n# no\nb\n", base=base) == [(0, 7, "a"), (0, 9, "a"), (1, 7, "b"), (1, 9, "b")]
    assert elements(b'{"cmd": "a", "array": null}\n{"cmd": "b", "array": "3"}', base=base) == [(0, 3, "b")]


def test_lines_that_are_not_in_order_are_sent_whatever_the_numbers_look_like() -> None:
    (batch,) = read(b'{"cmd": "a", "array": "1-2"}\n\nb')
    assert batch.lines == [1, 1, 3]


def test_waiting_for_a_line_that_is_an_array_is_waiting_for_all_its_elements() -> None:
    (batch,) = read(
        b'{"cmd": "first", "after": "line:2"}\n{"cmd": "a", "array": "1-2"}\n'
        b'{"cmd": "b", "array": "5-6", "after": ["afterany:line:2", "@g"]}'
    )
    assert set(batch.after) == {
        *(NewAfter(0, parent, 1, True) for parent in (1, 2)),
        *(NewAfter(entry, parent, 2, True) for entry in (3, 4) for parent in (1, 2)),
        *(NewAfter(entry, "g", 1, False) for entry in (3, 4)),
    }


def test_a_large_array_goes_in_batches_and_its_dependencies_with_its_elements() -> None:
    batches = read(b'{"cmd": "a", "array": "1-25000", "after": "3,line:2", "input_bytes": 5}\nb', block=1 << 20)
    assert [len(batch.cmds) for batch in batches] == [10_000, 10_000, 5001]
    assert [each.index for batch in batches for each in batch.elements] == list(range(1, 25_001))
    for batch in batches:
        own = range(batch.first, batch.first + len(batch.cmds))
        assert all(each.entry in own for each in [*batch.after, *batch.elements])
        assert all(entry in own for entry, _ in batch.inputs)
    waiting = [each for batch in batches for each in batch.after]
    assert {(each.parent, each.local) for each in waiting} == {(3, False), (25_000, True)}
    assert len(waiting) == 50_000


def test_an_array_of_long_commands_makes_no_large_messages() -> None:
    batches = list(from_objects([{"cmd": "x" * 100_000, "array": "1-200"}], BASE))
    assert len(batches) > 3
    assert all(sum(map(len, batch.cmds)) < batching.BATCH_BYTES * 2 for batch in batches)
    assert sum(len(batch.elements) for batch in batches) == 200


def test_nor_does_one_of_long_parameters(tmp_path: Path) -> None:
    (tmp_path / "p").write_text("\n".join(f"{n}" + "x" * 100_000 for n in range(200)))
    batches = list(from_objects([{"cmd": "a", "array_file": str(tmp_path / "p")}], BASE))
    assert len(batches) > 3
    assert all(sum(map(len, batch.cmds)) < batching.BATCH_BYTES * 2 for batch in batches)
    assert [each.index for batch in batches for each in batch.elements] == list(range(1, 201))


def test_elements_that_wait_for_elements_are_too_many_sooner_than_one_thinks() -> None:
    data = b'{"cmd": "a", "array": "1-5000"}\n{"cmd": "b", "array": "1-5000", "after": "line:1"}'
    message = refusal(data)
    assert "in.txt line 2: field 'after': too many dependencies" in message
    assert "dep_groups" in message


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([{"cmd": "a", "array": "1-1000000"}], "entry 1: these are more than 10 jobs"),
        (["a"] * 8 + [{"cmd": "b", "array": "1-3"}], "entry 9: these are more than 10 jobs"),
        (["a"] * 11, "entry 11: these are more than 10 jobs"),
        ([{"cmd": "a", "after": "1-7"}] * 3, "entry 3: field 'after': more than 20 dependencies"),
        ([{"cmd": "a", "array": "1-3", "after": "1-7"}], "entry 1: field 'after': more than 20 dependencies"),
        (
            [{"cmd": "a", "array": "1-5"}, {"cmd": "b", "array": "1-5", "after": "line:1"}],
            "entry 2: field 'after': more than 20 dependencies",
        ),
    ],
)
def test_what_a_submission_may_become_can_be_bounded(entries: list[Any], expected: str) -> None:
    assert list(from_objects(entries[:1] if len(entries) > 1 else ["a"], BASE, most=Most(jobs=10, parents=20)))
    with pytest.raises(BadInput) as refused:
        list(from_objects(entries, BASE, most=Most(jobs=10, parents=20)))
    assert expected in str(refused.value)
    assert refused.value.hint


@pytest.mark.parametrize(
    "env", [dict.fromkeys(map(str, range(800_000)), 0), {f"A{n}": "x" * 100_000 for n in range(30)}]
)
def test_an_environment_that_no_kernel_takes_is_refused_early(env: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match="field 'env': has more than 2 MiB"):
        BASE.changed({"env": env})


def test_five_at_once_is_a_limit_of_the_array() -> None:
    (batch,) = read(
        b'{"cmd": "a", "array": "1-9%5", "limits": "disk:2"}\n{"cmd": "a", "array": "1-9%5"}\n'
        b'{"cmd": "b", "array": "1-9%5"}\n'
    )
    uses = [batch.specs[index].limits for index in (batch.spec_of or [])[::9]]
    assert uses[0][:1] == (NewUse("disk", 2),)
    assert [use.number for use in uses[1]] == [5]
    assert len({each[-1].name for each in uses}) == 3, "each line is an array of its own"
    assert uses[1][0].name.startswith("array-")
    assert len(uses[1][0].name) == len("array-") + 12


def test_one_job_for_each_line_of_parameters(tmp_path: Path) -> None:
    file = tmp_path / "p.txt"
    file.write_bytes(b"\xef\xbb\xbf# sizes\n--size 1 'a b'\r\n\n   \t\n  --size 2\n")
    text = json.dumps({"cmd": "sim", "array_file": str(file)})
    words = json.dumps({"cmd": ["sim", "-v"], "array_file": str(file)})
    assert elements(f"{text}\n{words}".encode()) == [
        (0, 1, "sim --size 1 'a b'"),
        (0, 2, "sim --size 2"),
        (1, 1, ["sim", "-v", "--size", "1", "a b"]),
        (1, 2, ["sim", "-v", "--size", "2"]),
    ]


def test_an_array_picks_lines_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "p.txt"
    file.write_text("a\nb\nc\n")
    base = BASE.changed({"array_file": str(file), "array": "3,1%2"}, text=True)
    assert elements(b"cmd", base=base) == [(0, 3, "cmd c"), (0, 1, "cmd a")]
    every = BASE.changed({"array_file": str(file), "array": "%2"}, text=True)
    (batch,) = read(b"cmd", base=every)
    assert [each.index for each in batch.elements] == [1, 2, 3]
    assert batch.specs[batch.spec_of[0] if batch.spec_of else 0].limits[0].number == 2


@pytest.mark.parametrize(
    ("content", "more", "expected"),
    [
        (b"", {}, "p.txt has no lines of parameters"),
        (b"# a\n\n", {}, "p.txt has no lines of parameters"),
        (b"a\n\xff", {}, "p.txt line 2 is not valid UTF-8"),
        (b"a\n\nb\0", {}, "p.txt line 3 contains a NUL byte"),
        (b"a\nb 'c", {"cmd": ["x"]}, "parameters 2 ('b \\'c'): no closing quotation"),
        (b"a\nb", {"array": "2-3"}, "field 'array': there are no parameters for index 3"),
        (b"a\nb", {"array": "0"}, "field 'array': there are no parameters for index 0"),
        (b"a\n" + b"x" * 131_072, {}, "parameters 2: has 131074 bytes"),
    ],
)
def test_a_mistake_in_a_file_of_parameters_is_named(
    tmp_path: Path, content: bytes, more: dict[str, object], expected: str
) -> None:
    (tmp_path / "p.txt").write_bytes(content)
    message = refusal(json.dumps({"cmd": "x", "array_file": str(tmp_path / "p.txt"), **more}).encode())
    assert message.startswith("in.txt line 1: field 'array")
    assert expected.replace("\\'", "'") in message


def test_the_size_of_the_input_goes_with_each_job(tmp_path: Path) -> None:
    (tmp_path / "in.dat").write_bytes(b"x" * 77)
    base = Wanted(cwd=str(tmp_path), mem=1).changed({"input_bytes": "4K"}, text=True)
    (batch,) = read(
        b'a\n{"cmd": "b", "input_file": "in.dat"}\n{"cmd": "c", "input_bytes": 9, "array": "1-2"}\n'
        b'{"cmd": "d", "input_bytes": null}',
        base=base,
    )
    assert batch.inputs == [(0, 4096), (1, 77), (2, 9), (3, 9)]
    assert len(batch.specs) == 1, "it is no part of the specification"


def test_what_is_damaged_below_does_not_hide_a_mistake_above() -> None:
    for block in (1, 1 << 20):
        with pytest.raises(BadInput, match=r"in\.txt line 1: is not valid JSON"):
            read(b"{x\n\0\n\xff\n", block=block)
        with pytest.raises(BadInput, match=r"in\.txt line 2: is not valid UTF-8"):
            read(b"x\n\xff\n\0\n", block=block)


def test_a_million_lines_take_a_few_microseconds_each() -> None:
    data = b"".join(b"work --on file%d.dat --and more\n" % n for n in range(200_000))
    best = min(_timed(data) for _ in range(3))
    assert best / 200_000 < 3e-6 * 3, "thrice the budget, for a busy machine"


def _timed(data: bytes) -> float:
    begun = time.process_time()
    read(data, block=1 << 20)
    return time.process_time() - begun
