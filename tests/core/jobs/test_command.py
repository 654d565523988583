"""Commands of every kind are stored, recognised and shown as they always were, also calls."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.core.jobs import command
from rota.core.jobs.command import Call, Command, command_from_text, command_to_text, identity_bytes
from tests.dose import dose

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_CALLS = st.builds(
    Call,
    _TEXT,
    st.lists(st.integers(-5, 5) | _TEXT, max_size=3),
    st.dictionaries(_TEXT, st.integers(2, 5), max_size=3),
    _TEXT,
)
_WORDS = st.lists(_TEXT, max_size=4)
_COMMANDS = (
    _CALLS
    | _TEXT
    | st.lists(_TEXT, max_size=4)
    | st.sampled_from(["\x01x", "\x02", "\x02[]", '\x01["a"]', "\x03{}"])
)


@pytest.mark.parametrize(
    ("cmd", "stored", "identity"),
    [
        ("make all", "make all", b"s0\0make all"),
        (["make", "all"], '\x01["make","all"]', b"l0\0make\0all\0"),
        ("\x01x", "\x02\x01x", b"s0\0\x01x"),
        ("\x02x", "\x02\x02x", b"s0\0\x02x"),
        ("", "", b"s0\0"),
        ([], "\x01[]", b"l0\0"),
        (Call("m:f"), '\x01{"call":"m:f"}', b"c0\0m:f\0[]\0{}\0"),
        (
            Call("m:f", [1, "a"], {"k": 2.5}, "/bin/python"),
            '\x01{"call":"m:f","args":[1,"a"],"kwargs":{"k":2.5},"python":"/bin/python"}',
            b'c0\0m:f\0[1,"a"]\0{"k":2.5}\0/bin/python',
        ),
        (Call("m:f", [[1]], each=True), '\x01{"call":"m:f","args":[[1]],"each":true}', b"e0\0m:f\0[[1]]\0{}\0"),
    ],
)
def test_what_is_stored_and_hashed_never_changes(cmd: Command, stored: str, identity: bytes) -> None:
    assert (command_to_text(cmd), identity_bytes(cmd, 0)) == (stored, identity)
    assert command_from_text(stored) == cmd


@dose(100)
@given(_COMMANDS)
def test_a_stored_command_comes_back_and_travels(cmd: Command) -> None:
    assert command_from_text(command_to_text(cmd)) == cmd
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(cmd), type=Command) == cmd  # type: ignore[arg-type]


@dose(100)
@given(_COMMANDS, _COMMANDS, st.integers(0, 3), st.integers(0, 3))
def test_different_commands_are_told_apart_unless_a_word_has_a_nul(
    one: Command, other: Command, n: int, m: int
) -> None:
    if "\0" not in "".join([*command.texts_of(one), *command.texts_of(other)]):
        assert (identity_bytes(one, n) == identity_bytes(other, m)) == ((one, n) == (other, m))


def test_a_text_and_a_list_are_shown_and_measured() -> None:
    words = ["echo", "a b", ""]
    assert (command.one_line(words), command.shell_line(words), command.length(words)) == (
        "echo a b ", "echo 'a b' ''", 7,
    )  # fmt: skip
    assert (command.one_line("echo  a"), command.shell_line("echo  a"), command.length("echo  a")) == (
        "echo  a", "echo  a", 7,
    )  # fmt: skip
    assert command.with_parameters("run", "a 'b c'") == "run a 'b c'"
    assert command.with_parameters(["run"], "a 'b c'") == ["run", "a", "b c"]


@pytest.mark.parametrize(
    ("cmd", "expected"),
    [
        ("echo  a", "echo  a"),
        (["echo", "a b"], "echo 'a b'"),
        ("\n# about it\n  set -e\nmake\n", "set -e …"),
        ("make\n", "make"),
        ("# nothing\n#else", "# nothing …"),
        (["python3", "-c", "import x\nx.run()", "a b"], "python3 -c 'import x …' 'a b'"),
        (["sh", "-c", "cd x\nmake"], "sh -c 'cd x …'"),
        (["bash", "-c", "#!/bin/bash\nmake"], "bash -c 'make …'"),
    ],
)
def test_a_command_of_several_lines_has_a_brief_form(cmd: Command, expected: str) -> None:
    assert command.brief(cmd) == expected


def test_a_call_is_shown_with_its_arguments() -> None:
    call = Call("m:f", [1, "a b"], {"k": None})
    assert command.shell_line(call) == command.brief(call) == command.one_line(call) == 'm:f(1, "a b", k=null)'
    assert command.brief(Call("m:f", [[1], [2]], each=True)) == "m:f(*each) for each in [[1],[2]]"
    assert command.with_parameters(call, "x 'y z'") == Call("m:f", [1, "a b", "x", "y z"], {"k": None})
    assert call.module == "m"


def test_keyword_arguments_have_no_order() -> None:
    one, other = Call("m:f", [], {"a": 1, "b": 2}), Call("m:f", [], {"b": 2, "a": 1})
    assert identity_bytes(one, 0) == identity_bytes(other, 0)


def test_an_object_is_a_call_and_nothing_else() -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.msgpack.decode(msgspec.msgpack.encode({"other": "m:f"}), type=Command)
    with pytest.raises(msgspec.ValidationError):
        command_from_text('\x01{"other":"m:f"}')
