"""Commands of every kind are stored, recognised and shown as they always were, and another kind has room."""

from __future__ import annotations

import json
from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.core.jobs import command
from rota.core.jobs.command import Command, command_from_text, command_to_text, identity_bytes
from tests.dose import dose

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_COMMANDS = (
    _TEXT | st.lists(_TEXT, max_size=4) | st.sampled_from(["\x01x", "\x02", "\x02[]", '\x01["a"]', "\x03{}"])
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


def test_an_object_is_left_for_another_kind() -> None:
    """Neither messages nor the store take an object for a command of today, so that it can become one."""
    forms = {type(json.loads(json.dumps(sample))) for sample in ("x", ["x"])}
    assert len(get_args(Command)) == len(forms)
    with pytest.raises(msgspec.ValidationError):
        msgspec.msgpack.decode(msgspec.msgpack.encode({"call": "m:f"}), type=Command)
    with pytest.raises(msgspec.ValidationError):
        command_from_text('\x01{"call":"m:f"}')
