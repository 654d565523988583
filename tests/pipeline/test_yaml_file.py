"""Pipelines in YAML: what is wrong is told with file, line, column, field and what to do."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.core.pipelines.definition import Definition, Element, Stage
from rota.documents.yaml_file import MAX_BYTES
from rota.errors import BadInput, BadPipeline
from rota.pipeline.yaml_file import from_bytes, load
from rota.plan.need import LimitUse
from tests.dose import dose
from tests.pipeline.example import EXAMPLE

HEAD = b"stages: [{name: build, run: build}]\n"


def read(data: bytes) -> Definition:
    return from_bytes(data, source="p.yaml")


def refused(data: bytes) -> BadInput:
    with pytest.raises(BadInput) as caught:
        read(data)
    assert caught.value.hint
    assert caught.value.source == "p.yaml"
    return caught.value


def test_the_example_is_read_as_it_is_meant() -> None:
    found = read(EXAMPLE)
    assert found.limits == (("process", 4), ("download", 10), ("upload", 4), ("cache", 1))
    assert found.defaults == (("url", "file:///none"),)
    assert found.elements == (Element("base.bst", (), (("url", "file:///base"),)), Element("app.bst", (0,)))
    track, pull, fetch, build, push, clean = found.stages
    assert track.redefines == "refs/{name}"
    assert pull.skip_to == "push"
    assert (fetch.skip_if, fetch.retries) == ("test -d sources/{name}", 2)
    assert build == Stage(
        name="build",
        run="build {name}",
        imperative=True,
        needs_dependencies=True,
        skip_if="cache has {key}",
        takes=(LimitUse("process"), LimitUse("cache")),
        fields={"cpus": 2, "mem": "4G"},
    )
    assert push.also_failed
    assert clean.per_session
    assert (clean.run_if, clean.takes) == ("cache over-quota", (LimitUse("cache", exclusive=True),))


def test_a_stage_of_the_session_may_only_have_its_limits_for_a_moment() -> None:
    data = b"limits: {c: 1}\nstages: [{name: b, run: x}, {name: c, per: session, takes: {c: exclusive}}]\n" + REST
    assert read(data).stages[1].run == "true"


def test_a_json_file_is_a_yaml_file() -> None:
    document = {"stages": [{"name": "build", "run": "build {v}"}], "elements": {"app": {"v": "é \" '"}}}
    assert read(json.dumps(document).encode()).elements == (Element("app", (), (("v", "é \" '"),)),)


def test_own_keys_are_taken_as_they_are_written() -> None:
    data = HEAD + b"elements: {a: {version: 1.10, sha: 0012345678901234567890, on: yes, flag: True, n: 0x1F}}\n"
    own = dict(read(data).elements[0].own)
    assert own == {"version": "1.10", "sha": "0012345678901234567890", "on": "yes", "flag": "True", "n": "0x1F"}


def test_an_element_needs_nothing_but_its_name() -> None:
    assert read(HEAD + b"elements:\n  a:\n  b: {}\n").elements == (Element("a"), Element("b"))


def test_aliases_stand_for_what_they_name() -> None:
    data = b"stages: [{name: a, run: &r echo}, {name: b, run: *r}]\nelements: {x: &e {u: v}, y: *e}\n"
    assert [stage.run for stage in read(data).stages] == ["echo", "echo"]
    assert read(data).elements[1] == Element("y", (), (("u", "v"),))


STAGE = b"stages:\n  - name: build\n    run: build {name}\n"
REST = b"elements: {a: {}}\n"


@pytest.mark.parametrize(
    ("data", "place", "field", "text"),
    [
        (b"", (1, 1), "", "is empty"),
        (b"# nothing\n\n", (1, 1), "", "is empty"),
        (b"[1, 2]\n", (1, 1), "", "must be an object, not a list"),
        (b"limits: {a: 1}\n", (1, 1), "stages", "is missing"),
        (STAGE, (1, 1), "elements", "is missing"),
        (b"stages: []\n" + REST, (1, 1), "stages", "there are no stages"),
        (STAGE + b"elements: {}\n", (4, 1), "elements", "there are no elements"),
        (STAGE + b"element: {a: {}}\n" + REST, (4, 1), "element", "no such field"),
        (STAGE + b"    retrys: 2\n" + REST, (4, 5), "retrys", "stage 'build'"),
        (STAGE + b"    run: again\n" + REST, (4, 5), "", "'run' is given twice, first in line 3"),
        (STAGE + b"elements:\n  a: {}\n  b: {}\n  a: {}\n", (7, 3), "", "'a' is given twice, first in line 5"),
        (STAGE + b"    retries: many\n" + REST, (4, 5), "retries", "must be a whole number, not 'many'"),
        (STAGE + b"    retries: -1\n" + REST, (4, 5), "retries", "from 0 to 10000"),
        (STAGE + b"    retries: 1.5\n" + REST, (4, 5), "retries", "must be a whole number, not '1.5'"),
        (STAGE + b"    retries: true\n" + REST, (4, 5), "retries", "must be a whole number"),
        (STAGE + b"    imperative: 1\n" + REST, (4, 5), "imperative", "must be true or false, not a number"),
        (STAGE + b"    needs: all\n" + REST, (4, 5), "needs", "must be 'dependencies'"),
        (STAGE + b"    per: element\n" + REST, (4, 5), "per", "must be 'session'"),
        (STAGE + b"    on_ok: push\n" + REST, (4, 5), "on_ok", "must be 'skip-to STAGE'"),
        (STAGE + b"    on_ok: skip-to build\n" + REST, (4, 5), "on_ok", "'build' is not a later stage"),
        (STAGE + b"    takes: {cpu: 1}\n" + REST, (4, 13), "takes.cpu", "there is no limit 'cpu'"),
        (STAGE + b"    mem: 4 apples\n" + REST, (4, 5), "mem", "stage 'build', field 'mem'"),
        (STAGE + b"    cpus: -1\n" + REST, (4, 5), "cpus", "must be from 0"),
        (STAGE + b"    priority: 3\n" + REST, (4, 5), "priority", "no such field"),
        (STAGE + b"limits: {cpu: 0}\n" + REST, (4, 10), "limits.cpu", "from 1"),
        (STAGE + b"limits: {'a b': 1}\n" + REST, (4, 10), "limits.a b", "cannot be the name of a limit"),
        (STAGE + b"limits: {cpu: 2}\nelements: {-a: {}}\n", (5, 12), "elements.-a", "cannot be the name"),
        (STAGE + b"elements: {../a: {}}\n", (4, 12), "elements.../a", "'.' or '..'"),
        (STAGE + b"elements: {a: 3}\n", (4, 12), "", "must be an object: {} or"),
        (STAGE + b"elements: {a: {depends: b}}\n", (4, 16), "depends", "must be a list"),
        (STAGE + b"elements: {a: {}, b: {depends: [a, c]}}\n", (4, 36), "depends", "there is no element 'c'"),
        (STAGE + b"elements: {a: {depends: [b]}, b: {depends: [a]}}\n", (4, 45), "depends", "a -> b -> a"),
        (STAGE + b"elements: {a: {depends: [a]}}\n", (4, 26), "depends", "it depends on itself"),
        (STAGE + b"elements: {a: {url: }}\n", (4, 16), "url", "must be a text, not nothing"),
        (STAGE + b"elements: {a: {url: [b]}}\n", (4, 16), "url", "must be a text, not a list"),
        (STAGE + b"elements: {a: {key: b}}\n", (4, 16), "key", "given by Rota"),
        (STAGE + b"elements: {a: {'b c': d}}\n", (4, 16), "b c", "cannot be a placeholder"),
        (STAGE + b"elements: {a: {b: \"\\0\"}}\n", (4, 16), "b", "NUL"),
        (STAGE + b"elements: {[a]: {}}\n", (4, 12), "", "a key must be a text, not a list"),
        (STAGE + b"    skip_if: test {ur}\nelements: {a: {url: x}}\n", (4, 5), "skip_if", "no element has a"),
        (STAGE + b"    skip_if: t {u}\nelements: {a: {u: x}, b: {}}\n", (5, 23), "", "this element has no 'u'"),
        (STAGE + b"    skip_if: cat `echo {name}`\n" + REST, (4, 5), "skip_if", "backquotes"),
        (STAGE + b"    per: session\n" + REST, (3, 5), "run", "a stage per session has none"),
        (STAGE + b"    redefines: {name}\n" + REST, (4, 5), "redefines", "must be a text, not an object"),
        (b"stages: [{name: a, run: 'b {key}', redefines: r}]\n" + REST, (1, 20), "run", "{key} is known"),
        (b"stages: [{name: a, run: b}, {name: a, run: c}]\n" + REST, (1, 30), "name", "two stages 'a'"),
        (b"stages: [{name: a, run: b}, {name: c, run: d, redefines: e}]\n" + REST, (1, 47), "redefines", "first"),
        (b"stages: [{name: 'a b', run: b}]\n" + REST, (1, 11), "name", "cannot be the name of a stage"),
        (b"stages: [{name: a}]\n" + REST, (1, 10), "run", "is missing"),
        (b"stages: [{name: a, run: ' '}]\n" + REST, (1, 20), "run", "the command is empty"),
        (b"stages: [{name: a, run: [b]}]\n" + REST, (1, 20), "run", "must be a text, not a list"),
        (b"stages: [{name: a, run: b, per: session, always: true}]\n" + REST, (1, 42), "always", "per session"),
        (b"a: !!python/object/apply:os.system [x]\n", (1, 4), "", "the tag"),
        (b"a: !x y\n", (1, 4), "", "the tag '!x' is not allowed"),
        (b"a: *x\n", (1, 4), "", "there is no anchor 'x'"),
        (b"a: &x [*x]\n", (1, 8), "", "there is no anchor 'x'"),
        (b"a: b\n---\nc: d\n", (2, 1), "", "a second document"),
        (b"a: [b\nc: d\n", (2, 2), "", "not YAML"),
        (b"a: 'b\n", (2, 1), "", "not YAML"),
        (b"a: b\n\tc: d\n", (2, 1), "", "not YAML"),
        (b"a: \xc3\xa9 \xff\n", (1, 6), "", "not valid UTF-8"),
        (b"a: \x07\n", (1, 4), "", "not YAML"),
        (b"[" * 100_000, (1, 13), "", "nested too deeply"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_place(data: bytes, place: tuple[int, int], field: str, text: str) -> None:
    error = refused(data)
    assert text in error.message
    assert ((error.line, error.column), error.field) == (place, field)
    assert error.message.startswith(f"p.yaml line {place[0]}, column {place[1]}: ")


def test_aliases_cannot_stand_for_more_than_fits_into_memory() -> None:
    lines = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
    for one, two in zip("abcdefgh", "bcdefghi", strict=True):
        lines.append(f"{two}: &{two} [{', '.join([f'*{one}'] * 10)}]")
    assert "aliases stand for too much" in refused("\n".join(lines).encode()).text


def test_what_units_can_never_be_had_is_refused() -> None:
    data = b"limits: {cpu: 2}\nstages: [{name: a, run: b, takes: {cpu: 3}}]\n" + REST
    assert "the job could never run" in refused(data).text
    data = b"limits: {cpu: 2}\nstages: [{name: a, run: b, takes: {cpu: some}}]\n" + REST
    assert "'exclusive'" in refused(data).text


def test_a_command_that_is_too_long_for_an_element_is_refused() -> None:
    data = (
        b"stages: [{name: a, run: '"
        + b"{v} " * 3
        + b"'}]\nelements: {a: {v: b}, c: {v: "
        + b"'d '" * 15_000
        + b"}}"
    )
    error = refused(data)
    assert "would have more than" in error.text
    assert "element 'c'" in error.message


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"none\.yaml: cannot be read: No such file"):
        load(tmp_path / "none.yaml")
    with pytest.raises(BadInput, match="cannot be read: Is a directory"):
        load(tmp_path)


def test_a_huge_file_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    huge = tmp_path / "huge.yaml"
    with huge.open("wb") as file:
        file.truncate(MAX_BYTES + 10)
    with pytest.raises(BadInput, match="has more than 128 MiB"):
        load(huge)


@given(st.binary(max_size=60))
def test_any_bytes_are_a_pipeline_or_refused_with_a_line(data: bytes) -> None:
    try:
        read(data)
    except BadPipeline as error:
        assert error.line > 0
        assert error.hint


@given(st.data())
@dose(200)
def test_a_damaged_example_is_a_pipeline_or_refused_with_a_line(data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(EXAMPLE) - 1))
    length = data.draw(st.integers(0, 12))
    new = data.draw(
        st.sampled_from([b"", b"{", b"}", b"[", b": ", b"\n", b"- ", b"'", b"&a ", b"*a ", b"!t ", b"{x}"])
    )
    try:
        read(EXAMPLE[:at] + new + EXAMPLE[at + length :])
    except BadPipeline as error:
        assert error.line > 0
        assert error.hint


def test_other_commands_do_not_load_the_yaml_parser() -> None:
    code = "import sys, rota.cli.main, rota.pipeline; print('ruamel.yaml' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_a_file_that_a_program_wrote_as_json_may_escape_any_character() -> None:
    text = '{"stages": [{"name": "s", "run": "true"}], "elements": {"\\ud83c\\udf89": {}}}'
    assert [each.name for each in from_bytes(text.encode(), source="p.yaml").elements] == ["🎉"]
